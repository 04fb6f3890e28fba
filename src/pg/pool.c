/* pool: the links of one login: lent for one purpose at a time, cleaned after
 */
#include "pg/pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/log.h"
#include "base/mem.h"
#include "pg/questions.h"

#define BACKOFF_MIN_MS 100
#define BACKOFF_MAX_MS 10000
#define IDLE_MAX 4    /* links kept for the next who asks */
#define UNSEEN_MAX 32 /* transactions of own code before the next look */

enum member_state {
	MEMBER_CONNECTING, /* no session yet */
	MEMBER_IDLE,
	MEMBER_LENT,
	MEMBER_CLEANING, /* or about to be */
};

struct member {
	TAILQ_ENTRY(member) next;
	struct pool *pool;
	struct link *link;
	enum member_state state;
	bool control, stopped;
	bool given_back;                 /* cleaning has not begun */
	bool unwinds;                    /* it is session_unwind, */
	bool looks;                      /* and that looks */
	int unseen;                      /* times that it did not */
	size_t looked;                   /* see session_clean */
	char setting[POOL_SETTING_SIZE]; /* see pool_set */
	pool_lost *lost;
	void *arg;
};

struct ticket {
	TAILQ_ENTRY(ticket) next;
	struct pool *pool;
	pool_got *got;
	pool_lost *lost;
	void *arg;
};

struct pool {
	struct event_base *base;
	char *conninfo, *search_path, *pinned_path, *startup;
	struct pool_options o;
	pool_changed *changed;
	void *arg;
	TAILQ_HEAD(, member) members;
	TAILQ_HEAD(, ticket) tickets;
	struct questions questions; /* for the control link */
	struct member *control;
	struct event *retry; /* the control link's next try */
	struct event *serve; /* "look at the tickets", from the loop */
	int backoff_ms;
	unsigned generation;
	bool up, spare_refused;
	struct err why;
	struct session_facts facts;
};

static void open_member(struct pool *p, bool control);
static void serve(evutil_socket_t fd, short what, void *arg);
static void ask_next(void *arg);

static void
soon(struct pool *p)
{
	event_active(p->serve, EV_TIMEOUT, 0);
}

/* --- members ---------------------------------------------------------- */

static void
member_free(struct member *m)
{
	TAILQ_REMOVE(&m->pool->members, m, next);
	link_free(m->link);
	free(m);
}

static int
count(const struct pool *p, enum member_state state)
{
	const struct member *m;
	int n = 0;

	TAILQ_FOREACH (m, &p->members, next)
		n += !m->control && m->state == state;
	return n;
}

static void
control_down(struct pool *p, const struct err *e)
{
	struct timeval tv;
	bool news = p->up || p->why.code == ERR_NONE;
	bool known = p->facts.database[0] != '\0';

	p->control = NULL;
	p->generation++;
	p->up = false;
	p->why = *e;
	p->questions.asking = false;
	if (news)
		log_warnx("%s%s%s: %s", known ? "database '" : "the database",
		    p->facts.database, known ? "'" : "", e->text);
	p->backoff_ms = p->backoff_ms * 2 < BACKOFF_MIN_MS ? BACKOFF_MIN_MS
	                : p->backoff_ms * 2 > BACKOFF_MAX_MS
	                    ? BACKOFF_MAX_MS
	                    : p->backoff_ms * 2;
	tv.tv_sec = p->backoff_ms / 1000;
	tv.tv_usec = (p->backoff_ms % 1000) * 1000;
	evtimer_add(p->retry, &tv);
	if (news)
		p->changed(p->arg, p, e);
	ask_next(p);
}

/* Everyone who waits for a link that cannot be had is told why, once. */
static void
refuse_tickets(struct pool *p, const struct err *e)
{
	struct ticket *t;
	int spare = count(p, MEMBER_CONNECTING) + count(p, MEMBER_CLEANING);

	while (spare == 0 && (t = TAILQ_FIRST(&p->tickets)) != NULL) {
		TAILQ_REMOVE(&p->tickets, t, next);
		t->got(t->arg, NULL, e);
		free(t);
	}
}

static void
fell(struct member *m, const struct err *e)
{
	struct pool *p = m->pool;
	bool control = m->control, was_new = m->state == MEMBER_CONNECTING;
	pool_lost *lost = m->state == MEMBER_LENT ? m->lost : NULL;
	void *arg = m->arg;
	struct err why = *e;

	if (strstr(why.text, "too many connections") != NULL ||
	    strstr(why.text, "remaining connection slots") != NULL ||
	    strstr(why.text, "too many clients") != NULL)
		why.code = ERR_LIMIT;
	member_free(m);
	if (control) {
		control_down(p, &why);
	} else if (was_new) {
		p->spare_refused = true;
		refuse_tickets(p, &why);
	} else if (lost != NULL) {
		lost(arg, &why);
	} else {
		soon(p);
	}
}

static void
on_down(void *arg, struct link *l UNUSED, const struct err *e)
{
	fell(arg, e);
}

static void
began(void *arg, struct link *l, struct batch *b)
{
	struct member *m = arg;
	struct pool *p = m->pool;
	struct session_facts f;
	struct err e = ERR_INIT;

	if (session_began(l, b, &f, &e) == -1) {
		fell(m, &e);
		return;
	}
	m->state = MEMBER_IDLE;
	p->generation += !session_is_same_server(&p->facts, &f);
	p->facts = f;
	if (!m->control) {
		p->spare_refused = false;
		soon(p);
		return;
	}
	p->backoff_ms = 0;
	p->up = true;
	memset(&p->why, 0, sizeof(p->why));
	log_info("database '%s' as '%s': connected, PostgreSQL %d", f.database,
	    f.user, f.version / 10000);
	p->spare_refused = false;
	soon(p);
	ask_next(p);
	p->changed(p->arg, p, NULL);
}

static void
on_up(void *arg, struct link *l)
{
	link_run(l, session_begin(l), began, arg);
}

static void
open_member(struct pool *p, bool control)
{
	static const struct link_events events = { on_up, on_down };
	struct member *m = mem_new(sizeof(*m));
	struct link_options o = {
		.conninfo = p->conninfo,
		.options = p->startup,
		.application_name = control ? "airlock: control" : "airlock",
		.connect_timeout_ms = p->o.connect_timeout_ms,
		.row_bytes_max = p->o.row_bytes_max,
		.keeps = control,
	};

	m->pool = p;
	m->control = control;
	if (control)
		p->control = m;
	TAILQ_INSERT_TAIL(&p->members, m, next);
	m->link = link_new(p->base, &o, &events, m);
}

static struct member *
member_of(struct pool *p, const struct link *l)
{
	struct member *m;

	TAILQ_FOREACH (m, &p->members, next)
		if (m->link == l)
			return m;
	fatalx("a link is not of this pool");
}

/* --- lending ---------------------------------------------------------- */

static struct member *
idle(struct pool *p)
{
	struct member *m;

	TAILQ_FOREACH (m, &p->members, next)
		if (!m->control && m->state == MEMBER_IDLE)
			return m;
	return NULL;
}

static void
lend(struct pool *p, struct ticket *t, struct member *m)
{
	struct ticket copy = *t;

	TAILQ_REMOVE(&p->tickets, t, next);
	free(t);
	m->state = MEMBER_LENT;
	m->stopped = false;
	m->lost = copy.lost;
	m->arg = copy.arg;
	copy.got(copy.arg, m->link, NULL);
}

/* As many links are on their way as tickets wait, and one spare. */
static void
provide(struct pool *p)
{
	struct ticket *t;
	int wanted = 0, coming = count(p, MEMBER_CONNECTING) +
	                         count(p, MEMBER_CLEANING) +
	                         count(p, MEMBER_IDLE);

	TAILQ_FOREACH (t, &p->tickets, next)
		wanted++;
	if (wanted == 0 && p->spare_refused)
		return;
	wanted += p->up && !p->spare_refused;
	while (coming < wanted &&
	       coming + count(p, MEMBER_LENT) < p->o.links_max) {
		open_member(p, false);
		coming++;
	}
}

static void
renewed(void *arg, struct link *l, struct batch *b)
{
	struct member *m = arg;
	struct pool *p = m->pool;
	struct err e = ERR_INIT;

	if (batch_is_lost(b) || !batch_is_ok(b) || m->stopped ||
	    count(p, MEMBER_IDLE) >= IDLE_MAX || link_check_pins(l, &e) == -1)
		member_free(m);
	else
		m->state = MEMBER_IDLE;
	soon(p);
}

static void
cleaned(void *arg, struct link *l, struct batch *b)
{
	struct member *m = arg;

	if (batch_is_lost(b) || !m->looks ||
	    session_is_as_begun(l, b, m->looked)) {
		renewed(arg, l, b);
		return;
	}
	m->setting[0] = '\0';
	link_run(l, session_renew(l), renewed, arg);
}

/* Not when they are given back: whoever did so has an answer to send. */
static void
begin_cleaning(struct pool *p)
{
	struct member *m;

	TAILQ_FOREACH (m, &p->members, next) {
		if (!m->given_back)
			continue;
		m->given_back = false;
		link_run(m->link,
		    m->unwinds ? session_unwind(m->looks ? &m->looked : NULL)
			       : session_clean(m->link, &m->looked),
		    cleaned, m);
	}
}

static void
serve(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct pool *p = arg;
	struct ticket *t;
	struct member *m;
	struct err e = ERR_INIT;

	if (!p->up && p->why.code != ERR_NONE)
		ask_next(p);
	begin_cleaning(p);
	provide(p);
	while ((t = TAILQ_FIRST(&p->tickets)) != NULL && (m = idle(p)) != NULL)
		lend(p, t, m);
	if (count(p, MEMBER_LENT) >= p->o.links_max) {
		err_set(&e, ERR_LIMIT,
		    "all %d links to the database are in use", p->o.links_max);
		refuse_tickets(p, &e);
	}
	provide(p);
}

struct ticket *
pool_get(struct pool *p, pool_got *got, pool_lost *lost, void *arg)
{
	struct ticket *t = mem_new(sizeof(*t));

	t->pool = p;
	t->got = got;
	t->lost = lost;
	t->arg = arg;
	TAILQ_INSERT_TAIL(&p->tickets, t, next);
	soon(p);
	return t;
}

void
pool_cancel(struct ticket *t)
{
	if (t == NULL)
		return;
	TAILQ_REMOVE(&t->pool->tickets, t, next);
	free(t);
}

void
pool_transfer(struct pool *p, struct link *l, pool_lost *lost, void *arg)
{
	struct member *m = member_of(p, l);

	m->lost = lost;
	m->arg = arg;
}

static void
take_back(struct pool *p, struct member *m, bool unwinds, bool own_code)
{
	if (m->stopped || !link_is_idle(m->link) ||
	    !session_can_clean(m->link)) {
		pool_drop(p, m->link);
		return;
	}
	m->state = MEMBER_CLEANING;
	m->lost = NULL;
	m->given_back = true;
	m->unwinds = unwinds;
	m->looks = !own_code || ++m->unseen > UNSEEN_MAX;
	if (m->looks)
		m->unseen = 0;
	if (!unwinds)
		m->setting[0] = '\0';
	soon(p);
}

void
pool_put(struct pool *p, struct link *l)
{
	take_back(p, member_of(p, l), false, false);
}

void
pool_put_unwound(struct pool *p, struct link *l, bool own_code)
{
	take_back(p, member_of(p, l), true, own_code);
}

bool
pool_set(struct pool *p, const struct link *l, const char *setting)
{
	struct member *m = member_of(p, l);

	if (strcmp(m->setting, setting) == 0)
		return false;
	snprintf(m->setting, sizeof(m->setting), "%s", setting);
	return true;
}

void
pool_drop(struct pool *p, struct link *l)
{
	member_free(member_of(p, l));
	soon(p);
}

/* --- the control link -------------------------------------------------- */

/* While the link is down, questions are answered as lost. */
static void
ask_next(void *arg)
{
	struct pool *p = arg;
	struct err why = p->why;
	bool ready =
	    p->up && p->control != NULL && link_is_idle(p->control->link);

	if (why.code == ERR_NONE)
		err_set(&why, ERR_DATABASE, "not connected yet");
	questions_put(&p->questions, ready ? p->control->link : NULL, &why);
}

void
pool_ask(struct pool *p, struct batch *b, link_done *done, void *arg)
{
	questions_add(&p->questions, b, done, arg);
	if (p->up)
		ask_next(p);
	else
		soon(p);
}

void
pool_forget(struct pool *p, const void *arg)
{
	questions_forget(&p->questions, arg);
}

void
pool_stop(struct pool *p, struct link *l)
{
	struct member *m = member_of(p, l);
	struct batch *b;
	char pid[16];
	const char *values[] = { pid };

	if (m == NULL)
		return;
	m->stopped = true;
	if (!p->up) {
		link_fail(l, "the statement was cancelled while the database "
			     "could not be asked to stop it");
		return;
	}
	b = batch_new();
	snprintf(pid, sizeof(pid), "%d", link_backend_pid(l));
	batch_add(b, "SELECT pg_catalog.pg_cancel_backend($1::pg_catalog.int4)",
	    1, values);
	pool_ask(p, b, NULL, NULL);
}

/* --- life -------------------------------------------------------------- */

static void
retry(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	open_member(arg, true);
}

struct pool *
pool_new(struct event_base *base, const struct pool_options *o,
    pool_changed *changed, void *arg)
{
	struct pool *p = mem_new(sizeof(*p));
	struct session_options s = { o->search_path, o->lock_timeout_ms,
		o->statement_timeout_ms };

	p->base = base;
	p->o = *o;
	p->conninfo = mem_strdup(o->conninfo);
	p->search_path = mem_strdup(o->search_path);
	p->pinned_path = strstr(o->search_path, "pg_temp") != NULL
	                     ? mem_strdup(o->search_path)
	                     : mem_printf("%s%spg_temp", o->search_path,
				   *o->search_path != '\0' ? ", " : "");
	p->startup = session_startup(&s);
	p->changed = changed;
	p->arg = arg;
	TAILQ_INIT(&p->members);
	TAILQ_INIT(&p->tickets);
	questions_init(&p->questions, ask_next, p);
	p->retry = evtimer_new(base, retry, p);
	p->serve = evtimer_new(base, serve, p);
	open_member(p, true);
	return p;
}

void
pool_free(struct pool *p)
{
	struct member *m;
	struct ticket *t;

	if (p == NULL)
		return;
	questions_release(&p->questions);
	while ((m = TAILQ_FIRST(&p->members)) != NULL)
		member_free(m);
	while ((t = TAILQ_FIRST(&p->tickets)) != NULL)
		pool_cancel(t);
	event_free(p->retry);
	event_free(p->serve);
	mem_free_secret(p->conninfo);
	free(p->search_path);
	free(p->pinned_path);
	free(p->startup);
	free(p);
}

bool
pool_is_for(const struct pool *p, const struct pool_options *o)
{
	return strcmp(p->conninfo, o->conninfo) == 0 &&
	       strcmp(p->search_path, o->search_path) == 0;
}

bool
pool_is_up(const struct pool *p)
{
	return p->up;
}

const char *
pool_why(const struct pool *p)
{
	return p->why.text;
}

const struct session_facts *
pool_facts(const struct pool *p)
{
	return &p->facts;
}

const char *
pool_search_path(const struct pool *p)
{
	return p->pinned_path;
}

int
pool_lent(const struct pool *p)
{
	return count(p, MEMBER_LENT);
}

unsigned
pool_generation(const struct pool *p)
{
	return p->generation;
}
