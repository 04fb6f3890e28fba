/* pgbin: where the machine's own PostgreSQL programs are */
#include "front/pgbin.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "front/child.h"

#define ASK_MS 10000
#define ANSWER_SIZE 1024

static const char *const programs[] = { "initdb", "postgres", "psql" };
static const char *const places[] = { "/usr/lib/postgresql/%s/bin",
	"/usr/pgsql-%s/bin" };

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static bool
is_complete(const char *dir)
{
	for (size_t i = 0; i < COUNT(programs); i++) {
		char *path = mem_printf("%s/%s", dir, programs[i]);
		bool found = access(path, X_OK) == 0;

		free(path);
		if (!found)
			return false;
	}
	return true;
}

/* The last line that `program argument` prints; NULL where there is none. */
static char *
ask(const char *program, const char *argument)
{
	const char *argv[] = { program, argument, NULL };
	int fd = memfd_create("answer", MFD_CLOEXEC);
	const struct child_options o = { .argv = argv,
		.input = -1,
		.output = fd,
		.death_signal = 9 };
	struct err e = ERR_INIT;
	char line[ANSWER_SIZE] = "";
	const char *last;
	ssize_t n = 0;

	if (fd != -1 && child_run(&o, ASK_MS, &e) == 0)
		n = pread(fd, line, sizeof(line) - 1, 0);
	if (fd != -1)
		close(fd);
	while (n > 0 && line[n - 1] == '\n')
		n--;
	line[n > 0 ? n : 0] = '\0';
	/* the last: before it stands what a closed directory made it say */
	last = strrchr(line, '\n');
	last = last != NULL ? last + 1 : line;
	return last[0] != '\0' ? mem_strdup(last) : NULL;
}

/* "postgres (PostgreSQL) 15.20 (Debian ...)", "18beta1" */
static bool
is_major(const char *dir, const char *major)
{
	char *program, *says;
	const char *v;
	bool same;

	if (major == NULL)
		return true;
	program = mem_printf("%s/postgres", dir);
	says = ask(program, "--version");
	v = says != NULL ? strstr(says, ") ") : NULL;
	same = v != NULL && strtol(v + 2, NULL, 10) == strtol(major, NULL, 10);
	free(program);
	free(says);
	return same;
}

/* Takes dir; gives it back where it will do, else NULL. */
static char *
consider(char *dir, const char *major)
{
	if (dir != NULL && dir[0] == '/' && is_complete(dir) &&
	    is_major(dir, major))
		return dir;
	free(dir);
	return NULL;
}

/* PATH's directory that has `program` in it. */
static char *
on_path(const char *program)
{
	const char *p = getenv("PATH");

	while (p != NULL && *p != '\0') {
		size_t n = strcspn(p, ":");
		char *dir = mem_strndup(p, n);
		char *whole = mem_printf("%s/%s", dir, program);
		bool found = dir[0] == '/' && access(whole, X_OK) == 0;

		free(whole);
		if (found)
			return dir;
		free(dir);
		p += n + (p[n] == ':');
	}
	return NULL;
}

static char *
from_pg_config(const char *major)
{
	char *dir = on_path("pg_config"), *program, *bindir;

	if (dir == NULL)
		return NULL;
	program = mem_printf("%s/pg_config", dir);
	bindir = ask(program, "--bindir");
	free(dir);
	free(program);
	return consider(bindir, major);
}

/* The number in a place's path, to tell 9 from 18. */
static long
version_in(const char *path)
{
	const char *digits = strpbrk(path, "0123456789");

	return digits != NULL ? strtol(digits, NULL, 10) : 0;
}

static char *
from_places(const char *major)
{
	char *best = NULL;

	for (size_t i = 0; i < COUNT(places); i++) {
		const char *star = strstr(places[i], "%s");
		char *pattern = mem_printf("%.*s%s%s", (int)(star - places[i]),
		    places[i], major != NULL ? major : "*", star + 2);
		glob_t found;

		if (glob(pattern, GLOB_NOSORT, NULL, &found) == 0) {
			for (size_t j = 0; j < found.gl_pathc; j++) {
				const char *p = found.gl_pathv[j];

				if (!is_complete(p) ||
				    (best != NULL &&
					version_in(p) <= version_in(best)))
					continue;
				free(best);
				best = mem_strdup(p);
			}
			globfree(&found);
		}
		free(pattern);
	}
	return consider(best, major);
}

int
pgbin_find(const char *major, char **dir, struct err *e)
{
	char *found = from_pg_config(major);

	if (found == NULL)
		found = from_places(major);
	if (found == NULL)
		found = consider(on_path("postgres"), major);
	if (found == NULL)
		return err_set(e, ERR_GONE,
		    "no PostgreSQL server programs%s%s found (initdb, postgres, "
		    "psql); install PostgreSQL, or give --db URL",
		    major != NULL ? " of version " : "",
		    major != NULL ? major : "");
	*dir = found;
	return 0;
}
