/* parser: keeps the child process that runs libpg_query; asks and is answered
 */
#ifndef AIRLOCK_CORE_PARSER_H
#define AIRLOCK_CORE_PARSER_H

#include <event2/event.h>
#include <stddef.h>

#include "base/err.h"
#include "sql/facts.h"
#include "sql/rewrite.h"

/*
 * The child is `airlockd --parser` with only its socketpair (descriptor 3)
 * left open.  One statement is with it at a time; others wait in a queue per
 * agent, served in turn.  A statement that kills it, or that is not answered
 * within deadline_ms, gets PARSER_TOO_COMPLEX; the child is replaced and the
 * queue goes on.  Nothing here blocks.
 */
struct parser_options {
	const char *program;        /* path of airlockd, lent for good */
	size_t statement_bytes_max; /* gate before the child, inclusive */
	size_t operator_run_max;    /* 256 */
	size_t comment_depth_max;   /* 64 */
	int deadline_ms;            /* 2000 */
	size_t memory_max;          /* address space, 2 GiB; 0: no limit */
	size_t queue_max;           /* waiting statements per agent, 64 */
};

enum parser_status {
	PARSER_OK,
	PARSER_SYNTAX,    /* text and position (1-based, characters) are set */
	PARSER_TOO_LARGE, /* more than statement_bytes_max */
	PARSER_TOO_COMPLEX, /* gates, depth, killed or outlasted the child */
	PARSER_NOT_UTF8,
	PARSER_NUL,
	PARSER_UNPROVED,    /* rewrite only: shape or proof failed */
	PARSER_BUSY,        /* the agent's queue is full */
	PARSER_UNAVAILABLE, /* no child can be started */
	PARSER_NSTATUS
};

struct parser_answer {
	enum parser_status status;
	char text[512];  /* what was wrong, fit for the agent */
	long byte;       /* where in the text, -1 unknown */
	const char *sql; /* what was parsed, and alone is to be run: the text
	                    with spaces for its comments; lent for the call */
	/* On OK, of facts or rewrite calls; lent for the call.  Whoever wants
	 * to keep one copies the struct and zeroes this one. */
	struct facts *facts;
	struct rewrite_result *rewrite;
};

struct parser;
struct parser_call;
/* Called once, never from inside the asking call. */
typedef void parser_done(void *arg, const struct parser_answer *a);

struct parser *parser_new(struct event_base *base,
    const struct parser_options *o); /* starts the first child */
/* Waiting calls are dropped without an answer. */
void parser_free(struct parser *p);
/* sql need not be NUL-terminated and is copied; `agent` is the fairness key. */
struct parser_call *parser_facts(struct parser *p, const char *agent,
    const char *sql, size_t len, parser_done *done, void *arg);
struct parser_call *parser_rewrite(struct parser *p, const char *agent,
    const char *sql, size_t len, const struct rewrite_edit *edit,
    parser_done *done, void *arg);
/* The caller no longer wants the answer; done is not called. */
void parser_cancel(struct parser_call *call);
/* The living child's pid, 0 where there is none (status, tests). */
long parser_pid(const struct parser *p);
/* The child's side: serves descriptor 3 until it closes; returns the exit
 * code.  Limits itself (address space, CPU, no new privileges) first. */
int parser_child(void);

#endif
