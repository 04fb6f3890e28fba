/* statedir: the state and runtime directories: opened, checked, locked */
#ifndef AIRLOCK_FRONT_STATEDIR_H
#define AIRLOCK_FRONT_STATEDIR_H

#include "base/err.h"

#define STATEDIR_VERSION 1

/*
 * The state directory is ours alone (0700).  In it: `version`, a number that
 * tells a daemon whether it knows what else is there; `lock`, held with
 * flock(2) for the daemon's life, with its pid in it; run/, where the sockets
 * are unless a runtime directory is named.
 */
struct statedir {
	int fd;      /* the directory */
	int lock_fd; /* close-on-exec, so the lock ends with the daemon */
	char *path;
	char *runtime;
};

/* Makes it where it is missing.  ERR_UNFIT names the pid of the daemon that
 * holds it. */
int statedir_open(const char *path, struct statedir *out,
    struct err *e) MUST_CHECK;
/* Makes and checks where the sockets go: `path`, or NULL for run/ in the state
 * directory.  A path that is named may be open to others for passing through
 * (0711), never for writing. */
int statedir_runtime(struct statedir *s, const char *path,
    struct err *e) MUST_CHECK;
void statedir_close(struct statedir *s);
/* Gives the path used where none is named: AIRLOCK_STATE_DIR, STATE_DIRECTORY
 * (systemd), $XDG_STATE_HOME/airlock, ~/.local/state/airlock. */
int statedir_default(char **out, struct err *e) MUST_CHECK;

#endif
