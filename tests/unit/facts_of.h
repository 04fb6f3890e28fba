/* facts_of: for tests: the facts of a statement that parses */
#ifndef AIRLOCK_TESTS_FACTS_OF_H
#define AIRLOCK_TESTS_FACTS_OF_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/text.h"
#include "sql/facts.h"
#include "sql/parse.h"

/* To be released. */
static inline struct facts
facts_of(const char *sql)
{
	struct parse p;
	struct facts f;
	struct err e = ERR_INIT;
	long position = 0;

	assert_int_equal(parse_text(sql, strlen(sql), &p, &position, &e), 0);
	assert_int_equal(facts_read(&p, &f, &e), 0);
	parse_release(&p);
	return f;
}

/* expected: the texts, with commas between them. */
static inline void
same_texts(const struct facts_texts *v, const char *expected, const char *where)
{
	struct text t = { 0 };

	for (size_t i = 0; i < v->n; i++)
		text_addf(&t, "%s%s", i > 0 ? "," : "", v->v[i]);
	if (strcmp(text_str(&t), expected) != 0)
		fail_msg("%s: %s, not %s", where, text_str(&t), expected);
	text_release(&t);
}

#endif
