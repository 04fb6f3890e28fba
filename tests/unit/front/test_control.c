/* test_control: roles, guard, nonces and streams, with a core that is played */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control_world.h"

/* ---- who may what
 * ------------------------------------------------------------ */

static const char *
arguments(enum ctl_verb v)
{
	return v == CTL_SHOW || v == CTL_ROLLBACK || v == CTL_COMMIT
	           ? "{\"change\":\"" ID "\"}"
	           : "{}";
}

static void
test_roles(void **state UNUSED)
{
	for (int r = ROLE_NONE; r < ROLE_N; r++)
		for (int v = 0; v < CTL_NVERBS; v++) {
			struct talk t;
			bool may = r >= (int)ctl_verbs[v].role;
			const char *in;

			person.role = (enum role)r;
			json_array_clear(gate.written);
			call(&t);
			in = ask(&t, ctl_verbs[v].name,
			    arguments((enum ctl_verb)v));
			assert_int_equal(strstr(in, "DENIED") == NULL, may);
			assert_int_equal(json_array_size(gate.written), !may);
			if (!may)
				assert_said(in, "\"exit\":4");
			hang_up(&t);
		}
}

static void
test_denial_is_recorded(void **state UNUSED)
{
	struct talk t;
	json_t *rec;

	person.role = ROLE_VIEW;
	call(&t);
	ask(&t, "commit", arguments(CTL_COMMIT));
	rec = json_array_get(gate.written, 0);
	assert_string_equal(json_string_value(json_object_get(rec, "kind")),
	    "denied");
	assert_string_equal(json_string_value(json_object_get(rec, "verb")),
	    "commit");
	assert_int_equal(json_integer_value(json_object_get(rec, "uid")),
	    geteuid());
	assert_int_equal(json_integer_value(json_object_get(rec, "pid")),
	    getpid());
	assert_null(gate.done);
	for (int i = 0; i < 100; i++)
		ask(&t, "commit", arguments(CTL_COMMIT));
	assert_in_range(json_array_size(gate.written), 2, 50);
	hang_up(&t);
}

/* Nobody configured: airlockd's own uid; somebody else configured: not it. */
static void
test_operators(void **state UNUSED)
{
	struct talk t;

	gate.o.noperators = 0;
	call(&t);
	assert_said(ask(&t, "agents", "{}"), "\"ok\":true");
	hang_up(&t);
	gate.o.noperators = 1;
	person.uid = geteuid() + 1;
	call(&t);
	assert_said(ask(&t, "agents", "{}"), "DENIED");
	assert_null(strstr(ask(&t, "status", "{}"), "secret"));
	hang_up(&t);
	person.uid = (uid_t)-1;
	person.gid = getegid();
	call(&t);
	assert_said(ask(&t, "agents", "{}"), "\"ok\":true");
	hang_up(&t);
}

static void
test_guard(void **state UNUSED)
{
	gate.guarded = true;
	for (int trusted = 0; trusted < 2; trusted++)
		for (int v = 0; v < CTL_NVERBS; v++) {
			bool may = trusted || !ctl_verbs[v].guarded;
			struct talk t;
			const char *in;

			gate.trusted = trusted;
			call(&t);
			in = ask(&t, ctl_verbs[v].name,
			    arguments((enum ctl_verb)v));
			assert_int_equal(strstr(in, "DENIED") == NULL, may);
			if (!may)
				assert_said(in, "no terminal");
			if (v == CTL_STATUS)
				assert_int_equal(strstr(in, "secret") != NULL,
				    trusted);
			hang_up(&t);
		}
	assert_int_equal(gate.sender, getpid());
}

/* ---- whose request it is
 * ------------------------------------------------------ */

static void
test_nonce(void **state UNUSED)
{
	static const char *const wrong[] = { "", "0123456789abcdef",
		"00000000000000000000000000000000" };
	struct talk t, other;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		call(&t);
		say(&t, wrong[i], "pending", "{}");
		LOOP_UNTIL(base,
		    hear(&t, "\n") && hear(&t, "no such") && t.closed);
		assert_said(text_str(&t.in), "DENIED");
		hang_up(&t);
	}
	call(&t);
	call(&other);
	assert_string_not_equal(t.nonce, other.nonce);
	say(&t, other.nonce, "pending", "{}");
	LOOP_UNTIL(base, hear(&t, "\"ok\""));
	assert_said(text_str(&t.in), "DENIED");
	hang_up(&t);
	hang_up(&other);
}

/* A descriptor that was passed on, or inherited, speaks for nobody. */
static void
test_other_sender(void **state UNUSED)
{
	struct talk t;
	pid_t child;
	int status;

	call(&t);
	child = fork();
	assert_int_not_equal(child, -1);
	if (child == 0) {
		say(&t, t.nonce, "pending", "{}");
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	LOOP_UNTIL(base, hear(&t, "\"ok\""));
	assert_said(text_str(&t.in), "another process");
	assert_int_equal(json_array_size(gate.written), 1);
	hang_up(&t);
}

static void
test_bad_requests(void **state UNUSED)
{
	static const char *const bad[] = { "\x00\xff\n", "nonsense\n", "[]\n",
		"{}\n", "{\"airlock\":2}\n", "{\"airlock\":1,\"nonce\":1}\n" };
	static char huge[CTL_LINE_MAX + 2];
	struct talk t;

	for (size_t i = 1; i < sizeof(bad) / sizeof(bad[0]); i++) {
		call(&t);
		send(t.fd, bad[i], strlen(bad[i]), 0);
		LOOP_UNTIL(base, hear(&t, "\"ok\""));
		assert_said(text_str(&t.in), "\"exit\":2");
		hang_up(&t);
	}
	memset(huge, 'x', sizeof(huge));
	call(&t);
	for (size_t sent = 0; sent < sizeof(huge);) {
		ssize_t n =
		    send(t.fd, huge + sent, sizeof(huge) - sent, MSG_DONTWAIT);

		sent += n > 0 ? (size_t)n : 0;
		LOOP_SETTLE(base);
	}
	LOOP_UNTIL(base, hear(&t, "\"ok\""));
	assert_said(text_str(&t.in), "BAD_REQUEST");
	hang_up(&t);
}

static void
test_too_many(void **state UNUSED)
{
	struct talk t[25];

	for (int i = 0; i < 25; i++) {
		call(&t[i]);
		assert_int_equal(t[i].closed, i == 24);
	}
	for (int i = 0; i < 25; i++)
		hang_up(&t[i]);
	call(&t[0]);
	assert_false(t[0].closed);
	hang_up(&t[0]);
}

/* ---- decisions
 * ---------------------------------------------------------------- */

#define DIGEST                                                                 \
	"dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd"

static void
test_commit(void **state UNUSED)
{
	static const char args[] =
	    "{\"change\":\"" ID "\",\"digest\":\"" DIGEST "\"}";
	json_t *header = json_pack("{s:s}", "status", "committed");
	struct outcome o = { .ok = true, .json = header };
	struct talk t;

	call(&t);
	say(&t, t.nonce, "commit", args);
	LOOP_UNTIL(base, gate.done != NULL);
	assert_string_equal(gate.who, "ops");
	assert_string_equal(gate.what, ID "@" DIGEST);
	assert_false(hear(&t, "ok")); /* not before it is done */
	gate.done(gate.arg, &o);
	LOOP_UNTIL(base, hear(&t, "\"status\":\"committed\""));
	assert_said(ask(&t, "ping", "{}"), "\"ok\":true");
	/* One at a time; the first is not undone by it. */
	gate.done = NULL;
	say(&t, t.nonce, "commit", args);
	LOOP_UNTIL(base, gate.done != NULL);
	text_reset(&t.in);
	say(&t, t.nonce, "ping", "{}");
	LOOP_UNTIL(base, hear(&t, "BUSY"));
	hang_up(&t);
	gate.done(gate.arg, &o); /* nobody listens any more */
	json_decref(header);
}

/* A digest of before: both views of the change go with the refusal. */
static void
test_commit_moved(void **state UNUSED)
{
	json_t *was = json_pack("{s:i}", "statements", 1);
	json_t *now = json_pack("{s:s}", "risk", "high");
	struct outcome o = { .code = "DIGEST_MOVED",
		.text = "it moved",
		.json = now,
		.was = was };
	struct talk t;

	call(&t);
	say(&t, t.nonce, "commit",
	    "{\"change\":\"" ID "\",\"digest\":\"" DIGEST "\"}");
	LOOP_UNTIL(base, gate.done != NULL);
	gate.done(gate.arg, &o);
	LOOP_UNTIL(base,
	    hear(&t, "{\"ok\":false,\"exit\":1,\"code\":\"DIGEST_MOVED\","
		     "\"error\":\"it moved\",\"was\":{\"statements\":1},"
		     "\"change\":{\"risk\":\"high\"}}"));
	hang_up(&t);
	json_decref(was);
	json_decref(now);
}

static void
test_decision_outlives_its_peer(void **state UNUSED)
{
	struct outcome o = { .ok = false, .code = "X", .text = "x" };
	struct talk t;

	call(&t);
	say(&t, t.nonce, "commit",
	    "{\"change\":\"" ID "\",\"digest\":\"" DIGEST "\"}");
	LOOP_UNTIL(base, gate.done != NULL);
	hang_up(&t);
	gate.done(gate.arg, &o);
	call(&t);
	assert_said(ask(&t, "ping", "{}"), "\"ok\":true");
	hang_up(&t);
}

static void
test_arguments(void **state UNUSED)
{
	static const struct {
		const char *verb, *args, *says;
	} cases[] = {
		{ "commit", "{}", "a change must be named" },
		{ "commit", "{\"change\":\"" ID "\"}", "all 64 hex digits" },
		{ "commit", "{\"change\":\"" ID "\",\"digest\":\"dd\"}",
		    "all 64 hex digits" },
		{ "commit", "{\"change\":\"latest\",\"digest\":\"dd\"}",
		    "not a change" },
		{ "commit", "{\"change\":\"" ID "@" DIGEST "\"}",
		    "without a digest" },
		{ "rollback", "{\"change\":\"" ID "\",\"reason\":1}",
		    "a reason is a string" },
		{ "rollback", "{\"change\":\"" ID "\"}",
		    "\"code\":\"ALREADY_DECIDED\",\"error\":\"too late\"" },
		{ "show", "{\"change\":\"" ID "\"}", "NOT_FOUND" },
		{ "show", "{\"change\":\"chg_eeeeeeeeee\"}",
		    "\"id\":\"chg_eeeeeeeeee\"" },
		{ "log", "{\"from\":-1}", "from" },
		{ "log", "{\"limit\":\"1\"}", "limit" },
		{ "log", "{\"change\":1}", "not a string" },
	};
	struct talk t;

	call(&t);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_said(ask(&t, cases[i].verb, cases[i].args),
		    cases[i].says);
	assert_null(gate.done);
	hang_up(&t);
}

/* ---- streams
 * ------------------------------------------------------------------ */

static void
fill_store(size_t n, size_t width)
{
	static const char *const names[] = { "id" };
	static const bool key[] = { true };
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct err e = { 0 };
	char *wide = malloc(width + 32);

	if (store_open(fd, ID, 1u << 30, &gate.store, &e) == -1)
		fail_msg("%s", e.text);
	close(fd);
	for (size_t i = 0; i < n; i++) {
		struct value v = { .p = wide };
		struct image im = { .table = i % 2 ? "s.odd" : "s.even",
			.op = IMAGE_INSERT,
			.ncols = 1,
			.names = names,
			.key = key,
			.after = &v };

		v.len = (size_t)snprintf(wide, 32, "<%zu>", i);
		if (width > 0) {
			memset(wide + v.len, 'x', width);
			v.len += width;
		}
		assert_int_equal(store_add(gate.store, &im, &e), 0);
	}
	free(wide);
}

static size_t
count(const char *in, const char *what)
{
	size_t n = 0;

	while ((in = strstr(in, what)) != NULL) {
		n++;
		in += strlen(what);
	}
	return n;
}

static void
test_show(void **state UNUSED)
{
	static const struct {
		const char *args;
		size_t rows;
		const char *first, *says;
	} cases[] = {
		{ "", 2000, "<0>",
		    "\"rows\":2000,\"total\":2000,\"next\":null" },
		{ ",\"offset\":1998", 2, "<1998>", "\"next\":null" },
		{ ",\"offset\":3000", 0, "\"digest\"", "\"next\":null" },
		{ ",\"offset\":10,\"limit\":700", 700, "<10>",
		    "\"rows\":700,\"total\":2000,\"next\":710" },
		{ ",\"limit\":0", 0, "\"digest\"", "\"next\":0" },
		{ ",\"table\":\"s.odd\"", 1000, "<1>", "\"next\":null" },
		{ ",\"table\":\"s.odd\",\"offset\":900,\"limit\":5", 5,
		    "<1801>", "\"next\":905" },
		{ ",\"table\":\"s.o\"", 0, "\"digest\"", "\"next\":null" },
	};
	struct talk t;

	fill_store(2000, 0);
	call(&t);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char args[128];
		const char *in;

		snprintf(args, sizeof(args), "{\"change\":\"" ID "\"%s}",
		    cases[i].args);
		in = ask(&t, "show", args);
		assert_int_equal(count(in, "\"op\":\"insert\""), cases[i].rows);
		assert_said(in, cases[i].first);
		assert_said(in, cases[i].says);
		assert_said(in, "{\"data\":{\"id\":\"" ID "\"");
	}
	hang_up(&t);
}

/* A peer that does not read costs a bounded queue: what comes after it has
 * read again shows that the rest had not been taken from the store. */
static void
test_slow_reader(void **state UNUSED)
{
	struct talk t;

	fill_store(4000, 4000);
	call(&t);
	say(&t, t.nonce, "show", "{\"change\":\"" ID "\"}");
	for (int i = 0; i < 50; i++)
		LOOP_SETTLE(base);
	memset(gate.digest, 'e', 64); /* the change moves on */
	LOOP_UNTIL(base, hear(&t, "\"ok\":"));
	assert_said(text_str(&t.in), "\"code\":\"MOVED\"");
	assert_in_range(count(text_str(&t.in), "\"op\""), 1, 400);
	hang_up(&t);
	/* And one that goes away in the middle. */
	call(&t);
	say(&t, t.nonce, "show", "{\"change\":\"" ID "\"}");
	LOOP_SETTLE(base);
	hang_up(&t);
}

static void
test_log(void **state UNUSED)
{
	static const struct {
		const char *args;
		size_t n;
		const char *first, *says;
	} cases[] = {
		{ "{}", RECORDS, "\"seq\":1,", "\"next\":1301" },
		{ "{\"limit\":2}", 2, "\"seq\":1299,", "\"next\":1301" },
		{ "{\"from\":5,\"limit\":2}", 2, "\"seq\":5,", "\"next\":7" },
		{ "{\"from\":1301}", 0, "\"ok\":true", "\"next\":1301" },
		{ "{\"change\":\"" ID "\",\"limit\":1}", RECORDS / 2,
		    "\"seq\":1,", "\"next\":1301" },
	};
	struct talk t;

	call(&t);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *in = ask(&t, "log", cases[i].args);

		assert_int_equal(count(in, "{\"data\":"), cases[i].n);
		assert_said(in, cases[i].first);
		assert_said(in, cases[i].says);
	}
	assert_said(ask(&t, "log", "{\"verify\":true}"), "\"records\":1300");
	snprintf(records[900], sizeof(records[900]), "{\"seq\":1}");
	assert_said(ask(&t, "log", "{}"), "JOURNAL_BROKEN");
	make_records(700);
	assert_said(ask(&t, "log", "{\"verify\":true}"),
	    "record 701 does not follow record 700");
	hang_up(&t);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_roles),
		T(test_denial_is_recorded),
		T(test_operators),
		T(test_guard),
		T(test_nonce),
		T(test_other_sender),
		T(test_bad_requests),
		T(test_too_many),
		T(test_commit),
		T(test_commit_moved),
		T(test_decision_outlives_its_peer),
		T(test_arguments),
		T(test_show),
		T(test_slow_reader),
		T(test_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
