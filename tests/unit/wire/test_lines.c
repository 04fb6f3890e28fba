/* test_lines: each promise of wire/lines.h, over socket pairs */
#include "wire/lines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "loop.h"

#define MAX 16 /* line_max of most tests */

struct seen {
	struct event_base *base;
	struct lines *lines;
	struct text text; /* "line|line|", a long one as "<bytes>" */
	int nlines, nlong, nlast, drained, closed;
	pid_t pid, before; /* of the last line, and of the one before */
	enum {
		KEEP,
		CLOSE,
		FINISH,
		PAUSE,
		REPLY,
		STAY
	} then;    /* after a line */
	int there; /* the other end */
};

static char block[65536]; /* what is sent when it does not matter */

static void
on_line(void *arg, char *line, size_t len, pid_t pid)
{
	struct seen *s = arg;

	assert_int_equal(line[len], '\0');
	text_addn(&s->text, line, len);
	text_addc(&s->text, '|');
	s->nlines++;
	s->before = s->pid;
	s->pid = pid;
	if (s->then == CLOSE) {
		lines_close(s->lines);
		s->lines = NULL;
	} else if (s->then == FINISH) {
		lines_send(s->lines, "bye", 3);
		lines_finish(s->lines);
		s->lines = NULL;
	} else if (s->then == PAUSE)
		lines_pause(s->lines);
	else if (s->then == REPLY)
		lines_send(s->lines, block, sizeof(block));
}

static void
on_too_long(void *arg)
{
	struct seen *s = arg;

	s->nlong++;
	text_add(&s->text, "<");
}

static void
on_piece(void *arg, const char *p, size_t n, bool last)
{
	struct seen *s = arg;

	text_addn(&s->text, p, n);
	if (last)
		text_add(&s->text, ">|");
	s->nlast += last;
}

static void
on_drained(void *arg)
{
	struct seen *s = arg;

	s->drained++;
}

static void
on_closed(void *arg, const char *why)
{
	struct seen *s = arg;

	assert_non_null(why);
	s->closed++;
	if (s->then == STAY)
		return;
	lines_close(s->lines);
	s->lines = NULL;
}

static const struct lines_events events = {
	.line = on_line,
	.too_long = on_too_long,
	.piece = on_piece,
	.drained = on_drained,
	.closed = on_closed,
};

static void
start(struct seen *s, const struct lines_options *o)
{
	int fds[2];

	memset(s, 0, sizeof(*s));
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	s->base = event_base_new();
	s->there = fds[1];
	s->lines = lines_new(s->base, fds[0], o, &events, s);
}

static void
stop(struct seen *s)
{
	lines_close(s->lines);
	if (s->there != -1)
		close(s->there);
	text_release(&s->text);
	event_base_free(s->base);
}

static const struct lines_options small = { .line_max = MAX,
	.out_low = 10,
	.out_high = 1000,
	.out_max = 1 << 20 };
static const struct lines_options roomy = { .line_max = 1 << 20,
	.out_low = 1000,
	.out_high = 1 << 20,
	.out_max = 4 << 20 };

static void
say(struct seen *s, const char *p, size_t n)
{
	assert_int_equal(write(s->there, p, n), n);
}

static void
hang_up(struct seen *s)
{
	close(s->there);
	s->there = -1;
	LOOP_UNTIL(s->base, s->closed);
}

static const struct {
	const char *in, *out;
} framings[] = {
	{ "", "" },
	{ "a\n", "a|" },
	{ "a\nb\n", "a|b|" },
	{ "a\r\nb\n", "a|b|" },
	{ "\n\r\n\na\n\n", "a|" },
	{ "a\rb\n", "a\rb|" },
	{ "a\n\r\r\n", "a|\r|" },
	{ "half", "" },
	{ "a\nhalf", "a|" },
	{ "0123456789abcdef\nb\n", "0123456789abcdef|b|" },
	{ "0123456789abcdef\r\nb\n", "0123456789abcdef|b|" },
	{ "0123456789abcdefg\nb\n", "<0123456789abcdefg>|b|" },
	{ "0123456789abcdef\rx\nb\n", "<0123456789abcdef\rx>|b|" },
	{ "0123456789abcdef0123456789abcdef0123456789\nb\n",
	    "<0123456789abcdef0123456789abcdef0123456789>|b|" },
	{ "0123456789abcdefghi\n0123456789abcdefghi\r\nb\n",
	    "<0123456789abcdefghi>|<0123456789abcdefghi\r>|b|" },
	{ "0123456789abcdefghi", "<0123456789abcdefghi" },
};

/* In one write, then cut in pieces of every length. */
static void
frames_lines(void **state UNUSED)
{
	for (size_t i = 0; i < sizeof(framings) / sizeof(framings[0]); i++) {
		size_t len = strlen(framings[i].in);

		for (size_t cut = 1; cut <= len + 1; cut++) {
			struct seen s;

			start(&s, &small);
			for (size_t at = 0; at < len; at += cut) {
				say(&s, framings[i].in + at,
				    len - at < cut ? len - at : cut);
				LOOP_SETTLE(s.base);
			}
			hang_up(&s);
			assert_string_equal(text_str(&s.text), framings[i].out);
			assert_int_equal(s.closed, 1);
			stop(&s);
		}
	}
}

static void
keeps_nul_bytes(void **state UNUSED)
{
	struct seen s;

	start(&s, &small);
	say(&s, "a\0b\n", 4);
	LOOP_UNTIL(s.base, s.nlines == 1);
	assert_int_equal(s.text.len, 4);
	assert_memory_equal(s.text.s, "a\0b|", 4);
	stop(&s);
}

/* Above line_max it is all the same how much comes: nothing is kept. */
static void
lends_a_long_line_in_pieces(void **state UNUSED)
{
	static char page[4096];
	struct lines_options o = small;
	struct seen s;

	o.line_max = 1000;
	start(&s, &o);
	memset(page, 'x', sizeof(page));
	for (int i = 0; i < 1000; i++) {
		say(&s, page, sizeof(page));
		LOOP_SETTLE(s.base);
	}
	assert_int_equal(s.nlong, 1);
	assert_int_equal(s.nlast, 0);
	say(&s, "\nnext\n", 6);
	LOOP_UNTIL(s.base, s.nlines == 1);
	assert_int_equal(s.nlong, 1);
	assert_int_equal(s.nlast, 1);
	assert_int_equal(s.text.len, 1000 * sizeof(page) + strlen("<>|next|"));
	stop(&s);
}

/* Reads what is there to read; gives how much it was. */
static size_t
drain(int fd)
{
	char sink[65536];
	size_t all = 0;
	ssize_t n;

	while ((n = recv(fd, sink, sizeof(sink), MSG_DONTWAIT)) > 0)
		all += (size_t)n;
	return all;
}

static void
stops_reading_whoever_does_not_read(void **state UNUSED)
{
	static char page[4096];
	size_t sent = 0, got = 0;
	struct seen s;

	start(&s, &small);
	memset(page, 'y', sizeof(page));
	for (; !lines_is_full(s.lines); sent += sizeof(page) + 1)
		lines_send(s.lines, page, sizeof(page));
	say(&s, "one\ntwo\n", 8);
	LOOP_SETTLE(s.base);
	assert_int_equal(s.nlines, 0);
	assert_int_equal(s.drained, 0);
	while (got < sent) {
		got += drain(s.there);
		LOOP_SETTLE(s.base);
	}
	assert_int_equal(got, sent);
	assert_int_equal(s.drained, 1);
	assert_false(lines_is_full(s.lines));
	assert_string_equal(text_str(&s.text), "one|two|");
	assert_int_equal(s.closed, 0);
	stop(&s);
}

/* Lines that are already here wait as well. */
static void
tells_no_lines_while_full(void **state UNUSED)
{
	struct seen s;

	start(&s, &small);
	s.then = REPLY;
	for (int i = 0; i < 200; i++)
		say(&s, "ask\n", 4);
	LOOP_UNTIL(s.base, lines_is_full(s.lines));
	LOOP_SETTLE(s.base);
	assert_true(s.nlines < 20);
	while (s.nlines < 200) {
		drain(s.there);
		LOOP_SETTLE(s.base);
	}
	assert_int_equal(s.closed, 0);
	stop(&s);
}

/* The kernel holds far less than out_low here. */
static void
drained_is_told_below_out_low(void **state UNUSED)
{
	struct lines_options o = roomy;
	size_t sent = 0, got = 0;
	struct seen s;

	o.out_high = 3 << 20;
	o.out_low = 2 << 20;
	start(&s, &o);
	for (; !lines_is_full(s.lines); sent += sizeof(block) + 1)
		lines_send(s.lines, block, sizeof(block));
	while (s.drained == 0) {
		char sink[16384];
		ssize_t n = recv(s.there, sink, sizeof(sink), MSG_DONTWAIT);

		got += n > 0 ? (size_t)n : 0;
		LOOP_SETTLE(s.base);
	}
	assert_true(sent - got > 1 << 20);
	assert_true(got > 512 << 10);
	stop(&s);
}

static void
closes_above_out_max(void **state UNUSED)
{
	struct seen s;

	start(&s, &small);
	for (int i = 0; i < 64; i++) {
		lines_send(s.lines, block, sizeof(block));
		assert_int_equal(s.closed, 0); /* never from inside */
	}
	LOOP_UNTIL(s.base, s.closed);
	LOOP_SETTLE(s.base);
	assert_int_equal(s.closed, 1);
	stop(&s);
}

static void
tells_a_broken_connection_once(void **state UNUSED)
{
	struct seen s;

	start(&s, &small);
	close(s.there);
	s.there = -1;
	lines_send(s.lines, "x", 1);
	lines_send(s.lines, "y", 1);
	assert_int_equal(s.closed, 0);
	LOOP_UNTIL(s.base, s.closed);
	LOOP_SETTLE(s.base);
	assert_int_equal(s.closed, 1);
	stop(&s);
}

static void
tells_its_end_once_even_if_it_is_kept(void **state UNUSED)
{
	struct seen s;

	start(&s, &small);
	s.then = STAY;
	close(s.there);
	s.there = -1;
	LOOP_UNTIL(s.base, s.closed);
	lines_send(s.lines, "x", 1);
	lines_pause(s.lines);
	lines_resume(s.lines);
	LOOP_SETTLE(s.base);
	assert_int_equal(s.closed, 1);
	stop(&s);
}

static void
may_be_closed_from_inside(void **state UNUSED)
{
	struct seen s;

	start(&s, &small);
	s.then = CLOSE;
	say(&s, "a\nb\n0123456789abcdefghi\nc\n", 26);
	LOOP_UNTIL(s.base, s.nlines == 1);
	LOOP_SETTLE(s.base);
	assert_string_equal(text_str(&s.text), "a|");
	assert_int_equal(s.closed, 0);
	assert_int_equal(drain(s.there), 0);
	stop(&s);
}

static void
finish_writes_what_is_queued(void **state UNUSED)
{
	struct seen s;
	size_t got = 0, sent = 0;
	char end;

	start(&s, &roomy);
	for (int i = 0; i < 12; i++, sent += sizeof(block) + 1)
		lines_send(s.lines, block, sizeof(block));
	s.then = FINISH;
	say(&s, "a\nb\n", 4);
	while (got < sent + 4) {
		got += drain(s.there);
		LOOP_SETTLE(s.base);
	}
	assert_int_equal(got, sent + 4);
	assert_string_equal(text_str(&s.text), "a|");
	assert_int_equal(read(s.there, &end, 1), 0);
	assert_int_equal(s.closed, 0);
	stop(&s);
}

static void
finish_waits_for_nobody_for_ever(void **state UNUSED)
{
	struct seen s;
	size_t all = 0;
	ssize_t n;

	start(&s, &roomy);
	for (int i = 0; i < 12; i++)
		lines_send(s.lines, block, sizeof(block));
	lines_finish(s.lines);
	s.lines = NULL;
	event_base_dispatch(s.base); /* until nothing is waited for, 5 s */
	while ((n = read(s.there, block, sizeof(block))) > 0)
		all += (size_t)n;
	assert_int_equal(n, 0);
	assert_true(all < 12 * sizeof(block));
	stop(&s);
}

static void
pauses_and_resumes(void **state UNUSED)
{
	struct seen s;

	start(&s, &small);
	s.then = PAUSE;
	say(&s, "a\nb\n", 4);
	LOOP_UNTIL(s.base, s.nlines == 1);
	say(&s, "c\nd\n", 4);
	shutdown(s.there, SHUT_WR);
	LOOP_SETTLE(s.base);
	assert_string_equal(text_str(&s.text), "a|");
	lines_resume(s.lines);
	assert_string_equal(text_str(&s.text), "a|"); /* not from inside */
	LOOP_SETTLE(s.base);
	assert_string_equal(text_str(&s.text), "a|b|");
	s.then = KEEP;
	lines_resume(s.lines);
	LOOP_UNTIL(s.base, s.closed);
	assert_string_equal(text_str(&s.text), "a|b|c|d|");
	stop(&s);
}

/* With half a line in hand, and with nothing. */
static void
reads_on_after_a_pause(void **state UNUSED)
{
	static const char *const rests[] = { "b", "" };

	for (size_t i = 0; i < 2; i++) {
		struct seen s;

		start(&s, &small);
		s.then = PAUSE;
		say(&s, "a\n", 2);
		say(&s, rests[i], strlen(rests[i]));
		LOOP_UNTIL(s.base, s.nlines == 1);
		s.then = KEEP;
		lines_resume(s.lines);
		LOOP_SETTLE(s.base);
		say(&s, "c\n", 2);
		LOOP_UNTIL(s.base, s.nlines == 2);
		assert_true(text_starts_with(text_str(&s.text),
		    i == 0 ? "a|bc|" : "a|c|"));
		stop(&s);
	}
}

static void
write_as_child(int fd, const char *p)
{
	pid_t child = fork();
	int status;

	if (child == 0)
		_exit(write(fd, p, strlen(p)) != (ssize_t)strlen(p));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void
tells_who_sent_each_line(void **state UNUSED)
{
	struct lines_options o = small;
	struct seen s;
	pid_t child;

	o.credentials = true;
	start(&s, &o);
	say(&s, "mine\n", 5);
	LOOP_UNTIL(s.base, s.nlines == 1);
	assert_int_equal(s.pid, getpid());
	write_as_child(s.there, "other\n");
	LOOP_UNTIL(s.base, s.nlines == 2);
	child = s.pid;
	assert_int_not_equal(child, getpid());
	assert_int_not_equal(child, 0);
	/* begun by one, ended by another: nobody's; the next is whole */
	say(&s, "mi", 2);
	LOOP_SETTLE(s.base);
	write_as_child(s.there, "xed\nwhole\n");
	LOOP_UNTIL(s.base, s.nlines == 4);
	assert_int_equal(s.before, 0);
	assert_int_not_equal(s.pid, 0);
	assert_int_not_equal(s.pid, getpid());
	say(&s, "m\nn\n", 4);
	LOOP_UNTIL(s.base, s.nlines == 6);
	assert_int_equal(s.before, getpid());
	assert_int_equal(s.pid, getpid());
	assert_string_equal(text_str(&s.text), "mine|other|mixed|whole|m|n|");
	stop(&s);
}

static void
asks_for_no_pid_without_credentials(void **state UNUSED)
{
	struct seen s;

	start(&s, &small);
	say(&s, "a\n", 2);
	LOOP_UNTIL(s.base, s.nlines == 1);
	assert_int_equal(s.pid, 0);
	stop(&s);
}

static int
open_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

static void
send_descriptor(int sock, int fd)
{
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	char line[] = "take\n";
	struct iovec iov = { .iov_base = line, .iov_len = 5 };
	struct msghdr msg = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = sizeof(control.space) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	memset(&control, 0, sizeof(control));
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	assert_int_equal(sendmsg(sock, &msg, 0), 5);
}

static void
takes_no_descriptors(void **state UNUSED)
{
	for (int credentials = 0; credentials < 2; credentials++) {
		struct lines_options o = small;
		struct seen s;
		int before;

		o.credentials = credentials;
		start(&s, &o);
		before = open_descriptors();
		send_descriptor(s.there, STDERR_FILENO);
		LOOP_UNTIL(s.base, s.nlines == 1);
		assert_int_equal(open_descriptors(), before);
		stop(&s);
	}
}

static void
sends_json_in_one_line(void **state UNUSED)
{
	json_t *j =
	    json_pack("{s:s, s:[i,n]}", "text", "a\nb\xe2\x80\xa8", "list", 1);
	json_t *bad = json_pack("{s:o}", "a", json_stringn_nocheck("\xff", 1));
	struct seen s;
	char got[64] = "";

	start(&s, &small);
	lines_send_json(s.lines, bad); /* a bug, and not half a line */
	lines_send_json(s.lines, j);
	LOOP_SETTLE(s.base);
	assert_true(read(s.there, got, sizeof(got) - 1) > 0);
	assert_string_equal(got,
	    "{\"text\":\"a\\nb\xe2\x80\xa8\",\"list\":[1,null]}\n");
	json_decref(j);
	json_decref(bad);
	stop(&s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_lines),
		cmocka_unit_test(keeps_nul_bytes),
		cmocka_unit_test(lends_a_long_line_in_pieces),
		cmocka_unit_test(stops_reading_whoever_does_not_read),
		cmocka_unit_test(tells_no_lines_while_full),
		cmocka_unit_test(drained_is_told_below_out_low),
		cmocka_unit_test(tells_its_end_once_even_if_it_is_kept),
		cmocka_unit_test(closes_above_out_max),
		cmocka_unit_test(tells_a_broken_connection_once),
		cmocka_unit_test(may_be_closed_from_inside),
		cmocka_unit_test(finish_writes_what_is_queued),
		cmocka_unit_test(finish_waits_for_nobody_for_ever),
		cmocka_unit_test(pauses_and_resumes),
		cmocka_unit_test(reads_on_after_a_pause),
		cmocka_unit_test(tells_who_sent_each_line),
		cmocka_unit_test(asks_for_no_pid_without_credentials),
		cmocka_unit_test(takes_no_descriptors),
		cmocka_unit_test(sends_json_in_one_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
