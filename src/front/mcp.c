/* mcp: one agent's connection: JSON-RPC in both eras over lines */
#include "front/mcp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "core/guard.h"
#include "front/envelope.h"
#include "front/tools.h"
#include "rule/reasons.h"
#include "wire/lines.h"
#include "wire/listener.h"
#include "wire/rpc.h"
#include "wire/scan.h"

#define LINE_MAX_BYTES (4u << 20)
#define CONNECTIONS_MAX 32 /* of one agent */
#define BATCH_MAX 64       /* a batch multiplies what one line may ask for */

struct mcp_server {
	struct event_base *base;
	struct gate *gate;
	struct agent *agent;
	struct listener *listener;
	LIST_HEAD(conn_list, conn) conns;
	int calls; /* under way, on all of them */
};

struct conn {
	LIST_ENTRY(conn) entry;
	struct mcp_server *server;
	struct lines *lines;
	struct peer peer;
	LIST_HEAD(call_list, call) calls;
	const struct revision *agreed; /* by initialize, or NULL */
	const struct revision *latest; /* that the last request came in */
	char client[ENVELOPE_CLIENT_SIZE];
	/* of a line that is too long to keep */
	struct scan scan;
	json_t *long_id;
	bool long_is_call, long_is_named;
};

/* The answers of one array go back in one array, when all are there. */
struct batch {
	struct text answers;
	int open; /* requests without an answer, and one while it is read */
};

struct call {
	LIST_ENTRY(call) entry;
	struct conn *conn;
	json_t *id;
	const struct revision *revision;
	struct batch *batch; /* or NULL */
	struct tool_call *tool;
};

struct request {
	const struct rpc_message *m;
	const struct revision *revision;
	struct batch *batch;
};
/* Gives the answer, or NULL where it comes later. */
typedef json_t *method(struct conn *c, const struct request *r);

static void
send_text(struct conn *c, struct batch *b, const char *answer, size_t len)
{
	if (b == NULL) {
		lines_send(c->lines, answer, len);
		return;
	}
	text_addc(&b->answers, b->answers.len == 0 ? '[' : ',');
	text_addn(&b->answers, answer, len);
}

static void
send_answer(struct conn *c, struct batch *b, json_t *answer_new)
{
	char *s = json_dumps(answer_new, JSON_COMPACT);

	json_decref(answer_new);
	if (s == NULL)
		fatalx("cannot write a JSON value");
	send_text(c, b, s, strlen(s));
	free(s);
}

static void
leave_batch(struct conn *c, struct batch *b)
{
	if (b == NULL || --b->open > 0)
		return;
	if (b->answers.len > 0) {
		text_addc(&b->answers, ']');
		lines_send(c->lines, b->answers.s, b->answers.len);
	}
	text_release(&b->answers);
	free(b);
}

static void
end_call(struct call *call)
{
	call->conn->server->calls--;
	LIST_REMOVE(call, entry);
	leave_batch(call->conn, call->batch);
	json_decref(call->id);
	free(call);
}

static void
on_answer(void *arg, const struct tool_answer *a)
{
	struct call *call = arg;
	struct text line = { 0 };

	if (a->is_error) {
		send_answer(call->conn, call->batch,
		    rpc_result(call->id,
			envelope_failure(call->revision, a->text)));
	} else {
		rpc_add_answer(&line, call->id);
		envelope_success(&line, call->revision, a->text);
		text_addc(&line, '}');
		send_text(call->conn, call->batch, line.s, line.len);
		text_release(&line);
	}
	end_call(call);
}

static json_t *
refusal(const struct revision *r, const json_t *id, enum reason why,
    size_t most)
{
	char text[512];

	snprintf(text, sizeof(text), "REFUSED %s: %s (%zu at most). %s",
	    reasons[why].code, reasons[why].meaning, most, reasons[why].advice);
	return rpc_result(id, envelope_failure(r, text));
}

static json_t *
initialize(struct conn *c, const struct request *r)
{
	const char *asked = rpc_text(r->m->params, "protocolVersion");

	if (r->batch != NULL)
		return rpc_error(r->m->id, RPC_INVALID,
		    "initialize must not be part of a batch.", NULL);
	if (asked == NULL)
		return rpc_error(r->m->id, RPC_PARAMS,
		    "\"protocolVersion\" must be a string.", NULL);
	c->agreed = revision_agree(asked);
	envelope_client(c->client, json_object_get(r->m->params, "clientInfo"));
	return rpc_result(r->m->id,
	    envelope_hello(c->agreed, tools_instructions));
}

static json_t *
ping(struct conn *c UNUSED, const struct request *r)
{
	return rpc_result(r->m->id, json_object());
}

static json_t *
discover(struct conn *c UNUSED, const struct request *r)
{
	return rpc_result(r->m->id, envelope_discovery(tools_instructions));
}

static json_t *
list_tools(struct conn *c UNUSED, const struct request *r)
{
	const json_t *cursor = json_object_get(r->m->params, "cursor");

	if (cursor != NULL && !json_is_null(cursor))
		return rpc_error(r->m->id, RPC_PARAMS,
		    "Unknown cursor: the list of tools has one page.", NULL);
	return rpc_result(r->m->id,
	    envelope_tools(r->revision,
		tools_list(r->revision->annotations, r->revision->titles)));
}

static json_t *
start_call(struct conn *c, const struct request *r, const char *name,
    const json_t *args)
{
	struct mcp_server *s = c->server;
	struct call *call = mem_new(sizeof(*call));
	char client[ENVELOPE_CLIENT_SIZE];
	struct err e = ERR_INIT;

	if (r->revision->era == ERA_MODERN)
		envelope_client(client, envelope_client_info(r->m));
	call->conn = c;
	call->revision = r->revision;
	call->tool = tools_call(s->gate, s->agent,
	    r->revision->era == ERA_MODERN ? client : c->client, name, args,
	    on_answer, call, &e);
	if (call->tool == NULL) {
		free(call);
		return rpc_error(r->m->id,
		    e.code == ERR_INPUT ? RPC_PARAMS : RPC_INTERNAL, e.text,
		    NULL);
	}
	call->id = json_incref(r->m->id);
	call->batch = r->batch;
	if (call->batch != NULL)
		call->batch->open++;
	LIST_INSERT_HEAD(&c->calls, call, entry);
	s->calls++;
	return NULL;
}

static json_t *
call_tool(struct conn *c, const struct request *r)
{
	const struct mcp_server *s = c->server;
	const char *name = rpc_text(r->m->params, "name");
	const json_t *args = json_object_get(r->m->params, "arguments");
	int most = gate_get_options(s->gate)->limits.agent_calls_max;

	if (json_is_null(args))
		args = NULL;
	if (name == NULL)
		return rpc_error(r->m->id, RPC_PARAMS,
		    "\"name\" must be a string.", NULL);
	if (args != NULL && !json_is_object(args))
		return rpc_error(r->m->id, RPC_PARAMS,
		    "\"arguments\" must be an object.", NULL);
	if (s->calls >= most)
		return refusal(r->revision, r->m->id, REASON_TOO_MANY_CALLS,
		    (size_t)most);
	return start_call(c, r, name, args);
}

static const struct {
	const char *name;
	enum era era;
	method *serve;
} methods[] = {
	{ "initialize", ERA_LEGACY, initialize },
	{ "ping", ERA_LEGACY, ping },
	{ "server/discover", ERA_MODERN, discover },
	{ "tools/list", ERA_BOTH, list_tools },
	{ "tools/call", ERA_BOTH, call_tool },
};

static json_t *
serve(struct conn *c, const struct request *r)
{
	char text[128];

	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		if ((methods[i].era & r->revision->era) != 0 &&
		    strcmp(methods[i].name, r->m->method) == 0)
			return methods[i].serve(c, r);
	snprintf(text, sizeof(text), "Method not found: %.64s", r->m->method);
	return rpc_error(r->m->id, RPC_NO_METHOD, text, NULL);
}

static void
take_request(struct conn *c, const struct rpc_message *m, struct batch *b)
{
	json_t *answer = NULL;
	struct request r = { .m = m, .batch = b };

	r.revision = envelope_open(m, c->agreed, &answer);
	if (r.revision != NULL) {
		c->latest = r.revision;
		answer = serve(c, &r);
	}
	if (answer != NULL)
		send_answer(c, b, answer);
}

/* A cancelled call is not answered. */
static void
cancel(struct conn *c, const json_t *id)
{
	struct call *call = LIST_FIRST(&c->calls), *next;

	for (; call != NULL; call = next) {
		next = LIST_NEXT(call, entry);
		if (!json_equal(call->id, id))
			continue;
		tools_cancel(call->tool);
		end_call(call);
	}
}

static void
take_notification(struct conn *c, const struct rpc_message *m,
    struct batch *b UNUSED)
{
	if (strcmp(m->method, "notifications/cancelled") == 0)
		cancel(c, json_object_get(m->params, "requestId"));
}

static void
take_response(struct conn *c UNUSED, const struct rpc_message *m UNUSED,
    struct batch *b UNUSED)
{
	/* nothing was asked */
}

static void
take_bad(struct conn *c, const struct rpc_message *m, struct batch *b)
{
	send_answer(c, b, rpc_error(m->id, m->code, m->text, NULL));
}

static void take_batch(struct conn *c, const struct rpc_message *m,
    struct batch *b);

static void
take(struct conn *c, const struct rpc_message *m, struct batch *b)
{
	static void (*const takers[RPC_NKINDS])(struct conn *,
	    const struct rpc_message *, struct batch *) = {
		[RPC_REQUEST] = take_request,
		[RPC_NOTIFICATION] = take_notification,
		[RPC_RESPONSE] = take_response,
		[RPC_BATCH] = take_batch,
		[RPC_BAD] = take_bad,
	};

	takers[m->kind](c, m, b);
}

static void
take_batch(struct conn *c, const struct rpc_message *m, struct batch *outer)
{
	size_t n = json_array_size(m->root);
	struct batch *b;

	if (outer != NULL || c->agreed == NULL || !c->agreed->batches ||
	    n == 0 || n > BATCH_MAX) {
		send_answer(c, outer,
		    rpc_error(NULL, RPC_INVALID,
			"Send one message a line; 2025-03-26 alone has batches, "
			"here of 1 to 64 messages.",
			NULL));
		return;
	}
	b = mem_new(sizeof(*b));
	b->open = 1;
	for (size_t i = 0; i < n; i++) {
		struct rpc_message part;

		rpc_classify(json_array_get(m->root, i), &part);
		take(c, &part, b);
		rpc_release(&part);
	}
	leave_batch(c, b);
}

static void
on_line(void *arg, char *line, size_t len, pid_t pid UNUSED)
{
	struct conn *c = arg;
	struct rpc_message m;

	rpc_parse(line, len, &m);
	take(c, &m, NULL);
	rpc_release(&m);
}

static void
on_too_long(void *arg)
{
	struct conn *c = arg;

	scan_start(&c->scan);
	json_decref(c->long_id);
	c->long_id = NULL;
	c->long_is_call = c->long_is_named = false;
}

static void
on_long_message(void *arg, const struct scan_found *f)
{
	struct conn *c = arg;

	if (c->scan.level != 1)
		return; /* a batch has no one id */
	c->long_id = f->id != NULL ? json_deep_copy(f->id) : NULL;
	c->long_is_named = f->method != NULL || f->is_answer;
	c->long_is_call =
	    f->method != NULL && strcmp(f->method, "tools/call") == 0;
}

/* Its sender waits for an answer by its id, which may stand at the very end. */
static void
on_piece(void *arg, const char *p, size_t n, bool last)
{
	struct conn *c = arg;

	scan_feed(&c->scan, p, n, on_long_message, c);
	if (!last)
		return;
	scan_end(&c->scan, on_long_message, c);
	if (c->long_id != NULL && c->long_is_call)
		send_answer(c, NULL,
		    refusal(c->latest, c->long_id, REASON_STATEMENT_TOO_LARGE,
			gate_get_options(c->server->gate)
			    ->limits.statement_bytes_max));
	else if (c->long_id != NULL || !c->long_is_named)
		send_answer(c, NULL,
		    rpc_error(c->long_id, RPC_INVALID,
			"The message is longer than 4 MiB.", NULL));
}

static void
free_conn(struct conn *c)
{
	struct call *call;

	while ((call = LIST_FIRST(&c->calls)) != NULL) {
		tools_cancel(call->tool);
		end_call(call);
	}
	LIST_REMOVE(c, entry);
	lines_close(c->lines);
	peer_release(&c->peer);
	listener_left(c->server->listener);
	json_decref(c->long_id);
	free(c);
}

static void
on_closed(void *arg, const char *why)
{
	struct conn *c = arg;

	log_debug("agent '%s': pid %d has left: %s", c->server->agent->o->name,
	    (int)c->peer.pid, why);
	free_conn(c);
}

static bool
is_of_agent(const struct agent_options *o, uid_t uid)
{
	if (uid == geteuid())
		return true;
	for (size_t i = 0; i < o->nuids; i++)
		if (o->uids[i] == uid)
			return true;
	return false;
}

/* A client that the guard does not know could pass for an operator. */
static bool
may_connect(const struct mcp_server *s, const struct peer *peer)
{
	const char *name = s->agent->o->name;

	if (!is_of_agent(s->agent->o, peer->uid))
		log_warnx("agent '%s': uid %u (pid %d) may not connect", name,
		    (unsigned)peer->uid, (int)peer->pid);
	else if (!guard_saw_client(gate_guard(s->gate), peer))
		log_warnx("agent '%s': pid %d cannot be recorded as the "
			  "agent's, and is closed",
		    name, (int)peer->pid);
	else
		return true;
	return false;
}

static void
on_connection(void *arg, int fd, struct peer *peer)
{
	static const struct lines_options options = {
		.line_max = LINE_MAX_BYTES,
		.out_low = 256u << 10,
		.out_high = 1u << 20,
		.out_max = 8u << 20,
	};
	static const struct lines_events events = {
		.line = on_line,
		.too_long = on_too_long,
		.piece = on_piece,
		.closed = on_closed,
	};
	struct mcp_server *s = arg;
	struct conn *c;

	if (!may_connect(s, peer)) {
		close(fd);
		peer_release(peer);
		listener_left(s->listener);
		return;
	}
	log_debug("agent '%s': pid %d has come", s->agent->o->name,
	    (int)peer->pid);
	c = mem_new(sizeof(*c));
	c->server = s;
	c->peer = *peer;
	c->latest = revision_agree("");
	LIST_INIT(&c->calls);
	LIST_INSERT_HEAD(&s->conns, c, entry);
	c->lines = lines_new(s->base, fd, &options, &events, c);
}

/* Whoever is named only by uid comes in by the world's permission and is judged
 * by is_of_agent. */
static mode_t
socket_mode(const struct agent_options *o)
{
	return o->gid != (gid_t)-1 ? 0660 : o->nuids > 0 ? 0666 : 0600;
}

int
mcp_server_open(struct event_base *base, struct gate *g, struct agent *a,
    struct mcp_server **out, struct err *e)
{
	struct mcp_server *s = mem_new(sizeof(*s));
	char *path = mem_printf("%s/agent-%s.sock",
	    gate_get_options(g)->runtime_dir, a->o->name);
	struct listener_options o = {
		.path = path,
		.mode = socket_mode(a->o),
		.group = a->o->gid,
		.connections_max = CONNECTIONS_MAX,
	};
	int rc;

	s->base = base;
	s->gate = g;
	s->agent = a;
	LIST_INIT(&s->conns);
	rc = listener_open(base, &o, on_connection, s, &s->listener, e);
	free(path);
	if (rc == -1)
		free(s);
	else
		*out = s;
	return rc;
}

void
mcp_server_close(struct mcp_server *s)
{
	struct conn *c;

	if (s == NULL)
		return;
	while ((c = LIST_FIRST(&s->conns)) != NULL)
		free_conn(c);
	listener_close(s->listener);
	free(s);
}
