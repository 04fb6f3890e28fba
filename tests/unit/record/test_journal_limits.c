/* journal limits: a record, a file and the reserve, at their size and over */
#include "record/journal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../place.h"
#include "base/err.h"
#include "base/mem.h"

#define RESERVE 65536

static struct journal *
opened(const struct place *p, uint64_t file_max, size_t record_max)
{
	struct journal_options o = { .file_bytes_max = file_max,
		.reserve_bytes = RESERVE,
		.record_bytes_max = record_max };
	struct journal *j = NULL;
	struct err e = ERR_INIT;

	if (journal_open(p->fd, &o, &j, &e) == -1)
		fail_msg("%s", e.text);
	return j;
}

/* A record whose own text is n bytes. */
static int
put(struct journal *j, size_t n, struct err *e)
{
	char *s = mem_new(n + 1);
	int r;

	memset(s, 'x', n);
	r = journal_append(j, json_pack("{s:s,s:s}", "kind", "test", "s", s),
	    false, e);
	free(s);
	return r;
}

/* Bytes of the files of the journal, and how many there are. */
static long
size_of(const struct place *p, int *files)
{
	char *command = mem_printf("cat %s/journal/*.jsonl | wc -c; "
				   "ls %s/journal/*.jsonl | wc -l",
	    p->dir, p->dir);
	FILE *f = popen(command, "r");
	long bytes;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%ld %d", &bytes, files), 2);
	pclose(f);
	free(command);
	return bytes;
}

/* The first record of a journal has 100 bytes of text and this much in all. */
static long
first_record(void)
{
	void *state = NULL;
	struct journal *j;
	struct err e = ERR_INIT;
	long n;
	int files;

	make_place(&state);
	j = opened(state, 1 << 20, 1 << 20);
	assert_int_equal(put(j, 100, &e), 0);
	journal_close(j);
	n = size_of(state, &files) - 1; /* its newline */
	drop_place(&state);
	return n;
}

static void
a_record(void **state)
{
	size_t at = 1000, fits = at - (size_t)first_record() + 100;
	struct journal *j = opened(*state, 1 << 20, at);
	struct err e = ERR_INIT;

	assert_int_equal(put(j, fits + 1, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	assert_non_null(strstr(e.text, "1001 bytes, 1000 at most"));
	assert_int_equal(put(j, fits, &e), 0);
	assert_int_equal(put(j, fits - 1, &e), 0);
	journal_close(j);
}

/* Two records that fill a file to its last byte stay in it. */
static void
a_file(void **state UNUSED)
{
	long two;
	int files;

	for (int over = -1; over <= 1; over++) {
		struct place *q;
		void *own = NULL;
		struct err e = ERR_INIT;
		struct journal *j;

		make_place(&own);
		q = own;
		j = opened(q, 1 << 20, 10000);
		assert_int_equal(put(j, 100, &e), 0);
		assert_int_equal(put(j, 100, &e), 0);
		journal_close(j);
		two = size_of(q, &files);
		drop_place(&own);

		make_place(&own);
		q = own;
		j = opened(q, (uint64_t)two, 10000);
		assert_int_equal(put(j, 100, &e), 0);
		assert_int_equal(put(j, (size_t)(100 + over), &e), 0);
		journal_close(j);
		(void)size_of(q, &files);
		assert_int_equal(files, over > 0 ? 2 : 1);
		drop_place(&own);
	}
}

static void
the_reserve(void **state)
{
	const struct place *p = *state;
	char *path;
	struct stat st;

	journal_close(opened(p, 1 << 20, 10000));
	path = mem_printf("%s/journal/reserve", p->dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, RESERVE);
	free(path);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, make_place, drop_place)
	const struct CMUnitTest tests[] = {
		T(a_record),
		T(a_file),
		T(the_reserve),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
