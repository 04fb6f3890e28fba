/* control: the operator's socket: who calls and what they may, verb by verb */
#include "front/control.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/version.h"
#include "core/guard.h"
#include "front/stream.h"
#include "front/verbs.h"
#include "wire/ctl.h"
#include "wire/lines.h"
#include "wire/listener.h"

#define CONNECTIONS_MAX 64
#define CONNECTIONS_PER_UID 24
#define IDLE_S 30
#define NONCE_BYTES 16
#define GROUPS_MAX 256
#define DENIALS_MAX 20 /* journaled in each ... */
#define DENIALS_MS 10000

struct conn {
	LIST_ENTRY(conn) entry;
	struct control *control;
	struct lines *lines;
	struct peer peer;
	struct operator_peer who;
	struct verb *verb; /* under way, or NULL */
	struct event
	    *turn; /* the next piece of a stream, or idle for too long */
	char nonce[2 * NONCE_BYTES + 1];
};

struct control {
	struct event_base *base;
	struct gate *gate;
	struct listener *listener;
	char *own_name; /* of airlockd's own login */
	LIST_HEAD(, conn) conns;
	/* a peer that is refused again and again does not fill the journal */
	int64_t denials_since;
	unsigned denials, unwritten;
};

/* --- who --- */

/* The groups of the process at the other end, its own first. */
static size_t
peer_groups(int fd, gid_t own, gid_t groups[GROUPS_MAX])
{
	gid_t others[GROUPS_MAX - 1];
	socklen_t len = sizeof(others);
	size_t n = 0;

	groups[0] = own;
	/* More groups than fit give ERANGE: then only its own counts. */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, others, &len) == 0)
		n = len / sizeof(others[0]);
	memcpy(groups + 1, others, n * sizeof(others[0]));
	return n + 1;
}

static const struct operator_options *
match_operator(const struct gate_options *o, int fd, const struct peer *p)
{
	gid_t groups[GROUPS_MAX];
	size_t n = peer_groups(fd, p->gid, groups);

	for (size_t i = 0; i < o->noperators; i++)
		if (o->operators[i].uid != (uid_t)-1 &&
		    o->operators[i].uid == p->uid)
			return &o->operators[i];
	for (size_t i = 0; i < o->noperators; i++) {
		if (o->operators[i].uid != (uid_t)-1)
			continue;
		for (size_t k = 0; k < n; k++)
			if (groups[k] == o->operators[i].gid)
				return &o->operators[i];
	}
	return NULL;
}

static void
identify(struct conn *c, int fd)
{
	const struct gate_options *o = gate_get_options(c->control->gate);
	const struct operator_options *found = match_operator(o, fd, &c->peer);

	c->who = (struct operator_peer){ .name = "nobody",
		.uid = c->peer.uid,
		.pid = c->peer.pid,
		.role = ROLE_NONE };
	if (found != NULL) {
		c->who.name = found->name;
		c->who.role = found->role;
	} else if (o->noperators == 0 &&
		   (c->peer.uid == 0 || c->peer.uid == geteuid())) {
		c->who.name = c->peer.uid == 0 ? "root" : c->control->own_name;
		c->who.role = ROLE_ADMIN;
	}
}

/* --- what they may --- */

static void
record_denial(struct conn *c, const char *verb, const char *why)
{
	struct control *t = c->control;
	int64_t now = clock_boot_ms();
	json_t *rec;

	log_info("control: %s of uid %u pid %d denied: %s", verb,
	    (unsigned)c->peer.uid, (int)c->peer.pid, why);
	if (now - t->denials_since > DENIALS_MS) {
		t->denials_since = now;
		t->denials = 0;
	}
	if (t->denials++ >= DENIALS_MAX) {
		t->unwritten++;
		return;
	}
	rec = json_pack("{s:s, s:I, s:I, s:s, s:s, s:s}", "kind", "denied",
	    "uid", (json_int_t)c->peer.uid, "pid", (json_int_t)c->peer.pid,
	    "operator", c->who.name, "verb", verb, "why", why);
	if (rec != NULL && t->unwritten > 0)
		json_object_set_new(rec, "unwritten",
		    json_integer(t->unwritten));
	if (rec != NULL && gate_record(t->gate, rec, true))
		t->unwritten = 0;
}

static void
deny(struct conn *c, const char *verb, const char *why)
{
	record_denial(c, verb, why);
	verb_refuse(c->lines, CTL_DENIED, "DENIED", "%s", why);
}

/* The guard's answer for this peer; true where it is not asked. */
static bool
is_trusted(struct conn *c, pid_t sender, struct err *e)
{
	struct guard *g = gate_guard(c->control->gate);

	return !guard_applies_to(g, c->peer.uid) ||
	       guard_check(g, &c->peer, sender, e) == 0;
}

/* The one place where a role is looked at.  *bare: the peer may have no more
 * than the health part. */
static bool
may(struct conn *c, enum ctl_verb verb, pid_t sender, bool *bare)
{
	const struct ctl_row *row = &ctl_verbs[verb];
	struct err e = { 0 };
	char why[512];

	*bare = verb == CTL_STATUS &&
	        (c->who.role < ROLE_VIEW || !is_trusted(c, sender, &e));
	if (*bare)
		return true;
	if (c->who.role < row->role) {
		snprintf(why, sizeof(why),
		    "'%s' takes the role %s, and uid %u has the role %s",
		    row->name, role_name[row->role], (unsigned)c->peer.uid,
		    role_name[c->who.role]);
		deny(c, row->name, why);
		return false;
	}
	if (row->guarded && !is_trusted(c, sender, &e)) {
		deny(c, row->name, e.text);
		return false;
	}
	return true;
}

/* --- one verb at a time --- */

static void
conn_close(struct conn *c)
{
	verb_drop(c->verb);
	LIST_REMOVE(c, entry);
	lines_close(c->lines);
	event_free(c->turn);
	peer_release(&c->peer);
	listener_left(c->control->listener);
	free(c);
}

/* Says no more, once what is queued is out; the peer is to begin anew. */
static void
conn_finish(struct conn *c)
{
	lines_finish(c->lines);
	c->lines = NULL;
	conn_close(c);
}

static void
wait_for_request(struct conn *c)
{
	const struct timeval idle = { IDLE_S, 0 };

	event_add(c->turn, &idle);
}

static void
on_decided(void *arg)
{
	struct conn *c = arg;

	c->verb = NULL;
	wait_for_request(c);
}

/* A piece; the next one when the peer has read, or in the loop's next turn. */
static void
go_on(struct conn *c)
{
	const struct timeval now = { 0, 0 };

	if (!verb_step(c->verb)) {
		c->verb = NULL;
		wait_for_request(c);
	} else if (!lines_is_full(c->lines)) {
		event_add(c->turn, &now);
	}
}

static void
on_drained(void *arg)
{
	struct conn *c = arg;

	if (c->verb != NULL && verb_is_stream(c->verb) &&
	    !event_pending(c->turn, EV_TIMEOUT, NULL))
		go_on(c);
}

static void
on_turn(evutil_socket_t s UNUSED, short what UNUSED, void *arg)
{
	struct conn *c = arg;

	if (c->verb == NULL)
		conn_close(c); /* idle */
	else if (verb_is_stream(c->verb))
		go_on(c);
}

static void
start(struct conn *c, enum ctl_verb verb, json_t *args, bool bare)
{
	struct verb_ask ask = { .gate = c->control->gate,
		.out = c->lines,
		.who = &c->who,
		.args = args,
		.bare = bare };

	event_del(c->turn);
	c->verb = verb_start(verb, &ask, on_decided, c);
	if (c->verb == NULL)
		wait_for_request(c);
	else if (verb_is_stream(c->verb))
		go_on(c);
}

/* NULL where the request is this peer's own and is fresh. */
static const char *
is_forged(struct conn *c, const json_t *msg, pid_t sender)
{
	const char *nonce = json_string_value(json_object_get(msg, "nonce"));

	if (nonce == NULL || strcmp(nonce, c->nonce) != 0)
		return "the request does not answer this connection's greeting";
	if (c->peer.pid <= 0 || sender != c->peer.pid)
		return "the request was sent by another process than the one "
		       "that connected";
	return NULL;
}

static void
on_line(void *arg, char *line, size_t len, pid_t sender)
{
	struct conn *c = arg;
	struct err e = { 0 };
	enum ctl_verb verb;
	json_t *msg, *args;
	const char *forged;
	bool bare;

	if (c->verb != NULL) {
		verb_refuse(c->lines, CTL_USAGE, "BUSY",
		    "one request at a time");
		conn_finish(c);
		return;
	}
	if (ctl_parse_request(line, len, &msg, &verb, &args, &e) == -1) {
		verb_refuse(c->lines, CTL_USAGE, "BAD_REQUEST", "%s", e.text);
		conn_finish(c);
		return;
	}
	forged = is_forged(c, msg, sender);
	if (forged != NULL) {
		deny(c, ctl_verbs[verb].name, forged);
		conn_finish(c);
	} else if (may(c, verb, sender, &bare)) {
		start(c, verb, args, bare);
	}
	json_decref(msg);
}

static void
on_too_long(void *arg)
{
	struct conn *c = arg;

	verb_refuse(c->lines, CTL_USAGE, "BAD_REQUEST",
	    "a request is at most %d bytes long", CTL_LINE_MAX);
	conn_finish(c);
}

static void
on_closed(void *arg, const char *why UNUSED)
{
	conn_close(arg);
}

static const struct lines_events events = {
	.line = on_line,
	.too_long = on_too_long,
	.drained = on_drained,
	.closed = on_closed,
};

/* --- connections --- */

static bool
has_too_many(const struct control *t, uid_t uid)
{
	const struct conn *c;
	int n = 0;

	LIST_FOREACH (c, &t->conns, entry)
		n += c->peer.uid == uid;
	return n >= CONNECTIONS_PER_UID;
}

static void
greet(struct conn *c)
{
	unsigned char random[NONCE_BYTES];
	json_t *hello;

	mem_random(random, sizeof(random));
	text_hex(c->nonce, random, sizeof(random));
	hello = json_pack("{s:i, s:s, s:s}", "airlock", CTL_PROTOCOL, "version",
	    AIRLOCK_VERSION, "nonce", c->nonce);
	lines_send_json(c->lines, hello);
	json_decref(hello);
}

static void
on_accept(void *arg, int fd, struct peer *peer)
{
	static const struct lines_options lo = { .line_max = CTL_LINE_MAX,
		.out_low = 64 << 10,
		.out_high = 256 << 10,
		.out_max = STREAM_LINE_MAX + (16 << 20),
		.credentials = true };
	struct control *t = arg;
	struct conn *c;

	if (has_too_many(t, peer->uid)) {
		peer_release(peer);
		close(fd);
		listener_left(t->listener);
		return;
	}
	c = mem_new(sizeof(*c));
	c->control = t;
	c->peer = *peer;
	c->turn = evtimer_new(t->base, on_turn, c);
	if (c->turn == NULL)
		fatalx("out of memory");
	LIST_INSERT_HEAD(&t->conns, c, entry);
	identify(c, fd);
	c->lines = lines_new(t->base, fd, &lo, &events, c);
	greet(c);
	wait_for_request(c);
}

/* The mode follows from who is to reach it; who they are is then asked of the
 * kernel. */
static void
choose_mode(const struct gate_options *o, struct listener_options *l)
{
	gid_t group = (gid_t)-1;

	l->mode = 0600;
	l->group = (gid_t)-1;
	for (size_t i = 0; i < o->noperators; i++) {
		const struct operator_options *op = &o->operators[i];

		if (op->uid == geteuid() || op->uid == 0)
			continue;
		if (op->uid != (uid_t)-1 ||
		    (group != (gid_t)-1 && group != op->gid)) {
			l->mode = 0666;
			l->group = (gid_t)-1;
			return;
		}
		group = op->gid;
		l->mode = 0660;
		l->group = group;
	}
}

static char *
login_name(uid_t uid)
{
	struct passwd *pw = getpwuid(uid);

	return pw != NULL ? mem_strdup(pw->pw_name)
	                  : mem_printf("uid%u", (unsigned)uid);
}

int
control_open(struct event_base *base, struct gate *g, struct control **out,
    struct err *e)
{
	const struct gate_options *o = gate_get_options(g);
	struct listener_options lo = { .connections_max = CONNECTIONS_MAX };
	struct control *t = mem_new(sizeof(*t));
	char *path = mem_printf("%s/control.sock", o->runtime_dir);
	int rc;

	t->base = base;
	t->gate = g;
	t->own_name = login_name(geteuid());
	LIST_INIT(&t->conns);
	lo.path = path;
	choose_mode(o, &lo);
	rc = listener_open(base, &lo, on_accept, t, &t->listener, e);
	free(path);
	if (rc == -1) {
		free(t->own_name);
		free(t);
		return -1;
	}
	*out = t;
	return 0;
}

void
control_close(struct control *c)
{
	struct conn *one;

	if (c == NULL)
		return;
	while ((one = LIST_FIRST(&c->conns)) != NULL)
		conn_finish(one);
	listener_close(c->listener);
	free(c->own_name);
	free(c);
}
