/* test_mcp: an agent's socket, with tools that answer when the test says so */
#include "front/mcp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/text.h"
#include "core/guard.h"
#include "front/tools.h"

#include "../wire/loop.h"

#define CALLS_MAX 64

/* What the tools were asked. */
struct tool_call {
	tool_done *done;
	void *arg;
	char name[32], client[160], args[256];
	size_t sql_len;
	bool open, cancelled;
};
static struct tool_call calls[CALLS_MAX];
static int ncalls;
static int nseen; /* by the guard */
static bool guard_knows;
static struct gate_options options;

const char tools_instructions[] = "read this";

json_t *
tools_list(bool annotations, bool titles)
{
	return json_pack("[{s:s, s:b, s:b}]", "name", "db_x", "a", annotations,
	    "t", titles);
}

struct tool_call *
tools_call(struct gate *g UNUSED, struct agent *a UNUSED, const char *client,
    const char *name, const json_t *args, tool_done *done, void *arg,
    struct err *e)
{
	struct tool_call *c = &calls[ncalls];
	char *s = args != NULL ? json_dumps(args, JSON_COMPACT) : NULL;

	if (strcmp(name, "db_x") != 0) {
		free(s);
		err_set(e, ERR_INPUT, "Unknown tool: %s. Known tools: db_x",
		    name);
		return NULL;
	}
	assert_in_range(ncalls, 0, CALLS_MAX - 1);
	memset(c, 0, sizeof(*c));
	c->done = done;
	c->arg = arg;
	c->open = true;
	c->sql_len = json_string_length(json_object_get(args, "sql"));
	snprintf(c->name, sizeof(c->name), "%s", name);
	snprintf(c->client, sizeof(c->client), "%s", client);
	snprintf(c->args, sizeof(c->args), "%s", s != NULL ? s : "none");
	free(s);
	ncalls++;
	return c;
}

void
tools_cancel(struct tool_call *c)
{
	assert_true(c->open);
	c->open = false;
	c->cancelled = true;
}

static int
open_calls(void)
{
	int n = 0;

	for (int i = 0; i < ncalls; i++)
		n += calls[i].open;
	return n;
}

const struct gate_options *
gate_get_options(const struct gate *g UNUSED)
{
	return &options;
}

struct guard *
gate_guard(struct gate *g UNUSED)
{
	return NULL;
}

bool
guard_saw_client(struct guard *g UNUSED, const struct peer *p)
{
	assert_int_equal(p->pid, getpid());
	nseen += guard_knows;
	return guard_knows;
}

struct stage {
	struct event_base *base;
	struct mcp_server *server;
	struct agent_options o;
	struct agent agent;
	char dir[64], path[128], name[8];
	int fd;
	struct text in;
};

static int
dial(struct stage *s)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(sun.sun_path, s->path, strlen(s->path) + 1);
	assert_int_equal(connect(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	return fd;
}

static int
set_up(void **state)
{
	struct stage *s = calloc(1, sizeof(*s));
	struct err e = ERR_INIT;

	ncalls = nseen = 0;
	guard_knows = true;
	snprintf(s->dir, sizeof(s->dir), "/tmp/airlock-test.XXXXXX");
	assert_non_null(mkdtemp(s->dir));
	snprintf(s->path, sizeof(s->path), "%s/agent-bot.sock", s->dir);
	snprintf(s->name, sizeof(s->name), "bot");
	options.runtime_dir = s->dir;
	options.limits.agent_calls_max = 8;
	options.limits.statement_bytes_max = 65536;
	s->o.name = s->name;
	s->o.gid = (gid_t)-1;
	s->agent.o = &s->o;
	s->base = event_base_new();
	assert_int_equal(mcp_server_open(s->base, NULL, &s->agent, &s->server,
			     &e),
	    0);
	s->fd = dial(s);
	*state = s;
	return 0;
}

static int
tear_down(void **state)
{
	struct stage *s = *state;

	mcp_server_close(s->server);
	assert_int_equal(open_calls(), 0);
	if (s->fd != -1)
		close(s->fd);
	assert_int_equal(rmdir(s->dir), 0);
	text_release(&s->in);
	event_base_free(s->base);
	free(s);
	return 0;
}

static void
sayn(struct stage *s, const char *p, size_t n)
{
	while (n > 0) {
		ssize_t put = write(s->fd, p, n);

		if (put > 0) {
			p += put;
			n -= (size_t)put;
		} else
			assert_int_equal(errno, EAGAIN);
		event_base_loop(s->base, EVLOOP_NONBLOCK);
	}
}

static void
say(struct stage *s, const char *p)
{
	sayn(s, p, strlen(p));
}

static bool
has_line(struct stage *s)
{
	char chunk[65536];
	ssize_t n = read(s->fd, chunk, sizeof(chunk));

	if (n > 0)
		text_addn(&s->in, chunk, (size_t)n);
	return s->in.len > 0 && memchr(s->in.s, '\n', s->in.len) != NULL;
}

/* The next message. */
static json_t *
hear(struct stage *s)
{
	json_t *j;
	char *end;

	while (!has_line(s))
		event_base_loop(s->base, EVLOOP_NONBLOCK);
	end = memchr(s->in.s, '\n', s->in.len);
	j = json_loadb(s->in.s, (size_t)(end - s->in.s), 0, NULL);
	assert_non_null(j);
	text_drop(&s->in, (size_t)(end - s->in.s) + 1);
	return j;
}

/* What is said is answered as expected, in this order, and with no more. */
static void
expect(struct stage *s, const char *said, const char *expected)
{
	json_t *j;
	char *text;

	say(s, said);
	j = hear(s);
	text = json_dumps(j, JSON_COMPACT);
	if (strncmp(text, expected, strlen(expected)) != 0)
		fail_msg("%s\nexpected %s\nheard    %s", said, expected, text);
	free(text);
	json_decref(j);
}

static void
expect_silence(struct stage *s)
{
	LOOP_SETTLE(s->base);
	assert_false(has_line(s));
}

static void
answer(int call, bool is_error, const char *text)
{
	struct tool_answer a = { .is_error = is_error, .text = text };

	assert_true(calls[call].open);
	calls[call].open = false;
	calls[call].done(calls[call].arg, &a);
}

#define R "{\"jsonrpc\":\"2.0\","
#define M                                                                      \
	"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":"              \
	"\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":{},"    \
	"\"io.modelcontextprotocol/clientInfo\":{\"name\":\"new\","            \
	"\"version\":\"2\"}}"
#define HELLO(v)                                                               \
	R "\"id\":0,\"method\":\"initialize\",\"params\":{"                    \
	  "\"protocolVersion\":\"" v "\",\"capabilities\":{},"                 \
	  "\"clientInfo\":{\"name\":\"old\",\"version\":\"1\"}}}\n"
#define CALL(id)                                                               \
	R "\"id\":" id ",\"method\":\"tools/call\",\"params\":{"               \
	  "\"name\":\"db_x\",\"arguments\":{\"sql\":\"select 1\"}}}\n"
#define CANCEL(id)                                                             \
	R "\"method\":\"notifications/cancelled\",\"params\":{"                \
	  "\"requestId\":" id "}}\n"

static const struct {
	const char *said, *answer; /* the beginning of it */
} legacy[] = {
	{ HELLO("2025-06-18"), R
	    "\"id\":0,\"result\":{\"protocolVersion\":"
	    "\"2025-06-18\",\"capabilities\":{\"tools\":{}},\"serverInfo\":" },
	{ HELLO("2026-07-28"), R "\"id\":0,\"result\":{\"protocolVersion\":"
				 "\"2025-11-25\"" },
	{ R "\"id\":1,\"method\":\"initialize\",\"params\":{}}\n",
	    R "\"id\":1,\"error\":{\"code\":-32602," },
	{ R "\"id\":1,\"method\":\"ping\"}\n", R "\"id\":1,\"result\":{}}" },
	{ R "\"id\":\"p\",\"method\":\"ping\",\"params\":{}}\n",
	    R "\"id\":\"p\",\"result\":{}}" },
	{ R "\"id\":1,\"method\":\"tools/list\"}\n",
	    R "\"id\":1,\"result\":{"
	      "\"tools\":[{\"name\":\"db_x\",\"a\":true,\"t\":true}]}}" },
	{ R "\"id\":1,\"method\":\"tools/list\",\"params\":{\"cursor\":\"\"}}\n",
	    R "\"id\":1,\"error\":{\"code\":-32602," },
	{ R "\"id\":1,\"method\":\"resources/list\"}\n", R
	    "\"id\":1,\"error\":"
	    "{\"code\":-32601,\"message\":\"Method not found: resources/list\"" },
	{ R "\"id\":1,\"method\":\"logging/setLevel\",\"params\":{}}\n",
	    R "\"id\":1,\"error\":{\"code\":-32601," },
	{ R "\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"no\"}}\n",
	    R "\"id\":1,\"error\":{\"code\":-32602,\"message\":\"Unknown tool: "
	      "no. Known tools: db_x\"}}" },
	{ R "\"id\":1,\"method\":\"tools/call\",\"params\":{}}\n",
	    R "\"id\":1,\"error\":{\"code\":-32602," },
	{ R "\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
	    "\"db_x\\u0000\"}}\n",
	    R "\"id\":1,\"error\":{\"code\":-32602," },
	{ R "\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"db_x\","
	    "\"arguments\":[]}}\n",
	    R "\"id\":1,\"error\":{\"code\":-32602," },
	{ "garbage\n", R "\"error\":{\"code\":-32700," },
	{ "[" R "\"id\":1,\"method\":\"ping\"}]\n",
	    R "\"error\":{\"code\":-32600," },
	{ R "\"id\":null,\"method\":\"ping\"}\n",
	    R "\"error\":{\"code\":-32600," },
	{ R "\"id\":7,\"method\":\"ping\",\"method\":\"ping\"}\n",
	    R "\"id\":7,\"error\":{\"code\":-32700," },
	{ R "\"id\":7,\"method\":\"ping\",\"params\":[]}\n",
	    R "\"id\":7,\"error\":{\"code\":-32602," },
};

static void
speaks_legacy(void **state)
{
	struct stage *s = *state;

	for (size_t i = 0; i < sizeof(legacy) / sizeof(legacy[0]); i++)
		expect(s, legacy[i].said, legacy[i].answer);
	say(s, R "\"method\":\"notifications/initialized\"}\n" R
		 "\"method\":\"what/ever\",\"params\":7}\n"
		 "{\"method\":\"x\"}\n" R "\"id\":9,\"result\":{}}\n\r\n\n");
	expect_silence(s);
	assert_int_equal(ncalls, 0);
	assert_int_equal(nseen, 1);
}

static const struct {
	const char *said, *answer;
} modern[] = {
	{ R "\"id\":\"d\",\"method\":\"server/discover\",\"params\":{" M "}}\n",
	    R
	    "\"id\":\"d\",\"result\":{\"supportedVersions\":[\"2026-07-28\"],"
	    "\"capabilities\":{\"tools\":{}},\"instructions\":\"read this\","
	    "\"ttlMs\":300000,\"cacheScope\":\"private\",\"resultType\":"
	    "\"complete\",\"_meta\":{\"io.modelcontextprotocol/serverInfo\":" },
	{ R "\"id\":1,\"method\":\"tools/list\",\"params\":{" M "}}\n",
	    R "\"id\":1,\"result\":{\"tools\":[{\"name\":\"db_x\",\"a\":true,"
	      "\"t\":true}],\"ttlMs\":300000,\"cacheScope\":\"private\","
	      "\"resultType\":\"complete\",\"_meta\":" },
	{ R "\"id\":1,\"method\":\"server/discover\"}\n",
	    R "\"id\":1,\"error\":{\"code\":-32602," },
	{ R "\"id\":1,\"method\":\"initialize\",\"params\":{" M "}}\n",
	    R "\"id\":1,\"error\":{\"code\":-32601," },
	{ R "\"id\":1,\"method\":\"ping\",\"params\":{" M "}}\n",
	    R "\"id\":1,\"error\":{\"code\":-32601," },
	{ R "\"id\":1,\"method\":\"subscriptions/listen\",\"params\":{" M
	    "}}\n",
	    R "\"id\":1,\"error\":{\"code\":-32601," },
	/* and a legacy request in between is served as such */
	{ R "\"id\":1,\"method\":\"ping\"}\n", R "\"id\":1,\"result\":{}}" },
};

static void
speaks_modern(void **state)
{
	struct stage *s = *state;

	for (size_t i = 0; i < sizeof(modern) / sizeof(modern[0]); i++)
		expect(s, modern[i].said, modern[i].answer);
}

static void
answers_calls_out_of_order(void **state)
{
	struct stage *s = *state;

	say(s, HELLO("2024-11-05"));
	json_decref(hear(s));
	say(s, CALL("0") CALL("\"0\"") R
	    "\"id\":2,\"method\":\"tools/call\","
	    "\"params\":{\"name\":\"db_x\",\"arguments\":null,"
	    "\"_meta\":{\"progressToken\":5}}}\n");
	say(s, R "\"id\":3,\"method\":\"tools/call\",\"params\":{\"name\":"
		 "\"db_x\"," M "}}\n");
	LOOP_UNTIL(s->base, ncalls == 4);
	assert_int_equal(open_calls(), 4);
	assert_string_equal(calls[0].client, "old/1");
	assert_string_equal(calls[0].args, "{\"sql\":\"select 1\"}");
	assert_string_equal(calls[2].args, "none");
	assert_string_equal(calls[3].client, "new/2");
	answer(3, false, "{\"v\":3}");
	expect(s, "",
	    R "\"id\":3,\"result\":{\"content\":[{\"type\":\"text\","
	      "\"text\":\"{\\\"v\\\":3}\"}],\"structuredContent\":{\"v\":3},"
	      "\"resultType\":\"complete\",\"_meta\":");
	answer(1, true, "REFUSED X: y");
	expect(s, "",
	    R "\"id\":\"0\",\"result\":{\"content\":[{\"type\":"
	      "\"text\",\"text\":\"REFUSED X: y\"}],\"isError\":true}}");
	answer(0, false, "{\"v\":0}");
	expect(s, "",
	    R "\"id\":0,\"result\":{\"content\":[{\"type\":\"text\","
	      "\"text\":\"{\\\"v\\\":0}\"}]}}");
	answer(2, false, "{}");
	expect(s, "", R "\"id\":2,\"result\":");
	assert_int_equal(open_calls(), 0);
}

static void
lets_broken_text_reach_the_tool(void **state)
{
	struct stage *s = *state;

	say(s, R "\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
		 "\"db_x\",\"arguments\":{\"sql\":\"a\\u0000b\"}}}\n" R
		 "\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":"
		 "\"db_x\",\"arguments\":{\"sql\":\"a\xff"
		 "b\"}}}\n");
	LOOP_UNTIL(s->base, ncalls == 2);
	assert_int_equal(calls[0].sql_len, 3);
	assert_int_equal(calls[1].sql_len, 3);
}

static void
cancelled_calls_are_not_answered(void **state)
{
	struct stage *s = *state;

	say(s, CALL("1") CALL("\"1\"") CANCEL("1") CANCEL("99") CANCEL("null") R
	    "\"method\":\"notifications/cancelled\"}\n");
	LOOP_UNTIL(s->base, ncalls == 2 && !calls[0].open);
	expect_silence(s);
	assert_true(calls[0].cancelled);
	assert_true(calls[1].open);
	assert_int_equal(open_calls(), 1);
	answer(1, false, "{}");
	expect(s, "", R "\"id\":\"1\",\"result\":");
	say(s, CANCEL("\"1\"")); /* too late */
	expect_silence(s);
}

static void
too_many_calls_are_refused(void **state)
{
	struct stage *s = *state;

	for (int i = 0; i < 8; i++)
		say(s, CALL("1"));
	expect(s, CALL("\"over\""),
	    R "\"id\":\"over\",\"result\":{\"content\":"
	      "[{\"type\":\"text\",\"text\":\"REFUSED TOO_MANY_CALLS: ");
	assert_int_equal(ncalls, 8);
	answer(0, false, "{}");
	json_decref(hear(s));
	say(s, CALL("2"));
	LOOP_UNTIL(s->base, ncalls == 9);
	expect_silence(s);
}

static void
a_closed_connection_cancels_its_calls(void **state)
{
	struct stage *s = *state;
	int first = s->fd;

	say(s, CALL("1") CALL("2"));
	LOOP_UNTIL(s->base, ncalls == 2);
	s->fd = dial(s);
	say(s, CALL("1"));
	LOOP_UNTIL(s->base, ncalls == 3);
	close(first);
	LOOP_UNTIL(s->base, open_calls() == 1);
	assert_true(calls[0].cancelled && calls[1].cancelled);
	assert_true(calls[2].open);
	answer(2, false, "{}");
	expect(s, "", R "\"id\":1,\"result\":");
	say(s, CALL("4") "{\"half"); /* and tear_down closes the server */
	LOOP_UNTIL(s->base, ncalls == 4);
}

static void
batches_are_answered_in_one_line(void **state)
{
	struct stage *s = *state;
	struct text t;

	say(s, HELLO("2025-03-26"));
	json_decref(hear(s));
	say(s,
	    "[" R "\"id\":1,\"method\":\"ping\"}," R "\"method\":\"x\"}," R
	    "\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":"
	    "\"db_x\"}}," R "\"id\":3,\"method\":\"tools/call\",\"params\":{"
	    "\"name\":\"db_x\"}},7,[]," R "\"id\":4,\"method\":\"initialize\","
	    "\"params\":{\"protocolVersion\":\"2025-06-18\"}}]\n");
	LOOP_UNTIL(s->base, ncalls == 2);
	expect_silence(s);
	answer(0, false, "{}");
	expect_silence(s);
	say(s, CANCEL("3"));
	expect(s, "",
	    "[" R "\"id\":1,\"result\":{}}," R "\"error\":{\"code\":"
	    "-32600,");
	say(s, "[" R "\"method\":\"x\"}]\n");
	expect_silence(s);
	expect(s, "[]\n", R "\"error\":{\"code\":-32600,");
	text_init(&t);
	text_addc(&t, '[');
	for (int i = 0; i < 65; i++)
		text_addf(&t, "%s" R "\"id\":1,\"method\":\"ping\"}",
		    i > 0 ? "," : "");
	text_add(&t, "]\n");
	expect(s, t.s, R "\"error\":{\"code\":-32600,");
	text_release(&t);
	/* a batch that its client did not wait for */
	say(s, "[" R "\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":"
	       "\"db_x\"}}]\n");
	LOOP_UNTIL(s->base, ncalls == 3);
}

/* SDK clients write the id last; without an answer they wait for a minute. */
static void
refuses_what_is_too_long_by_its_id(void **state)
{
	struct stage *s = *state;
	size_t n = 5u << 20;
	char *sql = malloc(n);

	memset(sql, 's', n);
	say(s, "{\"method\":\"tools/call\",\"params\":{\"name\":\"db_x\","
	       "\"arguments\":{\"sql\":\"");
	sayn(s, sql, n);
	expect(s, "\"}},\"jsonrpc\":\"2.0\",\"id\":5}\n",
	    R "\"id\":5,"
	      "\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"REFUSED "
	      "STATEMENT_TOO_LARGE: ");
	say(s, "{\"method\":\"ping\",\"params\":{\"x\":\"");
	sayn(s, sql, n);
	expect(s, "\"},\"id\":6}\n", R "\"id\":6,\"error\":{\"code\":-32600,");
	sayn(s, sql, n);
	expect(s, "\n", R "\"error\":{\"code\":-32600,");
	say(s, "{\"method\":\"note\",\"params\":{\"x\":\"");
	sayn(s, sql, n);
	expect(s, "\"}}\n" R "\"id\":7,\"method\":\"ping\"}\n",
	    R "\"id\":7,\"result\":{}}");
	assert_int_equal(ncalls, 0);
	free(sql);
}

/* Whoever does not read is not read either, and loses nothing. */
static void
stops_serving_whoever_does_not_read(void **state)
{
	static const char ask[] = R "\"id\":1,\"method\":\"tools/list\"}\n";
	struct stage *s = *state;
	size_t asked = 0, heard = 0;
	int idle = 0;

	while (idle < 100 && asked < 500000) {
		ssize_t put = send(s->fd, ask, sizeof(ask) - 1, MSG_DONTWAIT);

		assert_true(put == -1 || put == sizeof(ask) - 1);
		asked += put > 0;
		idle = put > 0 ? 0 : idle + 1;
		event_base_loop(s->base, EVLOOP_NONBLOCK);
	}
	assert_true(asked < 500000);
	while (heard < asked) {
		json_t *j = hear(s);

		assert_int_equal(json_integer_value(json_object_get(j, "id")),
		    1);
		json_decref(j);
		heard++;
	}
	expect_silence(s);
}

static void
the_socket_is_for_its_agent(void **state)
{
	struct stage *s = *state;
	struct mcp_server *other;
	struct err e = ERR_INIT;
	struct stat st;
	uid_t uids[] = { 12345 };

	assert_int_equal(stat(s->path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(mcp_server_open(s->base, NULL, &s->agent, &other, &e),
	    -1);
	assert_int_equal(e.code, ERR_UNFIT);
	mcp_server_close(s->server);
	s->o.gid = getegid();
	assert_int_equal(mcp_server_open(s->base, NULL, &s->agent, &s->server,
			     &e),
	    0);
	assert_int_equal(stat(s->path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0660);
	mcp_server_close(s->server);
	s->o.gid = (gid_t)-1;
	s->o.uids = uids;
	s->o.nuids = 1;
	assert_int_equal(mcp_server_open(s->base, NULL, &s->agent, &s->server,
			     &e),
	    0);
	assert_int_equal(stat(s->path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0666);
}

/* One connection of another uid; gives whether it was closed. */
static bool
is_turned_away(struct stage *s, uid_t uid)
{
	char byte;
	int was = nseen;
	bool away;

	LOOP_SETTLE(s->base);
	assert_int_equal(chmod(s->dir, 0755), 0);
	assert_int_equal(seteuid(uid), 0);
	close(s->fd);
	s->fd = dial(s);
	assert_int_equal(seteuid(0), 0); /* airlockd's own is 0 here */
	LOOP_SETTLE(s->base);
	away = read(s->fd, &byte, 1) == 0;
	assert_int_equal(nseen, was + (away ? 0 : 1));
	return away;
}

static void
other_uids_are_turned_away(void **state)
{
	struct stage *s = *state;
	uid_t uids[] = { 23456, 12345 };
	struct err e = ERR_INIT;

	if (geteuid() != 0)
		skip();
	mcp_server_close(s->server);
	s->o.uids = uids;
	s->o.nuids = 2;
	assert_int_equal(mcp_server_open(s->base, NULL, &s->agent, &s->server,
			     &e),
	    0);
	assert_false(is_turned_away(s, 12345));
	assert_true(is_turned_away(s, 34567));
	assert_false(is_turned_away(s, 0));
}

static void
unrecorded_clients_are_turned_away(void **state)
{
	struct stage *s = *state;
	char byte;

	LOOP_SETTLE(s->base);
	guard_knows = false;
	close(s->fd);
	s->fd = dial(s);
	LOOP_SETTLE(s->base);
	assert_int_equal(read(s->fd, &byte, 1), 0);
	guard_knows = true;
	close(s->fd);
	s->fd = dial(s);
	expect(s, R "\"id\":1,\"method\":\"ping\"}\n", R "\"id\":1,");
}

#define STAGED(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		STAGED(speaks_legacy),
		STAGED(speaks_modern),
		STAGED(answers_calls_out_of_order),
		STAGED(lets_broken_text_reach_the_tool),
		STAGED(cancelled_calls_are_not_answered),
		STAGED(too_many_calls_are_refused),
		STAGED(a_closed_connection_cancels_its_calls),
		STAGED(batches_are_answered_in_one_line),
		STAGED(refuses_what_is_too_long_by_its_id),
		STAGED(stops_serving_whoever_does_not_read),
		STAGED(the_socket_is_for_its_agent),
		STAGED(other_uids_are_turned_away),
		STAGED(unrecorded_clients_are_turned_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
