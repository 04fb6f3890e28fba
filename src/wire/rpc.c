/* rpc: JSON-RPC 2.0: from a line to a classified message, and answers */
#include "wire/rpc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "wire/scan.h"

#define LOAD (JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY)

static bool
is_id(const json_t *j)
{
	return json_is_string(j) || json_is_integer(j);
}

/* The code unit of a \uXXXX at p, or -1. */
static long
code_unit(const char *p, size_t n)
{
	char digits[5] = "";

	if (n < 6 || p[0] != '\\' || p[1] != 'u')
		return -1;
	memcpy(digits, p + 2, 4);
	if (strspn(digits, "0123456789abcdefABCDEF") != 4)
		return -1;
	return strtol(digits, NULL, 16);
}

/* How many bytes of p stand for themselves; 0: `*bad` of them cannot. */
static size_t
sound(const char *p, size_t n, size_t *bad)
{
	long first, second;

	*bad = 1;
	if (*p == '\0')
		return 0;
	if ((unsigned char)*p >= 0x80) {
		for (size_t len = 2; len <= 4 && len <= n; len++)
			if (text_is_utf8(p, len))
				return len;
		return 0;
	}
	if (*p != '\\')
		return 1;
	first = code_unit(p, n);
	if (first < 0xd800 || first > 0xdfff)
		return n < 2 || (unsigned char)p[1] >= 0x80 ? 1 : 2;
	*bad = 6;
	second = first < 0xdc00 ? code_unit(p + 6, n - 6) : -1;
	return second >= 0xdc00 && second <= 0xdfff ? 12 : 0;
}

/* Copies with "\u0000" for all that no UTF-8 text can hold; true where there
 * was any. */
static bool
mend(const char *p, size_t n, struct text *out)
{
	bool mended = false;

	while (n > 0) {
		size_t bad, len = sound(p, n, &bad);

		if (len > 0)
			text_addn(out, p, len);
		else {
			text_add(out, "\\u0000");
			mended = true;
			len = bad;
		}
		p += len;
		n -= len;
	}
	return mended;
}

static json_t *
load(const char *line, size_t len, json_error_t *why)
{
	json_t *j = json_loadb(line, len, LOAD, why);
	enum json_error_code code;
	struct text mended;

	if (j != NULL)
		return j;
	code = json_error_code(why);
	if (code != json_error_invalid_utf8 &&
	    code != json_error_invalid_syntax)
		return NULL;
	text_init(&mended);
	if (mend(line, len, &mended))
		j = json_loadb(mended.s, mended.len, LOAD, why);
	text_release(&mended);
	return j;
}

static const char *
explain(const json_error_t *why)
{
	static const struct {
		enum json_error_code code;
		const char *text;
	} texts[] = {
		{ json_error_duplicate_key, "a member stands twice" },
		{ json_error_numeric_overflow, "a number is out of range" },
		{ json_error_stack_overflow, "it is nested too deep" },
		{ json_error_premature_end_of_input, "it ends too early" },
		{ json_error_end_of_input_expected,
		    "something follows the message" },
		{ json_error_null_byte_in_key,
		    "a member's name holds NUL or is not UTF-8" },
	};
	enum json_error_code code = json_error_code(why);

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (texts[i].code == code)
			return texts[i].text;
	return "it is not JSON";
}

static void
keep_id(void *arg, const struct scan_found *f)
{
	struct rpc_message *m = arg;

	if (m->id == NULL && f->id != NULL && !f->is_answer)
		m->id = json_deep_copy(f->id);
}

static void
bad(struct rpc_message *m, enum rpc_code code, const char *text)
{
	m->kind = RPC_BAD;
	m->code = code;
	snprintf(m->text, sizeof(m->text), "%s", text);
}

void
rpc_parse(const char *line, size_t len, struct rpc_message *m)
{
	json_error_t why;
	json_t *j = load(line, len, &why);
	struct scan s;

	if (j != NULL) {
		rpc_classify(j, m);
		json_decref(j);
		return;
	}
	memset(m, 0, sizeof(*m));
	bad(m, RPC_PARSE, "");
	snprintf(m->text, sizeof(m->text),
	    "The line is not a message: %s (byte %d).", explain(&why),
	    why.position);
	/* Of a batch no single id may be answered for. */
	if (line[strspn(line, " \t")] == '[')
		return;
	scan_start(&s);
	scan_feed(&s, line, len, keep_id, m);
	scan_end(&s, keep_id, m);
}

/* j has no method, or not one that is a name. */
static void
classify_nameless(const json_t *j, struct rpc_message *m)
{
	if (json_object_get(j, "method") == NULL &&
	    (json_object_get(j, "result") != NULL ||
		json_object_get(j, "error") != NULL))
		m->kind = RPC_RESPONSE;
	else
		bad(m, RPC_INVALID, "\"method\" must be a string.");
}

static void
classify_named(const json_t *j, json_t *id, struct rpc_message *m)
{
	const char *version = rpc_text(j, "jsonrpc");
	json_t *params = json_object_get(j, "params");

	if (json_is_object(params))
		m->params = params;
	if (id == NULL)
		m->kind = RPC_NOTIFICATION; /* not answered, whatever it is */
	else if (m->id == NULL)
		bad(m, RPC_INVALID, "\"id\" must be a string or an integer.");
	else if (version == NULL || strcmp(version, "2.0") != 0)
		bad(m, RPC_INVALID, "\"jsonrpc\" must be \"2.0\".");
	else if (m->params == NULL && params != NULL && !json_is_null(params))
		bad(m, RPC_PARAMS, "\"params\" must be an object.");
	else
		m->kind = RPC_REQUEST;
}

void
rpc_classify(json_t *j, struct rpc_message *m)
{
	json_t *id = json_object_get(j, "id");

	memset(m, 0, sizeof(*m));
	m->root = json_incref(j);
	if (json_is_array(j)) {
		m->kind = RPC_BATCH;
		return;
	}
	if (!json_is_object(j)) {
		bad(m, RPC_INVALID, "A message must be an object.");
		return;
	}
	if (is_id(id))
		m->id = json_incref(id);
	m->method = rpc_text(j, "method");
	if (m->method == NULL)
		classify_nameless(j, m);
	else
		classify_named(j, id, m);
}

void
rpc_release(struct rpc_message *m)
{
	json_decref(m->root);
	json_decref(m->id);
	memset(m, 0, sizeof(*m));
}

static json_t *
message(const json_t *id)
{
	json_t *j = json_pack("{s:s}", "jsonrpc", "2.0");

	if (j == NULL || (id != NULL && json_object_set_new(j, "id",
					    json_deep_copy(id)) == -1))
		fatalx("out of memory");
	return j;
}

json_t *
rpc_error(const json_t *id, enum rpc_code code, const char *text,
    json_t *data_new)
{
	json_t *j = message(id);

	if (json_object_set_new(j, "error",
		json_pack("{s:i, s:o, s:o*}", "code", (int)code, "message",
		    rpc_string(text, strlen(text)), "data", data_new)) == -1)
		fatalx("out of memory");
	return j;
}

json_t *
rpc_result(const json_t *id, json_t *result_new)
{
	json_t *j = message(id);

	if (json_object_set_new(j, "result", result_new) == -1)
		fatalx("out of memory");
	return j;
}

void
rpc_add_answer(struct text *out, const json_t *id)
{
	char *s = json_dumps(id, JSON_COMPACT | JSON_ENCODE_ANY);

	if (s == NULL)
		fatalx("out of memory");
	text_addf(out, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":", s);
	free(s);
}

json_t *
rpc_string(const char *s, size_t n)
{
	json_t *j = json_stringn(s, n);
	struct text t;

	if (j != NULL)
		return j;
	text_init(&t);
	while (n > 0) {
		size_t unused, len = sound(s, n, &unused);

		if (*s == '\\') /* no escape here */
			len = 1;
		if (len > 0)
			text_addn(&t, s, len);
		else
			text_add(&t, "\xef\xbf\xbd");
		s += len > 0 ? len : 1;
		n -= len > 0 ? len : 1;
	}
	j = json_stringn(text_str(&t), t.len);
	text_release(&t);
	return j;
}

const char *
rpc_text(const json_t *object, const char *name)
{
	const json_t *j = json_object_get(object, name);
	const char *s = json_string_value(j);

	return s != NULL && strlen(s) == json_string_length(j) ? s : NULL;
}
