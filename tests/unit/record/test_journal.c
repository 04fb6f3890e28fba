/* test_journal: the chain, its repair after a crash, and a full disk */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../place.h"
#include "base/mem.h"
#include "base/text.h"
#include "record/journal.h"

static const struct journal_options usual = {
	.file_bytes_max = 64 << 20,
	.reserve_bytes = 65536,
	.record_bytes_max = 1 << 20,
};
static const struct journal_options tiny = {
	.file_bytes_max = 700,
	.reserve_bytes = 65536,
	.record_bytes_max = 10000,
};

static struct journal *
opened(int fd, const struct journal_options *o)
{
	struct journal *j = NULL;
	struct err e = ERR_INIT;

	if (journal_open(fd, o, &j, &e) == -1)
		fail_msg("%s", e.text);
	return j;
}

static void
put(struct journal *j, const char *kind, int n)
{
	struct err e = ERR_INIT;

	if (journal_append(j, json_pack("{s:s,s:i}", "kind", kind, "n", n),
		n % 2 == 0, &e) == -1)
		fail_msg("%s", e.text);
}

/* A journal of n records, closed again. */
static void
filled(int fd, const struct journal_options *o, int n)
{
	struct journal *j = opened(fd, o);

	for (int i = 1; i <= n; i++)
		put(j, "test", i);
	journal_close(j);
}

static char *
slurp(int fd, const char *name, size_t *len)
{
	struct text t = { 0 };
	char *path = mem_printf("journal/%s", name), buf[4096];
	int in = openat(fd, path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (in == -1)
		fail_msg("no %s", path);
	while ((n = read(in, buf, sizeof(buf))) > 0)
		text_addn(&t, buf, (size_t)n);
	close(in);
	free(path);
	if (len != NULL)
		*len = t.len;
	return text_take(&t);
}

static void
spew(int fd, const char *name, const char *p, size_t n)
{
	char *path = mem_printf("journal/%s", name);
	int out =
	    openat(fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_int_not_equal(out, -1);
	assert_int_equal(write(out, p, n), n);
	close(out);
	free(path);
}

static bool
exists(int fd, const char *name)
{
	struct stat st;

	return fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

struct seen {
	uint64_t n, last, stop;
	char kind[32];
};

static bool
see(void *arg, const json_t *rec, const char *line, size_t len)
{
	struct seen *s = arg;

	assert_true(len > 0 && line[0] == '{' && line[len - 1] == '}');
	s->n++;
	s->last = (uint64_t)json_integer_value(json_object_get(rec, "seq"));
	snprintf(s->kind, sizeof(s->kind), "%s",
	    json_string_value(json_object_get(rec, "kind")));
	return s->n != s->stop;
}

static void
assert_whole(int fd, uint64_t records)
{
	struct seen s = { 0 };
	struct err e = ERR_INIT;

	if (journal_walk(fd, true, see, &s, &e) == -1)
		fail_msg("%s", e.text);
	assert_int_equal(s.n, records);
	if (records > 0)
		assert_int_equal(s.last, records);
}

/* The walk must fail and say `where`. */
static void
assert_found(int fd, const char *where)
{
	struct seen s = { 0 };
	struct err e = ERR_INIT;

	if (journal_walk(fd, true, see, &s, &e) != -1)
		fail_msg("not found: %s", where);
	assert_int_equal(e.code, ERR_INPUT);
	if (strstr(e.text, where) == NULL)
		fail_msg("'%s' does not say '%s'", e.text, where);
}

static void
records_have_their_shape(void **state)
{
	struct place *p = *state;
	struct journal *j = opened(p->fd, &usual);
	struct err e = ERR_INIT;
	char *all, *line, *rest, want[DIGEST_HEX_SIZE];
	struct stat st;

	assert_int_equal(journal_append(j,
			     json_pack("{s:i,s:s,s:{s:n}}", "z", 1, "kind",
				 "first", "a", "b"),
			     true, &e),
	    0);
	put(j, "second\n\xc3\xa9", 2);
	assert_int_equal(journal_seq(j), 2);
	rest = all = slurp(p->fd, "00000001.jsonl", NULL);
	line = strsep(&rest, "\n");
	assert_true(text_starts_with(line, "{\"seq\":1,\"at\":\"2"));
	assert_non_null(strstr(line,
	    "Z\",\"kind\":\"first\",\"prev\":\"000000000000000000000000000000"
	    "0000000000000000000000000000000000\",\"z\":1,\"a\":{\"b\":null}}"));
	digest_hex(want, line, strlen(line));
	line = strsep(&rest, "\n");
	assert_non_null(strstr(line, want));
	assert_string_equal(rest, "");
	assert_int_equal(fstatat(p->fd, "journal", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(fstatat(p->fd, "journal/00000001.jsonl", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	free(all);
	journal_close(j);
	assert_whole(p->fd, 2);
}

static void
bad_records_are_refused(void **state)
{
	struct place *p = *state;
	struct journal *j = opened(p->fd, &tiny);
	struct err e = ERR_INIT;
	char *big = mem_array(10001, 1);
	const struct {
		json_t *rec;
		enum err_code code;
	} cases[] = {
		{ json_object(), ERR_BUG },
		{ json_pack("{s:i}", "kind", 1), ERR_BUG },
		{ json_pack("{s:s,s:i}", "kind", "k", "seq", 1), ERR_BUG },
		{ json_pack("{s:s,s:s}", "kind", "k", "at", "x"), ERR_BUG },
		{ json_pack("{s:s,s:s}", "kind", "k", "prev", "x"), ERR_BUG },
		{ NULL, ERR_BUG },
		{ json_pack("{s:s,s:o}", "kind", "k", "x",
		      json_string(memset(big, 'x', 10000))),
		    ERR_LIMIT },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(journal_append(j, cases[i].rec, true, &e), -1);
		assert_int_equal(e.code, cases[i].code);
	}
	put(j, "good", 1);
	journal_close(j);
	assert_whole(p->fd, 1);
	free(big);
}

static void
it_goes_on_when_opened_again(void **state)
{
	struct place *p = *state;

	assert_whole(p->fd, 0);
	for (int i = 0; i < 5; i++)
		filled(p->fd, &tiny, 5);
	assert_whole(p->fd, 25);
	assert_true(exists(p->fd, "journal/00000005.jsonl"));
	assert_true(exists(p->fd, "journal/reserve"));
}

static void
an_empty_last_file_is_no_harm(void **state)
{
	struct place *p = *state;

	filled(p->fd, &usual, 3);
	spew(p->fd, "00000002.jsonl", "", 0);
	filled(p->fd, &usual, 3);
	assert_whole(p->fd, 6);
}

static void
a_torn_end_is_moved_away(void **state UNUSED)
{
	static const struct {
		const char *tail;
		size_t len;
	} tails[] = {
#define TAIL(s) { (s), sizeof(s) - 1 }
		TAIL("{\"seq\":4,\"at\":\"20"),
		TAIL("x"),
		TAIL("\0\0\0\0\0\0\0"),
		TAIL("{\"seq\":4\0\0\0\0\"}\n{\"seq\":5}\n"),
#undef TAIL
	};

	for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
		struct place *p;
		void *own = NULL;
		char *all, *torn;
		size_t len, torn_len;
		struct seen s = { 0 };
		struct err e = ERR_INIT;

		make_place(&own);
		p = own;
		filled(p->fd, &usual, 3);
		all = slurp(p->fd, "00000001.jsonl", &len);
		all = mem_grow(all, len + tails[i].len, 1);
		memcpy(all + len, tails[i].tail, tails[i].len);
		spew(p->fd, "00000001.jsonl", all, len + tails[i].len);
		assert_found(p->fd, "00000001.jsonl line 4");
		filled(p->fd, &usual, 2);
		torn = slurp(p->fd, "torn-4", &torn_len);
		assert_int_equal(torn_len, tails[i].len);
		assert_memory_equal(torn, tails[i].tail, torn_len);
		assert_whole(p->fd, 6);
		s.stop = 4;
		assert_int_equal(journal_walk(p->fd, false, see, &s, &e), 0);
		assert_int_equal(s.n, 4);
		assert_string_equal(s.kind, "repaired");
		free(all);
		free(torn);
		drop_place(&own);
	}
}

static void
a_walk_without_check_leaves_a_torn_end_out(void **state)
{
	struct place *p = *state;
	struct seen s = { 0 };
	struct err e = ERR_INIT;
	size_t len;
	char *all;

	filled(p->fd, &usual, 3);
	all = slurp(p->fd, "00000001.jsonl", &len);
	spew(p->fd, "00000001.jsonl", all, len - 5);
	assert_int_equal(journal_walk(p->fd, false, see, &s, &e), 0);
	assert_int_equal(s.n, 2);
	/* nothing but the newline is missing */
	spew(p->fd, "00000001.jsonl", all, len - 1);
	assert_found(p->fd, "line 3: the record is cut short");
	filled(p->fd, &usual, 1);
	assert_true(exists(p->fd, "journal/torn-3"));
	assert_whole(p->fd, 4);
	free(all);
}

/* What no crash does is left as it is, and nothing is written behind it. */
static void
a_damaged_journal_is_not_opened(void **state)
{
	struct place *p = *state;
	struct journal *j = NULL;
	struct err e = ERR_INIT;
	size_t len;
	char *all, *at;

	filled(p->fd, &usual, 5);
	all = slurp(p->fd, "00000001.jsonl", &len);
	at = strstr(all, "\"n\":3");
	at[4] = '4';
	spew(p->fd, "00000001.jsonl", all, len);
	assert_int_equal(journal_open(p->fd, &usual, &j, &e), -1);
	assert_int_equal(e.code, ERR_INPUT);
	assert_non_null(strstr(e.text, "00000001.jsonl line 4"));
	assert_false(exists(p->fd, "journal/torn-4"));
	free(all);
}

/* The nth line of a text (from 0) and what follows it. */
static char *
line_at(char *s, int n)
{
	while (n-- > 0)
		s = strchr(s, '\n') + 1;
	return s;
}

static void
every_flipped_byte_is_found(void **state)
{
	struct place *p = *state;
	size_t len;
	char *all, *last;

	filled(p->fd, &usual, 4);
	all = slurp(p->fd, "00000001.jsonl", &len);
	last = line_at(all, 3);
	for (char *at = all; at < last; at++) {
		for (int bit = 0; bit < 8; bit += 3) {
			*at ^= (char)(1 << bit);
			spew(p->fd, "00000001.jsonl", all, len);
			assert_found(p->fd, "00000001.jsonl line ");
			*at ^= (char)(1 << bit);
		}
	}
	spew(p->fd, "00000001.jsonl", all, len);
	assert_whole(p->fd, 4);
	free(all);
}

static void
lines_removed_swapped_or_doubled_are_found(void **state)
{
	struct place *p = *state;
	struct text t = { 0 };
	size_t len;
	char *all, *line[6];

	filled(p->fd, &usual, 5);
	all = slurp(p->fd, "00000001.jsonl", &len);
	for (int i = 0; i < 6; i++)
		line[i] = line_at(all, i);
	for (int order = 0; order < 4; order++) {
		static const struct {
			int line[6];
			const char *where;
		} orders[] = {
			{ { 0, 2, 3, 4, -1 }, "line 2: record 3" },
			{ { 0, 2, 1, 3, 4, -1 }, "line 2: record 3" },
			{ { 0, 1, 1, 2, 3, 4 }, "line 3: record 2" },
			{ { 1, 2, 3, 4, -1 }, "line 1: record 2" },
		};

		text_reset(&t);
		for (int i = 0; i < 6 && orders[order].line[i] != -1; i++) {
			int k = orders[order].line[i];

			text_addn(&t, line[k], (size_t)(line[k + 1] - line[k]));
		}
		spew(p->fd, "00000001.jsonl", text_str(&t), t.len);
		assert_found(p->fd, orders[order].where);
	}
	text_release(&t);
	free(all);
}

static void
files_removed_or_cut_are_found(void **state)
{
	struct place *p = *state;
	size_t len;
	char *all;

	filled(p->fd, &tiny, 20);
	assert_whole(p->fd, 20);
	all = slurp(p->fd, "00000003.jsonl", &len);
	spew(p->fd, "00000003.jsonl", all, (size_t)(line_at(all, 1) - all));
	assert_found(p->fd, "00000004.jsonl line 1");
	spew(p->fd, "00000003.jsonl", all, len - 3);
	assert_found(p->fd, "00000003.jsonl line");
	spew(p->fd, "00000003.jsonl", "", 0);
	assert_found(p->fd, "00000004.jsonl line 1");
	unlinkat(p->fd, "journal/00000003.jsonl", 0);
	assert_found(p->fd, "00000003.jsonl is missing");
	spew(p->fd, "00000003.jsonl", all, len);
	assert_whole(p->fd, 20);
	unlinkat(p->fd, "journal/00000001.jsonl", 0);
	assert_found(p->fd, "00000001.jsonl is missing");
	free(all);
}

static void
pages_are_given_in_any_order(void **state)
{
	struct place *p = *state;
	struct journal *j;
	struct err e = ERR_INIT;
	uint64_t next;

	filled(p->fd, &tiny, 10);
	j = opened(p->fd, &tiny);
	for (int i = 11; i <= 50; i++)
		put(j, "test", i);
	for (uint64_t step = 1; step < 60; step += 7)
		for (uint64_t at = 1; at != 0; at = next) {
			struct seen s = { 0 };
			uint64_t want = step < 51 - at ? step : 51 - at;

			if (journal_page(j, at, step, see, &s, &next, &e) == -1)
				fail_msg("%s", e.text);
			assert_int_equal(s.n, want);
			assert_int_equal(s.last, at + want - 1);
			assert_int_equal(next, s.last < 50 ? s.last + 1 : 0);
		}
	for (uint64_t at = 50; at > 0; at--) {
		struct seen s = { .stop = 1 };

		assert_int_equal(journal_page(j, at, 9, see, &s, &next, &e), 0);
		assert_int_equal(s.last, at);
		assert_int_equal(next, at < 50 ? at + 1 : 0);
	}
	for (uint64_t at = 1; at <= 3; at += 2) { /* one left out */
		struct seen s = { 0 };

		assert_int_equal(journal_page(j, at, 1, see, &s, &next, &e), 0);
		assert_int_equal(s.last, at);
	}
	assert_int_equal(journal_page(j, 51, 9, see, NULL, &next, &e), 0);
	assert_int_equal(next, 0);
	put(j, "test", 51);
	{
		struct seen s = { 0 };

		assert_int_equal(journal_page(j, 51, 9, see, &s, &next, &e), 0);
		assert_int_equal(s.last, 51);
		assert_int_equal(journal_page(j, 0, 1, see, &s, &next, &e), 0);
		assert_int_equal(s.last, 1);
	}
	journal_close(j);
}

static void
links_are_not_followed(void **state)
{
	struct place *p = *state;
	struct journal *j = NULL;
	struct err e = ERR_INIT;

	assert_int_equal(symlinkat("/tmp", p->fd, "journal"), 0);
	assert_int_equal(journal_open(p->fd, &usual, &j, &e), -1);
	assert_int_equal(e.code, ERR_SYSTEM);
	assert_int_equal(journal_walk(p->fd, true, see, NULL, &e), -1);
	unlinkat(p->fd, "journal", 0);
	filled(p->fd, &usual, 1);
	assert_int_equal(renameat(p->fd, "journal/00000001.jsonl", p->fd,
			     "elsewhere"),
	    0);
	assert_int_equal(symlinkat("../elsewhere", p->fd,
			     "journal/00000001.jsonl"),
	    0);
	assert_int_equal(journal_walk(p->fd, true, see, NULL, &e), -1);
	assert_int_equal(journal_open(p->fd, &usual, &j, &e), -1);
}

/* RLIMIT_FSIZE makes write(2) fall short in the middle of a record. */
static void
half_a_record_is_taken_back(void **state)
{
	struct place *p = *state;
	struct journal *j = opened(p->fd, &usual);
	struct rlimit was, small_files;
	struct err e = ERR_INIT;
	size_t len;
	char *all;

	put(j, "test", 1);
	put(j, "test", 2);
	all = slurp(p->fd, "00000001.jsonl", &len);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &was);
	small_files = was;
	small_files.rlim_cur = len + 20;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small_files), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(journal_append(j,
				     json_pack("{s:s}", "kind", "lost"), true,
				     &e),
		    -1);
		assert_int_equal(e.code, ERR_SYSTEM);
		assert_int_equal(journal_seq(j), 2);
	}
	setrlimit(RLIMIT_FSIZE, &was);
	put(j, "test", 3);
	journal_close(j);
	assert_whole(p->fd, 3);
	free(all);
}

static const struct journal_options on_full_disk = {
	.file_bytes_max = 30000,
	.reserve_bytes = 65536,
	.record_bytes_max = 10000,
};

static int
fill_disk(int fd)
{
	int out = openat(fd, "ballast", O_WRONLY | O_CREAT | O_APPEND, 0600);
	static const char block[4096];

	while (write(out, block, sizeof(block)) > 0)
		;
	return out;
}

/* Runs in a child with a file system of 512 KiB; 0 if all is well. */
static int
live_through_a_full_disk(int fd)
{
	struct journal *j = opened(fd, &on_full_disk);
	struct seen s = { 0 };
	struct err e = ERR_INIT;
	int ballast, decisions = 0;

	put(j, "before", 2);
	if (journal_is_low(j))
		return 10;
	ballast = fill_disk(fd);
	/* What the last page of the file still holds, then the reserve. */
	while (!journal_is_low(j) && decisions < 1000)
		put(j, "decision", 2 * decisions++);
	if (!journal_is_low(j) || exists(fd, "journal/reserve"))
		return 11;
	/* So much the reserve must hold, over file borders too. */
	for (int i = 0; i < 100; i++)
		put(j, "decision", 2 * decisions++);
	while (journal_append(j, json_pack("{s:s}", "kind", "more"), true,
		   &e) == 0)
		decisions++;
	if (e.code != ERR_SYSTEM)
		return 12;
	if (ftruncate(ballast, 0) == -1)
		return 13;
	put(j, "after", 2);
	if (journal_sync(j, &e) == -1 || journal_is_low(j))
		return 14;
	if (!exists(fd, "journal/reserve"))
		return 15;
	journal_close(j);
	if (journal_walk(fd, true, see, &s, &e) == -1)
		return 16;
	return s.n == (uint64_t)decisions + 2 ? 0 : 17;
}

static int
on_a_small_disk(const char *dir)
{
	int fd;

	if (unshare(CLONE_NEWNS) == -1 &&
	    unshare(CLONE_NEWUSER | CLONE_NEWNS) == -1)
		return 77;
	if (mount("none", "/", "none", MS_REC | MS_PRIVATE, "") == -1 ||
	    mount("tmpfs", dir, "tmpfs", 0, "size=512k") == -1)
		return 77;
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd == -1 ? 77 : live_through_a_full_disk(fd);
}

static void
decisions_fit_on_a_full_disk(void **state)
{
	struct place *p = *state;
	int status = 0;
	pid_t pid = fork();

	assert_int_not_equal(pid, -1);
	if (pid == 0)
		_exit(on_a_small_disk(p->dir));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77) {
		print_message("SKIPPED: this user may not mount a small file "
			      "system, so the full disk is NOT tested\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* Appends for ever, telling each record that has been synced. */
static void
write_until_killed(int fd, int to)
{
	struct journal *j = opened(fd, &tiny);

	for (int i = 0;; i += 2) {
		uint64_t seq;

		put(j, "test", i);
		seq = journal_seq(j);
		if (write(to, &seq, sizeof(seq)) == -1)
			_exit(1);
	}
}

/* The records that were synced are there after SIGKILL at any moment. */
static void
a_killed_writer_leaves_a_whole_chain(void **state)
{
	struct place *p = *state;

	for (int round = 0; round < 10; round++) {
		struct seen s = { 0 };
		struct err e = ERR_INIT;
		uint64_t told = 0;
		int news[2];
		pid_t pid;

		assert_int_equal(pipe(news), 0);
		if ((pid = fork()) == 0)
			write_until_killed(p->fd, news[1]);
		assert_int_not_equal(pid, -1);
		close(news[1]);
		for (int i = 0; i < 10; i++)
			assert_int_equal(read(news[0], &told, sizeof(told)),
			    sizeof(told));
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		while (read(news[0], &told, sizeof(told)) == sizeof(told))
			;
		close(news[0]);
		journal_close(opened(p->fd, &tiny));
		if (journal_walk(p->fd, true, see, &s, &e) == -1)
			fail_msg("%s", e.text);
		assert_true(s.last >= told);
	}
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, make_place, drop_place)
	const struct CMUnitTest tests[] = {
		T(records_have_their_shape),
		T(bad_records_are_refused),
		T(it_goes_on_when_opened_again),
		T(an_empty_last_file_is_no_harm),
		cmocka_unit_test(a_torn_end_is_moved_away),
		T(a_walk_without_check_leaves_a_torn_end_out),
		T(a_damaged_journal_is_not_opened),
		T(every_flipped_byte_is_found),
		T(lines_removed_swapped_or_doubled_are_found),
		T(files_removed_or_cut_are_found),
		T(pages_are_given_in_any_order),
		T(links_are_not_followed),
		T(half_a_record_is_taken_back),
		T(decisions_fit_on_a_full_disk),
		T(a_killed_writer_leaves_a_whole_chain),
	};

	return cmocka_run_group_tests_name("journal", tests, NULL, NULL);
}
