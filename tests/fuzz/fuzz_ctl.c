/* fuzz_ctl: an operator's request line, and a change as it is written */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "wire/ctl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_change(const char *s)
{
	char id[15], digest[65];
	struct err e = ERR_INIT;
	struct text t;

	if (ctl_parse_change(s, id, digest, &e) == -1) {
		assert(text_is_utf8(e.text, strlen(e.text)));
		return;
	}
	/* What is accepted is exactly what was written. */
	assert(strlen(id) == 14);
	assert(strlen(digest) == 0 || strlen(digest) == 64);
	text_init(&t);
	text_addf(&t, "%s%s%s", id, digest[0] != '\0' ? "@" : "", digest);
	assert(strcmp(t.s, s) == 0);
	text_release(&t);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *line = malloc(size + 1);
	json_t *msg = NULL, *args = NULL;
	enum ctl_verb verb = CTL_NVERBS;
	struct err e = ERR_INIT;

	memcpy(line, data, size);
	line[size] = '\0';
	if (ctl_parse_request(line, size, &msg, &verb, &args, &e) == 0) {
		const char *change =
		    json_string_value(json_object_get(args, "change"));

		assert(verb < CTL_NVERBS && json_is_object(args));
		assert(json_object_get(msg, "args") == args);
		if (change != NULL)
			check_change(change);
		json_decref(msg);
	} else
		assert(e.code == ERR_INPUT &&
		       text_is_utf8(e.text, strlen(e.text)));
	check_change(line);
	free(line);
	return 0;
}
