/* fuzz_rpc: an agent's line, as the parser and as the scanner read it */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "front/envelope.h"
#include "wire/rpc.h"
#include "wire/scan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct told {
	int n;
	json_t *id; /* of the last request */
};

static void
on_found(void *arg, const struct scan_found *f)
{
	struct told *t = arg;

	assert(
	    f->id == NULL || json_is_string(f->id) || json_is_integer(f->id));
	t->n++;
	json_decref(t->id);
	t->id = f->id != NULL ? json_deep_copy(f->id) : NULL;
}

/* In pieces of `cut` bytes. */
static struct told
scan(const char *line, size_t len, size_t cut)
{
	struct told t = { 0, NULL };
	struct scan s;

	scan_start(&s);
	for (size_t at = 0; at < len; at += cut)
		scan_feed(&s, line + at, len - at < cut ? len - at : cut,
		    on_found, &t);
	scan_end(&s, on_found, &t);
	return t;
}

/* Whatever is answered must itself be one line of JSON. */
static void
check_answer(json_t *answer)
{
	char *s = json_dumps(answer, JSON_COMPACT);
	json_t *again;

	assert(s != NULL && strchr(s, '\n') == NULL);
	again = json_loads(s, JSON_ALLOW_NUL, NULL);
	assert(json_equal(again, answer));
	assert(json_object_get(answer, "id") == NULL ||
	       !json_is_null(json_object_get(answer, "id")));
	json_decref(again);
	json_decref(answer);
	free(s);
}

static void
check_message(const struct rpc_message *m)
{
	json_t *refusal = NULL;
	char client[ENVELOPE_CLIENT_SIZE];

	if (m->kind == RPC_BAD) {
		assert(text_is_utf8(m->text, strlen(m->text)));
		check_answer(rpc_error(m->id, m->code, m->text, NULL));
	}
	if (m->kind != RPC_REQUEST)
		return;
	assert(m->id != NULL && m->method != NULL);
	if (envelope_open(m, NULL, &refusal) == NULL)
		check_answer(refusal);
	else
		assert(refusal == NULL);
	check_answer(rpc_error(m->id, RPC_NO_METHOD, m->method, NULL));
	envelope_client(client, envelope_client_info(m));
	assert(text_is_utf8(client, strlen(client)));
}

static void
check_batch(const json_t *batch)
{
	for (size_t i = 0; i < json_array_size(batch); i++) {
		struct rpc_message part;

		rpc_classify(json_array_get(batch, i), &part);
		check_message(&part);
		rpc_release(&part);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *line = malloc(size + 1);
	struct rpc_message m;
	struct told whole, bytes;

	memcpy(line, data, size);
	line[size] = '\0';
	rpc_parse(line, size, &m);
	check_message(&m);
	if (m.kind == RPC_BATCH)
		check_batch(m.root);
	whole = scan(line, size, size + 1);
	bytes = scan(line, size, 1);
	assert(whole.n == bytes.n);
	assert(json_equal(whole.id, bytes.id) || whole.id == bytes.id);
	json_decref(whole.id);
	json_decref(bytes.id);
	rpc_release(&m);
	free(line);
	return 0;
}
