/* config_file: reads airlockd.conf line by line, naming file and line */
#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "front/config.h"
#include "front/config_keys.h"
#include "front/dsn.h"

#define FILE_SIZE_MAX (1024 * 1024)
#define LINE_SIZE_MAX 8192
#define SEEN_MAX 10000

/* Each "section\0key" that was given, to tell a second time from the first. */
struct seen {
	char *what;
	int line;
};

struct source {
	struct config *c;
	const char *path, *p, *end;
	int line;
	char *kind, *name; /* of the section that we are in; kind NULL: none */
	struct seen *seen;
	size_t nseen;
	bool secret;
	struct err *e; /* the first error; filled means stop */
	bool failed;
};

static void
fail(struct source *s, const struct err *why)
{
	if (s->failed)
		return;
	s->failed = true;
	*s->e = *why;
	err_wrap(s->e, "%s:%d", s->path, s->line);
}

/* False where it was given before. */
static bool
note(struct source *s, const char *what, struct err *e)
{
	for (size_t i = 0; i < s->nseen; i++)
		if (strcmp(s->seen[i].what, what) == 0) {
			err_set(e, ERR_INPUT,
			    "%.100s is given twice (first "
			    "in line %d)",
			    what, s->seen[i].line);
			return false;
		}
	if (s->nseen == SEEN_MAX) {
		err_set(e, ERR_LIMIT, "too many lines");
		return false;
	}
	s->seen = mem_grow(s->seen, s->nseen + 1, sizeof(*s->seen));
	s->seen[s->nseen++] = (struct seen){ mem_strdup(what), s->line };
	return true;
}

static void
leave_section(struct source *s)
{
	free(s->kind);
	free(s->name);
	s->kind = s->name = NULL;
}

/* inside: "agent support", without brackets. */
static int
enter_section(struct source *s, char *inside, struct err *e)
{
	char *kind = inside + strspn(inside, " \t"), *name, *end, *what;
	bool first;

	for (end = kind + strlen(kind); end > kind && strchr(" \t", end[-1]);)
		*--end = '\0';
	name = kind + strcspn(kind, " \t");
	if (*name != '\0')
		*name++ = '\0';
	name += strspn(name, " \t");
	leave_section(s);
	s->kind = mem_strdup(kind);
	s->name = *name != '\0' ? mem_strdup(name) : NULL;
	what = mem_printf("[%s%s%s]", kind, *name != '\0' ? " " : "", name);
	first = note(s, what, e);
	free(what);
	return first ? 0 : -1;
}

/* What libinih makes of a heading is cut at 50 bytes and needs a key behind
 * it, so headings are read here. */
static int
heading(struct source *s, const char *line, struct err *e)
{
	const char *close = strchr(line, ']');
	enum config_section section;
	void *target;
	char *inside;
	int r;

	if (close == NULL)
		return err_set(e, ERR_INPUT, "']' is missing");
	if (close[1 + strspn(close + 1, " \t\r\n")] != '\0')
		return err_set(e, ERR_INPUT, "there is text behind ']'");
	inside = mem_strndup(line + 1, (size_t)(close - line) - 1);
	r = enter_section(s, inside, e);
	free(inside);
	if (r != 0)
		return -1;
	return config_find(s->c, s->kind, s->name, &section, &target, e);
}

/* libinih's fgets. */
static char *
next_line(char *out, int size, void *stream)
{
	struct source *s = stream;
	const char *eol;
	struct err e = ERR_INIT;
	size_t n;

	if (s->p == s->end || s->failed)
		return NULL;
	s->line++;
	eol = memchr(s->p, '\n', (size_t)(s->end - s->p));
	n = (size_t)((eol != NULL ? eol + 1 : s->end) - s->p);
	if (size < 3 || n > (size_t)size - 3) {
		err_set(&e, ERR_LIMIT, "the line is too long");
		fail(s, &e);
		return NULL;
	}
	memcpy(out, s->p, n);
	out[n] = '\0';
	s->p += n;
	if (out[strspn(out, " \t")] == '[' &&
	    heading(s, out + strspn(out, " \t"), &e) != 0)
		fail(s, &e);
	return s->failed ? NULL : out;
}

static bool
is_dsn(const char *key)
{
	size_t n = strlen(key);

	return n > 4 && strcmp(key + n - 4, "_dsn") == 0;
}

/* libinih's handler: 1 goes on, 0 is an error. */
static int
one_key(void *user, const char *section UNUSED, const char *key,
    const char *value)
{
	struct source *s = user;
	struct err e = ERR_INIT;
	char *what;
	bool first;

	if (s->failed)
		return 0;
	if (s->kind == NULL) {
		err_set(&e, ERR_INPUT, "'%.40s' stands before any [section]",
		    key);
		fail(s, &e);
		return 0;
	}
	what = mem_printf("'%s' in [%s%s%s]", key, s->kind,
	    s->name != NULL ? " " : "", s->name != NULL ? s->name : "");
	first = note(s, what, &e);
	free(what);
	if (!first || config_set(s->c, s->kind, s->name, key, value, &e) != 0) {
		fail(s, &e);
		return 0;
	}
	if (is_dsn(key) && strcmp(value, CONFIG_EMBEDDED) != 0 &&
	    dsn_has_password(value))
		s->secret = true;
	return 1;
}

static void
parse(struct source *s)
{
	struct err e = ERR_INIT;
	int line;

	ini_use_stack = false;
	ini_initial_alloc = ini_max_line = LINE_SIZE_MAX;
	ini_allow_inline_comments = false; /* they would cut a password */
	ini_allow_multiline = false;
	ini_stop_on_first_error = true;
	line = ini_parse_stream(next_line, s, one_key, s);
	if (line != 0 && !s->failed) {
		err_set(&e, ERR_INPUT,
		    "not 'key = value', a [section] or a comment");
		fail(s, &e);
	}
}

int
config_read_text(struct config *c, const char *path, const char *text,
    size_t len, bool *secret, struct err *e)
{
	struct source s = { .c = c,
		.path = path,
		.p = text,
		.end = text + len,
		.e = e };

	if (!text_is_utf8(text, len) || memchr(text, '\0', len) != NULL)
		return err_set(e, ERR_INPUT, "%s: not UTF-8 text", path);
	if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		s.p += 3; /* a byte order mark */
	parse(&s);
	leave_section(&s);
	for (size_t i = 0; i < s.nseen; i++)
		free(s.seen[i].what);
	free(s.seen);
	if (s.failed)
		return -1;
	if (secret != NULL)
		*secret = s.secret;
	return 0;
}

static int
check_mode(const char *path, const struct stat *st, bool secret, struct err *e)
{
	uid_t me = geteuid();
	/* root's file may reach us by its group, as PostgreSQL's keys may */
	mode_t readers =
	    st->st_uid == 0 && me != 0 ? S_IROTH : S_IRGRP | S_IROTH;

	if (!S_ISREG(st->st_mode))
		return err_set(e, ERR_INPUT, "'%s' is not a regular file",
		    path);
	if (st->st_uid != me && st->st_uid != 0 && me != 0)
		return err_set(e, ERR_DENIED,
		    "'%s' belongs to uid %u, neither to root nor to airlockd",
		    path, (unsigned)st->st_uid);
	if ((st->st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return err_set(e, ERR_DENIED,
		    "'%s' can be written by others; chmod go-w", path);
	if (secret && (st->st_mode & readers) != 0)
		return err_set(e, ERR_DENIED,
		    "'%s' holds a password and can be read by others; chmod "
		    "0600",
		    path);
	return 0;
}

/* Gives the whole file, *len bytes; NULL with *e filled. */
static char *
slurp(int fd, const char *path, size_t *len, struct err *e)
{
	char *buf = mem_new(FILE_SIZE_MAX + 1);
	size_t n = 0;
	ssize_t r;

	while ((r = read(fd, buf + n, FILE_SIZE_MAX + 1 - n)) > 0)
		n += (size_t)r;
	if (r == 0 && n <= FILE_SIZE_MAX) {
		*len = n;
		return buf;
	}
	mem_wipe(buf, n);
	free(buf);
	if (r == -1)
		err_sys(e, "cannot read '%s'", path);
	else
		err_set(e, ERR_LIMIT, "'%s' is longer than %d bytes", path,
		    FILE_SIZE_MAX);
	return NULL;
}

int
config_read(struct config *c, const char *path, struct err *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	bool secret = false;
	struct stat st;
	char *text = NULL;
	size_t len = 0;
	int r = -1;

	if (fd == -1)
		return err_sys(e, "cannot open '%s'", path);
	if (fstat(fd, &st) == -1)
		err_sys(e, "cannot look at '%s'", path);
	else if (check_mode(path, &st, false, e) == 0 &&
		 (text = slurp(fd, path, &len, e)) != NULL &&
		 config_read_text(c, path, text, len, &secret, e) == 0)
		r = check_mode(path, &st, secret, e);
	close(fd);
	if (text != NULL)
		mem_wipe(text, len);
	free(text);
	return r;
}
