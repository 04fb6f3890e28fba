/* query: one read of an agent, as its two halves share it */
#ifndef AIRLOCK_CORE_QUERY_H
#define AIRLOCK_CORE_QUERY_H

#include "base/log.h"
#include "base/mem.h"
#include "core/grid.h"
#include "core/internal.h"
#include "core/judge.h"
#include "core/nearest.h"
#include "pg/session.h"

enum definitions { NOT_KNOWN, SAME, CHANGED };

struct query {
	struct call call;
	struct gate *gate;
	struct agent *agent;
	struct change *change; /* read inside this held change, or NULL */
	struct login *login;
	outcome_done *done;
	void *arg;
	char *sql;
	size_t sql_len;
	char *bare; /* what was parsed and is sent: sql without its comments */
	struct parameters params;
	struct facts facts;
	struct grid grid;
	struct parser_call *parsing;
	struct ticket *ticket;
	struct link *link;
	struct event *begin;
	bool in_batch, running, cancelled, full;
	struct reply reply;
	struct nearest *nearest;      /* names are being looked for */
	const struct reach *reach;    /* what it would run, once it is asked */
	int looks;                    /* at definitions that keep changing */
	enum definitions definitions; /* since then */
	enum reach_way way;           /* of looking at them */
	size_t i_before, i_statement, i_after, i_vouch;
};

/* core/query_link.c: judged fit; takes a link where it has none, and runs. */
void query_go(struct query *q);
/* core/query.c: the statement has been run, and its rows or its failure are
 * taken: what is known of the definitions decides. */
void query_conclude(struct query *q);
/* All is known: answers. */
void query_show(struct query *q);
/* core/query_end.c: frees q; the change it read in is held again. */
void query_free(struct query *q);
void query_leave_change(struct query *q);
/* Each answers, and frees: with q->reply, or with the rows. */
void query_refuse(struct query *q);
void query_answer(struct query *q);

#endif
