/* as_postgres: for tests: runs what starts a server of its own, never as root
 */
#ifndef AIRLOCK_TESTS_AS_POSTGRES_H
#define AIRLOCK_TESTS_AS_POSTGRES_H

#include <errno.h>
#include <ftw.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"

#define NOT_RUN 77 /* PostgreSQL runs as no root, and there is nobody else */

static inline int
remove_one(const char *path, const struct stat *st UNUSED, int what UNUSED,
    struct FTW *where UNUSED)
{
	return remove(path);
}

/* PostgreSQL refuses root, so root lends the test to another user. */
static inline void
leave_root(const char *dir)
{
	const struct passwd *pw = getpwnam("postgres");

	if (geteuid() != 0)
		return;
	if (pw == NULL || chown(dir, pw->pw_uid, pw->pw_gid) == -1 ||
	    initgroups(pw->pw_name, pw->pw_gid) == -1 ||
	    setgid(pw->pw_gid) == -1 || setuid(pw->pw_uid) == -1)
		_exit(NOT_RUN);
}

/* The exit status of `run` in a child, with `dir`, a mkdtemp(3) template, made
 * before and removed after; 0, and says why, where it cannot run. */
static inline int
as_postgres(char *dir, int (*run)(void))
{
	int status = 0, probe = pidfd_open(getpid(), 0);
	pid_t pid;

	if (probe == -1 && errno == ENOSYS) {
		puts("skipped: no pidfd_open(2) here (old valgrind)");
		return 0;
	}
	close(probe);
	if (mkdtemp(dir) == NULL)
		return 1;
	pid = fork();
	if (pid == 0)
		exit((leave_root(dir), run()));
	waitpid(pid, &status, 0);
	nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_RUN) {
		puts("skipped: started by root, and there is no user "
		     "'postgres' to run a server as");
		return 0;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

#endif
