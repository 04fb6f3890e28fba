/* test_image: rows as JSON and as hashes, which must agree */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "diff/form.h"
#include "diff/image.h"

#define V(s) (s), sizeof(s) - 1
#define NONE NULL, 0

static const char *const names[] = { "id", "10", "name" };
/* One for all, so that each row meets what another has left there. */
static struct form form;

static const bool first_is_key[] = { true, false, false };
static const bool no_key[] = { false, false, false };
static const struct value ann[] = { { V("1") }, { V("x") }, { V("Ann") } };
static const struct value bob[] = { { V("1") }, { NONE },
	{ V("B\"o\nb\xc3\xa9") } };

static struct image
row(enum image_op op, const bool *key, const struct value *before,
    const struct value *after)
{
	struct image im = {
		.table = "public.t",
		.op = op,
		.ncols = 3,
		.names = names,
		.key = key,
		.before = before,
		.after = after,
	};

	return im;
}

static void
json_has_the_documented_shape(void **state UNUSED)
{
	static const struct {
		enum image_op op;
		const bool *key;
		const struct value *before, *after;
		bool collateral;
		const char *json;
	} cases[] = {
		{ IMAGE_INSERT, first_is_key, NULL, ann, false,
		    "{\"table\":\"public.t\",\"op\":\"insert\",\"collateral\":"
		    "false,\"key\":{\"id\":\"1\"},\"before\":null,\"after\":"
		    "{\"id\":\"1\",\"10\":\"x\",\"name\":\"Ann\"}}" },
		{ IMAGE_UPDATE, first_is_key, ann, bob, true,
		    "{\"table\":\"public.t\",\"op\":\"update\",\"collateral\":"
		    "true,\"key\":{\"id\":\"1\"},\"before\":{\"id\":\"1\","
		    "\"10\":\"x\",\"name\":\"Ann\"},\"after\":{\"id\":\"1\","
		    "\"10\":null,\"name\":\"B\\\"o\\nb\xc3\xa9\"}}" },
		{ IMAGE_DELETE, no_key, ann, NULL, false,
		    "{\"table\":\"public.t\",\"op\":\"delete\",\"collateral\":"
		    "false,\"key\":null,\"before\":{\"id\":\"1\",\"10\":\"x\","
		    "\"name\":\"Ann\"},\"after\":null}" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct image im = row(cases[i].op, cases[i].key,
		    cases[i].before, cases[i].after);
		struct text t = { 0 };

		im.collateral = cases[i].collateral;
		image_json(&im, &form, &t);
		assert_string_equal(text_str(&t), cases[i].json);
		text_release(&t);
	}
}

static void
hash(const struct image *im, unsigned char out[DIGEST_SIZE])
{
	struct digest *d = digest_new();

	image_hash(im, &form, d, out);
	digest_free(d);
}

static int
hash_text(const char *json, unsigned char out[DIGEST_SIZE], struct err *e)
{
	struct digest *d = digest_new();
	json_t *o = json_loads(json, 0, NULL);
	int r;

	assert_non_null(o);
	r = image_hash_json(o, d, out, e);
	json_decref(o);
	digest_free(d);
	return r;
}

static void
assert_agrees(const struct image *im)
{
	unsigned char a[DIGEST_SIZE], b[DIGEST_SIZE];
	struct err e = ERR_INIT;
	struct text t = { 0 };

	hash(im, a);
	image_json(im, &form, &t);
	if (hash_text(text_str(&t), b, &e) == -1)
		fail_msg("%s: %s", e.text, text_str(&t));
	if (memcmp(a, b, sizeof(a)) != 0)
		fail_msg("the hashes differ: %s", text_str(&t));
	text_release(&t);
}

/* Pieces that values are put together from, each a trap of its own. */
static const char *const pieces[] = { "", "a", "0", "\"", "\\", "'", "\t", "\n",
	"\r", "\x01", "\x1f", "\x7f", "\xc3\xa9", "\xe2\x82\xac",
	"\xf0\x9f\x90\x98", "\xe2\x80\xa8", "{", "}", "null", "\\u0041", "/",
	"\xff", "\xc3", "\xe2\x82", "\xf0\x9f\x90", "\xed\xa0\x80" };

static struct value
random_value(void)
{
	struct text t = { 0 };
	struct value v = { NONE };
	int n = rand() % 6;

	if (rand() % 5 == 0)
		return v;
	if (rand() % 50 == 0)
		n = 3000;
	while (n-- > 0)
		text_add(&t, pieces[(size_t)rand() %
				    (sizeof(pieces) / sizeof(pieces[0]))]);
	v.len = t.len;
	v.p = text_take(&t);
	return v;
}

static char *
random_name(size_t i)
{
	static const char *const starts[] = { "", "c", "C", "\"", "\xc3\xa9",
		"\xf0\x9f\x90\x98", "\xef\xbf\xbd", "0", " ", "__proto__" };
	enum { N = sizeof(starts) / sizeof(starts[0]) };

	return mem_printf("%s%zu", starts[(size_t)rand() % N], i);
}

static void
random_row_agrees(size_t ncols)
{
	char **name = mem_array(ncols, sizeof(char *));
	struct value *v = mem_array(2 * ncols + 1, sizeof(*v));
	bool *key = mem_array(ncols, sizeof(*key));
	struct image im = { .table = "s\xc3\xa9.\"t\"", .ncols = ncols };

	for (size_t i = 0; i < ncols; i++) {
		name[i] = random_name(i);
		key[i] = rand() % 4 == 0;
		v[i] = random_value();
		v[ncols + i] = random_value();
	}
	im.op = (enum image_op)(rand() % IMAGE_NOPS);
	im.collateral = rand() % 2 == 0;
	im.names = (const char *const *)name;
	im.key = key;
	im.before = im.op != IMAGE_INSERT ? v : NULL;
	im.after = im.op != IMAGE_DELETE ? v + ncols : NULL;
	assert_agrees(&im);
	for (size_t i = 0; i < ncols; i++) {
		union {
			const char *in;
			char *out;
		} a = { v[i].p }, b = { v[ncols + i].p };

		free(a.out);
		free(b.out);
		free(name[i]);
	}
	free(name);
	free(v);
	free(key);
}

static void
struct_and_json_agree(void **state UNUSED)
{
	srand(20260102);
	for (int i = 0; i < 3000; i++)
		random_row_agrees((size_t)(rand() % 12));
	random_row_agrees(64);
	random_row_agrees(65);
	random_row_agrees(1600);
}

/* Whatever a person could tell apart must not hash alike. */
static void
different_rows_hash_differently(void **state UNUSED)
{
	static const char *const rows[] = {
		"{'table':'t','op':'insert','collateral':false,'key':null,"
		"'before':null,'after':{'a':'x','b':'y'}}",
		"{'table':'t','op':'insert','collateral':true,'key':null,"
		"'before':null,'after':{'a':'x','b':'y'}}",
		"{'table':'u','op':'insert','collateral':false,'key':null,"
		"'before':null,'after':{'a':'x','b':'y'}}",
		"{'table':'t','op':'delete','collateral':false,'key':null,"
		"'before':{'a':'x','b':'y'},'after':null}",
		"{'table':'t','op':'insert','collateral':false,'key':{'a':'x'},"
		"'before':null,'after':{'a':'x','b':'y'}}",
		"{'table':'t','op':'insert','collateral':false,'key':{},"
		"'before':null,'after':{'a':'x','b':'y'}}",
		"{'table':'t','op':'insert','collateral':false,'key':null,"
		"'before':null,'after':{'a':'x','b':null}}",
		"{'table':'t','op':'insert','collateral':false,'key':null,"
		"'before':null,'after':{'a':'x','b':''}}",
		"{'table':'t','op':'insert','collateral':false,'key':null,"
		"'before':null,'after':{'a':'x','b':'null'}}",
		"{'table':'t','op':'insert','collateral':false,'key':null,"
		"'before':null,'after':{'a':'y','b':'x'}}",
		"{'table':'t','op':'insert','collateral':false,'key':null,"
		"'before':null,'after':{'a':'x'}}",
		"{'table':'t','op':'insert','collateral':false,'key':null,"
		"'before':null,'after':{}}",
		"{'table':'t','op':'update','collateral':false,'key':null,"
		"'before':{'a':'x'},'after':{'a':'y'}}",
		"{'table':'t','op':'update','collateral':false,'key':null,"
		"'before':{'a':'y'},'after':{'a':'x'}}",
		"{'table':'t','op':'update','collateral':false,'key':null,"
		"'before':{'a':'xy'},'after':{'a':''}}",
		"{'table':'t','op':'update','collateral':false,'key':null,"
		"'before':{},'after':{'a':'x','b':'y'}}",
	};
	enum { N = sizeof(rows) / sizeof(rows[0]) };
	unsigned char h[N][DIGEST_SIZE];
	struct err e = ERR_INIT;

	for (size_t i = 0; i < N; i++) {
		char *json = mem_strdup(rows[i]);

		for (char *p = json; *p != '\0'; p++)
			if (*p == '\'')
				*p = '"';
		if (hash_text(json, h[i], &e) == -1)
			fail_msg("%s: %s", rows[i], e.text);
		free(json);
		for (size_t k = 0; k < i; k++)
			assert_memory_not_equal(h[i], h[k], DIGEST_SIZE);
	}
}

static void
order_of_columns_does_not_matter(void **state UNUSED)
{
	static const char one[] = "{\"table\":\"t\",\"op\":\"insert\","
				  "\"collateral\":false,\"key\":null,"
				  "\"before\":null,\"after\":{\"10\":\"x\","
				  "\"9\":\"y\",\"\xc3\xa9\":\"z\"}}";
	static const char two[] = "{\"after\":{\"\xc3\xa9\":\"z\",\"9\":\"y\","
				  "\"10\":\"x\"},\"table\":\"t\","
				  "\"op\":\"insert\",\"collateral\":false,"
				  "\"key\":null,\"before\":null}";
	unsigned char a[DIGEST_SIZE], b[DIGEST_SIZE];
	struct err e = ERR_INIT;

	assert_int_equal(hash_text(one, a, &e), 0);
	assert_int_equal(hash_text(two, b, &e), 0);
	assert_memory_equal(a, b, DIGEST_SIZE);
}

static void
other_shapes_are_refused(void **state UNUSED)
{
	static const char *const rows[] = {
		"[]",
		"{}",
		"{\"table\":\"t\",\"op\":\"insert\",\"collateral\":false,"
		"\"key\":null,\"before\":null}",
		"{\"table\":1,\"op\":\"insert\",\"collateral\":false,"
		"\"key\":null,\"before\":null,\"after\":{}}",
		"{\"table\":\"t\",\"op\":\"merge\",\"collateral\":false,"
		"\"key\":null,\"before\":null,\"after\":{}}",
		"{\"table\":\"t\",\"op\":null,\"collateral\":false,"
		"\"key\":null,\"before\":null,\"after\":{}}",
		"{\"table\":\"t\",\"op\":\"insert\",\"collateral\":0,"
		"\"key\":null,\"before\":null,\"after\":{}}",
		"{\"table\":\"t\",\"op\":\"insert\",\"collateral\":false,"
		"\"key\":[],\"before\":null,\"after\":{}}",
		"{\"table\":\"t\",\"op\":\"insert\",\"collateral\":false,"
		"\"key\":null,\"before\":{},\"after\":{}}",
		"{\"table\":\"t\",\"op\":\"delete\",\"collateral\":false,"
		"\"key\":null,\"before\":{},\"after\":{}}",
		"{\"table\":\"t\",\"op\":\"update\",\"collateral\":false,"
		"\"key\":null,\"before\":null,\"after\":{}}",
		"{\"table\":\"t\",\"op\":\"insert\",\"collateral\":false,"
		"\"key\":null,\"before\":null,\"after\":{\"a\":1}}",
		"{\"table\":\"t\",\"op\":\"insert\",\"collateral\":false,"
		"\"key\":null,\"before\":null,\"after\":{},\"note\":\"x\"}",
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned char h[DIGEST_SIZE];
		struct err e = ERR_INIT;

		if (hash_text(rows[i], h, &e) != -1)
			fail_msg("accepted: %s", rows[i]);
		assert_int_equal(e.code, ERR_INPUT);
	}
}

static void
a_table_without_columns_has_images(void **state UNUSED)
{
	struct image im = row(IMAGE_INSERT, no_key, NULL, ann);
	struct text t = { 0 };

	im.ncols = 0;
	image_json(&im, &form, &t);
	assert_non_null(strstr(text_str(&t), "\"before\":null,\"after\":{}}"));
	assert_agrees(&im);
	text_release(&t);
}

static void
assert_line(const struct image *im, const char *line)
{
	struct text t = { 0 };

	assert_agrees(im);
	image_json(im, &form, &t);
	assert_string_equal(text_str(&t), line);
	text_release(&t);
}

/* Where names and flags lie says nothing: the same memory is used again. */
static void
a_form_is_of_the_row_at_hand(void **state UNUSED)
{
	char table[] = "t", name[] = "a";
	bool key = false;
	const char *const one[] = { name };
	struct image im = { .table = table,
		.op = IMAGE_INSERT,
		.ncols = 1,
		.names = one,
		.key = &key,
		.after = ann };

#define LINE(t, key, after)                                                    \
	"{\"table\":\"" t "\",\"op\":\"insert\",\"collateral\":false,"         \
	"\"key\":" key ",\"before\":null,\"after\":" after "}"
	assert_line(&im, LINE("t", "null", "{\"a\":\"1\"}"));
	name[0] = 'b';
	assert_line(&im, LINE("t", "null", "{\"b\":\"1\"}"));
	table[0] = 'u';
	assert_line(&im, LINE("u", "null", "{\"b\":\"1\"}"));
	key = true;
	assert_line(&im, LINE("u", "{\"b\":\"1\"}", "{\"b\":\"1\"}"));
}

/* Rows of two tables that say which shape they have, by turns. */
static void
a_shape_stands_for_table_names_and_key(void **state UNUSED)
{
	static const char *const a[] = { "a" }, *const b[] = { "b" };
	static const bool yes = true, no = false;
	struct image one = { .table = "t",
		.op = IMAGE_INSERT,
		.ncols = 1,
		.names = a,
		.key = &no,
		.after = ann,
		.shape = image_shape() };
	struct image two = { .table = "u",
		.op = IMAGE_INSERT,
		.ncols = 1,
		.names = b,
		.key = &yes,
		.after = ann,
		.shape = image_shape() };
	struct image none = two;

	assert_int_not_equal(one.shape, 0);
	assert_int_not_equal(one.shape, two.shape);
	none.shape = 0;
	for (int i = 0; i < 3; i++) {
		assert_line(&one, LINE("t", "null", "{\"a\":\"1\"}"));
		assert_line(&one, LINE("t", "null", "{\"a\":\"1\"}"));
		assert_line(&none, LINE("u", "{\"b\":\"1\"}", "{\"b\":\"1\"}"));
		assert_line(&one, LINE("t", "null", "{\"a\":\"1\"}"));
		assert_line(&two, LINE("u", "{\"b\":\"1\"}", "{\"b\":\"1\"}"));
	}
#undef LINE
}

/* By words, by bytes, by memcpy, and past what is gathered at once. */
static void
texts_of_every_length_are_whole(void **state UNUSED)
{
	static char text[8500];
	struct value v = { text, 0 };
	const char *name = text + sizeof(text) - 1;
	struct image im = { .table = "t",
		.op = IMAGE_INSERT,
		.ncols = 1,
		.names = &name,
		.after = &v };

	for (size_t i = 0; i + 1 < sizeof(text); i++)
		text[i] = (char)('a' + (i * 7 + i / 26) % 26);
	for (; v.len < sizeof(text); v.len += v.len < 200 ? 1 : 13) {
		struct text want = { 0 };

		text_addf(&want,
		    "{\"table\":\"t\",\"op\":\"insert\",\"collateral\":false,"
		    "\"key\":null,\"before\":null,\"after\":{\"\":\"%.*s\"}}",
		    (int)v.len, text);
		assert_line(&im, text_str(&want));
		assert_agrees(&im);
		text_release(&want);
	}
}

/* Wherever in a text it stands. */
static void
one_byte_to_escape_is_seen(void **state UNUSED)
{
	static const struct {
		const char *byte, *shown;
	} cases[] = { { "\"", "\\\"" }, { "\\", "\\\\" }, { "\n", "\\n" },
		{ "\x01", "\\u0001" },
		{ "\xff", "\xef\xbf\xbd"
			  "ff" } };
	const char *name = "";
	char text[32];
	struct value v = { text, 0 };
	struct image im = { .table = "t",
		.op = IMAGE_INSERT,
		.ncols = 1,
		.names = &name,
		.after = &v };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (v.len = 1; v.len < sizeof(text); v.len++)
			for (size_t at = 0; at < v.len; at++) {
				struct text want = { 0 };

				memset(text, 'x', sizeof(text));
				text[at] = cases[i].byte[0];
				text_addf(&want,
				    "{\"table\":\"t\",\"op\":\"insert\","
				    "\"collateral\":false,\"key\":null,"
				    "\"before\":null,\"after\":{\"\":\"%.*s%s"
				    "%.*s\"}}",
				    (int)at, text, cases[i].shown,
				    (int)(v.len - at - 1), text + at + 1);
				assert_line(&im, text_str(&want));
				assert_agrees(&im);
				text_release(&want);
			}
}

static void
unchanged_is_told_by_text(void **state UNUSED)
{
	static const struct value empty[] = { { V("1") }, { V("") },
		{ V("Ann") } };
	static const struct value null[] = { { V("1") }, { NONE },
		{ V("Ann") } };
	static const struct value other[] = { { V("1") }, { V("x") },
		{ V("Anm") } };
	static const struct {
		const struct value *before, *after;
		bool unchanged;
	} cases[] = {
		{ ann, ann, true },
		{ null, null, true },
		{ empty, null, false },
		{ null, empty, false },
		{ ann, other, false },
		{ NULL, ann, false },
		{ ann, NULL, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct image im =
		    row(IMAGE_UPDATE, no_key, cases[i].before, cases[i].after);

		assert_int_equal(image_is_unchanged(&im), cases[i].unchanged);
	}
}

static void
rowids_are_read_strictly(void **state UNUSED)
{
	static const struct {
		const char *leaf, *ctid;
		struct rowid id;
		bool good;
	} cases[] = {
		{ "16403", "(0,1)", { 16403, 0, 1 }, true },
		{ "0", "(0,0)", { 0, 0, 0 }, true },
		{ "4294967295", "(4294967295,65535)",
		    { UINT32_MAX, UINT32_MAX, UINT16_MAX }, true },
		{ "4294967296", "(0,1)", { 0 }, false },
		{ "1", "(4294967296,1)", { 0 }, false },
		{ "1", "(0,65536)", { 0 }, false },
		{ "1", "(99999999999999999999999,1)", { 0 }, false },
		{ "", "(0,1)", { 0 }, false },
		{ "-1", "(0,1)", { 0 }, false },
		{ "1x", "(0,1)", { 0 }, false },
		{ "1", "(0,1", { 0 }, false },
		{ "1", "(0,1) ", { 0 }, false },
		{ "1", "0,1", { 0 }, false },
		{ "1", "(0;1)", { 0 }, false },
		{ "1", "(,1)", { 0 }, false },
		{ "1", "( 0,1)", { 0 }, false },
		{ "1", "", { 0 }, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err e = ERR_INIT;
		struct rowid r = { 0 };
		int got = rowid_parse(cases[i].leaf, cases[i].ctid, &r, &e);

		assert_int_equal(got, cases[i].good ? 0 : -1);
		assert_int_equal(r.leaf, cases[i].id.leaf);
		assert_int_equal(r.block, cases[i].id.block);
		assert_int_equal(r.item, cases[i].id.item);
		if (!cases[i].good)
			assert_int_equal(e.code, ERR_INPUT);
	}
}

static bool
replays_alike(const struct image *a, const struct image *b,
    const char *const *columns)
{
	unsigned char x[DIGEST_SIZE], y[DIGEST_SIZE];
	struct digest *d = digest_new();
	json_t *filled = json_array();
	struct form f = { 0 };

	for (; *columns != NULL; columns++)
		json_array_append_new(filled, json_string(*columns));
	image_hash_replay(a, &f, filled, d, x);
	image_hash_replay(b, &f, filled, d, y);
	form_release(&f);
	json_decref(filled);
	digest_free(d);
	return memcmp(x, y, sizeof(x)) == 0;
}

static void
a_replay_leaves_out_new_values_of_the_columns_listed(void **state UNUSED)
{
	static const char *const none[] = { NULL },
				 *const id[] = { "id", NULL },
				 *const most[] = { "10", "id", NULL };
	static const struct value ann2[] = { { V("2") }, { V("x") },
		{ V("Ann") } };
	static const struct value eve[] = { { V("1") }, { V("x") },
		{ V("Eve") } };
	static const struct {
		enum image_op op;
		const struct value *before, *after, *before2, *after2;
		const char *const *filled;
		bool alike;
	} cases[] = {
		/* clang-format off */
		{ IMAGE_INSERT, NULL, ann, NULL, ann2, id, true },
		{ IMAGE_INSERT, NULL, ann, NULL, ann2, none, false },
		{ IMAGE_INSERT, NULL, ann, NULL, eve, id, false },
		{ IMAGE_INSERT, NULL, ann, NULL, bob, most, false },
		{ IMAGE_UPDATE, bob, ann, bob, ann2, id, true },
		{ IMAGE_UPDATE, bob, ann, bob, ann2, none, false },
		{ IMAGE_UPDATE, ann, bob, ann2, bob, id, false },
		{ IMAGE_UPDATE, bob, ann, bob, eve, most, false },
		{ IMAGE_DELETE, ann, NULL, ann2, NULL, id, false },
		/* clang-format on */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct image a = row(cases[i].op, first_is_key, cases[i].before,
		    cases[i].after);
		struct image b = row(cases[i].op, first_is_key,
		    cases[i].before2, cases[i].after2);

		if (replays_alike(&a, &b, cases[i].filled) != cases[i].alike)
			fail_msg("case %zu", i);
	}
}

static void
a_replay_that_leaves_out_nothing_hashes_as_ever(void **state UNUSED)
{
	struct image im = row(IMAGE_INSERT, first_is_key, NULL, ann);
	unsigned char a[DIGEST_SIZE], b[DIGEST_SIZE];
	struct digest *d = digest_new();
	json_t *other = json_pack("[s]", "other");
	struct form f = { 0 };

	image_hash(&im, &f, d, a);
	image_hash_replay(&im, &f, NULL, d, b);
	assert_memory_equal(a, b, sizeof(a));
	image_hash_replay(&im, &f, other, d, b);
	form_release(&f);
	assert_memory_equal(a, b, sizeof(a));
	json_decref(other);
	digest_free(d);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_has_the_documented_shape),
		cmocka_unit_test(struct_and_json_agree),
		cmocka_unit_test(different_rows_hash_differently),
		cmocka_unit_test(order_of_columns_does_not_matter),
		cmocka_unit_test(other_shapes_are_refused),
		cmocka_unit_test(a_table_without_columns_has_images),
		cmocka_unit_test(a_form_is_of_the_row_at_hand),
		cmocka_unit_test(a_shape_stands_for_table_names_and_key),
		cmocka_unit_test(texts_of_every_length_are_whole),
		cmocka_unit_test(one_byte_to_escape_is_seen),
		cmocka_unit_test(unchanged_is_told_by_text),
		cmocka_unit_test(rowids_are_read_strictly),
		cmocka_unit_test(
		    a_replay_leaves_out_new_values_of_the_columns_listed),
		cmocka_unit_test(
		    a_replay_that_leaves_out_nothing_hashes_as_ever),
	};
	int r;

	r = cmocka_run_group_tests_name("image", tests, NULL, NULL);
	form_release(&form);
	return r;
}
