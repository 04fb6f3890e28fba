/* test_recompute: a program of another language comes to the same digest */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "diff/form.h"
#include "diff/image.h"
#include "diff/seal.h"

#define SCRIPT "tests/digest/recompute.mjs"

static const char *const pieces[] = { "", "a", "b", "\"", "\\", "\n", "\t",
	"\x01", "\x7f", "\xc3\xa9", "\xe2\x80\xa8", "\xe2\x80\xa9",
	"\xf0\x9f\x90\x98", "\xef\xbf\xbd", "\xff", "null", "__proto__", "10",
	"9", "constructor", "\xee\x80\x80" };
enum { NPIECES = sizeof(pieces) / sizeof(pieces[0]) };

static void
add_random(struct text *t)
{
	for (int n = rand() % 5; n >= 0; n--)
		text_add(t, pieces[rand() % NPIECES]);
}

static json_t *
random_string(void)
{
	struct text t = { 0 }, quoted = { 0 };
	json_t *s;

	add_random(&t);
	text_add_json(&quoted, text_str(&t), t.len);
	s = json_loadb(text_str(&quoted), quoted.len, JSON_DECODE_ANY, NULL);
	assert_non_null(s);
	text_release(&t);
	text_release(&quoted);
	return s;
}

static json_t *
random_notes(void)
{
	json_t *list = json_array();

	for (int n = rand() % 5; n > 0; n--)
		json_array_append_new(list,
		    json_pack("{s:o,s:o}", "code", random_string(), "text",
			random_string()));
	return list;
}

static json_t *
random_statements(void)
{
	json_t *list = json_array();

	for (int n = rand() % 4; n > 0; n--) {
		json_t *s = json_pack("{s:o}", "sql", random_string());

		if (rand() % 3 == 0)
			json_object_set_new(s, "params", json_null());
		else if (rand() % 2 == 0)
			json_object_set_new(s, "params",
			    json_pack("[o,n,o]", random_string(),
				random_string()));
		json_array_append_new(list, s);
	}
	return list;
}

static json_t *
random_table(int i)
{
	json_t *t = json_pack("{s:o,s:b,s:i,s:i,s:I,s:i,s:b}", "table",
	    json_sprintf("%s.t%d",
		i % 2 != 0 ? "\xef\xbf\xbd" : "\xf0\x9f\x90\x98", i / 2),
	    "collateral", rand() % 2, "inserted", rand() % 3, "updated",
	    rand() % 1000, "deleted",
	    (json_int_t)rand() * (rand() % 2 != 0 ? 1000 : 1), "unchanged", 0,
	    "complete", rand() % 2);

	if (rand() % 3 != 0)
		json_object_set_new(t, "rows_before", json_integer(rand()));
	if (rand() % 3 != 0)
		json_object_set_new(t, "rows_after", json_integer(rand()));
	if (rand() % 2 != 0)
		json_object_set_new(t, "rows_estimated",
		    json_boolean(rand() % 2));
	return t;
}

#define ROW_TABLE "public.\"t\xc3\xa9\""

static void
random_name(struct text *t, size_t i)
{
	static const char *const starts[] = { "", "__proto__", "a",
		"\xee\x80\x80", "\xf0\x9f\x90\x98" };

	if (i == 0 && rand() % 4 == 0)
		text_add(t, "__proto__");
	else
		text_addf(t, "%s%zu", starts[rand() % 5], i);
}

/* Of the rows; often it lists columns that the replay digest leaves out. */
static json_t *
table_of_rows(bool collateral)
{
	json_t *t = random_table(0), *filled = json_array();

	for (int n = rand() % 30; n > 0; n--) {
		struct text name = { 0 };

		random_name(&name, (size_t)rand() % 8);
		json_array_append_new(filled, json_string(text_str(&name)));
		text_release(&name);
	}
	json_object_set_new(t, "table", json_string(ROW_TABLE));
	json_object_set_new(t, "collateral", json_boolean(collateral));
	if (rand() % 4 != 0)
		json_object_set_new(t, "filled", filled);
	else
		json_decref(filled);
	return t;
}

static json_t *
random_header(void)
{
	json_t *tables = json_array();

	for (int i = 0; i < 2; i++)
		if (rand() % 4 != 0)
			json_array_append_new(tables, table_of_rows(i != 0));

	for (int n = rand() % 5; n > 0; n--)
		json_array_insert_new(tables,
		    (size_t)rand() % (json_array_size(tables) + 1),
		    random_table(n));
	return json_pack("{s:s,s:o,s:o,s:o,s:o,s:b,s:o,s:s,s:o,s:n}", "id",
	    "chg_0123456789", "database", random_string(), "agent",
	    random_string(), "statements", random_statements(), "tables",
	    tables, "complete", rand() % 2, "effects", random_notes(), "risk",
	    "low", "reasons", random_notes(), "intent");
}

static const json_t *
filled_of(const json_t *header, bool collateral)
{
	json_t *t;
	size_t i;

	json_array_foreach (json_object_get(header, "tables"), i, t)
		if (strcmp(json_string_value(json_object_get(t, "table")),
			ROW_TABLE) == 0 &&
		    json_is_true(json_object_get(t, "collateral")) ==
			collateral)
			return json_object_get(t, "filled");
	return NULL;
}

/* Writes a row of the struct's own JSON and adds the struct's own hashes. */
static void
random_row(FILE *out, const json_t *header, struct seal *s, struct seal *replay,
    struct digest *d)
{
	enum { MANY = 8 };
	struct text name[MANY] = { 0 }, cell[2 * MANY] = { 0 }, line = { 0 };
	struct value v[2 * MANY] = { 0 };
	const char *names[MANY];
	bool key[MANY] = { false };
	unsigned char hash[DIGEST_SIZE];
	struct err e = ERR_INIT;
	struct image im = { .table = ROW_TABLE, .names = names };
	struct form form = { 0 };

	im.ncols = (size_t)rand() % (MANY + 1);
	for (size_t i = 0; i < im.ncols; i++) {
		random_name(&name[i], i);
		names[i] = text_str(&name[i]);
		key[i] = rand() % 3 == 0;
	}
	for (size_t i = 0; i < 2 * MANY; i++) {
		add_random(&cell[i]);
		v[i].p = rand() % 4 != 0 ? text_str(&cell[i]) : NULL;
		v[i].len = v[i].p != NULL ? cell[i].len : 0;
	}
	im.op = (enum image_op)(rand() % IMAGE_NOPS);
	im.collateral = rand() % 2 != 0;
	im.key = key;
	im.before = im.op != IMAGE_INSERT ? v : NULL;
	im.after = im.op != IMAGE_DELETE ? v + MANY : NULL;
	image_json(&im, &form, &line);
	fprintf(out, "%s\n", text_str(&line));
	image_hash(&im, &form, d, hash);
	assert_int_equal(seal_add(s, hash, &e), 0);
	image_hash_replay(&im, &form, filled_of(header, im.collateral), d,
	    hash);
	assert_int_equal(seal_add(replay, hash, &e), 0);
	for (size_t i = 0; i < MANY; i++)
		text_release(&name[i]);
	for (size_t i = 0; i < 2 * MANY; i++)
		text_release(&cell[i]);
	text_release(&line);
	form_release(&form);
}

static bool
can_run(void)
{
	return access(SCRIPT, R_OK) == 0 &&
	       system("node --version >/dev/null 2>&1") == 0;
}

static void
recompute(const char *file, const char *how, char out[DIGEST_HEX_SIZE])
{
	char *command = mem_printf("node " SCRIPT " %s <%s", how, file);
	FILE *p = popen(command, "r");

	assert_non_null(p);
	if (fgets(out, DIGEST_HEX_SIZE, p) == NULL)
		out[0] = '\0';
	assert_int_equal(pclose(p), 0);
	free(command);
}

static void
both_programs_agree(void **state UNUSED)
{
	if (!can_run()) {
		print_message("SKIPPED: node or " SCRIPT " is not there, so "
			      "the second program is NOT compared\n");
		skip();
	}
	srand(424242);
	for (int round = 0; round < 12; round++) {
		char file[] = "/tmp/test_recompute.XXXXXX";
		FILE *out = fdopen(mkstemp(file), "w");
		json_t *header = random_header();
		struct seal *s = seal_new(-1), *replay = seal_new(-1);
		struct digest *d = digest_new();
		char ours[DIGEST_HEX_SIZE], theirs[DIGEST_HEX_SIZE];
		char *const one[SEAL_NDIGESTS] = { [SEAL_REPLAY] = ours };
		struct err e = ERR_INIT;

		assert_non_null(out);
		assert_non_null(header);
		json_dumpf(header, out, JSON_COMPACT);
		fputc('\n', out);
		for (int n = round * round * 20; n > 0; n--)
			random_row(out, header, s, replay, d);
		fclose(out);
		if (seal_step(s, header, ours, &e) == -1)
			fail_msg("%s", e.text);
		recompute(file, "", theirs);
		assert_string_equal(theirs, ours);
		if (seal_step_all(replay, header, one, &e) == -1)
			fail_msg("%s", e.text);
		recompute(file, "--replay", theirs);
		assert_string_equal(theirs, ours);
		unlink(file);
		seal_free(s);
		seal_free(replay);
		digest_free(d);
		json_decref(header);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_programs_agree),
	};

	return cmocka_run_group_tests_name("recompute", tests, NULL, NULL);
}
