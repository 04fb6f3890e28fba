/* place: where airlockd's sockets are, and whose they must be */
#include "wire/place.h"

#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

#define STATE_DIR "/var/lib/airlock"
#define RUNTIME_DIR "/run/airlock"

static const char *
named(const char *variable)
{
	const char *s = getenv(variable);

	return s != NULL && *s != '\0' ? s : NULL;
}

/* The directory of one user's own daemon, or NULL where there is none. */
static char *
own_state_dir(void)
{
	const char *state = named("XDG_STATE_HOME"), *home = named("HOME");
	struct stat st;
	char *dir;

	if (state != NULL && state[0] == '/')
		dir = mem_printf("%s/airlock", state);
	else if (home != NULL && home[0] == '/')
		dir = mem_printf("%s/.local/state/airlock", home);
	else
		return NULL;
	if (stat(dir, &st) == 0 && S_ISDIR(st.st_mode))
		return dir;
	free(dir);
	return NULL;
}

char *
place_directory_of(const char *path)
{
	char *copy = mem_strdup(path), *dir = mem_strdup(dirname(copy));

	free(copy);
	return dir;
}

void
place_find(struct place *p, const char *state_dir, const char *socket,
    const char *name)
{
	const char *env = named("AIRLOCK_STATE_DIR");
	char *dir = NULL;

	if (state_dir != NULL)
		dir = mem_strdup(state_dir);
	else if (socket != NULL)
		dir = place_directory_of(socket);
	else if (env != NULL)
		dir = mem_strdup(env);
	else
		dir = own_state_dir();
	p->owner_dir = dir != NULL ? dir : mem_strdup(STATE_DIR);
	p->socket = socket != NULL
	                ? mem_strdup(socket)
	                : mem_printf("%s/run/%s.sock", p->owner_dir, name);
	if (dir == NULL && access(p->socket, F_OK) != 0) {
		free(p->socket);
		p->socket = mem_printf("%s/%s.sock", RUNTIME_DIR, name);
	}
}

void
place_release(struct place *p)
{
	free(p->socket);
	free(p->owner_dir);
	memset(p, 0, sizeof(*p));
}
