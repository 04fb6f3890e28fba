/* parser: statements that are too much are refused one by one, and whatever
 * becomes of the child, the other calls go on */
#include "core/parser.h"

#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "core/parser_spawn.h"

#define LIMIT ((size_t)64 << 10)

static char self[512]; /* this program, which is its own child */

static struct parser_options
options(void)
{
	return (struct parser_options){ .program = self,
		.statement_bytes_max = LIMIT,
		.operator_run_max = 256,
		.comment_depth_max = 64,
		.deadline_ms = 60000,
		.queue_max = 64 };
}

/* A call, and what it was told. */
struct told {
	struct event_base *base;
	int times;
	int order; /* among all of the test, from 1 */
	enum parser_status status;
	enum stmt_kind kind;
	char text[512];
	char rewritten[256];
	long byte;
	char sql[128]; /* what was parsed */
};

static int told_so_far;

static void
hear(void *arg, const struct parser_answer *a)
{
	struct told *t = arg;

	t->times++;
	t->order = ++told_so_far;
	t->status = a->status;
	t->kind = a->facts != NULL ? a->facts->kind : STMT_NKINDS;
	t->byte = a->byte;
	snprintf(t->sql, sizeof(t->sql), "%s", a->sql != NULL ? a->sql : "");
	snprintf(t->text, sizeof(t->text), "%s", a->text);
	if (a->rewrite != NULL)
		snprintf(t->rewritten, sizeof(t->rewritten), "%s",
		    a->rewrite->sql);
}

static struct event_base *
begin(void)
{
	struct event_base *base = event_base_new();

	assert_non_null(base);
	told_so_far = 0;
	return base;
}

static void
wait_for(struct event_base *base, const struct told *t)
{
	while (t->times == 0)
		assert_int_equal(event_base_loop(base, EVLOOP_ONCE), 0);
	assert_int_equal(t->times, 1);
}

static void
wait_for_child(struct event_base *base, struct parser *p)
{
	struct told t = { 0 };

	assert_non_null(parser_facts(p, "warm", "SELECT 1", 8, hear, &t));
	assert_int_equal(t.times, 0); /* never from inside the asking call */
	wait_for(base, &t);
	assert_int_equal(t.status, PARSER_OK);
}

static char *
repeat(const char *before, const char *middle, size_t n, const char *after)
{
	struct text t = { 0 };

	text_add(&t, before);
	for (size_t i = 0; i < n; i++)
		text_add(&t, middle);
	text_add(&t, after);
	return text_take(&t);
}

static void
asks_and_is_answered(void **state UNUSED)
{
	const struct rewrite_edit edit = { NULL, "b > 1", "ctid" };
	struct event_base *base = begin();
	struct parser_options o = options();
	struct parser *p = parser_new(base, &o);
	struct told ok = { 0 }, syntax = { 0 }, made = { 0 }, bad_edit = { 0 };
	const char *bad = "SELECT 'é', )", *sql = "DELETE FROM t WHERE a = 1";
	const char *said = "SELECT /* é */ 1 NOT -- é\n IN (2)";
	const char *packed = "SELECT -(1) = ANY ($1::int[])";
	struct told bare = { 0 }, whole = { 0 };

	parser_facts(p, "a", packed, strlen(packed), hear, &whole);
	parser_facts(p, "a", "UPDATE t SET a = 1 garbage", 18, hear, &ok);
	parser_facts(p, "a", bad, strlen(bad), hear, &syntax);
	parser_rewrite(p, "a", sql, strlen(sql), &edit, hear, &made);
	parser_facts(p, "a", said, strlen(said), hear, &bare);
	parser_rewrite(p, "a", "SELECT 1", 8, &edit, hear, &bad_edit);
	wait_for(base, &bad_edit);
	assert_int_equal(whole.status, PARSER_OK);
	assert_int_equal(bare.status, PARSER_OK);
	assert_string_equal(bare.sql, "SELECT          1 NOT      \n IN (2)");
	assert_int_equal(ok.status, PARSER_OK);
	assert_int_equal(ok.kind, STMT_UPDATE);
	assert_int_equal(syntax.status, PARSER_SYNTAX);
	assert_int_equal(syntax.byte, 13);
	assert_string_equal(syntax.text, "syntax error at or near \")\"");
	assert_int_equal(made.status, PARSER_OK);
	assert_string_equal(made.rewritten,
	    "DELETE FROM t WHERE (a = 1) AND (b > 1) RETURNING ctid");
	assert_int_equal(bad_edit.status, PARSER_UNPROVED);
	parser_free(p);
	event_base_free(base);
}

/* What is refused, with the most that is let through to the child. */
static void
refuses_what_is_too_much(void **state UNUSED)
{
	static const struct {
		const char *before, *middle;
		size_t n;
		const char *after;
		size_t limit;
		enum parser_status status;
	} cases[] = {
		{ "SELECT ", "1+", 500000, "1", (size_t)1 << 20,
		    PARSER_TOO_COMPLEX },
		{ "SELECT ", "1+", 32000, "1", LIMIT, PARSER_TOO_COMPLEX },
		{ "SELECT ", "1+", 500000, "1", LIMIT, PARSER_TOO_LARGE },
		{ "SELECT ", "1+", 400, "1", LIMIT, PARSER_OK },
		{ "SELECT 1", " UNION SELECT 1", 4000, "", LIMIT,
		    PARSER_TOO_COMPLEX },
		{ "SELECT ", "(", 100000, "1", (size_t)1 << 20,
		    PARSER_TOO_COMPLEX },
		{ "SELECT ", "(SELECT ", 7000, "1", LIMIT, PARSER_TOO_COMPLEX },
		{ "SELECT ", "x", 5000000, "", LIMIT, PARSER_TOO_LARGE },
		{ "SELECT '\x80", "", 0, "'", LIMIT, PARSER_NOT_UTF8 },
		{ "SELECT ", "+-", 200, "1", LIMIT, PARSER_TOO_COMPLEX },
		{ "", "/*", 1000, "", LIMIT, PARSER_TOO_COMPLEX },
		{ "", "/**/", 1000, "", LIMIT, PARSER_TOO_COMPLEX },
		{ "/*", "-", 1000, "*/ SELECT 1", LIMIT, PARSER_OK },
		{ "-", "-", 1000, "\nSELECT 1", LIMIT, PARSER_OK },
		{ "SELECT 'x'", " OR true", 4000, "", LIMIT, PARSER_OK },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct event_base *base = begin();
		struct parser_options o = options();
		struct told t = { 0 }, other = { 0 }, after = { 0 };
		struct parser *p;
		char *sql = repeat(cases[i].before, cases[i].middle, cases[i].n,
		    cases[i].after);

		o.statement_bytes_max = cases[i].limit;
		if (cases[i].status == PARSER_TOO_COMPLEX)
			o.deadline_ms = 2000;
		p = parser_new(base, &o);
		parser_facts(p, "a", sql, strlen(sql), hear, &t);
		parser_facts(p, "b", "SELECT 1", 8, hear, &other);
		parser_facts(p, "a", "SELECT 1", 8, hear, &after);
		wait_for(base, &t);
		wait_for(base, &other);
		wait_for(base, &after);
		if (t.status != cases[i].status)
			fail_msg("case %zu: status %d, %s", i, t.status,
			    t.text);
		assert_int_equal(other.status, PARSER_OK);
		assert_int_equal(after.status, PARSER_OK);
		free(sql);
		parser_free(p);
		event_base_free(base);
	}
}

static void
refuses_nul(void **state UNUSED)
{
	struct event_base *base = begin();
	struct parser_options o = options();
	struct parser *p = parser_new(base, &o);
	struct told t = { 0 };

	parser_facts(p, "a", "SELECT 1;\0DROP TABLE t", 22, hear, &t);
	assert_int_equal(t.times, 0);
	wait_for(base, &t);
	assert_int_equal(t.status, PARSER_NUL);
	parser_free(p);
	event_base_free(base);
}

static void
idle_child_is_replaced(void **state UNUSED)
{
	struct event_base *base = begin();
	struct parser_options o = options();
	struct parser *p = parser_new(base, &o);
	struct told t = { 0 };
	long pid;

	wait_for_child(base, p);
	pid = parser_pid(p);
	assert_true(pid > 0);
	assert_int_equal(kill((pid_t)pid, SIGKILL), 0);
	while (parser_pid(p) == pid)
		assert_int_equal(event_base_loop(base, EVLOOP_ONCE), 0);
	parser_facts(p, "a", "SELECT 1", 8, hear, &t);
	wait_for(base, &t);
	assert_int_equal(t.status, PARSER_OK);
	/* No zombie stays. */
	while (kill((pid_t)pid, 0) == 0)
		assert_int_equal(event_base_loop(base, EVLOOP_ONCE), 0);
	parser_free(p);
	event_base_free(base);
}

/* A stopped child has the statement and does not answer it. */
static void
busy_child_costs_one_call(void **state)
{
	bool by_deadline = *state != NULL;
	struct event_base *base = begin();
	struct parser_options o = options();
	struct told t = { 0 }, same = { 0 }, other = { 0 };
	struct parser *p;
	long pid;

	if (by_deadline)
		o.deadline_ms = 300;
	p = parser_new(base, &o);
	wait_for_child(base, p);
	pid = parser_pid(p);
	assert_int_equal(kill((pid_t)pid, SIGSTOP), 0);
	parser_facts(p, "a", "SELECT 4", 8, hear, &t);
	parser_facts(p, "a", "SELECT 2", 8, hear, &same);
	parser_facts(p, "b", "SELECT 3", 8, hear, &other);
	event_base_loop(base, EVLOOP_NONBLOCK);
	assert_int_equal(t.times, 0);
	if (!by_deadline)
		assert_int_equal(kill((pid_t)pid, SIGKILL), 0);
	wait_for(base, &t);
	wait_for(base, &same);
	wait_for(base, &other);
	assert_int_equal(t.status, PARSER_TOO_COMPLEX);
	assert_int_equal(same.status, PARSER_OK);
	assert_int_equal(other.status, PARSER_OK);
	assert_true(parser_pid(p) != pid);
	parser_free(p);
	event_base_free(base);
}

/* The child is stopped: it has no part in this. */
static void
what_came_before_is_known(void **state UNUSED)
{
	const struct rewrite_edit edit = { NULL, "b > 1", "ctid" },
				  other = { NULL, "b > 1", NULL };
	const char *sql = "DELETE FROM t WHERE a = 1", *same = "SELECT/**/ 1";
	struct event_base *base = begin();
	struct parser_options o = options();
	struct parser *p = parser_new(base, &o);
	struct told first = { 0 }, again = { 0 }, bare = { 0 };
	struct told edited = { 0 }, neither = { 0 };
	pid_t pid;

	parser_rewrite(p, "a", sql, strlen(sql), &edit, hear, &first);
	wait_for(base, &first);
	parser_facts(p, "a", "SELECT     1", 12, hear, &bare);
	wait_for(base, &bare);
	pid = (pid_t)parser_pid(p);
	assert_int_equal(kill(pid, SIGSTOP), 0);
	memset(&bare, 0, sizeof(bare));
	parser_rewrite(p, "b", sql, strlen(sql), &edit, hear, &again);
	assert_int_equal(again.times, 0); /* never from inside the call */
	wait_for(base, &again);
	assert_int_equal(again.status, PARSER_OK);
	assert_string_equal(again.rewritten, first.rewritten);
	parser_facts(p, "b", same, strlen(same), hear, &bare);
	wait_for(base, &bare);
	assert_int_equal(bare.kind, STMT_SELECT);
	assert_string_equal(bare.sql, "SELECT     1");
	parser_rewrite(p, "b", sql, strlen(sql), &other, hear, &edited);
	parser_facts(p, "b", sql, strlen(sql), hear, &neither);
	event_base_loop(base, EVLOOP_NONBLOCK);
	assert_int_equal(edited.times + neither.times, 0);
	assert_int_equal(kill(pid, SIGCONT), 0);
	wait_for(base, &neither);
	assert_string_equal(edited.rewritten,
	    "DELETE FROM t WHERE (a = 1) AND (b > 1)");
	assert_int_equal(neither.kind, STMT_DELETE);
	parser_free(p);
	event_base_free(base);
}

static void
serves_agents_in_turn(void **state UNUSED)
{
	struct event_base *base = begin();
	struct parser_options o = options();
	struct parser *p;
	struct told a[4] = { 0 }, b[2] = { 0 };

	o.queue_max = 3;
	p = parser_new(base, &o);
	/* Nothing is with the child before it says that it is ready. */
	for (int i = 0; i < 4; i++)
		parser_facts(p, "a", "SELECT 1", 8, hear, &a[i]);
	for (int i = 0; i < 2; i++)
		parser_facts(p, "b", "SELECT 1", 8, hear, &b[i]);
	wait_for(base, &a[2]);
	wait_for(base, &a[3]);
	assert_int_equal(a[3].status, PARSER_BUSY);
	assert_int_equal(a[3].order, 1);
	assert_int_equal(a[0].order, 2);
	assert_int_equal(b[0].order, 3);
	assert_int_equal(a[1].order, 4);
	assert_int_equal(b[1].order, 5);
	assert_int_equal(a[2].order, 6);
	parser_free(p);
	event_base_free(base);
}

static void
cancelled_calls_hear_nothing(void **state UNUSED)
{
	struct event_base *base = begin();
	struct parser_options o = options();
	struct parser *p = parser_new(base, &o);
	struct told asked = { 0 }, queued = { 0 }, settled = { 0 }, t = { 0 };
	struct parser_call *c[3];

	wait_for_child(base, p);
	c[0] = parser_facts(p, "a", "SELECT 1", 8, hear, &asked);
	c[1] = parser_facts(p, "a", "SELECT 1", 8, hear, &queued);
	c[2] = parser_facts(p, "a", "\xff", 1, hear, &settled);
	for (int i = 0; i < 3; i++)
		parser_cancel(c[i]);
	parser_facts(p, "a", "SELECT 1", 8, hear, &t);
	wait_for(base, &t);
	assert_int_equal(asked.times + queued.times + settled.times, 0);
	parser_free(p);
	event_base_free(base);
}

static void
freed_parser_tells_nobody(void **state UNUSED)
{
	struct event_base *base = begin();
	struct parser_options o = options();
	struct parser *p = parser_new(base, &o);
	struct told t[3] = { 0 };

	wait_for_child(base, p);
	parser_facts(p, "a", "SELECT 1", 8, hear, &t[0]);
	parser_facts(p, "a", "SELECT 1", 8, hear, &t[1]);
	parser_facts(p, "a", "\xff", 1, hear, &t[2]);
	parser_free(p);
	event_base_loop(base, EVLOOP_NONBLOCK);
	assert_int_equal(t[0].times + t[1].times + t[2].times, 0);
	event_base_free(base);
}

struct freeing {
	struct parser *parser;
	struct told told;
};

static void
hear_and_free(void *arg, const struct parser_answer *a)
{
	struct freeing *f = arg;

	parser_free(f->parser);
	f->parser = NULL;
	hear(&f->told, a);
}

static void
may_be_freed_by_its_caller(void **state UNUSED)
{
	struct event_base *base = begin();
	struct parser_options o = options();
	struct freeing f = { parser_new(base, &o), { 0 } };
	struct told other = { 0 };

	parser_facts(f.parser, "a", "SELECT 1", 8, hear_and_free, &f);
	parser_facts(f.parser, "b", "SELECT 1", 8, hear, &other);
	wait_for(base, &f.told);
	assert_int_equal(f.told.status, PARSER_OK);
	event_base_loop(base, EVLOOP_NONBLOCK);
	assert_int_equal(other.times, 0);
	event_base_free(base);
}

static void
says_when_there_is_no_parser(void **state UNUSED)
{
	struct event_base *base = begin();
	struct parser_options o = options();
	struct told t = { 0 }, again = { 0 };
	struct parser *p;

	o.program = "/nonexistent/airlockd";
	p = parser_new(base, &o);
	parser_facts(p, "a", "SELECT 1", 8, hear, &t);
	wait_for(base, &t);
	assert_int_equal(t.status, PARSER_UNAVAILABLE);
	parser_facts(p, "a", "SELECT 1", 8, hear, &again);
	assert_int_equal(again.times, 0);
	wait_for(base, &again);
	assert_int_equal(again.status, PARSER_UNAVAILABLE);
	parser_free(p);
	event_base_free(base);
}

/* More in the same write, so that it comes with the frame. */
#define READY_AND(more)                                                        \
	"printf '\\0\\0\\0\\012"                                               \
	"1 0 0 0 0 " more "' >&3; "
#define READY READY_AND("")

/* Programs that are not the parser that they should be. */
static void
does_not_trust_the_child(void **state UNUSED)
{
	static const struct {
		const char *script;
		enum parser_status status;
	} cases[] = {
		{ "printf '\\377\\377\\377\\377' >&3; exec sleep 9",
		    PARSER_UNAVAILABLE },
		{ "printf '\\0\\0\\0\\2{}' >&3; exec sleep 9",
		    PARSER_UNAVAILABLE },
		{ READY "head -c 1 <&3 >/dev/null; exit 1",
		    PARSER_TOO_COMPLEX },
		{ READY "head -c 1 <&3 >/dev/null; " READY,
		    PARSER_TOO_COMPLEX },
		{ READY_AND("xxxxxxxxxxxx") "exec sleep 9",
		    PARSER_UNAVAILABLE },
	};
	char path[] = "/tmp/airlock-test-parser.XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd != -1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct event_base *base = begin();
		struct parser_options o = options();
		struct told t = { 0 };
		struct parser *p;
		FILE *f = fopen(path, "we");

		fprintf(f, "#!/bin/sh\n%s\n", cases[i].script);
		fclose(f);
		if (fd != -1)
			close(fd);
		fd = -1;
		assert_int_equal(chmod(path, 0700), 0);
		o.program = path;
		o.deadline_ms = 5000;
		p = parser_new(base, &o);
		parser_facts(p, "a", "SELECT 1", 8, hear, &t);
		wait_for(base, &t);
		if (t.status != cases[i].status)
			fail_msg("case %zu: status %d, %s", i, t.status,
			    t.text);
		parser_free(p);
		event_base_free(base);
	}
	unlink(path);
}

static void
child_sits_in_a_cell(void **state UNUSED)
{
	struct event_base *base = begin();
	struct parser_options o = options();
	struct parser *p = parser_new(base, &o);
	char path[64], line[256];
	bool no_new_privs = false, seccomp = false;
	FILE *f;

	wait_for_child(base, p);
	snprintf(path, sizeof(path), "/proc/%ld/status", parser_pid(p));
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f) != NULL) {
		no_new_privs |= strcmp(line, "NoNewPrivs:\t1\n") == 0;
		seccomp |= strcmp(line, "Seccomp:\t2\n") == 0;
	}
	fclose(f);
	assert_true(no_new_privs);
	assert_true(seccomp || SPAWN_SANITIZED);
	for (int fd = 4; fd < 64; fd++) {
		snprintf(path, sizeof(path), "/proc/%ld/fd/%d", parser_pid(p),
		    fd);
		assert_int_equal(access(path, F_OK), -1);
	}
	parser_free(p);
	event_base_free(base);
}

int
main(int argc, char **argv)
{
	static bool by_deadline = true;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(asks_and_is_answered),
		cmocka_unit_test(refuses_what_is_too_much),
		cmocka_unit_test(refuses_nul),
		cmocka_unit_test(idle_child_is_replaced),
		cmocka_unit_test(busy_child_costs_one_call),
		cmocka_unit_test_prestate(busy_child_costs_one_call,
		    &by_deadline),
		cmocka_unit_test(what_came_before_is_known),
		cmocka_unit_test(serves_agents_in_turn),
		cmocka_unit_test(cancelled_calls_hear_nothing),
		cmocka_unit_test(freed_parser_tells_nobody),
		cmocka_unit_test(may_be_freed_by_its_caller),
		cmocka_unit_test(says_when_there_is_no_parser),
		cmocka_unit_test(does_not_trust_the_child),
		cmocka_unit_test(child_sits_in_a_cell),
	};
	ssize_t n;

	if (argc == 2 && strcmp(argv[1], "--parser") == 0)
		return parser_child();
	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n <= 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
