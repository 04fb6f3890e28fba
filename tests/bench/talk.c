/* talk: an agent's and an operator's end of airlockd, blocking, one at a time
 */
#include "talk.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define CHUNK 65536

static void
put(struct talk *t, const char *p, size_t n)
{
	while (n > 0) {
		ssize_t done = write(t->out, p, n);

		if (done <= 0)
			err(1, "the other end is gone");
		p += done;
		n -= (size_t)done;
	}
}

/* The next line, lent until the next call; *taken is what it uses up. */
static char *
get(struct talk *t, size_t *taken)
{
	char *end;

	while ((end = memchr(t->buf, '\n', t->len)) == NULL) {
		ssize_t n;

		if (t->size - t->len < CHUNK) {
			t->size += 2 * CHUNK;
			t->buf = realloc(t->buf, t->size);
			if (t->buf == NULL)
				err(1, "no memory");
		}
		n = read(t->in, t->buf + t->len, CHUNK);
		if (n <= 0)
			errx(1, "the other end has closed");
		t->len += (size_t)n;
	}
	*end = '\0';
	*taken = (size_t)(end - t->buf) + 1;
	return t->buf;
}

static void
drop(struct talk *t, size_t n)
{
	memmove(t->buf, t->buf + n, t->len - n);
	t->len -= n;
}

double
now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* t->came is when the line was here, before it was looked at. */
static json_t *
get_json(struct talk *t)
{
	size_t taken;
	const char *line = get(t, &taken);
	json_t *j;

	t->came = now_us();
	j = json_loads(line, JSON_DECODE_ANY, NULL);
	if (j == NULL)
		errx(1, "not JSON: %s", line);
	drop(t, taken);
	return j;
}

static void
put_json(struct talk *t, json_t *j_new)
{
	char *s = json_dumps(j_new, JSON_COMPACT);

	put(t, s, strlen(s));
	put(t, "\n", 1);
	free(s);
	json_decref(j_new);
}

static struct talk *
talk_new(int in, int out)
{
	struct talk *t = calloc(1, sizeof(*t));

	if (t == NULL || (t->buf = malloc(2 * CHUNK)) == NULL)
		err(1, "no memory");
	t->in = in;
	t->out = out;
	t->size = 2 * CHUNK;
	return t;
}

static int
dial(const char *path)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	if (strlen(path) >= sizeof(sun.sun_path))
		errx(1, "'%s' is too long for a socket", path);
	memcpy(sun.sun_path, path, strlen(path) + 1);
	if (fd == -1 ||
	    connect(fd, (const struct sockaddr *)&sun, sizeof(sun)) == -1)
		err(1, "%s", path);
	return fd;
}

/* --- an agent ------------------------------------------------------------- */

static struct talk *
greet(struct talk *t)
{
	put_json(t,
	    json_pack("{s:s, s:i, s:s, s:{s:s, s:{}, s:{s:s, s:s}}}", "jsonrpc",
		"2.0", "id", 0, "method", "initialize", "params",
		"protocolVersion", "2025-06-18", "capabilities", "clientInfo",
		"name", "bench", "version", "1"));
	json_decref(get_json(t));
	put_json(t, json_pack("{s:s, s:s}", "jsonrpc", "2.0", "method",
			"notifications/initialized"));
	return t;
}

struct talk *
agent_connect(const char *socket)
{
	int fd = dial(socket);

	return greet(talk_new(fd, fd));
}

struct talk *
agent_bridge(const char *program, const char *state_dir)
{
	int to[2], from[2];

	if (pipe(to) == -1 || pipe(from) == -1)
		err(1, "no pipe");
	switch (fork()) {
	case -1:
		err(1, "cannot fork");
	case 0:
		dup2(to[0], STDIN_FILENO);
		dup2(from[1], STDOUT_FILENO);
		close(to[0]);
		close(to[1]);
		close(from[0]);
		close(from[1]);
		execl(program, program, "--state-dir", state_dir, (char *)NULL);
		err(1, "%s", program);
	}
	close(to[0]);
	close(from[1]);
	return greet(talk_new(from[0], to[1]));
}

char *
agent_line(struct talk *t, const char *tool, const char *sql,
    const char *const *params)
{
	json_t *args = json_pack("{s:s}", "sql", sql), *list = json_array();
	json_t *j;
	char *s, *line;

	for (size_t i = 0; params != NULL && params[i] != NULL; i++)
		json_array_append_new(list, json_string(params[i]));
	json_object_set_new(args, "params", list);
	j = json_pack("{s:s, s:i, s:s, s:{s:s, s:o}}", "jsonrpc", "2.0", "id",
	    ++t->id, "method", "tools/call", "params", "name", tool,
	    "arguments", args);
	s = json_dumps(j, JSON_COMPACT);
	if (asprintf(&line, "%s\n", s) == -1)
		err(1, "no memory");
	free(s);
	json_decref(j);
	return line;
}

/* The answer alone has this id; what comes before it is a notification. */
json_t *
agent_call(struct talk *t, const char *line, double *us)
{
	double from = now_us();
	const json_t *result;
	const char *text;
	json_t *j = NULL, *answer;

	put(t, line, strlen(line));
	do {
		json_decref(j);
		j = get_json(t);
	} while (json_object_get(j, "id") == NULL);
	*us = t->came - from;
	result = json_object_get(j, "result");
	text = json_string_value(
	    json_object_get(json_array_get(json_object_get(result, "content"),
				0),
		"text"));
	if (text == NULL || json_is_true(json_object_get(result, "isError")))
		errx(1, "refused: %s", text != NULL ? text : "no result");
	answer = json_loads(text, 0, NULL);
	json_decref(j);
	return answer;
}

/* --- an operator ---------------------------------------------------------- */

struct talk *
operator_connect(const char *socket)
{
	int fd = dial(socket);
	struct talk *t = talk_new(fd, fd);
	json_t *hello = get_json(t);
	const char *nonce = json_string_value(json_object_get(hello, "nonce"));

	if (nonce == NULL)
		errx(1, "control.sock does not say hello");
	snprintf(t->nonce, sizeof(t->nonce), "%s", nonce);
	json_decref(hello);
	return t;
}

json_t *
operator_ask(struct talk *t, const char *verb, json_t *args_new, double *us)
{
	double from = now_us();
	json_t *first = NULL, *j;
	const json_t *ok;

	put_json(t, json_pack("{s:i, s:s, s:s, s:o}", "airlock", 1, "nonce",
			t->nonce, "verb", verb, "args", args_new));
	for (;;) {
		j = get_json(t);
		ok = json_object_get(j, "ok");
		if (first == NULL)
			first = json_incref(
			    ok != NULL ? j : json_object_get(j, "data"));
		if (ok != NULL)
			break;
		json_decref(j);
	}
	if (!json_is_true(ok))
		errx(1, "%s: %s", verb,
		    json_string_value(json_object_get(j, "error")));
	json_decref(j);
	*us = t->came - from;
	return first;
}
