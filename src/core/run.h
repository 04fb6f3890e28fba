/* run: one statement of an agent on its way into a change */
#ifndef AIRLOCK_CORE_RUN_H
#define AIRLOCK_CORE_RUN_H

#include "core/grid.h"
#include "core/internal.h"
#include "core/spool.h"
#include "diff/capture.h"

/* Rows that the images say were changed in one leaf table. */
struct leaf {
	uint32_t oid;
	uint64_t n[IMAGE_NOPS];
};

/* The look at the definitions behind the statement, asked while what the
 * statement left is still being examined. */
struct look {
	bool asked, answered, awaited;
	bool table; /* the target's definition is in it */
	char *snapshot;
	struct err e;
};

struct run {
	struct call call;
	struct gate *gate;
	struct agent *agent;
	struct change *change; /* NULL until there is one */
	bool adding;           /* to a held change */
	bool again;            /* once, on a definition gone stale */
	bool retried;          /* once, after a serialization failure */
	bool cancelled;        /* nobody waits for the answer any more */
	bool stoppable;  /* a cancel would hit the statement and nothing else */
	bool executed;   /* the statement was sent to the server */
	bool proved;     /* the change tells of it: no way back */
	bool repaired;   /* what is prepared, after it was taken away */
	bool misprinted; /* its rows came by other settings than ours */
	struct reply reply; /* the answer while a savepoint is undone */
	outcome_done *done;
	void *arg;
	char *sql, *intent;
	size_t sql_len;
	char *bare; /* what was parsed: sql without its comments */
	struct parameters params;
	/* judged */
	struct facts facts;
	struct verdict asked;
	const struct reach *reach; /* what it would run, once it is asked */
	int looks;                 /* at definitions that keep changing */
	bool ran;                  /* they are looked at again, afterwards */
	enum reach_way way;        /* in which they were before */
	struct look look;          /* behind it */
	struct nearest *nearest;   /* names are being looked for */
	bool suggested;            /* once */
	struct relation *relation;
	struct capture plan;
	struct rewrite_result rewrite; /* what is sent */
	/* under way: at most one of these */
	size_t step;
	struct parser_call *parsing;
	struct ticket *ticket;
	bool in_batch;
	int questions; /* asked while waiting for the catalogs */
	struct event
	    *tick; /* next piece of sealing, or next look at blockers */
	/* what came back */
	struct grid returned;
	struct sizing *sizing; /* tables are being counted */
	struct sweep *sweep;   /* rows are being found by transaction id */
	struct pair *pair;     /* the observer is being asked */
	struct spool *spool; /* CAPTURE_CONFLICT: rows that wait for pairing */
	struct leaf *leaves; /* sorted by oid */
	size_t nleaves, last_leaf;
	struct err row_err; /* the first row that could not be taken */
	struct counts counts;
	struct replay *replay; /* the second digest being made */
	json_t *filled;        /* core/filled.c: of the target's rows */
	bool filled_ready;
	int64_t rows_now; /* of the target, -1 unknown, -2 more than counted */
	char insert_lsn[24], deferred[300];
	char *deferrable;    /* defers again what begins deferred, or NULL */
	struct text blocker; /* who was in the way, for people */
	/* numbers of the statements in the batch */
	size_t i_before; /* a look at the definitions, or -1 */
	size_t i_deferrable;
	size_t i_open, i_statement, i_constraints, i_counts, i_rows, i_lsn;
	size_t i_pinned, i_left, i_settled; /* SESSION_PIN, each time */
	size_t i_settling, i_last; /* counters, and what waits once more */
	size_t i_filled;           /* in the batch of core/causes.c, or -1 */
	bool unsettled;            /* deferred work puts off more and more */
};

/* What a step says: go on, come back when told, or it is over (r is freed). */
enum run_next { RUN_GO, RUN_WAIT, RUN_OVER };
typedef enum run_next run_step(struct run *r);
/* Takes the next steps; for callbacks. */
void run_go(struct run *r);

/* Endings; each answers the caller and frees r. */
enum run_next run_refuse(struct run *r, enum reason reason, const char *fmt,
    ...) PRINTF_LIKE(3, 4);
enum run_next run_refuse_finding(struct run *r, const struct finding *f);
enum run_next run_reply(struct run *r, struct reply *reply);
enum run_next run_link_failed(struct run *r, const struct err *e, bool started);

/* core/ending.c: nothing that was asked is awaited any more. */
void run_quit(struct run *r);
/* core/counts.c: the images take more than may be; with what was counted. */
enum run_next run_too_large(struct run *r, const char *why);

/* core/ending.c: answers with r->reply and frees r; frees r. */
void run_answer(struct run *r);
void run_free(struct run *r);
void run_record_refusal(struct run *r);

/* core/judge.c: what the catalog says of what it would run, before and after.
 */
run_step run_consult, run_verify, run_consult_again;
/* The statement has run: asks what run_verify waits for.  Forgets it. */
void run_look_behind(struct run *r);
void run_look_cancel(struct run *r);
/* Adds the look just before the statement, where there is to be one. */
void run_look_before(struct run *r, struct batch *b);
/* Whether that look let the statement run; if not, r goes on by itself. */
bool run_looked_before(struct run *r, const struct batch *b);
/* All is taken back, and judged or only looked at anew, some times. */
void run_look_again(struct run *r);
void run_consult_cancel(struct run *r);
/* Looks for the name that r->reply misses, and then answers; false: no need. */
bool run_suggest(struct run *r);

/* core/again.c: what the statement did is taken back and it is run anew, from
 * the catalog on: the definition that it was spliced by has changed. */
void run_again(struct run *r);
/* core/run.c: the step at which the catalog is asked about the target. */
void run_from_catalog(struct run *r);
/* core/again.c: a spliced statement failed with r->reply; is the splice to
 * blame? */
enum run_next run_blame_splice(struct run *r);

/* core/rows.c: rows of the statement as they come. */
batch_row run_row;
/* One image, complete: counts it, stores it unless nothing changed. */
int run_take_image(struct run *r, const struct image *im,
    struct err *e) MUST_CHECK;

/* core/effects.c: what functions may have done beside rows, by their texts. */
run_step run_effects;
/* The text that is sent is read there, so that it must be the agent's own. */
bool run_is_read(const struct run *r);
/* core/deferred.c: which constraints to defer before a statement is added. */
run_step run_deferrable;
/* core/pair.c: before-images for ON CONFLICT. */
run_step run_pair;
void run_pair_cancel(struct run *r);
/* core/proof.c: counters against images; tables that disagree are incomplete.
 */
run_step run_fold, run_prove;
/* core/causes.c: what may have written the tables that are not named; those
 * that a named view is written through to count as named. */
run_step run_causes;
/* core/sizes.c: what tables held before is asked for; what sizes they have,
 * once the images are all there. */
run_step run_sizes;
void run_sizes_cancel(struct run *r);
void sizes_settle(struct run *r);
/* core/filled.c: asks which columns of its tables the replay digest leaves out,
 * where that is not known; the question's number, -1 where there is none. */
size_t filled_ask(struct run *r, struct batch *b);
/* With its answer, or without one: what the statement gives stays. */
void filled_take(struct run *r, const struct batch *b, size_t step);
/* core/sweep.c: finds the rows of tables that are not proved, both ways. */
run_step run_sweep;
void run_sweep_cancel(struct run *r);
/* What it leaves out of the rows of the statement's own target; lends, or NULL
 * where that is nothing or not known. */
const json_t *filled_target(struct run *r);
/* core/sealing.c: its digests. */
run_step run_seal, run_seal_replay;
/* rc: of a piece of a step's work, 1 while there is more: then the step runs
 * again, after others had their turn. */
enum run_next run_piece(struct run *r, int rc);
/* core/proof.c: what the change amounts to, and its risk. */
run_step run_judge;
/* core/execute.c: the batch that runs the statement; one that is cancelled is
 * stopped where that takes nothing else of its change with it. */
void run_stop(struct run *r);
run_step run_execute;
void run_stop_watching(struct run *r);
/* The batch came back, the transaction is open, and r is still wanted; else r
 * is over. */
bool run_is_whole(struct run *r, const struct link *l, const struct batch *b);
/* core/examine.c: sets all settings and says what they were; what they were
 * where that was asked as `is`, behind the statement: RUN_GO, or it is over. */
size_t run_add_pins(struct run *r, struct batch *b);
enum run_next run_look_at_settings(struct run *r, const struct batch *b,
    size_t is);
/* What would wait for COMMIT is run, settings are set back, and the counters
 * are asked for; looks at all that.  RUN_GO: r->counts are its counters. */
void run_add_examination(struct run *r, struct batch *b);
enum run_next run_examine(struct run *r, const struct batch *b);
int run_read_counts(struct run *r, const struct batch *b,
    struct err *e) MUST_CHECK;
/* Where that may have put off more, it is run until nothing waits. */
run_step run_settle;

#endif
