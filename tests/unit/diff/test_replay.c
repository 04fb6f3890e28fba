/* test_replay: two runs that differ in what is left out, and no other two */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../place.h"
#include "base/mem.h"
#include "diff/replay.h"
#include "diff/store.h"

#define ROWS 20000 /* several pieces of work */

/* Two tables of (id, at, v), of which t's id and at are left out. */
static const char *const names[] = { "id", "at", "v" };
static const bool key[] = { true, false, false };
static const char header[] =
    "{'database':'d','agent':'a','statements':[],'tables':["
    "{'table':'t','collateral':false,'inserted':1,'updated':0,'deleted':0,"
    "'unchanged':0,'complete':true,'filled':['id','at']},"
    "{'table':'u','collateral':false,'inserted':1,'updated':0,'deleted':0,"
    "'unchanged':0,'complete':true}],"
    "'complete':true,'effects':[],'risk':'low','reasons':[]}";

static json_t *
parse(const char *json)
{
	json_t *j;
	char *s = mem_strdup(json);

	for (char *p = s; *p != '\0'; p++)
		if (*p == '\'')
			*p = '"';
	j = json_loads(s, 0, NULL);
	free(s);
	assert_non_null(j);
	return j;
}

/* What differs from one run to the next. */
struct made {
	int first;        /* id of t's first row */
	const char *at;   /* of t's rows */
	int other;        /* id of u's first row */
	const char *last; /* v of t's last row */
	bool down;        /* the rows come in the other order */
	/* What was said to be left out of t's rows as they came. */
	const char *filled;
};

static void
add(struct store *s, const char *table, int id, const char *at, int i,
    const char *text, const json_t *filled)
{
	char number[16], v[32];
	struct value after[3];
	struct err e = ERR_INIT;
	struct image im = { .table = table,
		.op = IMAGE_INSERT,
		.ncols = 3,
		.names = names,
		.key = key,
		.after = after,
		.is = { 7, (uint32_t)id, 1 },
		.filled = filled };

	snprintf(number, sizeof(number), "%d", id);
	snprintf(v, sizeof(v), "%d%s", i, text);
	after[0] = (struct value){ number, strlen(number) };
	after[1] = (struct value){ at, strlen(at) };
	after[2] = (struct value){ v, strlen(v) };
	if (store_add(s, &im, &e) == -1)
		fail_msg("%s", e.text);
}

/* The digest that replay_step makes of them, and in how many steps. */
static int
replayed(void **state, const char *json, const struct made *m,
    char out[DIGEST_HEX_SIZE])
{
	struct place *p = *state;
	struct store *s = NULL;
	struct replay *r;
	struct err e = ERR_INIT;
	json_t *h = parse(json),
	       *f = m->filled != NULL ? parse(m->filled) : NULL;
	int steps = 1, rc;

	if (store_open(p->fd, "chg_0123456789", (uint64_t)1 << 40, &s, &e) ==
	    -1)
		fail_msg("%s", e.text);
	for (int i = 0; i < ROWS; i++) {
		int k = m->down ? ROWS - 1 - i : i;

		add(s, "t", m->first + k, m->at, k,
		    k == ROWS - 1 ? m->last : "", f);
		add(s, "u", m->other + k, "", k, "", NULL);
	}
	r = store_replay(s, h);
	while ((rc = replay_step(r, out, &e)) == 1)
		steps++;
	if (rc == -1)
		fail_msg("%s", e.text);
	replay_free(r);
	store_close(s, true);
	json_decref(h);
	json_decref(f);
	return steps;
}

static void
what_is_left_out_does_not_matter_and_all_else_does(void **state)
{
	static const struct made one = { 1, "now", 1, "", false, NULL };
	static const struct {
		struct made made;
		bool same;
	} cases[] = {
		{ { 777, "then", 1, "", true, NULL }, true },
		{ { 1, "now", 2, "", false, NULL }, false },
		{ { 1, "now", 1, "!", false, NULL }, false },
	};
	char want[DIGEST_HEX_SIZE], got[DIGEST_HEX_SIZE];

	assert_true(replayed(state, header, &one, want) > 4);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		(void)replayed(state, header, &cases[i].made, got);
		if ((strcmp(want, got) == 0) != cases[i].same)
			fail_msg("case %zu", i);
	}
}

/* Then the rows need not be read again; said wrong, it is as if it had not been
 * said. */
static void
it_may_be_said_as_the_rows_come(void **state)
{
	static const struct {
		struct made made;
		bool fast;
	} cases[] = {
		{ { 1, "now", 1, "", false, "['id','at']" }, true },
		{ { 1, "now", 1, "", false, "['id']" }, false },
		{ { 1, "now", 1, "", false, "['id','at','v']" }, false },
		{ { 1, "now", 1, "", false, "[]" }, false },
	};
	static const struct made plain = { 1, "now", 1, "", false, NULL };
	char want[DIGEST_HEX_SIZE], got[DIGEST_HEX_SIZE];
	int slow = replayed(state, header, &plain, want);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int steps = replayed(state, header, &cases[i].made, got);

		assert_string_equal(want, got);
		if ((steps < slow) != cases[i].fast)
			fail_msg("case %zu: %d steps of %d", i, steps, slow);
	}
}

/* Of a row that came before, or that was copied, nothing is known. */
static void
what_is_said_too_late_is_not_relied_on(void **state)
{
	static const char want[] = "['id','at']";
	struct place *p = *state;
	char digests[3][DIGEST_HEX_SIZE];

	for (int round = 0; round < 3; round++) {
		struct store *s = NULL;
		struct err e = ERR_INIT;
		json_t *h = parse(header), *f = parse(want);
		struct replay *r;

		assert_int_equal(store_open(p->fd, "chg_0123456789",
				     (uint64_t)1 << 40, &s, &e),
		    0);
		add(s, "t", 10 + round, "now", 1, "", round == 0 ? NULL : f);
		if (round == 2)
			add(s, "v", 1, "", 1, "", NULL);
		add(s, "t", 20 + round, "now", 2, "", f);
		if (round == 2)
			assert_int_equal(store_forget(s, "v", &e), 0);
		r = store_replay(s, h);
		while (replay_step(r, digests[round], &e) == 1)
			;
		replay_free(r);
		store_close(s, true);
		json_decref(h);
		json_decref(f);
	}
	assert_string_equal(digests[0], digests[1]);
	assert_string_equal(digests[0], digests[2]);
}

static void
which_columns_are_left_out_matters(void **state)
{
	static const struct made one = { 1, "now", 1, "", false, NULL };
	char *fewer = mem_strdup(header), *at = strstr(fewer, "'id','at'");
	char want[DIGEST_HEX_SIZE], got[DIGEST_HEX_SIZE];

	memcpy(at, "'id'     ", strlen("'id','at'"));
	(void)replayed(state, header, &one, want);
	(void)replayed(state, fewer, &one, got);
	assert_string_not_equal(want, got);
	free(fewer);
}

/* Where nothing is left out, store_seal_step makes both in one go. */
static void
without_such_columns_it_is_made_beside_the_digest(void **state)
{
	static const char none[] =
	    "{'database':'d','agent':'a','statements':[],'tables':[],"
	    "'complete':true,'effects':[],'risk':'low','reasons':[]}";
	struct place *p = *state;
	char both[SEAL_NDIGESTS][DIGEST_HEX_SIZE];
	char alone[DIGEST_HEX_SIZE], replay[DIGEST_HEX_SIZE];
	char *const two[SEAL_NDIGESTS] = { both[0], both[1] };
	char *const one[SEAL_NDIGESTS] = { [SEAL_DIGEST] = alone };
	struct store *s = NULL;
	struct err e = ERR_INIT;
	json_t *h = parse(none), *other = parse(header);
	struct replay *r;

	assert_false(replay_leaves_out(h));
	assert_true(replay_leaves_out(other));
	assert_int_equal(store_open(p->fd, "chg_0123456789", (uint64_t)1 << 40,
			     &s, &e),
	    0);
	for (int i = 0; i < 2 * SEAL_MEMORY_ROWS; i++)
		add(s, "t", i, "now", i, "", NULL);
	while (store_seal_step(s, h, two, &e) == 1)
		;
	while (store_seal_step(s, h, one, &e) == 1)
		;
	r = store_replay(s, h);
	while (replay_step(r, replay, &e) == 1)
		;
	replay_free(r);
	assert_string_equal(both[SEAL_DIGEST], alone);
	assert_string_equal(both[SEAL_REPLAY], replay);
	assert_string_not_equal(alone, replay);
	store_close(s, true);
	json_decref(h);
	json_decref(other);
}

/* A change that ends meanwhile. */
static void
it_can_be_given_up_at_any_step(void **state)
{
	struct place *p = *state;
	struct store *s = NULL;
	struct err e = ERR_INIT;
	char out[DIGEST_HEX_SIZE];
	json_t *h = parse(header);

	assert_int_equal(store_open(p->fd, "chg_0123456789", (uint64_t)1 << 40,
			     &s, &e),
	    0);
	for (int i = 0; i < ROWS; i++)
		add(s, "t", i, "now", i, "", NULL);
	for (int steps = 0; steps < 5; steps++) {
		struct replay *r = store_replay(s, h);

		for (int i = 0; i < steps; i++)
			assert_int_not_equal(replay_step(r, out, &e), -1);
		replay_free(r);
	}
	replay_free(NULL);
	store_close(s, true);
	json_decref(h);
}

#define T(f) cmocka_unit_test_setup_teardown(f, make_place, drop_place)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(what_is_left_out_does_not_matter_and_all_else_does),
		T(it_may_be_said_as_the_rows_come),
		T(what_is_said_too_late_is_not_relied_on),
		T(which_columns_are_left_out_matters),
		T(without_such_columns_it_is_made_beside_the_digest),
		T(it_can_be_given_up_at_any_step),
	};

	return cmocka_run_group_tests_name("replay", tests, NULL, NULL);
}
