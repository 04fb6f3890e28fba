/* envelope: the revisions of MCP, and what each wants around a result */
#include "front/envelope.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "base/version.h"

#define META "io.modelcontextprotocol/"
#define NEWEST_LEGACY (&revisions[REVISIONS - 2])
#define MODERN (&revisions[REVISIONS - 1])
#define TTL_MS 300000 /* the tools change with the program only */

/* clang-format off */
const struct revision revisions[] = {
	/* name, era, batches, annotations, titles, structured */
	{ "2024-11-05", ERA_LEGACY, false, false, false, false },
	{ "2025-03-26", ERA_LEGACY, true,  true,  false, false },
	{ "2025-06-18", ERA_LEGACY, false, true,  true,  true  },
	{ "2025-11-25", ERA_LEGACY, false, true,  true,  true  },
	{ "2026-07-28", ERA_MODERN, false, true,  true,  true  },
};
/* clang-format on */
static_assert(sizeof(revisions) / sizeof(revisions[0]) == REVISIONS,
    "as many revisions as the header says");

/* What json_pack could not make is our own mistake or lack of memory. */
static json_t *
made(json_t *j)
{
	if (j == NULL)
		fatalx("cannot make a JSON value");
	return j;
}

static void
set(json_t *object, const char *key, json_t *value_new)
{
	if (json_object_set_new(object, key, value_new) == -1)
		fatalx("cannot make a JSON value");
}

const struct revision *
revision_by_name(const char *name)
{
	for (size_t i = 0; i < REVISIONS; i++)
		if (strcmp(revisions[i].name, name) == 0)
			return &revisions[i];
	return NULL;
}

const struct revision *
revision_agree(const char *asked)
{
	const struct revision *r = revision_by_name(asked);

	return r != NULL && r->era == ERA_LEGACY ? r : NEWEST_LEGACY;
}

static json_t *
not_served(const json_t *id, const json_t *requested)
{
	char text[128];

	snprintf(text, sizeof(text), "Unsupported protocol version: %.40s",
	    json_string_value(requested));
	return rpc_error(id, RPC_VERSION, text,
	    made(json_pack("{s:[s], s:o}", "supported", MODERN->name,
		"requested", json_deep_copy(requested))));
}

static const struct revision *
open_modern(const struct rpc_message *m, const json_t *meta, json_t **refusal)
{
	const json_t *version = json_object_get(meta, META "protocolVersion");
	const char *name = rpc_text(meta, META "protocolVersion");
	const struct revision *r;

	if (!json_is_string(version)) {
		*refusal = rpc_error(m->id, RPC_PARAMS,
		    "Missing _meta field " META "protocolVersion (a string).",
		    NULL);
		return NULL;
	}
	if (!json_is_object(json_object_get(meta, META "clientCapabilities"))) {
		*refusal = rpc_error(m->id, RPC_PARAMS,
		    "Missing _meta field " META
		    "clientCapabilities (an object).",
		    NULL);
		return NULL;
	}
	r = name != NULL ? revision_by_name(name) : NULL;
	if (r != NULL && r->era == ERA_MODERN)
		return r;
	*refusal = not_served(m->id, version);
	return NULL;
}

const struct revision *
envelope_open(const struct rpc_message *m, const struct revision *agreed,
    json_t **refusal)
{
	const json_t *meta = json_object_get(m->params, "_meta");

	if (json_object_get(meta, META "protocolVersion") != NULL ||
	    json_object_get(meta, META "clientCapabilities") != NULL ||
	    strcmp(m->method, "server/discover") == 0)
		return open_modern(m, meta, refusal);
	return agreed != NULL ? agreed : NEWEST_LEGACY;
}

void
envelope_client(char out[ENVELOPE_CLIENT_SIZE], const json_t *info)
{
	const char *name = rpc_text(info, "name");
	const char *version = rpc_text(info, "version");
	struct text t;
	size_t len;

	text_init(&t);
	text_add(&t, name != NULL ? name : "");
	if (name != NULL && version != NULL)
		text_addf(&t, "/%s", version);
	len = text_utf8_cut(text_str(&t), t.len, ENVELOPE_CLIENT_SIZE - 1);
	memcpy(out, text_str(&t), len);
	out[len] = '\0';
	text_release(&t);
}

const json_t *
envelope_client_info(const struct rpc_message *m)
{
	const json_t *meta = json_object_get(m->params, "_meta");

	return json_object_get(meta, META "clientInfo");
}

static json_t *
server_info(bool title)
{
	return made(json_pack("{s:s, s:s*, s:s}", "name", "airlock", "title",
	    title ? "Airlock for PostgreSQL" : NULL, "version",
	    AIRLOCK_VERSION));
}

/* What every result of the modern era carries. */
static json_t *
sealed(const struct revision *r, json_t *result)
{
	if (r->era != ERA_MODERN)
		return result;
	set(result, "resultType", json_string("complete"));
	set(result, "_meta",
	    made(json_pack("{s:o}", META "serverInfo", server_info(true))));
	return result;
}

static json_t *
cacheable(const struct revision *r, json_t *result)
{
	if (r->era != ERA_MODERN)
		return result;
	set(result, "ttlMs", json_integer(TTL_MS));
	set(result, "cacheScope", json_string("private"));
	return result;
}

json_t *
envelope_hello(const struct revision *r, const char *instructions)
{
	return made(json_pack("{s:s, s:{s:{}}, s:o, s:s}", "protocolVersion",
	    r->name, "capabilities", "tools", "serverInfo",
	    server_info(r->titles), "instructions", instructions));
}

json_t *
envelope_discovery(const char *instructions)
{
	return sealed(MODERN,
	    cacheable(MODERN,
		made(json_pack("{s:[s], s:{s:{}}, s:s}", "supportedVersions",
		    MODERN->name, "capabilities", "tools", "instructions",
		    instructions))));
}

json_t *
envelope_tools(const struct revision *r, json_t *tools_new)
{
	return sealed(r,
	    cacheable(r, made(json_pack("{s:o}", "tools", tools_new))));
}

json_t *
envelope_failure(const struct revision *r, const char *text)
{
	return sealed(r,
	    made(json_pack("{s:[{s:s, s:o}], s:b}", "content", "type", "text",
		"text", rpc_string(text, strlen(text)), "isError", 1)));
}

/* What `sealed` adds, as the end of an object that is not empty. */
static const char *
seal(const struct revision *r)
{
	static char *end;
	json_t *j;

	if (r->era != ERA_MODERN)
		return "}";
	if (end == NULL) {
		j = sealed(r, json_object());
		end = json_dumps(j, JSON_COMPACT);
		json_decref(j);
		if (end == NULL)
			fatalx("cannot make a JSON value");
		end[0] = ',';
	}
	return end;
}

void
envelope_success(struct text *out, const struct revision *r, const char *object)
{
	size_t n = strlen(object);

	text_add(out, "{\"content\":[{\"type\":\"text\",\"text\":");
	text_add_json(out, object, n);
	text_add(out, "}]");
	if (r->structured) {
		text_add(out, ",\"structuredContent\":");
		text_addn(out, object, n);
	}
	text_add(out, seal(r));
}
