/* internal: the structs that the rooms of the core share among themselves */
#ifndef AIRLOCK_CORE_INTERNAL_H
#define AIRLOCK_CORE_INTERNAL_H

#include <event2/event.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "core/change.h"
#include "core/gate.h"
#include "core/parser.h"
#include "core/reply.h"
#include "diff/store.h"
#include "pg/catalog.h"
#include "pg/pool.h"
#include "pg/reach.h"
#include "rule/verdict.h"

#define CHANGE_ID_SIZE 15

/* One login: its links and what it sees of the catalog. */
struct login {
	struct pool *pool;
	struct catalog *catalog;
	struct reach_list *reach;
	struct gate *gate;
};

struct agent_logins {
	struct login *writer, *reader;
};

struct gate {
	struct event_base *base;
	const struct gate_options *o;
	struct parser *parser;
	struct journal *journal;
	struct guard *guard;
	struct login **logins;
	size_t nlogins;
	struct login *observer;
	struct agent *agents;
	size_t nagents;
	int changes_fd;
	/* What runs, is held or in doubt, the oldest first; and what has ended
	 * in this run, the first that did first.  ids is a tree of both. */
	TAILQ_HEAD(change_list, change) changes, over;
	size_t nover;
	void *ids;
	json_t *ended;    /* of earlier runs: id -> {agent, status, why, ...} */
	json_t *in_doubt; /* of earlier runs: intents, each with its "header" */
	struct event *sync;    /* lazily appended records */
	struct event *resolve; /* changes in doubt: the next look */
	struct doubt *doubt;   /* the one that is being asked for, or NULL */
	bool stopping;
	void (*stopped)(void *arg);
	void *stopped_arg;
	struct event *stop_event;
	int64_t started_wall;
};

/* First member of every call under way. */
struct call {
	void (*cancel)(struct call *c);
};

enum change_state {
	CHANGE_RUNNING,    /* the first statement; nobody has seen it */
	CHANGE_HELD,       /* shown as pending */
	CHANGE_ADDING,     /* held, and a statement is being added */
	CHANGE_COMMITTING, /* an operator said yes; see core/decide.c */
	CHANGE_ENDING,     /* ROLLBACK is on its way */
	CHANGE_COMMITTED,
	CHANGE_ROLLED_BACK,
	CHANGE_IN_DOUBT,
	CHANGE_FAILED, /* the server refused COMMIT */
	CHANGE_NSTATES
};
extern const char *const change_status[CHANGE_NSTATES];

/* Why a change was rolled back; the words of the issue of results. */
#define WHY_OPERATOR "operator"
#define WHY_EXPIRED "expired"
#define WHY_WITHDRAWN "withdrawn"
#define WHY_LOST "lost"
#define WHY_SHUTDOWN "shutdown"
#define WHY_REFUSED "refused"
#define WHY_CONFLICT "conflict"

/* A table that the change wrote. */
struct change_table {
	char *name;
	bool collateral, complete;
	json_t *filled; /* columns: core/filled.c; array, or NULL */
	json_t *given;  /* those that stay all the same, likewise */
	bool filled_known, all_given;
	bool named, viewed; /* by the statement under way; through a view */
	json_t *by;         /* what may have written it: array, or NULL */
	bool opaque;        /* its rows cannot be had by any way */
	const char *why;    /* it is not complete: a constant, or NULL */
	bool exact; /* counts come from the store; else from the counters */
	uint64_t n[IMAGE_NOPS];
	uint64_t unchanged;
	uint64_t counted[IMAGE_NOPS];    /* by the server, all statements */
	int64_t rows_before, rows_after; /* -1 unknown; see core/sizes.c */
	bool asked, sized;               /* for rows_before; it is a count */
	bool parent;                     /* partitioned */
	bool estimated;
};

/* The server's counters of one relation, as they stood last. */
struct count_row {
	uint32_t oid;
	char *name, *root;
	char kind, persistence;
	bool catalog, exclusive;
	uint64_t n[IMAGE_NOPS];
	bool triggers; /* or foreign keys, */
	bool defers;   /* of which some may wait for COMMIT */
};
struct counts {
	struct count_row *v;
	size_t n;
};

/* What a held change was at each digest that it has had, the oldest first; see
 * core/mark.c. */
struct marks {
	struct mark *v;
	size_t n, ncounts;
	bool forgot; /* some were more than are kept */
};

/* Somebody who waits for the end of a change. */
struct watcher {
	TAILQ_ENTRY(watcher) next;
	struct call call;
	struct change *change;
	bool is_operator; /* is shown the header, not the agent's view */
	struct event *timer;
	outcome_done *done;
	void *arg;
};

struct change {
	TAILQ_ENTRY(change) next;
	struct gate *gate;
	char id[CHANGE_ID_SIZE];
	struct agent *agent;
	enum change_state state;
	char *intent;
	json_t *statements; /* [{"sql","params"}] */
	struct login *login;
	struct link *link;    /* lent by login->pool, NULL once it has ended */
	struct run *run;      /* the statement under way, or NULL */
	struct query *reader; /* a read inside it under way, or NULL */
	struct decision *decision; /* the verdict under way, or NULL */
	/* the opening */
	char xid8[24], xid[16], multixact[16], snapshot[64], insert_lsn[24];
	char *path;                    /* its search path, without "$user" */
	char system[24], timeline[12]; /* where COMMIT was sent */
	/* what it did */
	struct store *store;
	struct change_table *tables;
	size_t ntables;
	struct counts counts;
	struct verdict asked;   /* of all its statements */
	struct verdict verdict; /* asked, and of what was measured */
	json_t *effects;        /* [{"code","text"}] */
	bool complete, hidden_ddl;
	bool leaves_setting; /* of a name of its own, in its session for good */
	bool uncounted;      /* the counters may have been turned off */
	const char *why_incomplete; /* of no table: a constant, or NULL */
	char deferred[300]; /* the deferred constraint that fails, or "" */
	enum severity risk;
	char digest[DIGEST_HEX_SIZE], replay[DIGEST_HEX_SIZE];
	struct marks marks;
	/* times */
	int64_t created_wall, expires_wall, expires_boot;
	struct event *expiry;
	/* the end */
	const char *why;  /* a WHY_ word, or NULL */
	char *reason;     /* what the operator said, or the server */
	char *decided_by; /* operator's name */
	TAILQ_HEAD(, watcher) watchers;
};

/* core/gate.c: a change is among those under way until it has ended, then among
 * those that are over until it is forgotten; gate_change finds it in both. */
void gate_add_change(struct gate *g, struct change *c);
void gate_put_over(struct gate *g, struct change *c);
void gate_remove_change(struct gate *g, struct change *c);

/* core/change.c */
/* done is told once: at the end, or when w->timer is fired. */
struct watcher *change_watch(struct change *c, outcome_done *done, void *arg);
struct change *change_new(struct gate *g, struct agent *a, const char *intent);
/* Frees a change that never was held, or is forgotten; drops its link. */
void change_free(struct change *c);
struct change *change_find(struct gate *g, const char *id, const char *agent);
/* Sets the state, tells watchers when it has ended. */
void change_enter(struct change *c, enum change_state state);
/* HELD: starts the time to live. */
void change_hold(struct change *c);
/* `expiry` fires after so long: what that means is the state's to say. */
void change_deadline(struct change *c, int64_t ms);
/* Its transaction is over: its link is cleaned for the next, or closed where
 * that is not enough, since no RESET takes a setting of somebody's own back to
 * what it was before it was first set. */
void change_give_back(struct change *c, struct link *l);
/* Ends a held change by ROLLBACK; journals it first. */
void change_end(struct change *c, const char *why, const char *reason,
    const char *by);
/* The link is gone: pool_lost of a held change. */
void change_lost(void *arg, const struct err *e);
bool change_has_ended(const struct change *c);
/* Its table of that name as the catalog quotes it, or NULL. */
struct change_table *change_find_table(const struct change *c,
    const char *name);
size_t change_pending(const struct gate *g, const struct agent *a);
/* The agent's view: db_execute's and db_status' result. Gives. */
json_t *change_result(const struct change *c, bool with_sample);
/* Journal record of this kind with id and agent. Gives. */
json_t *change_record(const struct change *c, const char *kind);
void change_told(outcome_done *done, void *arg, bool ok, const char *code,
    const char *text, json_t *json /* taken */);
/* A JSON string; bytes that are not UTF-8 as text_add_json has them. */
json_t *shown_json(const char *s);
/* filled: with what the replay digest leaves out. */
json_t *change_tables_json(const struct change *c, bool filled);
json_t *reasons_json(const struct verdict *v);

/* core/run.c: the change ends under a statement that is being added; answers
 * its caller and frees the run, its batch is not awaited. */
void run_abort(struct run *r);

/* core/query.c: likewise, for a read inside the change. */
void query_abort(struct query *q);

/* core/filled.c: the columns that the replay digest leaves out; NULL where
 * there are none. Gives. */
json_t *filled_json(const struct change_table *t);

/* core/counts.c */
void counts_release(struct counts *c);
/* Adds the question that is SESSION_COUNTS; reads its answer. */
size_t counts_ask(struct batch *b, const struct change *c);
int counts_read(const struct batch *b, size_t i, struct counts *out,
    struct err *e) MUST_CHECK;
bool counts_equal(const struct counts *a, const struct counts *b);
/* The base of what comes, once a statement is undone: takes now.  What has been
 * shown under one name stays under it. */
void counts_put_back(struct change *c, struct counts *now);
/* A table of the change that is shown under another name by now: it, its schema
 * or its partitioned table was renamed, or it has left that one.  Or NULL. */
const struct count_row *counts_strayed(const struct counts *now,
    const struct counts *was);
/* The row of this oid, or NULL. */
const struct count_row *counts_find(const struct counts *c, uint32_t oid);
/* What happened to its rows: bits as CAUSE_INSERT (pg/causes.h). */
int counts_events(const struct count_row *row);
/* The table that it is shown as: a partition as its topmost one. */
const char *counts_shown_as(const struct count_row *row);

/* For the observer, whose own path and login are others: what is printed by a
 * path is printed alike on both sides of a row. */
void change_add_path(const struct change *c, struct batch *b);

/* core/mark.c: the change as it is now, under its digest. */
void marks_add(struct change *c);
void marks_release(struct marks *m);
/* Refuses a commit by a digest that is not the change's now. */
void marks_tell(struct change *c, const char *digest, outcome_done *done,
    void *arg);

/* core/effects.c: lists what a rollback or an undo cannot take back, once. */
void effect_add(struct change *c, const char *code, const char *text);

/* Appends "; public.t: 3 updated, 1 deleted" for what has moved since. */
void counts_tell(const struct counts *now, const struct counts *was,
    struct text *t);

/* core/decide.c */
void decide_commit(struct change *c, const struct operator_peer *who,
    outcome_done *done, void *arg);
/* Changes in doubt, of this run and earlier ones: look again soon. */
void decide_resolve_soon(struct gate *g);

/* core/recover.c */
int recover(struct gate *g, struct err *e) MUST_CHECK;
/* From a record that tells the status as its kind: what gate_ended gives. */
void recover_note_end(struct gate *g, const json_t *rec);

/* Parameters of a call as text; NULL members are SQL NULL. ERR_INPUT. */
struct parameters {
	char **v;
	int n;
};
int parameters_read(const json_t *array, const struct limits *l,
    struct parameters *out, struct err *e) MUST_CHECK;
void parameters_release(struct parameters *p);
const char *const *parameters_values(const struct parameters *p);

#endif
