/* test_store: rows into a file, out of it again, and folded */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../place.h"
#include "base/mem.h"
#include "diff/store.h"

#define ID "chg_0123456789"
#define PLENTY ((uint64_t)1 << 40)

static const char *const names[] = { "id", "v" };
static const bool key[] = { true, false };

static struct store *
opened(void **state, uint64_t bytes_max)
{
	struct place *p = *state;
	struct err e = ERR_INIT;
	struct store *s = NULL;

	if (store_open(p->fd, ID, bytes_max, &s, &e) == -1)
		fail_msg("%s", e.text);
	return s;
}

/* A row of (id, v), as "before>after@was>is" would say it: NULL values are
 * absent images, places are numbers that make block and item, 0 for none. */
struct change {
	const char *id, *before, *after;
	uint16_t was, is;
};

static int
add_to(struct store *s, const char *table, const struct change *c,
    struct err *e)
{
	struct value b[2] = { { c->id, strlen(c->id) },
		{ c->before, c->before != NULL ? strlen(c->before) : 0 } };
	struct value a[2] = { { c->id, strlen(c->id) },
		{ c->after, c->after != NULL ? strlen(c->after) : 0 } };
	struct image im = {
		.table = table,
		.ncols = 2,
		.names = names,
		.key = key,
		.before = c->before != NULL ? b : NULL,
		.after = c->after != NULL ? a : NULL,
		.was = { c->was != 0 ? 7 : 0, c->was % 5u, c->was / 5 },
		.is = { c->is != 0 ? 7 : 0, c->is % 5u, c->is / 5 },
	};

	im.op = im.before == NULL  ? IMAGE_INSERT
	        : im.after == NULL ? IMAGE_DELETE
	                           : IMAGE_UPDATE;
	return store_add(s, &im, e);
}

static int
fold_end(struct store *s, struct err *e)
{
	int r;

	while ((r = store_fold_step(s, e)) == 1)
		;
	return r;
}

static void
add(struct store *s, const struct change *c)
{
	struct err e = ERR_INIT;

	if (add_to(s, "public.t", c, &e) == -1)
		fail_msg("%s", e.text);
}

/* Rows as "op id before>after", one a line. */
static bool
tell(void *arg, const char *line, size_t len)
{
	json_t *o = json_loadb(line, len, 0, NULL), *b, *a, *id;

	assert_non_null(o);
	id = json_object_get(json_object_get(o, "key"), "id");
	b = json_object_get(o, "before");
	a = json_object_get(o, "after");
	text_addf(arg, "%.1s%s %s>%s\n",
	    json_string_value(json_object_get(o, "op")),
	    json_is_string(id) ? json_string_value(id) : "",
	    json_is_null(b) ? "" : json_string_value(json_object_get(b, "v")),
	    json_is_null(a) ? "" : json_string_value(json_object_get(a, "v")));
	json_decref(o);
	return true;
}

static void
assert_rows(struct store *s, const char *want)
{
	struct text t = { 0 };
	struct err e = ERR_INIT;
	uint64_t next = 0;

	if (store_read(s, 0, tell, &t, &next, &e) == -1)
		fail_msg("%s", e.text);
	assert_int_equal(next, store_bytes(s));
	assert_string_equal(text_str(&t), want);
	text_release(&t);
}

static json_t *
header(void)
{
	return json_pack("{s:s,s:s,s:[],s:[],s:b,s:[],s:s,s:[]}", "database",
	    "d", "agent", "a", "statements", "tables", "complete", 1, "effects",
	    "risk", "low", "reasons");
}

static void
sealed(struct store *s, char out[DIGEST_HEX_SIZE])
{
	char *const one[SEAL_NDIGESTS] = { [SEAL_DIGEST] = out };
	json_t *h = header();
	struct err e = ERR_INIT;
	int r;

	while ((r = store_seal_step(s, h, one, &e)) == 1)
		;
	if (r == -1)
		fail_msg("%s", e.text);
	json_decref(h);
}

struct resealing {
	struct seal *seal;
	struct digest *d;
	uint64_t rows;
};

static bool
reseal(void *arg, const char *line, size_t len)
{
	json_t *row = json_loadb(line, len, 0, NULL);
	unsigned char h[DIGEST_SIZE];
	struct resealing *r = arg;
	struct err e = ERR_INIT;

	assert_int_equal(image_hash_json(row, r->d, h, &e), 0);
	assert_int_equal(seal_add(r->seal, h, &e), 0);
	r->rows++;
	json_decref(row);
	return true;
}

/* The digest of a store is that of the rows that it gives. */
static void
assert_seal_is_of_the_rows(struct store *s)
{
	struct resealing r = { seal_new(-1), digest_new(), 0 };
	char want[DIGEST_HEX_SIZE], got[DIGEST_HEX_SIZE];
	json_t *h = header();
	struct err e = ERR_INIT;
	uint64_t next;

	assert_int_equal(store_read(s, 0, reseal, &r, &next, &e), 0);
	assert_int_equal(r.rows, store_rows(s));
	while (seal_step(r.seal, h, want, &e) == 1)
		;
	sealed(s, got);
	assert_string_equal(got, want);
	seal_free(r.seal);
	digest_free(r.d);
	json_decref(h);
}

static void
rows_come_back(void **state)
{
	static const struct change changes[] = {
		{ "1", NULL, "a", 0, 1 },
		{ "2", "b", "c", 2, 3 },
		{ "3", "tab\there", NULL, 4, 0 },
	};
	struct store *s = opened(state, PLENTY);
	const struct store_count *counts;

	assert_rows(s, "");
	for (size_t i = 0; i < 3; i++)
		add(s, &changes[i]);
	assert_rows(s, "i1 >a\nu2 b>c\nd3 tab\there>\n");
	assert_int_equal(store_rows(s), 3);
	assert_int_equal(store_counts(s, &counts), 1);
	assert_string_equal(counts[0].table, "public.t");
	for (int i = 0; i < IMAGE_NOPS; i++)
		assert_int_equal(counts[0].n[i], 1);
	assert_seal_is_of_the_rows(s);
	store_close(s, false);
}

static void
counts_are_by_table(void **state)
{
	static const struct change c = { "1", NULL, "a", 0, 0 };
	struct store *s = opened(state, PLENTY);
	const struct store_count *counts;
	struct err e = ERR_INIT;
	static const char *const tables[] = { "b\"\\x.t", "a.t", "b\"\\x.t",
		"a.t", "c.t", "a.t" };

	for (size_t i = 0; i < 6; i++)
		assert_int_equal(add_to(s, tables[i], &c, &e), 0);
	assert_int_equal(store_counts(s, &counts), 3);
	assert_string_equal(counts[0].table, tables[0]);
	assert_string_equal(counts[1].table, "a.t");
	assert_int_equal(counts[1].n[IMAGE_INSERT], 3);
	/* and again when the rows are copied */
	assert_int_equal(store_fold_begin(s, 100, &e), 0);
	assert_int_equal(fold_end(s, &e), 0);
	assert_int_equal(store_counts(s, &counts), 3);
	assert_string_equal(counts[0].table, tables[0]);
	assert_int_equal(counts[0].n[IMAGE_INSERT], 2);
	assert_seal_is_of_the_rows(s);
	store_close(s, true);
}

/* Each row says of which shape it is; what comes between has none. */
static void
counts_are_by_table_whatever_comes_between(void **state)
{
	static const struct value v[2] = { { "1", 1 }, { "a", 1 } };
	struct store *s = opened(state, PLENTY);
	const struct store_count *counts;
	struct image im[2] = { { .table = "a.t" }, { .table = "b.t" } };
	struct err e = ERR_INIT;

	for (size_t i = 0; i < 2; i++) {
		im[i].op = IMAGE_INSERT;
		im[i].ncols = 2;
		im[i].names = names;
		im[i].key = key;
		im[i].after = v;
		im[i].shape = image_shape();
	}
	for (int k = 0; k < 3; k++) {
		assert_int_equal(store_add(s, &im[0], &e), 0);
		assert_int_equal(store_add(s, &im[0], &e), 0);
		store_note_unchanged(s, &im[1]);
		assert_int_equal(store_add(s, &im[0], &e), 0);
		assert_int_equal(store_add(s, &im[1], &e), 0);
	}
	assert_int_equal(store_counts(s, &counts), 2);
	assert_string_equal(counts[0].table, "a.t");
	assert_int_equal(counts[0].n[IMAGE_INSERT], 9);
	assert_int_equal(counts[1].n[IMAGE_INSERT], 3);
	assert_int_equal(counts[1].unchanged, 3);
	assert_seal_is_of_the_rows(s);
	store_close(s, true);
}

static void
files_are_private_and_go_away(void **state)
{
	struct place *p = *state;
	struct store *s = opened(state, PLENTY);
	struct stat st;

	umask(0);
	assert_int_equal(fstatat(p->fd, ID, &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(fstatat(p->fd, ID "/rows.ndjson", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	store_close(s, true);
	assert_int_equal(fstatat(p->fd, ID, &st, 0), -1);
	s = opened(state, PLENTY);
	store_close(s, false);
	assert_int_equal(fstatat(p->fd, ID "/rows.ndjson", &st, 0), 0);
}

static void
ids_are_checked(void **state)
{
	static const char *const bad[] = { "", ".", "..", "chg_",
		"chg_012345678", "chg_01234567890", "chg_012345678g",
		"chg_012345678A", "../chg_0123456789", "chg_01234/6789",
		"xhg_0123456789" };
	struct place *p = *state;
	struct store *s = NULL;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct err e = ERR_INIT;

		assert_int_equal(store_open(p->fd, bad[i], 1, &s, &e), -1);
		assert_int_equal(e.code, ERR_INPUT);
	}
}

static void
an_id_is_used_once(void **state)
{
	struct place *p = *state;
	struct store *s = opened(state, PLENTY), *other = NULL;
	struct err e = ERR_INIT;

	assert_int_equal(store_open(p->fd, ID, PLENTY, &other, &e), -1);
	assert_int_equal(e.code, ERR_SYSTEM);
	store_close(s, true);
	assert_int_equal(symlinkat("/tmp", p->fd, ID), 0);
	assert_int_equal(store_open(p->fd, ID, PLENTY, &other, &e), -1);
}

struct page {
	uint64_t n, stop;
	char first[64];
};

static bool
turn(void *arg, const char *line, size_t len)
{
	struct page *p = arg;

	if (p->n++ == 0) {
		json_t *o = json_loadb(line, len, 0, NULL);

		snprintf(p->first, sizeof(p->first), "%s",
		    json_string_value(
			json_object_get(json_object_get(o, "key"), "id")));
		json_decref(o);
	}
	return p->n < p->stop;
}

static void
pages_are_found(void **state)
{
	static const uint64_t wanted[] = { 0, 1, 1023, 1024, 1025, 4095, 4999 };
	struct store *s = opened(state, PLENTY);
	struct err e = ERR_INIT;
	uint64_t offset, next;
	char id[16];

	for (int i = 0; i < 5000; i++) {
		struct change c = { id, NULL, "some text that takes space", 0,
			0 };

		snprintf(id, sizeof(id), "%d", i);
		add(s, &c);
	}
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		struct page p = { 0, 3, "" };

		assert_int_equal(store_find(s, wanted[i], &offset, &e), 0);
		assert_int_equal(store_read(s, offset, turn, &p, &next, &e), 0);
		assert_int_equal(strtoull(p.first, NULL, 10), wanted[i]);
		assert_int_equal(p.n, wanted[i] == 4999 ? 1 : 3);
		if (wanted[i] == 4999)
			continue;
		/* it goes on where it stopped */
		p = (struct page){ 0, 1, "" };
		assert_int_equal(store_read(s, next, turn, &p, &next, &e), 0);
		assert_int_equal(strtoull(p.first, NULL, 10), wanted[i] + 3);
		assert_int_equal(store_read(s, offset + 1, turn, &p, &next, &e),
		    -1);
		assert_int_equal(e.code, ERR_INPUT);
	}
	assert_int_equal(store_find(s, 5000, &offset, &e), 0);
	assert_int_equal(offset, store_bytes(s));
	assert_int_equal(store_read(s, offset + 1, turn, &(struct page){ 0 },
			     &next, &e),
	    -1);
	store_close(s, true);
}

static void
long_rows_are_handled(void **state)
{
	struct store *s = opened(state, PLENTY);
	struct page p = { 0, 99, "" };
	char *big = mem_array(3000001, 1);
	struct err e = ERR_INIT;
	uint64_t next;

	memset(big, 'x', 3000000);
	for (int i = 0; i < 5; i++) {
		struct change c = { "1", i % 2 == 0 ? "s" : big, big, 0, 0 };

		add(s, &c);
	}
	assert_int_equal(store_read(s, 0, turn, &p, &next, &e), 0);
	assert_int_equal(p.n, 5);
	assert_int_equal(next, store_bytes(s));
	assert_seal_is_of_the_rows(s);
	free(big);
	store_close(s, true);
}

/* What else the daemon does goes on in between, and it may be dropped there. */
static void
large_rows_are_folded_in_pieces(void **state)
{
	static const struct change first = { "9", "a", "b", 1, 2 };
	static const struct change again = { "9", "b", "c", 2, 3 };
	struct store *s = opened(state, PLENTY);
	char *big = mem_array(3000001, 1);
	struct change c = { "1", NULL, big, 0, 0 };
	struct err e = ERR_INIT;
	int pieces = 0, r;

	memset(big, 'x', 3000000);
	add(s, &first);
	for (int i = 0; i < 6; i++)
		add(s, &c);
	for (int drop = 1; drop >= 0; drop--) {
		assert_int_equal(store_fold_begin(s, 100, &e), 0);
		add(s, &again);
		assert_int_equal(store_fold_step(s, &e), 1);
		assert_int_equal(store_rows(s), 7);
		if (drop)
			store_fold_abort(s);
	}
	while ((r = store_fold_step(s, &e)) == 1)
		pieces++;
	assert_int_equal(r, 0);
	assert_true(pieces >= 2 && pieces <= 6);
	assert_int_equal(store_rows(s), 7);
	assert_seal_is_of_the_rows(s);
	free(big);
	store_close(s, true);
}

static void
bytes_are_bounded(void **state)
{
	static const struct change c = { "1", NULL, "a", 0, 1 };
	static const struct change again = { "1", "a", "b", 1, 2 };
	struct store *s = opened(state, 500);
	struct err e = ERR_INIT;

	add(s, &c);
	add(s, &c);
	assert_int_equal(add_to(s, "public.t", &c, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	assert_rows(s, "i1 >a\ni1 >a\n");
	assert_seal_is_of_the_rows(s);
	/* rows to be folded in count too */
	assert_int_equal(store_fold_begin(s, 10, &e), 0);
	assert_int_equal(add_to(s, "public.t", &again, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	store_fold_abort(s);
	store_close(s, true);
}

/* RLIMIT_FSIZE stands in for a full disk. */
static void
a_full_disk_is_an_error_and_no_more(void **state)
{
	struct rlimit was, small_files;
	struct store *s = opened(state, PLENTY);
	struct err e = ERR_INIT;
	uint64_t rows = 0;
	struct change c = { "1", NULL, "some text that takes space", 0, 0 };

	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &was);
	small_files = was;
	small_files.rlim_cur = 100000;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small_files), 0);
	while (add_to(s, "public.t", &c, &e) == 0)
		rows++;
	assert_int_equal(e.code, ERR_SYSTEM);
	assert_int_equal(store_rows(s), rows);
	assert_int_equal(store_flush(s, true, &e), -1);
	assert_int_equal(e.code, ERR_SYSTEM);
	setrlimit(RLIMIT_FSIZE, &was);
	assert_int_equal(store_flush(s, true, &e), 0);
	add(s, &c);
	assert_int_equal(store_rows(s), rows + 1);
	assert_seal_is_of_the_rows(s);
	store_close(s, true);
}

static void
fold(struct store *s, const struct change *c, size_t n)
{
	struct err e = ERR_INIT;

	assert_int_equal(store_fold_begin(s, 1000, &e), 0);
	for (size_t i = 0; i < n && c[i].id != NULL; i++)
		add(s, &c[i]);
	if (fold_end(s, &e) == -1)
		fail_msg("%s", e.text);
}

static void
two_statements_fold(void **state)
{
	static const struct {
		struct change then[3], now[3];
		const char *rows;
		uint64_t unchanged;
	} cases[] = {
		/* one row, each pair of operations */
		{ { { "1", NULL, "a", 0, 1 } }, { { "1", "a", "b", 1, 2 } },
		    "i1 >b\n", 0 },
		{ { { "1", NULL, "a", 0, 1 } }, { { "1", "a", "a", 1, 2 } },
		    "i1 >a\n", 0 },
		{ { { "1", NULL, "a", 0, 1 } }, { { "1", "a", NULL, 1, 0 } },
		    "", 0 },
		{ { { "1", "a", "b", 1, 2 } }, { { "1", "b", "c", 2, 3 } },
		    "u1 a>c\n", 0 },
		{ { { "1", "a", "b", 1, 2 } }, { { "1", "b", "a", 2, 3 } }, "",
		    1 },
		{ { { "1", "a", "b", 1, 2 } }, { { "1", "b", NULL, 2, 0 } },
		    "d1 a>\n", 0 },
		/* all that is escaped in a line */
		{ { { "1", "a\nb\t", "\x1f\"\\", 1, 2 } },
		    { { "1", "\x1f\"\\", "\x1e\xc3\xa9\x7f", 2, 3 } },
		    "u1 a\nb\t>\x1e\xc3\xa9\x7f\n", 0 },
		/* rows that have nothing to do with each other */
		{ { { "1", "a", NULL, 1, 0 } }, { { "1", NULL, "a", 0, 2 } },
		    "d1 a>\ni1 >a\n", 0 },
		{ { { "1", "a", "b", 1, 2 } }, { { "2", "b", "c", 1, 3 } },
		    "u1 a>b\nu2 b>c\n", 0 },
		{ { { "1", "a", "b", 1, 2 } }, { { "2", "x", NULL, 5, 0 } },
		    "u1 a>b\nd2 x>\n", 0 },
		{ { { "1", "a", "b", 1, 2 } }, { { .id = NULL } }, "u1 a>b\n",
		    0 },
		{ { { .id = NULL } }, { { "1", "a", "b", 1, 2 } }, "u1 a>b\n",
		    0 },
		/* order stays, in whichever order they are met again */
		{ { { "1", NULL, "a", 0, 1 }, { "2", "x", "y", 2, 3 },
		      { "3", "m", "n", 4, 5 } },
		    { { "3", "n", "o", 5, 9 }, { "4", NULL, "z", 0, 8 },
			{ "1", "a", "b", 1, 7 } },
		    "i1 >b\nu2 x>y\nu3 m>o\ni4 >z\n", 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct store *s = opened(state, PLENTY);
		const struct store_count *counts;
		uint64_t unchanged = 0;
		size_t n;

		for (size_t k = 0; k < 3 && cases[i].then[k].id != NULL; k++)
			add(s, &cases[i].then[k]);
		fold(s, cases[i].now, 3);
		assert_rows(s, cases[i].rows);
		assert_seal_is_of_the_rows(s);
		n = store_counts(s, &counts);
		for (size_t k = 0; k < n; k++)
			unchanged += counts[k].unchanged;
		assert_int_equal(unchanged, cases[i].unchanged);
		store_close(s, true);
	}
}

static void
many_statements_fold(void **state)
{
	static const struct change first[] = { { "1", "a", "b", 1, 2 },
		{ "2", "x", "y", 3, 4 } };
	static const struct change second[] = { { "1", "b", "c", 2, 5 },
		{ "2", "y", "x", 4, 6 } };
	static const struct change third[] = { { "1", "c", "d", 5, 7 },
		{ "2", "x", "z", 6, 8 } };
	static const struct change last[] = { { "1", "d", NULL, 7, 0 },
		{ "2", "z", "w", 8, 9 } };
	struct store *s = opened(state, PLENTY);
	const struct store_count *counts;

	add(s, &first[0]);
	add(s, &first[1]);
	fold(s, second, 2);
	assert_rows(s, "u1 a>c\n");
	fold(s, third, 2);
	assert_rows(s, "u1 a>d\nu2 x>z\n");
	fold(s, last, 2);
	assert_rows(s, "d1 a>\nu2 x>w\n");
	assert_int_equal(store_counts(s, &counts), 1);
	assert_int_equal(counts[0].n[IMAGE_UPDATE], 1);
	assert_int_equal(counts[0].n[IMAGE_DELETE], 1);
	assert_seal_is_of_the_rows(s);
	store_close(s, true);
}

static void
a_fold_can_be_dropped(void **state)
{
	static const struct change one = { "1", "a", "b", 1, 2 };
	static const struct change two = { "1", "b", "c", 2, 3 };
	struct place *p = *state;
	struct store *s = opened(state, PLENTY);
	struct err e = ERR_INIT;
	char was[DIGEST_HEX_SIZE], is[DIGEST_HEX_SIZE];
	struct stat st;

	add(s, &one);
	sealed(s, was);
	assert_int_equal(store_fold_begin(s, 0, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	assert_int_equal(store_fold_begin(s, 1, &e), 0);
	assert_int_equal(store_fold_begin(s, 1, &e), -1);
	add(s, &two);
	assert_int_equal(store_rows(s), 1);
	assert_rows(s, "u1 a>b\n");
	store_fold_abort(s);
	store_fold_abort(s);
	assert_int_equal(fold_end(s, &e), -1);
	sealed(s, is);
	assert_string_equal(was, is);
	assert_int_equal(fstatat(p->fd, ID "/rows.next", &st, 0), -1);
	assert_int_equal(store_fold_begin(s, 1, &e), 0);
	store_close(s, true);
	assert_int_equal(fstatat(p->fd, ID, &st, 0), -1);
}

static void
a_row_goes_on_once(void **state)
{
	static const struct change one = { "1", "a", "b", 1, 2 };
	static const struct change two = { "1", "b", "c", 2, 3 };
	static const struct change wrong = { "1", NULL, "c", 2, 3 };
	struct store *s = opened(state, PLENTY);
	struct err e = ERR_INIT;

	add(s, &one);
	assert_int_equal(store_fold_begin(s, 1, &e), 0);
	add(s, &two);
	add(s, &two);
	assert_int_equal(fold_end(s, &e), -1);
	assert_int_equal(e.code, ERR_BUG);
	assert_rows(s, "u1 a>b\n");
	assert_int_equal(store_fold_begin(s, 1, &e), 0);
	add(s, &wrong); /* an insert cannot go on from a row */
	assert_int_equal(fold_end(s, &e), -1);
	assert_int_equal(e.code, ERR_BUG);
	assert_rows(s, "u1 a>b\n");
	assert_seal_is_of_the_rows(s);
	store_close(s, true);
}

/* The leaf of a partition may order its columns in another way. */
static void
columns_are_folded_by_name(void **state)
{
	static const char *const other[] = { "v", "id" };
	static const bool other_key[] = { false, true };
	static const struct change one = { "1", "a", "b", 1, 2 };
	const struct value before[] = { { "b", 1 }, { "1", 1 } };
	const struct value back[] = { { "a", 1 }, { "1", 1 } };
	struct image im = {
		.table = "public.t_leaf",
		.op = IMAGE_UPDATE,
		.collateral = true,
		.ncols = 2,
		.names = other,
		.key = other_key,
		.before = before,
		.after = back,
		.was = { 7, 2, 0 },
		.is = { 8, 0, 1 },
	};
	struct store *s = opened(state, PLENTY);
	const struct store_count *counts;
	struct err e = ERR_INIT;

	add(s, &one);
	assert_int_equal(store_fold_begin(s, 1, &e), 0);
	assert_int_equal(store_add(s, &im, &e), 0);
	assert_int_equal(fold_end(s, &e), 0);
	assert_rows(s, "");
	assert_int_equal(store_counts(s, &counts), 1);
	assert_string_equal(counts[0].table, "public.t");
	assert_int_equal(counts[0].unchanged, 1);
	store_close(s, true);
}

/* --- what rows come to --- */

static bool
is_u(const void *arg, const char *table)
{
	const char *collateral = arg;

	return strcmp(table, collateral) == 0;
}

static void
settle(struct store *s, const char *collateral)
{
	struct err e = ERR_INIT;

	if (store_settle(s, is_u, collateral, &e) == -1)
		fail_msg("%s", e.text);
	assert_seal_is_of_the_rows(s);
}

static const struct store_count *
count_of(struct store *s, const char *table)
{
	const struct store_count *c;
	size_t n = store_counts(s, &c);

	for (size_t i = 0; i < n; i++)
		if (strcmp(c[i].table, table) == 0)
			return &c[i];
	fail_msg("no count of %s", table);
	return NULL;
}

static void
a_key_deleted_and_inserted_is_one_row(void **state)
{
	static const struct change rows[] = {
		{ "1", "a", NULL, 1, 0 },
		{ "2", "b", NULL, 2, 0 },
		{ "3", "c", NULL, 3, 0 },
		{ "4", NULL, "d", 0, 4 },
		{ "3", NULL, "c", 0, 5 },
		{ "1", NULL, "x", 0, 6 },
	};
	static const struct change more = { "1", "x", NULL, 6, 0 };
	struct store *s = opened(state, PLENTY);
	struct err e = ERR_INIT;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		add(s, &rows[i]);
	settle(s, "");
	assert_rows(s, "u1 a>x\nd2 b>\ni4 >d\n");
	assert_int_equal(count_of(s, "public.t")->unchanged, 1);
	settle(s, ""); /* once more changes nothing */
	assert_rows(s, "u1 a>x\nd2 b>\ni4 >d\n");
	assert_int_equal(store_fold_begin(s, 9, &e), 0);
	assert_rows(s, "u1 a>x\nd2 b>\ni4 >d\n");
	add(s, &more); /* goes on from the row inserted */
	assert_int_equal(fold_end(s, &e), 0);
	settle(s, "");
	assert_rows(s, "d1 a>\nd2 b>\ni4 >d\n");
	assert_int_equal(count_of(s, "public.t")->unchanged, 1);
	store_close(s, true);
}

static void
the_same_key_of_another_table_is_another_row(void **state)
{
	static const struct change gone = { "1", "a", NULL, 1, 0 };
	static const struct change come = { "1", NULL, "b", 0, 2 };
	static const struct change other = { "2", "z", NULL, 3, 0 };
	struct store *s = opened(state, PLENTY);
	struct err e = ERR_INIT;

	add(s, &gone);
	add(s, &other);
	assert_int_equal(add_to(s, "public.u", &come, &e), 0);
	assert_int_equal(add_to(s, "public.u", &other, &e), 0);
	settle(s, "");
	assert_rows(s, "d1 a>\nd2 z>\ni1 >b\nd2 z>\n");
	store_close(s, true);
}

/* id is no key here; equal rows are matched as often as they occur. */
static void
without_a_key_content_decides(void **state)
{
	static const bool none[] = { false, false };
	static const char *const rows[] = { "-a", "-a", "-a", "-b", "+a", "+c",
		"+a", "+a", "+a", "-d" };
	struct store *s = opened(state, PLENTY);
	struct err e = ERR_INIT;
	uint16_t place = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct value v[2] = { { "1", 1 }, { rows[i] + 1, 1 } };
		struct image im = { .table = "public.t",
			.ncols = 2,
			.names = names,
			.key = none };

		im.op = rows[i][0] == '-' ? IMAGE_DELETE : IMAGE_INSERT;
		if (im.op == IMAGE_DELETE) {
			im.before = v;
			im.was = (struct rowid){ 7, ++place, 1 };
		} else {
			im.after = v;
			im.is = (struct rowid){ 7, ++place, 1 };
		}
		assert_int_equal(store_add(s, &im, &e), 0);
	}
	settle(s, "");
	assert_rows(s, "d b>\ni >c\ni >a\nd d>\n");
	assert_int_equal(count_of(s, "public.t")->unchanged, 3);
	store_close(s, true);
}

static void
a_table_has_one_flag(void **state)
{
	static const struct change one = { "1", "a", "b", 1, 2 };
	static const struct change two = { "2", NULL, "b", 0, 4 };
	struct store *s = opened(state, PLENTY);
	struct err e = ERR_INIT;

	add(s, &one);
	assert_int_equal(add_to(s, "public.u", &two, &e), 0);
	assert_int_equal(count_of(s, "public.u")->collateral, 0);
	settle(s, "public.u");
	assert_int_equal(count_of(s, "public.u")->collateral, 1);
	assert_int_equal(count_of(s, "public.t")->collateral, 0);
	add(s, &two);
	settle(s, "public.t");
	assert_int_equal(count_of(s, "public.u")->collateral, 0);
	assert_int_equal(count_of(s, "public.t")->collateral, 2);
	assert_rows(s, "u1 a>b\ni2 >b\ni2 >b\n");
	store_close(s, true);
}

static void
note(struct store *s, const char *table, uint16_t was, uint16_t is)
{
	struct image im = { .table = table,
		.was = { 7, was % 5u, was / 5 },
		.is = { 7, is % 5u, is / 5 } };

	store_note_unchanged(s, &im);
}

static void
unchanged_rows_are_counted_once(void **state)
{
	static const struct change one = { "1", "a", "b", 1, 2 };
	static const struct change after_all = { "7", "a", "b", 16, 18 };
	static const struct change at_last = { "8", "a", NULL, 17, 0 };
	struct store *s = opened(state, PLENTY);
	struct err e = ERR_INIT;

	add(s, &one);
	note(s, "public.t", 11, 12);
	note(s, "public.u", 13, 14);
	assert_int_equal(store_fold_begin(s, 9, &e), 0);
	note(s, "public.u", 15, 16);
	assert_int_equal(count_of(s, "public.u")->unchanged, 1);
	store_fold_abort(s);
	assert_int_equal(store_fold_begin(s, 9, &e), 0);
	note(s, "public.u", 15, 16);
	assert_int_equal(fold_end(s, &e), 0);
	assert_int_equal(count_of(s, "public.u")->unchanged, 2);
	/* the same row once more, and one that is changed after all */
	assert_int_equal(store_fold_begin(s, 9, &e), 0);
	note(s, "public.u", 14, 17);
	assert_int_equal(add_to(s, "public.u", &after_all, &e), 0);
	assert_int_equal(fold_end(s, &e), 0);
	assert_int_equal(count_of(s, "public.u")->unchanged, 1);
	assert_int_equal(store_fold_begin(s, 9, &e), 0);
	assert_int_equal(add_to(s, "public.u", &at_last, &e), 0);
	assert_int_equal(fold_end(s, &e), 0);
	assert_int_equal(count_of(s, "public.u")->unchanged, 0);
	assert_rows(s, "u1 a>b\nu7 a>b\nd8 a>\n");
	assert_int_equal(store_forget(s, "public.u", &e), 0);
	assert_int_equal(store_forget(s, "public.none", &e), 0);
	assert_int_equal(count_of(s, "public.t")->unchanged, 1);
	assert_int_equal(count_of(s, "public.t")->n[IMAGE_UPDATE], 1);
	store_close(s, true);
}

#define ROWS 400

/* Random statements against a model of what folding must come to. */
struct model {
	struct {
		bool was, is;    /* there before, there now */
		int before, now; /* values */
		uint16_t place;
	} row[ROWS];
	uint16_t place;
};

static void
random_step(struct model *m, struct store *s, size_t i)
{
	char id[16], before[16], after[16];
	struct change c = { id, before, after, m->row[i].place, 0 };

	snprintf(id, sizeof(id), "%zu", i);
	snprintf(before, sizeof(before), "%d", m->row[i].now);
	if (!m->row[i].is) {
		m->row[i].is = true;
		c.before = NULL;
		c.was = 0;
	} else if (rand() % 4 == 0) {
		m->row[i].is = false;
		c.after = NULL;
	}
	if (c.after != NULL) {
		m->row[i].now = c.before != NULL
		                    ? (m->row[i].now + 1 + rand() % 2) % 3
		                    : rand() % 3;
		c.is = m->row[i].place = m->place++;
	}
	snprintf(after, sizeof(after), "%d", m->row[i].now);
	add(s, &c);
}

/* Deletes and inserts again make two rows of one id: they are compared as
 * net counts per id and value. */
struct net {
	int n[ROWS][3];
};

static bool
sum(void *arg, const char *line, size_t len)
{
	json_t *o = json_loadb(line, len, 0, NULL);
	json_t *b = json_object_get(o, "before"),
	       *a = json_object_get(o, "after");
	int id = atoi(json_string_value(
	    json_object_get(json_object_get(o, "key"), "id")));
	struct net *net = arg;

	if (json_is_object(b))
		net->n[id][atoi(json_string_value(json_object_get(b, "v")))]--;
	if (json_is_object(a))
		net->n[id][atoi(json_string_value(json_object_get(a, "v")))]++;
	assert_false(json_equal(b, a));
	json_decref(o);
	return true;
}

static void
random_statements_fold(void **state)
{
	struct store *s = opened(state, PLENTY);
	struct model *m = mem_new(sizeof(*m));
	struct err e = ERR_INIT;
	uint64_t next;

	srand(77);
	m->place = 1;
	for (size_t i = 0; i < ROWS; i++) {
		m->row[i].was = m->row[i].is = rand() % 2 == 0;
		m->row[i].before = m->row[i].now = rand() % 3;
		m->row[i].place = m->place++;
	}
	for (int statement = 0; statement < 60; statement++) {
		struct net *net = mem_new(sizeof(*net));

		if (statement > 0)
			assert_int_equal(store_fold_begin(s, 100000, &e), 0);
		for (size_t i = 0; i < ROWS; i++)
			if (rand() % 3 == 0)
				random_step(m, s, i);
		if (statement > 0 && fold_end(s, &e) == -1)
			fail_msg("%s", e.text);
		assert_int_equal(store_read(s, 0, sum, net, &next, &e), 0);
		for (size_t i = 0; i < ROWS; i++)
			for (int v = 0; v < 3; v++)
				assert_int_equal(net->n[i][v],
				    (m->row[i].is && m->row[i].now == v) -
					(m->row[i].was &&
					    m->row[i].before == v));
		free(net);
	}
	assert_seal_is_of_the_rows(s);
	free(m);
	store_close(s, true);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, make_place, drop_place)
	const struct CMUnitTest tests[] = {
		T(rows_come_back),
		T(counts_are_by_table),
		T(counts_are_by_table_whatever_comes_between),
		T(files_are_private_and_go_away),
		T(ids_are_checked),
		T(an_id_is_used_once),
		T(pages_are_found),
		T(long_rows_are_handled),
		T(large_rows_are_folded_in_pieces),
		T(bytes_are_bounded),
		T(a_full_disk_is_an_error_and_no_more),
		T(two_statements_fold),
		T(many_statements_fold),
		T(a_fold_can_be_dropped),
		T(a_row_goes_on_once),
		T(columns_are_folded_by_name),
		T(a_key_deleted_and_inserted_is_one_row),
		T(the_same_key_of_another_table_is_another_row),
		T(without_a_key_content_decides),
		T(a_table_has_one_flag),
		T(unchanged_rows_are_counted_once),
		T(random_statements_fold),
	};

	return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
