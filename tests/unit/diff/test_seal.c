/* test_seal: the digest over a header and any number of row hashes */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/mem.h"
#include "diff/image.h"
#include "diff/seal.h"

/* The example of docs/digest.md. */
#define EXAMPLE_DIGEST                                                         \
	"408f80be72f69a84bfc06d659692fbcd019c510b6ceab249951489f53e10baf7"

static const char header_text[] =
    "{'id':'chg_0123456789','database':'shop','agent':'agent','intent':'tidy',"
    "'statements':[{'sql':'UPDATE t SET a = $1','params':['x']},"
    "{'sql':'DELETE FROM u','params':[null]}],"
    "'tables':[{'table':'public.u','inserted':0,'updated':0,'deleted':1,"
    "'unchanged':0,'collateral':false,'rows_before':5,'rows_after':4,"
    "'complete':true},{'table':'public.t','inserted':0,'updated':1,"
    "'deleted':0,'unchanged':3,'collateral':false,'rows_before':20000,"
    "'rows_after':20000,'rows_estimated':true,'complete':false}],"
    "'complete':false,'effects':[{'code':'SEQUENCE','text':'public.s'}],"
    "'risk':'high','reasons':[{'code':'NO_WHERE','text':'every row'},"
    "{'code':'INCOMPLETE','text':'public.t'}]}";

static json_t *
parse(const char *s)
{
	char *copy = mem_strdup(s);
	json_t *o;

	for (char *p = copy; *p != '\0'; p++)
		if (*p == '\'')
			*p = '"';
	o = json_loads(copy, 0, NULL);
	if (o == NULL)
		fail_msg("not JSON: %s", copy);
	free(copy);
	return o;
}

/* The digest of a header without rows; "" where it is refused. */
static void
digest_of(const json_t *header, char out[DIGEST_HEX_SIZE], struct err *e)
{
	struct seal *s = seal_new(-1);

	if (seal_step(s, header, out, e) != 0)
		out[0] = '\0';
	seal_free(s);
}

static void
row_hash(unsigned char out[DIGEST_SIZE], uint64_t i)
{
	struct digest *d = digest_new();

	digest_u64(d, i);
	digest_end(d, out);
	digest_free(d);
}

static void
finish(struct seal *s, const json_t *header, char out[DIGEST_HEX_SIZE])
{
	struct err e = ERR_INIT;
	int r;

	while ((r = seal_step(s, header, out, &e)) == 1)
		;
	if (r == -1)
		fail_msg("%s", e.text);
}

static int
by_bytes(const void *a, const void *b)
{
	return memcmp(a, b, DIGEST_SIZE);
}

static void
put(struct digest *d, const char *s)
{
	digest_field(d, s, strlen(s));
}

/* What seal_step must come to, made the simple way. */
static void
expect(const json_t *header, unsigned char *rows, size_t n,
    char out[DIGEST_HEX_SIZE])
{
	struct digest *d = digest_new();
	unsigned char sum[DIGEST_SIZE];

	put(d, "airlock digest 1");
	put(d, json_string_value(json_object_get(header, "database")));
	put(d, json_string_value(json_object_get(header, "agent")));
	digest_u64(d, 0); /* statements */
	digest_u64(d, 0); /* tables */
	digest_u64(d, 1); /* complete */
	digest_null(d);   /* schema */
	digest_u64(d, 0); /* effects */
	put(d, "low");
	digest_u64(d, 0); /* reasons */
	digest_u64(d, n);
	qsort(rows, n, DIGEST_SIZE, by_bytes);
	digest_bytes(d, rows, n * DIGEST_SIZE);
	digest_end(d, sum);
	digest_free(d);
	text_hex(out, sum, sizeof(sum));
}

static const char small[] =
    "{'database':'d','agent':'a','statements':[],'tables':[],'complete':true,"
    "'effects':[],'risk':'low','reasons':[]}";

static void
sizes_agree_with_the_plain_way(void **state UNUSED)
{
	static const size_t sizes[] = { 0, 1, 2, 15, 16, 17, 1000,
		SEAL_MEMORY_ROWS - 1, SEAL_MEMORY_ROWS, SEAL_MEMORY_ROWS + 1,
		3 * SEAL_MEMORY_ROWS, 3 * SEAL_MEMORY_ROWS + 77 };
	json_t *header = parse(small);

	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		unsigned char *rows = mem_array(sizes[k] + 1, DIGEST_SIZE);
		char want[DIGEST_HEX_SIZE], got[DIGEST_HEX_SIZE];
		struct seal *s = seal_new(-1);
		struct err e = ERR_INIT;

		for (size_t i = 0; i < sizes[k]; i++) {
			/* every seventh row twice */
			row_hash(rows + i * DIGEST_SIZE, i - i % 7 / 6);
			/* and some that begin alike, as if somebody had
			 * looked for them */
			if (i % 5 == 0)
				memset(rows + i * DIGEST_SIZE, 7, i % 40);
			assert_int_equal(seal_add(s, rows + i * DIGEST_SIZE,
					     &e),
			    0);
		}
		finish(s, header, got);
		expect(header, rows, sizes[k], want);
		assert_string_equal(got, want);
		finish(s, header, got);
		assert_string_equal(got, want);
		seal_free(s);
		free(rows);
	}
	json_decref(header);
}

static void
rows_may_follow_a_digest(void **state UNUSED)
{
	const size_t n = 2 * SEAL_MEMORY_ROWS + 10;
	unsigned char *rows = mem_array(n, DIGEST_SIZE);
	char want[DIGEST_HEX_SIZE], got[DIGEST_HEX_SIZE];
	json_t *header = parse(small);
	struct seal *s = seal_new(-1);
	struct err e = ERR_INIT;

	for (size_t i = 0; i < n; i++) {
		row_hash(rows + i * DIGEST_SIZE, i);
		assert_int_equal(seal_add(s, rows + i * DIGEST_SIZE, &e), 0);
		if (i % 20000 == 5)
			finish(s, header, got);
		if (i == n - 3) /* one given up half way */
			assert_int_equal(seal_step(s, header, got, &e), 1);
	}
	finish(s, header, got);
	expect(header, rows, n, want);
	assert_string_equal(got, want);
	seal_free(s);
	free(rows);
	json_decref(header);
}

static void
a_million_rows_take_little_memory(void **state UNUSED)
{
	json_t *header = parse(small);
	struct seal *s = seal_new(-1);
	char one[DIGEST_HEX_SIZE];
	struct err e = ERR_INIT;
	size_t before = mallinfo2().uordblks + mallinfo2().hblkhd, most = 0;
	int steps = 1, r;

	for (uint64_t i = 0; i < 1000000; i++) {
		unsigned char h[DIGEST_SIZE] = { 0 };
		uint64_t v = (i + 1) * 0x9e3779b97f4a7c15u;

		memcpy(h, &v, sizeof(v));
		assert_int_equal(seal_add(s, h, &e), 0);
	}
	while ((r = seal_step(s, header, one, &e)) == 1) {
		size_t now = mallinfo2().uordblks + mallinfo2().hblkhd;

		most = now > most ? now : most;
		steps++;
	}
	assert_int_equal(r, 0);
	assert_true(steps >= 1000000 / SEAL_MEMORY_ROWS);
	print_message("a million rows: %d steps, %zu KiB\n", steps,
	    (most - (most > before ? before : most)) >> 10);
	assert_true(most < before + ((size_t)4 << 20));
	seal_free(s);
	json_decref(header);
}

static void
the_example_has_its_digest(void **state UNUSED)
{
	static const char *const rows[] = {
		"{'table':'public.t','op':'update','collateral':false,"
		"'key':{'id':'7'},'before':{'id':'7','a':'','10':null},"
		"'after':{'id':'7','a':'x','10':null}}",
		"{'table':'public.u','op':'delete','collateral':false,"
		"'key':null,'before':{'b':'\xc3\xa9'},'after':null}",
	};
	json_t *header = parse(header_text);
	struct digest *d = digest_new();
	struct seal *s = seal_new(-1);
	char got[DIGEST_HEX_SIZE];
	struct err e = ERR_INIT;

	for (size_t i = 0; i < 2; i++) {
		unsigned char h[DIGEST_SIZE];
		json_t *row = parse(rows[i]);

		assert_int_equal(image_hash_json(row, d, h, &e), 0);
		assert_int_equal(seal_add(s, h, &e), 0);
		json_decref(row);
	}
	finish(s, header, got);
	assert_string_equal(got, EXAMPLE_DIGEST);
	seal_free(s);
	digest_free(d);
	json_decref(header);
}

/* Replaces the first `was` of the example header. */
static json_t *
changed(const char *was, const char *is)
{
	const char *at = strstr(header_text, was);
	char *s;
	json_t *o;

	if (at == NULL)
		fail_msg("the example has no %s", was);
	s = mem_printf("%.*s%s%s", (int)(at - header_text), header_text, is,
	    at + strlen(was));
	o = parse(s);
	free(s);
	return o;
}

struct edit {
	const char *was, *is;
};

static void
all_that_is_shown_is_sealed(void **state UNUSED)
{
	static const struct edit edits[] = {
		{ "'shop'", "'shoq'" },
		{ "'agent':'agent'", "'agent':'agemt'" },
		{ "a = $1", "a = $2" },
		{ "'params':['x']", "'params':['y']" },
		{ "'params':['x']", "'params':[null]" },
		{ "'params':['x']", "'params':[]" },
		{ "'params':['x']", "'params':null" },
		{ ",{'sql':'DELETE FROM u','params':[null]}", "" },
		{ "'table':'public.u'", "'table':'public.v'" },
		{ "'inserted':0", "'inserted':1" },
		{ "'updated':0", "'updated':1" },
		{ "'deleted':1", "'deleted':2" },
		{ "'unchanged':0", "'unchanged':1" },
		{ "'collateral':false", "'collateral':true" },
		{ "'rows_before':5", "'rows_before':6" },
		{ "'rows_before':5,", "" },
		{ "'rows_before':5", "'rows_estimated':true,'rows_before':5" },
		{ "'rows_after':4", "'rows_after':0" },
		{ "'complete':true", "'complete':false" },
		{ "'complete':false,'effects'", "'complete':true,'effects'" },
		{ "'SEQUENCE'", "'SEQUENCF'" },
		{ "'public.s'", "'public.r'" },
		{ "{'code':'SEQUENCE','text':'public.s'}", "" },
		{ "'high'", "'low'" },
		{ "'NO_WHERE'", "'NO_WHER'" },
		{ "every row", "every now" },
		{ "{'code':'NO_WHERE','text':'every row'},", "" },
	};
	enum { N = sizeof(edits) / sizeof(edits[0]) };
	char hex[N + 1][DIGEST_HEX_SIZE];
	struct err e = ERR_INIT;

	for (size_t i = 0; i <= N; i++) {
		json_t *o = i < N ? changed(edits[i].was, edits[i].is)
		                  : parse(header_text);

		digest_of(o, hex[i], &e);
		if (hex[i][0] == '\0')
			fail_msg("%zu: %s", i, e.text);
		json_decref(o);
	}
	for (size_t i = 0; i < N; i++)
		if (strcmp(hex[i], hex[N]) == 0)
			fail_msg("not sealed: %s", edits[i].was);
}

static void
what_may_vary_does_not_matter(void **state UNUSED)
{
	static const struct edit edits[] = {
		{ "'id':'chg_0123456789',", "" },
		{ "'intent':'tidy'", "'intent':'other','token':'x'" },
		{ "'rows_before':20000", "'rows_before':20001" },
		{ "'rows_after':20000,", "" },
		{ "{'code':'NO_WHERE','text':'every row'},"
		  "{'code':'INCOMPLETE','text':'public.t'}",
		    "{'code':'INCOMPLETE','text':'public.t'},"
		    "{'text':'every row','code':'NO_WHERE'}" },
		{ "'risk'", "'status':'pending','schema':null,'risk'" },
	};
	char want[DIGEST_HEX_SIZE], got[DIGEST_HEX_SIZE];
	json_t *o = parse(header_text);
	struct err e = ERR_INIT;

	digest_of(o, want, &e);
	json_decref(o);
	for (size_t i = 0; i < sizeof(edits) / sizeof(edits[0]); i++) {
		o = changed(edits[i].was, edits[i].is);
		digest_of(o, got, &e);
		if (strcmp(got, want) != 0)
			fail_msg("it matters: %s", edits[i].was);
		json_decref(o);
	}
}

static void
order_of_tables_does_not_matter(void **state UNUSED)
{
	json_t *o = parse(header_text), *tables = json_object_get(o, "tables");
	char a[DIGEST_HEX_SIZE], b[DIGEST_HEX_SIZE];
	struct err e = ERR_INIT;

	digest_of(o, a, &e);
	json_array_append(tables, json_array_get(tables, 0));
	json_array_remove(tables, 0);
	digest_of(o, b, &e);
	assert_string_equal(a, b);
	json_decref(o);
}

static void
notes_of_one_code_are_ordered_by_text(void **state UNUSED)
{
	static const struct edit edits[] = {
		{ "[{'code':'SEQUENCE','text':'public.s'}]",
		    "[{'code':'A','text':'x'},{'code':'A','text':'xy'},"
		    "{'code':'A','text':'w'}]" },
		{ "[{'code':'SEQUENCE','text':'public.s'}]",
		    "[{'code':'A','text':'xy'},{'code':'A','text':'w'},"
		    "{'code':'A','text':'x'}]" },
	};
	char hex[2][DIGEST_HEX_SIZE];
	struct err e = ERR_INIT;

	for (size_t i = 0; i < 2; i++) {
		json_t *o = changed(edits[i].was, edits[i].is);

		digest_of(o, hex[i], &e);
		json_decref(o);
	}
	assert_string_not_equal(hex[0], "");
	assert_string_equal(hex[0], hex[1]);
}

static void
other_shapes_are_refused(void **state UNUSED)
{
	static const struct edit edits[] = {
		{ "'database':'shop',", "" },
		{ "'agent':'agent'", "'agent':null" },
		{ "'statements':[", "'statement':[" },
		{ "'sql':'DELETE FROM u'", "'sql':null" },
		{ "'params':['x']", "'params':[1]" },
		{ "'params':['x']", "'params':'x'" },
		{ "'table':'public.u',", "" },
		{ "'inserted':0", "'inserted':-1" },
		{ "'inserted':0", "'inserted':0.0" },
		{ "'inserted':0", "'inserted':'0'" },
		{ "'deleted':1,", "" },
		{ "'rows_before':5", "'rows_before':-5" },
		{ "'rows_before':5", "'rows_before':'5'" },
		{ "'rows_estimated':true", "'rows_estimated':1" },
		{ "'complete':true", "'complete':1" },
		{ "'complete':false,'effects'", "'effects'" },
		{ "'effects':[", "'effect':[" },
		{ "'text':'public.s'", "'text':1" },
		{ "'risk':'high',", "" },
		{ "{'code':'NO_WHERE','text':'every row'}", "'NO_WHERE'" },
		{ "'table':'public.t'", "'table':'public.u'" },
		{ "'risk'", "'schema':{},'risk'" },
	};
	json_t *array = json_array();
	char got[DIGEST_HEX_SIZE];
	struct err e = ERR_INIT;

	for (size_t i = 0; i < sizeof(edits) / sizeof(edits[0]); i++) {
		json_t *o = changed(edits[i].was, edits[i].is);

		e.code = ERR_NONE;
		digest_of(o, got, &e);
		if (got[0] != '\0')
			fail_msg("accepted: %s", edits[i].is);
		assert_int_equal(e.code, ERR_INPUT);
		json_decref(o);
	}
	digest_of(array, got, &e);
	assert_int_equal(got[0], '\0');
	digest_of(NULL, got, &e);
	assert_int_equal(got[0], '\0');
	json_decref(array);
}

/* RLIMIT_FSIZE stands in for a full disk: the row that does not fit is
 * refused, and once there is room all goes on. */
static void
a_full_disk_is_an_error_and_no_more(void **state UNUSED)
{
	struct rlimit was, small_files = { 4096, RLIM_INFINITY };
	char want[DIGEST_HEX_SIZE], got[DIGEST_HEX_SIZE];
	const size_t n = SEAL_MEMORY_ROWS + 1;
	unsigned char *rows = mem_array(n, DIGEST_SIZE);
	json_t *header = parse(small);
	struct seal *s = seal_new(-1);
	struct err e = ERR_INIT;

	for (size_t i = 0; i < n; i++)
		row_hash(rows + i * DIGEST_SIZE, i);
	for (size_t i = 0; i + 1 < n; i++)
		assert_int_equal(seal_add(s, rows + i * DIGEST_SIZE, &e), 0);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &was);
	small_files.rlim_max = was.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small_files), 0);
	assert_int_equal(seal_add(s, rows + (n - 1) * DIGEST_SIZE, &e), -1);
	assert_int_equal(e.code, ERR_SYSTEM);
	setrlimit(RLIMIT_FSIZE, &was);
	assert_int_equal(seal_add(s, rows + (n - 1) * DIGEST_SIZE, &e), 0);
	finish(s, header, got);
	expect(header, rows, n, want);
	assert_string_equal(got, want);
	seal_free(s);
	free(rows);
	json_decref(header);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_agree_with_the_plain_way),
		cmocka_unit_test(rows_may_follow_a_digest),
		cmocka_unit_test(a_million_rows_take_little_memory),
		cmocka_unit_test(the_example_has_its_digest),
		cmocka_unit_test(all_that_is_shown_is_sealed),
		cmocka_unit_test(what_may_vary_does_not_matter),
		cmocka_unit_test(order_of_tables_does_not_matter),
		cmocka_unit_test(notes_of_one_code_are_ordered_by_text),
		cmocka_unit_test(other_shapes_are_refused),
		cmocka_unit_test(a_full_disk_is_an_error_and_no_more),
	};

	return cmocka_run_group_tests_name("seal", tests, NULL, NULL);
}
