/* fuzz_config: any text is refused with a reason, or prints what reads back */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "front/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *
printed(const struct config *c)
{
	char *out = NULL;
	size_t n;
	FILE *f = open_memstream(&out, &n);

	if (f == NULL)
		abort();
	config_print(c, f);
	fclose(f);
	return out;
}

/* Once a password is masked, the next printing must be the same. */
static void
check_round_trip(const struct config *c)
{
	struct err e = ERR_INIT;
	struct config again;
	char *first = printed(c), *second;

	config_init(&again);
	if (config_read_text(&again, "again", first, strlen(first), NULL, &e) !=
	    0) {
		fprintf(stderr, "%s\n%s\n", e.text, first);
		abort();
	}
	second = printed(&again);
	if (strcmp(first, second) != 0) {
		fprintf(stderr, "%s\n---\n%s\n", first, second);
		abort();
	}
	free(first);
	free(second);
	config_release(&again);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err e = ERR_INIT;
	struct config c;
	int r;

	config_init(&c);
	r = config_read_text(&c, "fuzz", (const char *)data, size, NULL, &e);
	if (r == 0)
		r = config_finish(&c, &e);
	if (r == 0)
		check_round_trip(&c);
	else if (e.code == ERR_NONE || e.text[0] == '\0')
		abort();
	config_release(&c);
	return 0;
}
