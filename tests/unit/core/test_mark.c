/* mark: so many digests of a change are remembered, and so much of them */
#include <stdio.h>
#include <stdlib.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "core/internal.h"

/* As a statement is held: its digest is the number k. */
static void
add(struct change *c, int k)
{
	snprintf(c->digest, sizeof(c->digest), "%064x", (unsigned)k);
	marks_add(c);
}

static void
test_number(void **state UNUSED)
{
	struct change c = { .statements = NULL };

	for (int k = 1; k <= 100; k++)
		add(&c, k);
	assert_int_equal(c.marks.n, 100);
	assert_false(c.marks.forgot);
	add(&c, 101);
	assert_int_equal(c.marks.n, 100);
	assert_true(c.marks.forgot);
	marks_release(&c.marks);
	assert_int_equal(c.marks.n, 0);
	marks_release(&c.marks); /* of one that has none */
}

/* Counts of many tables take room: fewer are kept, the last one always. */
static void
test_tables(void **state UNUSED)
{
	struct change c = { .ntables = 4000 };

	c.tables = mem_array(20000, sizeof(c.tables[0]));
	add(&c, 1);
	add(&c, 2);
	assert_false(c.marks.forgot);
	add(&c, 3);
	assert_int_equal(c.marks.n, 2);
	assert_int_equal(c.marks.ncounts, 8000);
	assert_true(c.marks.forgot);
	c.ntables = 20000;
	add(&c, 4);
	assert_int_equal(c.marks.n, 1);
	assert_int_equal(c.marks.ncounts, 20000);
	marks_release(&c.marks);
	assert_int_equal(c.marks.ncounts, 0);
	free(c.tables);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_number),
		cmocka_unit_test(test_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
