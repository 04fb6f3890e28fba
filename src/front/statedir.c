/* statedir: the state and runtime directories: opened, checked, locked */
#include "front/statedir.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"

#define OTHERS_WRITE (S_IWGRP | S_IWOTH)
#define OTHERS (S_IRWXG | S_IRWXO)
/* "/agent-" and a name of 32, ".sock", and what a private name adds */
#define SOCKET_NAME_MAX 60
#define WORD_SIZE 32

/* Makes the directories above the last one, as mkdir -p does. */
static int
make_parents(const char *path, struct err *e)
{
	char *copy = mem_strdup(path);
	int r = 0;

	for (char *p = copy + 1; r == 0 && (p = strchr(p, '/')) != NULL; p++) {
		*p = '\0';
		if (mkdir(copy, 0700) == -1 && errno != EEXIST)
			r = err_sys(e, "cannot make directory '%s'", copy);
		*p = '/';
	}
	free(copy);
	return r;
}

/* Who owns a directory above may put another in its place: worth a word, but
 * not ours to forbid (a checkout in somebody's home). */
static void
warn_of_parents(const char *path)
{
	char *copy = mem_strdup(path), *slash;
	struct stat st;

	while ((slash = strrchr(copy, '/')) != NULL) {
		slash[slash == copy ? 1 : 0] = '\0';
		if (stat(copy, &st) == 0 &&
		    ((st.st_uid != 0 && st.st_uid != geteuid()) ||
			((st.st_mode & OTHERS_WRITE) != 0 &&
			    (st.st_mode & S_ISVTX) == 0)))
			log_warnx("others can replace what is in '%s', which "
				  "is above the state directory",
			    copy);
		if (slash == copy)
			break;
	}
	free(copy);
}

/* Opens a directory that must be ours and give nothing of `denied` away. */
static int
open_directory(int at, const char *name, const char *path, mode_t denied,
    int *out, struct err *e)
{
	int fd =
	    openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd == -1 && (errno == ELOOP || errno == ENOTDIR))
		return err_set(e, ERR_DENIED,
		    "'%s' is a symbolic link or not a directory", path);
	if (fd == -1)
		return err_sys(e, "cannot open directory '%s'", path);
	if (fstat(fd, &st) == -1)
		err_sys(e, "cannot look at '%s'", path);
	else if (st.st_uid != geteuid())
		err_set(e, ERR_DENIED,
		    "'%s' belongs to uid %u, but airlockd runs as uid %u", path,
		    (unsigned)st.st_uid, (unsigned)geteuid());
	else if ((st.st_mode & denied) != 0)
		err_set(e, ERR_DENIED,
		    "'%s' has mode %04o and is open to others; chmod %s", path,
		    (unsigned)st.st_mode & 07777,
		    denied == OTHERS ? "0700" : "go-w");
	else {
		*out = fd;
		return 0;
	}
	close(fd);
	return -1;
}

static int
make_directory(int at, const char *name, const char *path, mode_t mode,
    struct err *e)
{
	if (mkdirat(at, name, mode) == -1) {
		if (errno == EEXIST)
			return 0;
		return err_sys(e, "cannot make directory '%s'", path);
	}
	/* a umask takes from the mode, and only what we just made is changed */
	if (fchmodat(at, name, mode, 0) == -1)
		return err_sys(e, "cannot set the mode of '%s'", path);
	return 0;
}

/* The first word of a small file; empty where there is none. */
static void
read_word(int fd, char word[WORD_SIZE])
{
	ssize_t n = pread(fd, word, WORD_SIZE - 1, 0);

	word[n > 0 ? n : 0] = '\0';
	word[strcspn(word, " \n")] = '\0';
}

static int
lock(struct statedir *s, struct err *e)
{
	char pid[WORD_SIZE];
	int fd = openat(s->fd, "lock",
	    O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd == -1)
		return err_sys(e, "cannot open '%s/lock'", s->path);
	if (flock(fd, LOCK_EX | LOCK_NB) == -1) {
		if (errno == EWOULDBLOCK) {
			read_word(fd, pid);
			err_set(e, ERR_UNFIT,
			    "'%s' is in use by another airlockd%s%s", s->path,
			    pid[0] != '\0' ? ", process " : "", pid);
		} else
			err_sys(e, "cannot lock '%s/lock'", s->path);
		close(fd);
		return -1;
	}
	s->lock_fd = fd;
	if (ftruncate(fd, 0) == -1 || dprintf(fd, "%d\n", (int)getpid()) < 0)
		return err_sys(e, "cannot write '%s/lock'", s->path);
	return 0;
}

/* A new file that is there whole or not at all. */
static int
write_version(struct statedir *s, struct err *e)
{
	int fd = openat(s->fd, "version.new",
	    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	bool written;

	if (fd == -1)
		return err_sys(e, "cannot make '%s/version'", s->path);
	written = dprintf(fd, "%d\n", STATEDIR_VERSION) > 0 && fsync(fd) == 0;
	if (close(fd) == -1 || !written ||
	    renameat(s->fd, "version.new", s->fd, "version") == -1 ||
	    fsync(s->fd) == -1)
		return err_sys(e, "cannot write '%s/version'", s->path);
	return 0;
}

static int
check_version(struct statedir *s, struct err *e)
{
	int fd = openat(s->fd, "version", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct err bad = ERR_INIT;
	char word[WORD_SIZE];
	long long v;

	if (fd == -1 && errno == ENOENT)
		return write_version(s, e);
	if (fd == -1)
		return err_sys(e, "cannot open '%s/version'", s->path);
	read_word(fd, word);
	close(fd);
	if (text_to_long(word, 1, INT_MAX, &v, &bad) != 0)
		return err_set(e, ERR_INPUT, "'%s/version' holds no number",
		    s->path);
	if (v != STATEDIR_VERSION)
		return err_set(e, ERR_UNFIT,
		    "'%s' is of version %lld and this airlockd knows %d; run "
		    "the airlockd that made it, or a newer one",
		    s->path, v, STATEDIR_VERSION);
	return 0;
}

int
statedir_open(const char *path, struct statedir *out, struct err *e)
{
	struct statedir s = { -1, -1, NULL, NULL };

	if (path[0] != '/')
		return err_set(e, ERR_INPUT, "'%s' is not an absolute path",
		    path);
	s.path = mem_strdup(path);
	for (size_t n = strlen(s.path); n > 1 && s.path[n - 1] == '/'; n--)
		s.path[n - 1] = '\0'; /* a slash at the end follows links */
	if (make_parents(s.path, e) == 0 &&
	    make_directory(AT_FDCWD, s.path, s.path, 0700, e) == 0 &&
	    open_directory(AT_FDCWD, s.path, s.path, OTHERS, &s.fd, e) == 0 &&
	    lock(&s, e) == 0 && check_version(&s, e) == 0) {
		warn_of_parents(s.path);
		*out = s;
		return 0;
	}
	statedir_close(&s);
	return -1;
}

int
statedir_runtime(struct statedir *s, const char *path, struct err *e)
{
	char *runtime =
	    path != NULL ? mem_strdup(path) : mem_printf("%s/run", s->path);
	mode_t denied = path != NULL ? OTHERS_WRITE : OTHERS;
	int fd = -1, r = -1;

	if (strlen(runtime) + SOCKET_NAME_MAX >=
	    sizeof(((struct sockaddr_un *)0)->sun_path))
		err_set(e, ERR_LIMIT,
		    "'%s' is too long for the path of a socket; name a shorter "
		    "runtime_dir",
		    runtime);
	else if (make_directory(AT_FDCWD, runtime, runtime,
		     path != NULL ? 0711 : 0700, e) == 0)
		r = open_directory(AT_FDCWD, runtime, runtime, denied, &fd, e);
	if (fd != -1)
		close(fd);
	if (r != 0) {
		free(runtime);
		return -1;
	}
	free(s->runtime);
	s->runtime = runtime;
	return 0;
}

void
statedir_close(struct statedir *s)
{
	if (s->lock_fd != -1)
		close(s->lock_fd);
	if (s->fd != -1)
		close(s->fd);
	free(s->path);
	free(s->runtime);
	*s = (struct statedir){ -1, -1, NULL, NULL };
}

static const char *
named(const char *variable)
{
	const char *v = getenv(variable);

	return v != NULL && v[0] == '/' ? v : NULL;
}

int
statedir_default(char **out, struct err *e)
{
	const struct passwd *pw = getpwuid(geteuid());
	const char *p, *home = named("HOME");

	if (home == NULL && pw != NULL && pw->pw_dir[0] == '/')
		home = pw->pw_dir;
	if ((p = named("AIRLOCK_STATE_DIR")) != NULL ||
	    (p = named("STATE_DIRECTORY")) != NULL)
		*out = mem_strndup(p, strcspn(p, ":"));
	else if ((p = named("XDG_STATE_HOME")) != NULL)
		*out = mem_printf("%s/airlock", p);
	else if (home != NULL)
		*out = mem_printf("%s/.local/state/airlock", home);
	else
		return err_set(e, ERR_INPUT,
		    "no home directory: give --state-dir");
	return 0;
}
