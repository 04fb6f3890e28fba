/* parser: keeps the child process that runs libpg_query; asks and is answered
 */
#include "core/parser.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "core/known.h"
#include "core/parser_spawn.h"
#include "sql/answer.h"
#include "sql/screen.h"

#define START_MS 10000   /* until the child says that it is ready */
#define RETRY_MIN_MS 100 /* after a child that never was */
#define RETRY_MAX_MS 5000
#define KNOWN_BYTES ((size_t)1 << 20)
#define BARREN_MAX 8 /* children that end before any answer, then it waits */

/* Where a call is: in its agent's queue, with the child, or settled, which is
 * to say that its answer waits to be told. */
enum call_place { CALL_QUEUED, CALL_ASKED, CALL_SETTLED };

struct parser_call {
	TAILQ_ENTRY(parser_call) entry;
	struct parser *parser;
	struct agent_queue *queue; /* while queued */
	enum call_place place;
	char *sql;         /* without its comments; NULL where it was refused */
	struct text frame; /* what the child is asked */
	struct text key;   /* by which the answer will be known */
	struct parser_answer answer;
	struct facts facts; /* of the answer, where it was known already */
	struct rewrite_result rewrite;
	parser_done *done; /* NULL: cancelled while with the child */
	void *arg;
};
TAILQ_HEAD(calls, parser_call);

struct agent_queue {
	TAILQ_ENTRY(agent_queue) entry;
	char *agent;
	struct calls calls;
	size_t n;
};
TAILQ_HEAD(queues, agent_queue);

enum child_state {
	CHILD_NONE,     /* the clock says when to start one */
	CHILD_STARTING, /* the clock is its deadline */
	CHILD_IDLE,
	CHILD_BUSY, /* the clock is the statement's deadline */
};

struct parser {
	struct event_base *base;
	struct parser_options o;
	enum child_state state;
	struct spawned child; /* pid 0 in CHILD_NONE */
	struct bufferevent *channel;
	struct event *clock;
	struct event *teller; /* runs while something is settled */
	struct parser_call *asked;
	struct queues queues; /* the next one served is the first */
	struct calls settled;
	struct known *known;
	struct graves graves;
	int retry_ms;
	int barren; /* children since the last answer */
};

static void
set_clock(struct parser *p, int ms)
{
	struct timeval tv = { ms / 1000, ms % 1000 * 1000 };

	evtimer_add(p->clock, &tv);
}

static void
call_free(struct parser_call *c)
{
	text_release(&c->frame);
	text_release(&c->key);
	facts_release(&c->facts);
	rewrite_result_release(&c->rewrite);
	free(c->sql);
	free(c);
}

/* Nothing else here holds the call any more. */
static void
tell(struct parser_call *c)
{
	c->answer.sql = c->sql;
	if (c->done != NULL)
		c->done(c->arg, &c->answer);
	call_free(c);
}

/* The answer is told from the loop, never from inside the asking call. */
static void
settle(struct parser_call *c, enum parser_status status, const char *text,
    long byte)
{
	struct err ignored = ERR_INIT;
	struct parser *p = c->parser;

	c->place = CALL_SETTLED;
	c->answer.status = status;
	c->answer.byte = byte;
	if (text_copy(c->answer.text, sizeof(c->answer.text), text, &ignored) ==
	    -1)
		c->answer.text[0] = '\0';
	TAILQ_INSERT_TAIL(&p->settled, c, entry);
	event_active(p->teller, EV_TIMEOUT, 0);
}

static void
told(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct parser *p = arg;
	struct parser_call *c = TAILQ_FIRST(&p->settled);

	if (c == NULL)
		return;
	TAILQ_REMOVE(&p->settled, c, entry);
	if (!TAILQ_EMPTY(&p->settled))
		event_active(p->teller, EV_TIMEOUT, 0);
	tell(c);
}

static struct agent_queue *
queue_of(struct parser *p, const char *agent)
{
	struct agent_queue *q;

	TAILQ_FOREACH (q, &p->queues, entry)
		if (strcmp(q->agent, agent) == 0)
			return q;
	q = mem_new(sizeof(*q));
	q->agent = mem_strdup(agent);
	TAILQ_INIT(&q->calls);
	TAILQ_INSERT_TAIL(&p->queues, q, entry);
	return q;
}

static void
unqueue(struct parser *p, struct parser_call *c)
{
	struct agent_queue *q = c->queue;

	TAILQ_REMOVE(&q->calls, c, entry);
	c->queue = NULL;
	TAILQ_REMOVE(&p->queues, q, entry);
	if (--q->n > 0) {
		TAILQ_INSERT_TAIL(&p->queues, q, entry);
		return;
	}
	free(q->agent);
	free(q);
}

/* At once as far as it goes, which saves two turns of the loop. */
static void
ask_child(struct parser *p, const struct text *frame)
{
	ssize_t sent = send(p->child.channel, frame->s, frame->len,
	    MSG_DONTWAIT | MSG_NOSIGNAL);
	size_t n = sent > 0 ? (size_t)sent : 0;

	bufferevent_write(p->channel, frame->s + n, frame->len - n);
}

/* Gives an idle child the next statement. */
static void
pump(struct parser *p)
{
	struct agent_queue *q = TAILQ_FIRST(&p->queues);
	struct parser_call *c;

	if (p->state != CHILD_IDLE || q == NULL)
		return;
	c = TAILQ_FIRST(&q->calls);
	unqueue(p, c);
	c->place = CALL_ASKED;
	p->asked = c;
	p->state = CHILD_BUSY;
	ask_child(p, &c->frame);
	text_release(&c->frame);
	set_clock(p, p->o.deadline_ms);
}

static void
refuse_all(struct parser *p)
{
	struct agent_queue *q;
	struct parser_call *c;

	while ((q = TAILQ_FIRST(&p->queues)) != NULL) {
		c = TAILQ_FIRST(&q->calls);
		unqueue(p, c);
		settle(c, PARSER_UNAVAILABLE, "no parser can be started", -1);
	}
}

static void
drop_child(struct parser *p)
{
	evtimer_del(p->clock);
	if (p->channel != NULL)
		bufferevent_free(p->channel);
	p->channel = NULL;
	spawn_end(p->base, &p->child, &p->graves);
	p->state = CHILD_NONE;
}

static void
start_later(struct parser *p)
{
	refuse_all(p);
	set_clock(p, p->retry_ms);
	p->retry_ms =
	    p->retry_ms * 2 < RETRY_MAX_MS ? p->retry_ms * 2 : RETRY_MAX_MS;
}

static void start(struct parser *p);

/* The child has died, or is not wanted any more: the statement that was with it
 * is refused, and the next child takes over. */
static void
lose_child(struct parser *p, const char *why)
{
	struct parser_call *c = p->asked;
	bool never_was = p->state == CHILD_STARTING || p->barren > BARREN_MAX;

	drop_child(p);
	p->asked = NULL;
	if (c != NULL && c->done == NULL)
		call_free(c);
	else if (c != NULL)
		settle(c, PARSER_TOO_COMPLEX, why, -1);
	if (!never_was) {
		start(p);
		return;
	}
	log_warnx("the parser does not start: %s", why);
	start_later(p);
}

static const enum parser_status status_of[ANSWER_NSTATUS] = {
	[ANSWER_OK] = PARSER_OK,
	[ANSWER_READY] = PARSER_UNAVAILABLE,
	[ANSWER_SYNTAX] = PARSER_SYNTAX,
	[ANSWER_COMPLEX] = PARSER_TOO_COMPLEX,
	[ANSWER_UNPROVED] = PARSER_UNPROVED,
};

/* The byte of a character that is counted from 1; 0 is not known. */
static long
byte_of(const char *sql, long character)
{
	long byte = 0;

	if (character <= 0)
		return -1;
	for (; --character > 0 && sql[byte] != '\0'; byte++)
		while (((unsigned char)sql[byte + 1] & 0xc0) == 0x80)
			byte++;
	return byte;
}

/* The child is busy elsewhere by the time the call hears of it. */
static void
finish(struct parser *p, struct answer *a, size_t size)
{
	struct parser_call *c = p->asked;

	p->asked = NULL;
	p->state = CHILD_IDLE;
	p->barren = 0;
	p->retry_ms = RETRY_MIN_MS;
	evtimer_del(p->clock);
	pump(p);
	c->answer.status = status_of[a->status];
	memcpy(c->answer.text, a->text, sizeof(c->answer.text));
	c->answer.byte = byte_of(c->sql, a->position);
	c->answer.facts = a->has_facts ? &a->facts : NULL;
	c->answer.rewrite = a->has_rewrite ? &a->rewrite : NULL;
	if (c->answer.status == PARSER_OK)
		known_add(p->known, &c->key, c->answer.facts, c->answer.rewrite,
		    size);
	tell(c);
	answer_release(a);
}

static void
take(struct parser *p, struct answer *a, size_t size, bool more)
{
	if (!more && p->state == CHILD_STARTING && a->status == ANSWER_READY) {
		p->state = CHILD_IDLE;
		evtimer_del(p->clock);
		answer_release(a);
		pump(p);
	} else if (!more && p->state == CHILD_BUSY &&
		   a->status != ANSWER_READY) {
		finish(p, a, size);
	} else {
		answer_release(a);
		log_warnx("the parser speaks out of turn");
		lose_child(p, "the parser failed");
	}
}

static void
readable(struct bufferevent *bev, void *arg)
{
	struct evbuffer *in = bufferevent_get_input(bev);
	struct parser *p = arg;
	unsigned char header[FRAME_HEADER];
	struct err e = ERR_INIT;
	struct answer a;
	size_t n;

	if (evbuffer_copyout(in, header, sizeof(header)) !=
	    (ssize_t)sizeof(header))
		return;
	n = frame_length(header, ANSWER_BYTES_MAX);
	if (n != 0 && evbuffer_get_length(in) < sizeof(header) + n)
		return;
	if (n == 0 ||
	    answer_unpack((char *)evbuffer_pullup(in, -1) + sizeof(header), n,
		&a, &e) == -1) {
		log_warnx("the parser's answer is refused: %s",
		    n != 0 ? e.text : "its length is wrong");
		lose_child(p, "the parser failed");
		return;
	}
	evbuffer_drain(in, sizeof(header) + n);
	take(p, &a, n, evbuffer_get_length(in) != 0);
}

static void
gone(struct bufferevent *bev UNUSED, short what UNUSED, void *arg)
{
	struct parser *p = arg;

	if (p->state == CHILD_STARTING) {
		lose_child(p, "it ends at once");
		return;
	}
	log_info("the parser has gone%s; it is replaced",
	    p->state == CHILD_BUSY ? " over a statement" : "");
	lose_child(p, "the statement was too much for the parser");
}

static void
tick(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct parser *p = arg;

	if (p->state == CHILD_NONE)
		start(p);
	else
		lose_child(p, p->state == CHILD_STARTING
				  ? "it does not answer"
				  : "the statement took too long to parse");
}

static void
start(struct parser *p)
{
	struct err e = ERR_INIT;

	if (spawn_parser(p->o.program, p->o.statement_bytes_max,
		p->o.memory_max, &p->child, &e) == -1) {
		log_warnx("%s", e.text);
		start_later(p);
		return;
	}
	p->channel = bufferevent_socket_new(p->base, p->child.channel,
	    BEV_OPT_CLOSE_ON_FREE);
	if (p->channel == NULL)
		fatalx("out of memory");
	bufferevent_setcb(p->channel, readable, NULL, gone, p);
	bufferevent_setwatermark(p->channel, EV_READ, 0,
	    ANSWER_BYTES_MAX + FRAME_HEADER);
	bufferevent_enable(p->channel, EV_READ | EV_WRITE);
	p->state = CHILD_STARTING;
	p->barren++;
	set_clock(p, START_MS);
}

struct parser *
parser_new(struct event_base *base, const struct parser_options *o)
{
	struct parser *p = mem_new(sizeof(*p));

	p->base = base;
	p->o = *o;
	p->o.queue_max = o->queue_max > 0 ? o->queue_max : 1;
	p->retry_ms = RETRY_MIN_MS;
	TAILQ_INIT(&p->queues);
	TAILQ_INIT(&p->settled);
	p->clock = evtimer_new(base, tick, p);
	p->teller = event_new(base, -1, 0, told, p);
	if (p->clock == NULL || p->teller == NULL)
		fatalx("out of memory");
	p->known = known_new(KNOWN_BYTES);
	start(p);
	return p;
}

void
parser_free(struct parser *p)
{
	struct parser_call *c;

	if (p == NULL)
		return;
	drop_child(p);
	spawn_bury_all(&p->graves);
	refuse_all(p);
	while ((c = TAILQ_FIRST(&p->settled)) != NULL) {
		TAILQ_REMOVE(&p->settled, c, entry);
		call_free(c);
	}
	if (p->asked != NULL)
		call_free(p->asked);
	event_free(p->clock);
	event_free(p->teller);
	known_free(p->known);
	free(p);
}

static const enum parser_status screened[] = {
	[SCREEN_FINE] = PARSER_OK,
	[SCREEN_TOO_LARGE] = PARSER_TOO_LARGE,
	[SCREEN_NUL] = PARSER_NUL,
	[SCREEN_NOT_UTF8] = PARSER_NOT_UTF8,
	[SCREEN_TOO_COMPLEX] = PARSER_TOO_COMPLEX,
};

static struct parser_call *
ask(struct parser *p, const char *agent, const char *sql, size_t len,
    const struct rewrite_edit *edit, parser_done *done, void *arg)
{
	const struct screen_limits limits = { p->o.statement_bytes_max,
		p->o.operator_run_max, p->o.comment_depth_max };
	struct parser_call *c = mem_new(sizeof(*c));
	enum screen verdict;
	char why[128];
	long at;

	c->parser = p;
	c->done = done;
	c->arg = arg;
	verdict = screen_text(sql, len, &limits, why, sizeof(why), &at);
	if (verdict != SCREEN_FINE) {
		settle(c, screened[verdict], why, at);
		return c;
	}
	if (p->state == CHILD_NONE) {
		settle(c, PARSER_UNAVAILABLE, "no parser can be started", -1);
		return c;
	}
	c->sql = mem_strndup(sql, len);
	screen_blank(c->sql, len);
	known_key(&c->key, c->sql, edit);
	if (known_find(p->known, &c->key, &c->facts, &c->rewrite)) {
		c->answer.facts = edit == NULL ? &c->facts : NULL;
		c->answer.rewrite = edit != NULL ? &c->rewrite : NULL;
		settle(c, PARSER_OK, "", -1);
		return c;
	}
	c->queue = queue_of(p, agent);
	if (c->queue->n >= p->o.queue_max) {
		settle(c, PARSER_BUSY, "too many statements wait to be parsed",
		    -1);
		return c;
	}
	c->place = CALL_QUEUED;
	c->queue->n++;
	TAILQ_INSERT_TAIL(&c->queue->calls, c, entry);
	ask_pack(&c->frame, c->sql, len, edit);
	pump(p);
	return c;
}

struct parser_call *
parser_facts(struct parser *p, const char *agent, const char *sql, size_t len,
    parser_done *done, void *arg)
{
	return ask(p, agent, sql, len, NULL, done, arg);
}

struct parser_call *
parser_rewrite(struct parser *p, const char *agent, const char *sql, size_t len,
    const struct rewrite_edit *edit, parser_done *done, void *arg)
{
	return ask(p, agent, sql, len, edit, done, arg);
}

void
parser_cancel(struct parser_call *c)
{
	struct parser *p = c->parser;

	if (c->place == CALL_ASKED) {
		c->done = NULL;
		return;
	}
	if (c->place == CALL_QUEUED)
		unqueue(p, c);
	else
		TAILQ_REMOVE(&p->settled, c, entry);
	call_free(c);
}

long
parser_pid(const struct parser *p)
{
	return p->child.pid;
}
