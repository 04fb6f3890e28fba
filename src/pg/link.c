/* link: one connection to PostgreSQL that never blocks the loop */
#include "pg/link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "pg/link_inner.h"

static void begin(evutil_socket_t fd, short what, void *arg);
static void on_socket(evutil_socket_t fd, short what, void *arg);
static void on_timer(evutil_socket_t fd, short what, void *arg);

/* --- ending ---------------------------------------------------------- */

/* Down is told from the timer, so that no caller is freed under its own feet.
 */
void
link_die(struct link *l, enum err_code code, const char *why)
{
	static const struct timeval now = { 0, 0 };

	if (l->state == LINK_DEAD)
		return;
	err_set(&l->why, code, "%.*s", (int)strcspn(why, "\n"), why);
	l->state = LINK_DEAD;
	if (l->io != NULL)
		event_del(l->io);
	evtimer_add(l->timer, &now);
}

/* The batch's owner is told first and may free the link; then nobody is told
 * down. */
static void
tell_down(struct link *l)
{
	struct batch *b = l->batch;

	l->telling = true;
	if (b != NULL) {
		l->batch = NULL;
		b->is_lost = true;
		b->lost = l->why;
		l->done(l->done_arg, l, b);
		batch_free(b);
	}
	if (!l->freed)
		l->events.down(l->arg, l, &l->why);
	l->telling = false;
	if (l->freed)
		link_free(l);
}

void
link_free(struct link *l)
{
	if (l == NULL)
		return;
	if (l->telling) {
		l->freed = true;
		return;
	}
	resolve_cancel(l->resolve);
	if (l->io != NULL)
		event_free(l->io);
	event_free(l->timer);
	batch_free(l->batch);
	PQfinish(l->conn);
	mem_free_secret(l->conninfo);
	free(l->options);
	free(l->application_name);
	free(l->kept);
	free(l);
}

void
link_fail(struct link *l, const char *why)
{
	link_die(l, ERR_DATABASE, why);
}

/* --- connecting ------------------------------------------------------ */

static void
notice(void *arg, const PGresult *r)
{
	struct link *l = arg;
	const char *severity =
	    PQresultErrorField(r, PG_DIAG_SEVERITY_NONLOCALIZED);

	l->row_bytes = 0; /* what was read was not a row's */
	if (severity != NULL && strcmp(severity, "WARNING") == 0) {
		snprintf(l->warning, sizeof(l->warning), "%s",
		    result_message(r));
		log_debug("server says: %s", l->warning);
	}
}

void
link_watch(struct link *l, short what)
{
	int fd = PQsocket(l->conn);

	if (l->io != NULL && event_get_fd(l->io) == fd && l->io_what == what)
		return;
	if (l->io != NULL)
		event_free(l->io);
	l->io = NULL;
	l->io_what = what;
	if (what == 0)
		return;
	l->io = event_new(l->base, fd, what | EV_PERSIST, on_socket, l);
	event_add(l->io, NULL);
}

static void
connected(struct link *l)
{
	event_del(l->timer);
	if (PQsetnonblocking(l->conn, 1) != 0 ||
	    PQenterPipelineMode(l->conn) != 1) {
		link_die(l, ERR_DATABASE, PQerrorMessage(l->conn));
		return;
	}
	l->state = LINK_IDLE;
	link_watch(l, EV_READ);
	l->events.up(l->arg, l);
}

/* PQsocket may change from one poll to the next, so the event is made anew. */
static void
poll_connect(struct link *l)
{
	PostgresPollingStatusType s = PQconnectPoll(l->conn);

	if (s == PGRES_POLLING_OK) {
		connected(l);
		return;
	}
	if (s == PGRES_POLLING_FAILED) {
		link_die(l, ERR_DATABASE, PQerrorMessage(l->conn));
		return;
	}
	if (l->io != NULL) {
		event_free(l->io);
		l->io = NULL;
	}
	link_watch(l, s == PGRES_POLLING_READING ? EV_READ : EV_WRITE);
}

/* What is set here stands after what the user wrote, and wins. */
struct keywords {
	const char *key[64], *value[64];
	size_t n;
};

static void
keyword(struct keywords *k, const char *key, const char *value)
{
	if (value == NULL || k->n + 1 >= sizeof(k->key) / sizeof(k->key[0]))
		return;
	k->key[k->n] = key;
	k->value[k->n++] = value;
}

static void
start(struct link *l, const PQconninfoOption *user,
    const struct resolve_hosts *hosts)
{
	struct keywords k = { 0 };
	char *options = NULL;

	for (; user->keyword != NULL; user++) {
		if (user->val == NULL || strcmp(user->keyword, "host") == 0 ||
		    strcmp(user->keyword, "hostaddr") == 0 ||
		    strcmp(user->keyword, "port") == 0)
			continue;
		if (strcmp(user->keyword, "options") == 0)
			options = mem_printf("%s %s", user->val, l->options);
		else
			keyword(&k, user->keyword, user->val);
	}
	keyword(&k, "host", hosts->host[0] != '\0' ? hosts->host : NULL);
	if (hosts->hostaddr != NULL &&
	    strspn(hosts->hostaddr, ",") != strlen(hosts->hostaddr))
		keyword(&k, "hostaddr", hosts->hostaddr);
	keyword(&k, "port", hosts->port[0] != '\0' ? hosts->port : NULL);
	keyword(&k, "options", options != NULL ? options : l->options);
	keyword(&k, "application_name", l->application_name);
	keyword(&k, "client_encoding", "UTF8");
	keyword(&k, "keepalives_idle", "30");
	keyword(&k, "keepalives_interval", "10");
	keyword(&k, "keepalives_count", "3");
	l->conn = PQconnectStartParams(k.key, k.value, 0);
	free(options);
	if (l->conn == NULL)
		fatalx("out of memory");
	if (PQstatus(l->conn) == CONNECTION_BAD) {
		link_die(l, ERR_DATABASE, PQerrorMessage(l->conn));
		return;
	}
	PQsetNoticeReceiver(l->conn, notice, l);
	l->state = LINK_CONNECTING;
	link_watch(l, EV_WRITE);
}

static void
resolved(void *arg, const struct resolve_hosts *hosts, const struct err *e)
{
	struct link *l = arg;
	PQconninfoOption *user;

	l->resolve = NULL;
	if (hosts == NULL) {
		link_die(l, e->code, e->text);
		return;
	}
	user = PQconninfoParse(l->conninfo, NULL);
	if (user == NULL) {
		link_die(l, ERR_INPUT, "the connection string does not parse");
		return;
	}
	start(l, user, hosts);
	PQconninfoFree(user);
}

static const char *
value_of(const PQconninfoOption *o, const char *key)
{
	for (; o->keyword != NULL; o++)
		if (strcmp(o->keyword, key) == 0)
			return o->val;
	return NULL;
}

/* libpq's own message may quote the string, password and all. */
static void
begin(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct link *l = arg;
	PQconninfoOption *user = PQconninfoParse(l->conninfo, NULL);
	struct timeval tv = { l->connect_timeout_ms / 1000,
		(l->connect_timeout_ms % 1000) * 1000 };

	if (user == NULL) {
		link_die(l, ERR_INPUT, "the connection string does not parse");
		return;
	}
	event_assign(l->timer, l->base, -1, 0, on_timer, l);
	evtimer_add(l->timer, &tv);
	if (value_of(user, "hostaddr") != NULL) {
		struct resolve_hosts hosts = { value_of(user, "host"),
			value_of(user, "hostaddr"), value_of(user, "port") };

		hosts.host = hosts.host != NULL ? hosts.host : "";
		hosts.port = hosts.port != NULL ? hosts.port : "";
		start(l, user, &hosts);
	} else {
		l->resolve = resolve_start(l->base, value_of(user, "host"),
		    NULL, value_of(user, "port"), resolved, l);
	}
	PQconninfoFree(user);
}

static void
on_timer(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct link *l = arg;

	if (l->state == LINK_DEAD) {
		tell_down(l);
		return;
	}
	link_die(l, ERR_DATABASE,
	    "the server did not answer the connection in time");
}

struct link *
link_new(struct event_base *base, const struct link_options *o,
    const struct link_events *events, void *arg)
{
	struct link *l = mem_new(sizeof(*l));
	struct timeval now = { 0, 0 };

	l->base = base;
	l->conninfo = mem_strdup(o->conninfo);
	l->options = mem_strdup(o->options != NULL ? o->options : "");
	l->application_name = mem_strdup(o->application_name);
	l->connect_timeout_ms = o->connect_timeout_ms;
	l->row_bytes_max = o->row_bytes_max;
	l->keeps = o->keeps;
	l->events = *events;
	l->arg = arg;
	l->timer = evtimer_new(base, begin, l);
	evtimer_add(l->timer, &now);
	return l;
}

static void
on_socket(evutil_socket_t fd UNUSED, short what, void *arg)
{
	struct link *l = arg;

	if (l->state == LINK_CONNECTING) {
		poll_connect(l);
		return;
	}
	if (what & EV_WRITE)
		link_flush(l);
	if ((what & EV_READ) && l->state != LINK_DEAD)
		link_readable(l);
}

/* --- asking ----------------------------------------------------------- */

bool
link_is_up(const struct link *l)
{
	return l->state == LINK_IDLE || l->state == LINK_BUSY;
}

bool
link_is_idle(const struct link *l)
{
	return l->state == LINK_IDLE;
}

int
link_backend_pid(const struct link *l)
{
	return PQbackendPID(l->conn);
}

int
link_server_version(const struct link *l)
{
	return PQserverVersion(l->conn);
}

PGTransactionStatusType
link_transaction(const struct link *l)
{
	return PQtransactionStatus(l->conn);
}

const char *
link_encoding(const struct link *l)
{
	const char *v = PQparameterStatus(l->conn, "server_encoding");

	return v != NULL && strcmp(v, "SQL_ASCII") == 0 ? v : "UTF8";
}

int
link_check_pins(const struct link *l, struct err *e)
{
	const char *const pins[][2] = {
		{ "client_encoding", link_encoding(l) },
		{ "standard_conforming_strings", "on" },
	};

	for (size_t i = 0; i < sizeof(pins) / sizeof(pins[0]); i++) {
		const char *v = PQparameterStatus(l->conn, pins[i][0]);

		if (v == NULL || strcmp(v, pins[i][1]) != 0)
			return err_set(e, ERR_UNFIT,
			    "the session's %s is '%.40s', not %s", pins[i][0],
			    v != NULL ? v : "", pins[i][1]);
	}
	return 0;
}

const char *
link_warning(const struct link *l)
{
	return l->warning;
}

const char *
result_sqlstate(const PGresult *r)
{
	const char *s =
	    r != NULL ? PQresultErrorField(r, PG_DIAG_SQLSTATE) : NULL;

	return s != NULL ? s : "";
}

enum err_code
result_err(const PGresult *r)
{
	return strcmp(result_sqlstate(r), "42501") == 0 ? ERR_DENIED
	                                                : ERR_DATABASE;
}

const char *
result_message(const PGresult *r)
{
	const char *s =
	    r != NULL ? PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY) : NULL;

	return s != NULL ? s : r != NULL ? PQresultErrorMessage(r) : "";
}
