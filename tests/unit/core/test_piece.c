/* test_piece: pieces of rows, and places that were met */
#include "core/piece.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

static void
assert_value(const struct value *v, const char *want)
{
	if (want == NULL) {
		assert_null(v->p);
		return;
	}
	assert_int_equal(v->len, strlen(want));
	assert_memory_equal(v->p, want, v->len);
}

static void
rows_are_copied(void **state UNUSED)
{
	struct piece p = { 0 };
	char one[] = "one", two[] = "two";

	piece_begin(&p, 3);
	for (int again = 0; again < 2; again++) {
		for (uint16_t i = 1; i <= 3; i++) {
			struct rowid id = { 7, 10, i };
			struct value v[] = { { i == 2 ? two : one, 3 },
				{ NULL, 0 }, { "", 0 } };

			piece_add(&p, &id, v, 3);
		}
		one[0] = two[0] = 'x';
		piece_end(&p, 3);
		one[0] = 'o';
		two[0] = 't';
		assert_int_equal(p.n, 3);
		assert_int_equal(p.ids[1].item, 2);
		assert_value(&p.values[0], "one");
		assert_value(&p.values[1], NULL);
		assert_value(&p.values[2], "");
		assert_value(&p.values[3], "two");
		assert_value(&p.values[6], "one");
		piece_reset(&p);
	}
	piece_release(&p);
}

static size_t
filled_by(size_t ncols, size_t bytes)
{
	struct value *v = mem_array(ncols, sizeof(*v));
	char *text = mem_array(bytes + 1, 1);
	struct rowid id = { 1, 1, 1 };
	struct piece p = { 0 };
	size_t n;

	v[0].p = text;
	v[0].len = bytes;
	piece_begin(&p, ncols);
	while (!piece_is_full(&p, ncols))
		piece_add(&p, &id, v, ncols);
	n = p.n;
	piece_release(&p);
	free(text);
	free(v);
	return n;
}

static void
a_piece_is_bounded(void **state UNUSED)
{
	assert_int_equal(filled_by(1, 1), PIECE_ROWS);
	assert_int_equal(filled_by(1600, 1), PIECE_VALUES / 1600);
	assert_int_equal(filled_by(2, PIECE_BYTES / 4), 4);
	assert_int_equal(filled_by(2, 10 * PIECE_BYTES), 1);
}

static void
a_spool_comes_in_pieces(void **state UNUSED)
{
	int dir = open("/tmp", O_RDONLY | O_DIRECTORY);
	struct err e = ERR_INIT;
	struct piece p = { 0 };
	struct spool *s;
	uint32_t at = 0;

	assert_int_equal(spool_open(dir, &s, &e), 0);
	for (uint32_t i = 0; i < 2500; i++) {
		struct rowid id = { 1, i, 1 };
		struct value v = { "v", 1 };

		assert_int_equal(spool_add(s, &id, &v, 1, &e), 0);
	}
	assert_int_equal(spool_rewind(s, &e), 0);
	piece_begin(&p, 1);
	do {
		assert_int_equal(piece_fill(&p, s, 1, &e), 0);
		for (size_t i = 0; i < p.n; i++) {
			assert_int_equal(p.ids[i].block, at++);
			assert_value(&p.values[i], "v");
		}
	} while (!p.last);
	assert_int_equal(at, 2500);
	piece_release(&p);
	spool_close(s);
	close(dir);
}

static void
places_are_an_array(void **state UNUSED)
{
	struct rowid a = { 7, 4294967295u, 65535 }, b = { 7, 0, 1 };
	struct piece p = { 0 };
	char *s = piece_places(&p);

	assert_string_equal(s, "{}");
	free(s);
	piece_begin(&p, 0);
	piece_add(&p, &a, NULL, 0);
	piece_add(&p, &b, NULL, 0);
	s = piece_places(&p);
	assert_string_equal(s, "{\"(4294967295,65535)\",\"(0,1)\"}");
	free(s);
	piece_release(&p);
}

static void
places_are_found_once_sorted(void **state UNUSED)
{
	struct met m = { 0 };

	met_sort(&m);
	assert_false(met_has(&m, 1));
	for (uint64_t i = 0; i < 5000; i++)
		met_add(&m, i * 7919 % 5000 * 2);
	assert_false(met_has(&m, 2));
	met_sort(&m);
	met_add(&m, 3);
	for (uint64_t i = 0; i < 5000; i++) {
		assert_true(met_has(&m, 2 * i));
		assert_false(met_has(&m, 2 * i + 1));
	}
	met_sort(&m);
	assert_true(met_has(&m, 3));
	met_release(&m);
	assert_int_equal(m.n, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_copied),
		cmocka_unit_test(a_piece_is_bounded),
		cmocka_unit_test(a_spool_comes_in_pieces),
		cmocka_unit_test(places_are_an_array),
		cmocka_unit_test(places_are_found_once_sorted),
	};

	return cmocka_run_group_tests_name("piece", tests, NULL, NULL);
}
