/* answer: questions and answers cross whole, and nothing malformed is taken */
#include "sql/answer.h"

#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"

static void
check_frame(const struct text *t)
{
	assert_true(t->len > FRAME_HEADER);
	assert_int_equal(frame_length((const unsigned char *)t->s, t->len),
	    t->len - FRAME_HEADER);
}

/* Asks as the keeper does, and answers as the child does. */
static struct answer
cross(const char *sql, const struct rewrite_edit *edit)
{
	struct text question = { 0 }, reply = { 0 };
	struct err e = ERR_INIT;
	struct answer made, heard;
	struct ask ask;

	ask_pack(&question, sql, strlen(sql), edit);
	check_frame(&question);
	if (ask_unpack(question.s + FRAME_HEADER, question.len - FRAME_HEADER,
		&ask, &e) == -1)
		fail_msg("%s", e.text);
	assert_string_equal(ask.sql, sql);
	assert_int_equal(ask.rewrite, edit != NULL);
	answer_make(&ask, &made);
	answer_pack(&reply, &made);
	check_frame(&reply);
	if (answer_unpack(reply.s + FRAME_HEADER, reply.len - FRAME_HEADER,
		&heard, &e) == -1)
		fail_msg("%s", e.text);
	assert_int_equal(heard.status, made.status);
	assert_string_equal(heard.text, made.text);
	assert_int_equal(heard.position, made.position);
	answer_release(&made);
	ask_release(&ask);
	text_release(&question);
	text_release(&reply);
	return heard;
}

static void
facts_cross(void **state UNUSED)
{
	struct answer a =
	    cross("SELECT f('\"\\\n\t\x01 é') FROM \"T\n\"", NULL);

	assert_int_equal(a.status, ANSWER_OK);
	assert_true(a.has_facts);
	assert_false(a.has_rewrite);
	assert_string_equal(a.facts.reads.v[0].name, "T\n");
	assert_string_equal(a.facts.functions.v[0].name, "f");
	answer_release(&a);
}

static void
rewrites_cross(void **state UNUSED)
{
	const struct rewrite_edit edit = { "u", "a = 'é'", "b" };
	struct answer a = cross("DELETE FROM t WHERE c", &edit);

	assert_int_equal(a.status, ANSWER_OK);
	assert_true(a.has_rewrite);
	assert_string_equal(a.rewrite.sql,
	    "DELETE FROM t USING u WHERE (c) AND (a = 'é') RETURNING b");
	assert_int_equal(a.rewrite.ninserts, 4);
	assert_int_equal(a.rewrite.inserts[0].at, 13);
	assert_int_equal(a.rewrite.inserts[0].len, 8);
	answer_release(&a);
}

static void
refusals_cross(void **state UNUSED)
{
	const struct rewrite_edit edit = { NULL, "a", NULL };
	struct answer a = cross("SELECT 'é' )", NULL);
	struct text t = { 0 };

	assert_int_equal(a.status, ANSWER_SYNTAX);
	assert_string_equal(a.text, "syntax error at or near \")\"");
	assert_int_equal(a.position, 12);
	answer_release(&a);
	a = cross("INSERT INTO t VALUES (1)", &edit);
	assert_int_equal(a.status, ANSWER_UNPROVED);
	answer_release(&a);
	text_add(&t, "DELETE FROM t WHERE ");
	for (int i = 0; i < 600; i++)
		text_add(&t, "NOT ");
	text_add(&t, "a");
	a = cross(t.s, NULL);
	assert_int_equal(a.status, ANSWER_COMPLEX);
	answer_release(&a);
	a = cross(t.s, &edit);
	assert_int_equal(a.status, ANSWER_COMPLEX);
	answer_release(&a);
	text_release(&t);
}

static void
unreadable_names_are_refused(void **state UNUSED)
{
	struct answer a = cross("SELECT f()", NULL), heard;
	struct err e = ERR_INIT;
	struct text t = { 0 };

	a.facts.functions.v[0].name[0] = '\xff';
	answer_pack(&t, &a);
	assert_int_equal(answer_unpack(t.s + FRAME_HEADER, t.len - FRAME_HEADER,
			     &heard, &e),
	    0);
	assert_int_equal(heard.status, ANSWER_COMPLEX);
	assert_false(heard.has_facts);
	text_release(&t);
	answer_release(&a);
	answer_release(&heard);
}

static void
lengths_are_bounded(void **state UNUSED)
{
	static const struct {
		unsigned char header[FRAME_HEADER];
		size_t length;
	} cases[] = {
		{ { 0, 0, 0, 0 }, 0 },
		{ { 0, 0, 0, 1 }, 1 },
		{ { 0, 0, 1, 2 }, 258 },
		{ { 1, 0, 0, 0 }, (size_t)16 << 20 },
		{ { 1, 0, 0, 1 }, 0 },
		{ { 255, 255, 255, 255 }, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(frame_length(cases[i].header,
				     (size_t)16 << 20),
		    cases[i].length);
}

/* status, text, position, facts, rewriting */
static void
malformed_answers_are_refused(void **state UNUSED)
{
	static const char *const cases[] = {
		"",
		"{}",
		" ",
		"0 ",
		"0 0 0 0 0 ",
		"5 0 0 0 0 ",
		"-1 0 0 0 0 ",
		"01 0 0 0 0 ",
		"1 00 0 0 0 ",
		"1 -0 0 0 0 ",
		"1  0 0 0 0 ",
		"2 -1 0 0 0 ",
		"2 1 0 0 0 ",
		"2 9 0 0 0 ",
		"2 1 \xff\x30 0 0 ",
		"2 0 -1 0 0 ",
		"2 0 9999999999 0 0 ",
		"2 0 0.5 0 0 ",
		"2 0 0 2 0 ",
		"2 0 0 1 0 ",
		"2 0 0 0 2 ",
		"2 0 0 0 1 1 x0 ",
		"2 0 0 0 0 x",
		"2 0 0 0 0",
		"0 0 0 0 1 ",
		"0 0 0 0 1 -1 0 ",
		"0 0 0 0 1 1 x",
		"0 0 0 0 1 1 x1 ",
		"0 0 0 0 1 1 x1 1 ",
		"0 0 0 0 1 1 x1 -1 1 ",
		"0 0 0 0 1 1 x1 1 -1 ",
		"0 0 0 0 1 1 x2 2 1 1 1 ",
		"0 0 0 0 1 1 x7 1 1 1 1 1 1 1 1 1 1 1 1 1 1 ",
		"0 0 0 0 1 1 x1 1 2 x",
	};
	const char *fine = "0 0 0 0 1 1 x1 1 2 ";
	struct err e = ERR_INIT;
	struct text t = { 0 };
	struct answer a;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (answer_unpack(cases[i], strlen(cases[i]), &a, &e) == 0)
			fail_msg("%s", cases[i]);
	assert_int_equal(answer_unpack("2 1 \0000 0 0 ", 13, &a, &e), -1);
	assert_int_equal(answer_unpack(fine, strlen(fine), &a, &e), 0);
	answer_release(&a);
	/* A text that would not fit, and one that does. */
	for (size_t n = 512; n >= 511; n--) {
		text_reset(&t);
		text_addf(&t, "2 %zu ", n);
		for (size_t i = 0; i < n; i++)
			text_addc(&t, 'x');
		text_add(&t, "0 0 0 ");
		assert_int_equal(answer_unpack(t.s, t.len, &a, &e),
		    n == 512 ? -1 : 0);
		answer_release(&a);
	}
	text_release(&t);
}

static void
malformed_questions_are_refused(void **state UNUSED)
{
	static const char *const cases[] = { "", "{}", "-1 0 ", "1 x", "1 x2 ",
		"1 x0 x", "2 x0 ", "1 x1 ", "1 x1 -1 -1 ", "1 x1 -1 -1 -1 x",
		"1 x1 -1 -1 -2 ", "1 x1 -1 -1 1 ", "1 \xff\x30 " };
	static const char *const fine[] = { "1 x0 ", "0 0 ", "1 x1 -1 1 y0 " };
	struct err e = ERR_INIT;
	struct ask a;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (ask_unpack(cases[i], strlen(cases[i]), &a, &e) == 0)
			fail_msg("%s", cases[i]);
	for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++) {
		assert_int_equal(ask_unpack(fine[i], strlen(fine[i]), &a, &e),
		    0);
		ask_release(&a);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(facts_cross),
		cmocka_unit_test(rewrites_cross),
		cmocka_unit_test(refusals_cross),
		cmocka_unit_test(unreadable_names_are_refused),
		cmocka_unit_test(lengths_are_bounded),
		cmocka_unit_test(malformed_answers_are_refused),
		cmocka_unit_test(malformed_questions_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
