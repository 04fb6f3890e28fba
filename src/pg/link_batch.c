/* link_batch: runs a batch over a link, and takes the answers as they come */
#include <stdio.h>
#include <sys/ioctl.h>

#include "base/mem.h"
#include "pg/link_inner.h"

/* What a reading leaves in the socket is counted again by the next, once or
 * twice before libpq has room for the whole message; and the description of a
 * row may come in the same breath. */
#define SLACK ((size_t)16 << 20)

/* Asks for rows one by one where the step that is now due wants them; libpq
 * takes that only after the answer before it was read to its end. */
static void
arm(struct link *l)
{
	if (l->at < l->batch->n && l->batch->v[l->at].row != NULL)
		PQsetSingleRowMode(l->conn);
}

static const struct kept *
find_kept(const struct link *l, const char *sql)
{
	for (size_t i = 0; i < l->nkept; i++)
		if (l->kept[i].sql == sql)
			return &l->kept[i];
	return NULL;
}

/* Known only when the server has said so: a batch may fail before. */
static bool
send_kept(struct link *l, struct batch_step *s)
{
	const struct kept *k = find_kept(l, s->kept);
	char name[32];

	if (k == NULL)
		s->prepares = ++l->numbers;
	snprintf(name, sizeof(name), "airlock_kept_%u",
	    k != NULL ? k->number : s->prepares);
	if (k == NULL && PQsendPrepare(l->conn, name, s->text, 0, NULL) != 1)
		return false;
	return PQsendQueryPrepared(l->conn, name, s->n,
		   (const char *const *)s->values, NULL, NULL, 0) == 1;
}

static bool
send_step(struct link *l, struct batch_step *s)
{
	const char *const *values = (const char *const *)s->values;

	if (s->text == NULL)
		return PQpipelineSync(l->conn) == 1;
	if (s->kept != NULL && l->keeps)
		return send_kept(l, s);
	if (s->prepared)
		return PQsendQueryPrepared(l->conn, s->text, s->n, values, NULL,
			   NULL, 0) == 1;
	return PQsendQueryParams(l->conn, s->text, s->n, NULL, values, NULL,
		   NULL, 0) == 1;
}

void
link_flush(struct link *l)
{
	int rc = PQflush(l->conn);
	short read = l->held ? 0 : EV_READ;

	if (rc == -1)
		link_die(l, ERR_DATABASE, PQerrorMessage(l->conn));
	else
		link_watch(l, rc == 1 ? read | EV_WRITE : read);
}

void
link_hold(struct link *l)
{
	l->held = true;
	link_watch(l, l->io_what & EV_WRITE);
}

void
link_go_on(struct link *l)
{
	if (!l->held || l->state == LINK_DEAD)
		return;
	l->held = false;
	l->going = true;
	link_watch(l, l->io_what | EV_READ);
	event_active(l->io, EV_READ, 0);
}

void
link_run(struct link *l, struct batch *b, link_done *done, void *arg)
{
	if (b->n == 0 || b->v[b->n - 1].text != NULL)
		batch_sync(b);
	l->batch = b;
	l->at = 0;
	l->done = done;
	l->done_arg = arg;
	l->row_bytes = 0;
	l->warning[0] = '\0';
	if (l->state == LINK_DEAD)
		return; /* the timer is on its way and tells the batch too */
	l->state = LINK_BUSY;
	for (size_t i = 0; i < b->n; i++)
		if (!send_step(l, &b->v[i])) {
			link_die(l, ERR_DATABASE, PQerrorMessage(l->conn));
			return;
		}
	arm(l);
	link_flush(l);
}

static void
keep(struct batch_step *s, PGresult *r, enum batch_state state)
{
	PQclear(s->result);
	s->result = r;
	s->state = state;
}

/* A segment is answered. */
static void
take_sync(struct link *l, const struct batch_step *s)
{
	l->at++;
	arm(l);
	if (s->told != NULL)
		s->told(s->arg, l->batch);
}

static bool
row_fits(const PGresult *r, size_t max)
{
	size_t n = 0;

	if (PQresultMemorySize(r) <= max)
		return true; /* its values are a part of that */
	for (int i = 0; i < PQnfields(r); i++)
		n += (size_t)PQgetlength(r, 0, i);
	return n <= max;
}

/* One row of a step that takes them one by one. */
static bool
take_row(struct link *l, const struct batch_step *s, PGresult *r)
{
	bool fits = row_fits(r, l->row_bytes_max);

	if (fits)
		s->row(s->arg, r);
	else
		link_die(l, ERR_LIMIT,
		    "a row is larger than row_bytes_max; the transaction "
		    "was ended");
	PQclear(r);
	return fits;
}

/* What became of preparing it.  Where that failed the step has, and what the
 * server says of running it is no news. */
static void
take_prepared(struct link *l, struct batch_step *s, PGresult *r)
{
	s->heard = true;
	if (PQresultStatus(r) != PGRES_COMMAND_OK) {
		keep(s, r,
		    PQresultStatus(r) == PGRES_PIPELINE_ABORTED ? BATCH_SKIPPED
								: BATCH_FAILED);
		return;
	}
	PQclear(r);
	l->kept = mem_grow(l->kept, l->nkept + 1, sizeof(*l->kept));
	l->kept[l->nkept++] = (struct kept){ s->kept, s->prepares };
}

/* One result of the step that is due; false where the link had to end. */
static bool
take(struct link *l, PGresult *r)
{
	struct batch_step *s = &l->batch->v[l->at];

	l->row_bytes = 0;
	if (s->prepares != 0 && !s->heard) {
		take_prepared(l, s, r);
		return true;
	}
	if (s->state == BATCH_FAILED || s->state == BATCH_SKIPPED) {
		PQclear(r);
		return true;
	}
	switch (PQresultStatus(r)) {
	case PGRES_SINGLE_TUPLE:
		return take_row(l, s, r);
	case PGRES_TUPLES_OK:
	case PGRES_COMMAND_OK:
	case PGRES_EMPTY_QUERY:
		keep(s, r, BATCH_OK);
		return true;
	case PGRES_PIPELINE_ABORTED:
		keep(s, r, BATCH_SKIPPED);
		return true;
	case PGRES_PIPELINE_SYNC:
		PQclear(r);
		take_sync(l, s);
		return true;
	case PGRES_FATAL_ERROR:
		keep(s, r, BATCH_FAILED);
		return true;
	default: /* COPY: no statement of ours, and refused to agents */
		PQclear(r);
		link_die(l, ERR_DATABASE, "the server began a COPY");
		return false;
	}
}

static void
finish(struct link *l)
{
	struct batch *b = l->batch;

	l->batch = NULL;
	l->held = l->going = false;
	l->state = LINK_IDLE;
	l->done(l->done_arg, l, b);
	batch_free(b);
}

/* Reads what has come; true when the whole batch is answered. */
static bool
drain(struct link *l)
{
	while (l->state != LINK_DEAD && l->at < l->batch->n && !l->held &&
	       !PQisBusy(l->conn)) {
		struct batch_step *s = &l->batch->v[l->at];
		PGresult *r = PQgetResult(l->conn);

		if (r != NULL) {
			if (s->text == NULL &&
			    PQresultStatus(r) != PGRES_PIPELINE_SYNC) {
				PQclear(r);
				continue;
			}
			if (!take(l, r))
				return false;
		} else if (s->prepares != 0 && s->heard) {
			s->prepares = 0; /* its own answer comes now */
		} else if (s->text != NULL && s->state != BATCH_WAITING) {
			l->at++; /* NULL: that statement's answer is whole */
			arm(l);
		} else {
			break;
		}
	}
	return l->state != LINK_DEAD && l->at == l->batch->n;
}

void
link_readable(struct link *l)
{
	int waiting = 0;

	if (l->held)
		return;
	/* Nothing is read on top of what has been: a buffer that is filled
	 * faster than it is emptied would grow with the rows. */
	if (l->going && l->batch != NULL) {
		l->going = false;
		if (drain(l))
			finish(l);
		return;
	}
	if (ioctl(PQsocket(l->conn), FIONREAD, &waiting) == 0)
		l->row_bytes += (size_t)waiting;
	if (PQconsumeInput(l->conn) != 1) {
		/* A FATAL that came before the end says more than the end. */
		if (l->batch != NULL)
			(void)drain(l);
		link_die(l, ERR_DATABASE, PQerrorMessage(l->conn));
		return;
	}
	if (l->batch == NULL) {
		if (PQstatus(l->conn) != CONNECTION_OK)
			link_die(l, ERR_DATABASE, PQerrorMessage(l->conn));
		return;
	}
	if (drain(l)) {
		finish(l);
		return;
	}
	/* So that no row far above the limit is held in memory. */
	if (l->state == LINK_BUSY && l->row_bytes > l->row_bytes_max + SLACK)
		link_die(l, ERR_LIMIT,
		    "a row is much larger than row_bytes_max; the transaction "
		    "was ended");
}
