/* test_place: where airlockd's sockets are, and whose they must be */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "wire/place.h"

#define AGENT_AT(dir) dir "/run/agent-a.sock"

/* home: below which there is .local/state/airlock, and xdg/airlock. */
static char home[] = "/tmp/airlock-place-XXXXXX";

static char *
below(const char *path)
{
	return path != NULL && path[0] == '~'
	           ? mem_printf("%s%s", home, path + 1)
	       : path != NULL ? mem_strdup(path)
	                      : NULL;
}

static void
set(const char *name, const char *value)
{
	char *v = below(value);

	if (v != NULL)
		setenv(name, v, 1);
	else
		unsetenv(name);
	free(v);
}

static void
the_first_that_says_something_decides(void **state UNUSED)
{
	static const struct {
		const char *state_dir, *socket, *env, *xdg, *home;
		const char *is, *owner_dir;
	} cases[] = {
		{ "/s", "/d/x.sock", "/e", "~/xdg", "~", "/d/x.sock", "/s" },
		{ NULL, "/d/x.sock", "/e", "~/xdg", "~", "/d/x.sock", "/d" },
		{ NULL, "x.sock", "/e", NULL, NULL, "x.sock", "." },
		{ "/s", NULL, "/e", "~/xdg", "~", AGENT_AT("/s"), "/s" },
		{ NULL, NULL, "/e", "~/xdg", "~", AGENT_AT("/e"), "/e" },
		{ NULL, NULL, "", "~/xdg", "~", AGENT_AT("~/xdg/airlock"),
		    "~/xdg/airlock" },
		{ NULL, NULL, NULL, "relative", "~",
		    AGENT_AT("~/.local/state/airlock"),
		    "~/.local/state/airlock" },
		{ NULL, NULL, NULL, NULL, "~",
		    AGENT_AT("~/.local/state/airlock"),
		    "~/.local/state/airlock" },
		{ NULL, NULL, NULL, "~/none", "~", "/run/airlock/agent-a.sock",
		    "/var/lib/airlock" },
		{ NULL, NULL, NULL, NULL, "~/none", "/run/airlock/agent-a.sock",
		    "/var/lib/airlock" },
		{ NULL, NULL, NULL, NULL, NULL, "/run/airlock/agent-a.sock",
		    "/var/lib/airlock" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *is = below(cases[i].is), *dir = below(cases[i].owner_dir);
		struct place p;

		set("AIRLOCK_STATE_DIR", cases[i].env);
		set("XDG_STATE_HOME", cases[i].xdg);
		set("HOME", cases[i].home);
		place_find(&p, cases[i].state_dir, cases[i].socket, "agent-a");
		assert_string_equal(p.socket, is);
		assert_string_equal(p.owner_dir, dir);
		place_release(&p);
		free(is);
		free(dir);
	}
}

static const char *const dirs[] = { "/.local", "/.local/state",
	"/.local/state/airlock", "/xdg", "/xdg/airlock" };
#define NDIRS (sizeof(dirs) / sizeof(dirs[0]))

static int
make_home(void **state UNUSED)
{
	if (mkdtemp(home) == NULL)
		return -1;
	for (size_t i = 0; i < NDIRS; i++) {
		char *dir = mem_printf("%s%s", home, dirs[i]);

		assert_int_equal(mkdir(dir, 0700), 0);
		free(dir);
	}
	return 0;
}

static int
drop_home(void **state UNUSED)
{
	for (size_t i = NDIRS; i-- > 0;) {
		char *dir = mem_printf("%s%s", home, dirs[i]);

		rmdir(dir);
		free(dir);
	}
	return rmdir(home);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_that_says_something_decides),
	};

	return cmocka_run_group_tests(tests, make_home, drop_home);
}
