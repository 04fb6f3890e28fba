/* fuzz_answer: any bytes as the parser child's answer, and as a question */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "sql/answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is taken can be told again, and is the same then. */
static void
take_answer(const char *p, size_t n)
{
	struct text first = { 0 }, second = { 0 };
	struct err e = ERR_INIT;
	struct answer a, b;

	if (answer_unpack(p, n, &a, &e) == -1)
		return;
	answer_pack(&first, &a);
	if (answer_unpack(first.s + FRAME_HEADER, first.len - FRAME_HEADER, &b,
		&e) == -1)
		abort();
	answer_pack(&second, &b);
	if (first.len != second.len ||
	    memcmp(first.s, second.s, first.len) != 0)
		abort();
	text_release(&first);
	text_release(&second);
	answer_release(&a);
	answer_release(&b);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *p = (const char *)data;
	struct err e = ERR_INIT;
	struct ask q;

	if (size >= FRAME_HEADER)
		(void)frame_length(data, ANSWER_BYTES_MAX);
	take_answer(p, size);
	if (ask_unpack(p, size, &q, &e) == 0)
		ask_release(&q);
	return 0;
}
