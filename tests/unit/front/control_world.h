/* control_world: for test_control: a core that is played, and a peer */
#ifndef AIRLOCK_TESTS_CONTROL_WORLD_H
#define AIRLOCK_TESTS_CONTROL_WORLD_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../wire/loop.h"
#include "base/text.h"
#include "core/change.h"
#include "diff/store.h"
#include "front/control.h"
#include "record/chain.h"

#define ID "chg_0123456789"
#define RECORDS 1300

/* --- the core, as far as control.c knows it --- */

struct gate {
	struct gate_options o;
	json_t *written; /* records */
	bool guarded, trusted;
	pid_t sender;
	/* a decision under way */
	outcome_done *done;
	void *arg;
	char who[32], what[128];
	struct store *store; /* of the one change, or NULL */
	char digest[65];
};
struct change {
	int unused;
};
static struct gate gate;
static struct change the_change;
static char records[RECORDS + 1][256];

const struct gate_options *
gate_get_options(const struct gate *g)
{
	return &g->o;
}

struct guard *
gate_guard(struct gate *g UNUSED)
{
	return NULL;
}

struct journal *
gate_journal(struct gate *g UNUSED)
{
	return NULL;
}

bool
gate_record(struct gate *g, json_t *rec, bool sync UNUSED)
{
	json_array_append_new(g->written, rec);
	return true;
}

json_t *
gate_health(const struct gate *g UNUSED)
{
	return json_pack("{s:s}", "daemon", "up");
}

json_t *
gate_status(const struct gate *g UNUSED)
{
	return json_pack("{s:s, s:i}", "daemon", "up", "secret", 1);
}

json_t *
gate_agents(const struct gate *g UNUSED)
{
	return json_pack("[{s:s}, {s:s}]", "name", "a", "name", "b");
}

json_t *
gate_pending(const struct gate *g UNUSED)
{
	return json_pack("[{s:s}]", "id", ID);
}

struct change *
gate_change(struct gate *g, const char *id)
{
	return g->store != NULL && strcmp(id, ID) == 0 ? &the_change : NULL;
}

json_t *
gate_doubted(const struct gate *g UNUSED, const char *id UNUSED)
{
	return NULL;
}

json_t *
gate_ended(struct gate *g UNUSED, const char *id, const char **agent)
{
	*agent = "a";
	return strcmp(id, "chg_eeeeeeeeee") == 0
	           ? json_pack("{s:s}", "status", "committed")
	           : NULL;
}

json_t *
change_header(const struct change *c UNUSED)
{
	return json_pack("{s:s, s:s}", "id", ID, "digest", gate.digest);
}

struct store *
change_store(struct change *c UNUSED)
{
	return gate.store;
}

bool
change_is_pending(const struct change *c UNUSED)
{
	return true;
}

void
change_commit(struct gate *g, const char *id, const char *digest,
    const struct operator_peer *who, outcome_done *done, void *arg)
{
	g->done = done;
	g->arg = arg;
	snprintf(g->who, sizeof(g->who), "%s", who->name);
	snprintf(g->what, sizeof(g->what), "%s@%s", id, digest);
}

void
change_rollback(struct gate *g UNUSED, const char *id UNUSED,
    const char *reason, const struct operator_peer *who UNUSED,
    outcome_done *done, void *arg)
{
	struct outcome o = { .ok = false,
		.code = "ALREADY_DECIDED",
		.text = "REFUSED ALREADY_DECIDED: too late" };

	snprintf(gate.what, sizeof(gate.what), "%s",
	    reason != NULL ? reason : "(none)");
	done(arg, &o); /* at once: the room must bear that too */
}

bool
guard_applies_to(const struct guard *g UNUSED, uid_t uid UNUSED)
{
	return gate.guarded;
}

int
guard_check(struct guard *g UNUSED, const struct peer *p UNUSED, pid_t sender,
    struct err *e)
{
	gate.sender = sender;
	return gate.trusted ? 0 : err_set(e, ERR_DENIED, "no terminal");
}

uint64_t
journal_seq(const struct journal *j UNUSED)
{
	return RECORDS;
}

int
journal_page(struct journal *j UNUSED, uint64_t from, size_t n,
    journal_each *each, void *arg, uint64_t *next, struct err *e UNUSED)
{
	for (*next = from; n > 0 && *next <= RECORDS; n--, ++*next) {
		const char *line = records[*next];
		json_t *rec = json_loads(line, 0, NULL);
		bool more = each(arg, rec, line, strlen(line));

		json_decref(rec);
		if (!more)
			break;
	}
	return 0;
}

/* The record `broken` is then written over. */
static void
make_records(int broken)
{
	struct chain_end end;

	chain_begin(&end);
	for (int i = 1; i <= RECORDS; i++) {
		snprintf(records[i], sizeof(records[i]),
		    "{\"seq\":%d,\"kind\":\"k\",\"prev\":\"%s\","
		    "\"change\":\"%s\"}",
		    i, end.hash, i % 2 ? ID : "chg_0000000000");
		chain_advance(&end, (uint64_t)i, records[i],
		    strlen(records[i]));
		if (i == broken)
			strstr(records[i], "\"k\"")[1] = 'x';
	}
}

/* --- the other end --- */

static struct event_base *base;
static struct control *control;
static char ops[] = "ops";
static struct operator_options person = { .name = ops };
static char dir[64];

/* What a connection has said so far. */
struct talk {
	int fd;
	char nonce[64];
	struct text in;
	bool closed;
};

static bool
hear(struct talk *t, const char *what)
{
	char buf[65536];
	ssize_t n;

	while ((n = recv(t->fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0)
		text_addn(&t->in, buf, (size_t)n);
	t->closed = n == 0;
	return t->closed || strstr(text_str(&t->in), what) != NULL;
}

static void
call(struct talk *t)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	json_t *hello;

	memset(t, 0, sizeof(*t));
	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s/control.sock", dir);
	t->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(t->fd, (struct sockaddr *)&sun, sizeof(sun)),
	    0);
	LOOP_UNTIL(base, hear(t, "\n"));
	if (t->closed)
		return;
	hello = json_loads(t->in.s, JSON_DISABLE_EOF_CHECK, NULL);
	snprintf(t->nonce, sizeof(t->nonce), "%s",
	    json_string_value(json_object_get(hello, "nonce")));
	json_decref(hello);
	assert_int_equal(strlen(t->nonce), 32);
	text_reset(&t->in);
}

static void
say(struct talk *t, const char *nonce, const char *verb, const char *args)
{
	struct text s = { 0 };

	text_addf(&s,
	    "{\"airlock\":1,\"nonce\":\"%s\",\"verb\":\"%s\",\"args\":%s}\n",
	    nonce, verb, args);
	assert_int_equal(send(t->fd, s.s, s.len, 0), s.len);
	text_release(&s);
}

static const char *
ask(struct talk *t, const char *verb, const char *args)
{
	text_reset(&t->in);
	say(t, t->nonce, verb, args);
	LOOP_UNTIL(base, hear(t, "\"ok\":"));
	return text_str(&t->in);
}

static void
hang_up(struct talk *t)
{
	close(t->fd);
	text_release(&t->in);
	LOOP_SETTLE(base);
}

static void
assert_said(const char *in, const char *what)
{
	if (strstr(in, what) == NULL)
		fail_msg("'%s' is not in: %.400s", what, in);
}

static int
setup(void **state UNUSED)
{
	struct err e = { 0 };

	memset(&gate, 0, sizeof(gate));
	snprintf(dir, sizeof(dir), "/tmp/airlock-control-XXXXXX");
	assert_non_null(mkdtemp(dir));
	make_records(0);
	gate.written = json_array();
	gate.trusted = true;
	memset(gate.digest, 'd', 64);
	gate.o.runtime_dir = dir;
	gate.o.state_fd = -1;
	person.uid = geteuid();
	person.role = ROLE_ADMIN;
	gate.o.operators = &person;
	gate.o.noperators = 1;
	base = event_base_new();
	if (control_open(base, &gate, &control, &e) == -1)
		fail_msg("%s", e.text);
	return 0;
}

static int
teardown(void **state UNUSED)
{
	char path[128];

	control_close(control);
	LOOP_SETTLE(base);
	event_base_free(base);
	store_close(gate.store, true);
	json_decref(gate.written);
	snprintf(path, sizeof(path), "%s/" ID, dir);
	rmdir(path);
	return rmdir(dir);
}

#endif
