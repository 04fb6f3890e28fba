/* cluster: the files of an embedded PostgreSQL: made, mapped, found stale */
#include "front/cluster.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "front/pgbin.h"
#include "rule/grants.h"

#define INITDB_MS (180 * 1000)
#define SQL_MS (60 * 1000)
#define INIT_FILE_MS (600 * 1000)
#define STALE_MS (40 * 1000)
#define LOG_SIZE_MAX (1024 * 1024)
#define TAIL_SIZE 800
#define PID_FILE_SIZE 4096
#define SOCKET_NAME "/.s.PGSQL." CLUSTER_PORT ".lock"

/* The pid file's lines, counted from 0 (PostgreSQL's pidfile.h). */
enum pid_line { PID_LINE_PID = 0, PID_LINE_STATUS = 7 };

/* Directories. */

static int
remove_one(const char *path, const struct stat *st UNUSED, int what UNUSED,
    struct FTW *where UNUSED)
{
	return remove(path);
}

static int
remove_tree(const char *path, struct err *e)
{
	if (nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS) == -1 &&
	    errno != ENOENT)
		return err_sys(e, "cannot remove '%s'", path);
	return 0;
}

/* run's path becomes an entry of comma-separated lists, quoted in one. */
static int
check_path(const char *run, struct err *e)
{
	if (strpbrk(run, ",\"\\") != NULL)
		return err_set(e, ERR_INPUT,
		    "'%s' holds a comma, quote or backslash, which no socket "
		    "directory of PostgreSQL can; name another state "
		    "directory",
		    run);
	if (strlen(run) + sizeof(SOCKET_NAME) >
	    sizeof(((struct sockaddr_un *)0)->sun_path))
		return err_set(e, ERR_LIMIT,
		    "'%s' is too long for the path of a socket; name a shorter "
		    "state directory",
		    run);
	return 0;
}

static int
open_files(const struct statedir *s, struct cluster *c, struct err *e)
{
	struct stat st;

	if ((mkdirat(s->fd, "embedded", 0700) == -1 && errno != EEXIST) ||
	    (c->fd = openat(s->fd, "embedded",
		 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) == -1 ||
	    (mkdirat(c->fd, "run", 0700) == -1 && errno != EEXIST))
		return err_sys(e, "cannot make '%s'", c->run);
	c->log_fd = openat(c->fd, "log",
	    O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (c->log_fd == -1 || fstat(c->log_fd, &st) == -1 ||
	    (st.st_size > LOG_SIZE_MAX && ftruncate(c->log_fd, 0) == -1))
		return err_sys(e, "cannot open '%s/log'", c->path);
	return 0;
}

/* A small file at once, below embedded/. */
static int
write_file(struct cluster *c, const char *name, const char *text, struct err *e)
{
	int fd = openat(c->fd, name,
	    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	size_t n = strlen(text);
	bool written;

	if (fd == -1)
		return err_sys(e, "cannot make '%s/%s'", c->path, name);
	written = write(fd, text, n) == (ssize_t)n && fsync(fd) == 0;
	if (close(fd) == -1 || !written)
		return err_sys(e, "cannot write '%s/%s'", c->path, name);
	return 0;
}

/* Making. */

static int
run_initdb(struct cluster *c, const char *data, struct err *e)
{
	char *program = mem_printf("%s/initdb", c->bindir);
	const char *argv[] = { program, "-D", data, "-U", CLUSTER_SUPERUSER,
		"--auth=peer", "--encoding=UTF8", "--locale=C.UTF-8",
		"--no-instructions", NULL };
	const struct child_options o = { .argv = argv,
		.input = -1,
		.output = c->log_fd,
		.death_signal = SIGTERM };
	int r = child_run(&o, INITDB_MS, e);

	free(program);
	return r;
}

/* Our own uid, and nobody else, may be any of the four roles. */
static int
write_access(struct cluster *c, const char *login, struct err *e)
{
	static const char *const roles[] = { CLUSTER_SUPERUSER, GRANTS_WRITER,
		GRANTS_READER, GRANTS_OBSERVER };
	struct text t = { 0 };
	int r;

	for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++)
		text_addf(&t, "airlock \"%s\" \"%s\"\n", login, roles[i]);
	r = write_file(c, "data.new/pg_ident.conf", text_str(&t), e);
	text_release(&t);
	if (r != 0)
		return -1;
	return write_file(c, "data.new/pg_hba.conf",
	    "local all all peer map=airlock\n", e);
}

/* Whatever stands in the way was never finished, so nothing was ever in it. */
static int
make(struct cluster *c, struct err *e)
{
	const struct passwd *pw = getpwuid(geteuid());
	char *fresh = mem_printf("%s.new", c->data);
	int r = -1;

	if (pw == NULL)
		err_set(e, ERR_UNFIT,
		    "uid %u has no entry in the passwd database, which "
		    "PostgreSQL's initdb and peer authentication need",
		    (unsigned)geteuid());
	else if (strpbrk(pw->pw_name, "\" \t") != NULL)
		err_set(e, ERR_UNFIT,
		    "login name '%s' cannot be written in "
		    "pg_ident.conf",
		    pw->pw_name);
	else if (remove_tree(fresh, e) == 0 && remove_tree(c->data, e) == 0 &&
		 run_initdb(c, fresh, e) == 0 &&
		 write_access(c, pw->pw_name, e) == 0) {
		r = renameat(c->fd, "data.new", c->fd, "data");
		if (r == -1)
			err_sys(e, "cannot rename '%s'", fresh);
	}
	free(fresh);
	return r;
}

/* The first word of a file below embedded/; NULL where there is none. */
static char *
read_word(const struct cluster *c, const char *name)
{
	int fd = openat(c->fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char word[32];
	ssize_t n = fd != -1 ? read(fd, word, sizeof(word) - 1) : -1;

	if (fd != -1)
		close(fd);
	if (n <= 0)
		return NULL;
	word[n] = '\0';
	word[strcspn(word, " \n")] = '\0';
	return mem_strdup(word);
}

int
cluster_open(const struct statedir *s, struct cluster *c, struct err *e)
{
	char *major = NULL;
	int r = -1;

	*c = (struct cluster){ .fd = -1, .log_fd = -1 };
	c->path = mem_printf("%s/embedded", s->path);
	c->data = mem_printf("%s/data", c->path);
	c->run = mem_printf("%s/run", c->path);
	if (check_path(c->run, e) != 0 || open_files(s, c, e) != 0)
		goto out;
	c->is_new = faccessat(c->fd, "ready", F_OK, AT_SYMLINK_NOFOLLOW) == -1;
	if (!c->is_new)
		major = read_word(c, "data/PG_VERSION");
	if (pgbin_find(major, &c->bindir, e) != 0 ||
	    cluster_stop_stale(c, e) != 0)
		goto out;
	if (c->is_new)
		log_info("making a PostgreSQL cluster in '%s' with '%s'",
		    c->data, c->bindir);
	r = c->is_new ? make(c, e) : 0;
	if (r != 0)
		cluster_log_tail(c);
out:
	free(major);
	if (r != 0)
		cluster_close(c);
	return r;
}

void
cluster_close(struct cluster *c)
{
	if (c->fd != -1)
		close(c->fd);
	if (c->log_fd != -1)
		close(c->log_fd);
	free(c->path);
	free(c->data);
	free(c->run);
	free(c->bindir);
	*c = (struct cluster){ .fd = -1, .log_fd = -1 };
}

/* The server. */

/* The pid file as a string; false where there is none. */
static bool
read_pid_file(const struct cluster *c, char text[PID_FILE_SIZE])
{
	int fd = openat(c->fd, "data/postmaster.pid",
	    O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t n = fd != -1 ? read(fd, text, PID_FILE_SIZE - 1) : -1;

	if (fd != -1)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

static const char *
line_of(const char *text, enum pid_line line)
{
	for (int i = 0; i < (int)line; i++) {
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	return text;
}

bool
cluster_is_ready(const struct cluster *c, pid_t pid)
{
	char text[PID_FILE_SIZE];

	return read_pid_file(c, text) &&
	       strtol(line_of(text, PID_LINE_PID), NULL, 10) == pid &&
	       text_starts_with(line_of(text, PID_LINE_STATUS), "ready");
}

int
cluster_serve(struct cluster *c, struct child *out, struct err *e)
{
	char *program = mem_printf("%s/postgres", c->bindir);
	char *sockets = mem_printf("unix_socket_directories=\"%s\"", c->run);
	const char *argv[] = { program, "-D", c->data, "-p", CLUSTER_PORT, "-c",
		"listen_addresses=", "-c", sockets, "-c",
		"unix_socket_permissions=0700", "-c", "logging_collector=off",
		"-c", "cluster_name=airlock", NULL };
	const struct child_options o = { .argv = argv,
		.input = -1,
		.output = c->log_fd,
		.death_signal = SIGINT, /* a fast stop */
		.session = true };
	int r = child_start(&o, out, e);

	free(program);
	free(sockets);
	return r;
}

/* A server works in its data directory, and nothing else of ours does. */
static bool
works_in(pid_t pid, const char *data)
{
	char link[64], cwd[PATH_MAX], real[PATH_MAX];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%d/cwd", (int)pid);
	n = readlink(link, cwd, sizeof(cwd) - 1);
	if (n <= 0 || realpath(data, real) == NULL)
		return false;
	cwd[n] = '\0';
	return strcmp(cwd, real) == 0;
}

static int
stop_by_pid(pid_t pid, int pidfd, struct err *e)
{
	static const int ways[] = { SIGINT, SIGQUIT };

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct pollfd p = { .fd = pidfd, .events = POLLIN };

		if (kill(pid, ways[i]) == -1 || poll(&p, 1, STALE_MS) == 1)
			return 0;
	}
	return err_set(e, ERR_UNFIT,
	    "the server of an earlier run, process %d, does not stop",
	    (int)pid);
}

/*
 * The file stays, because the server checks by it that no process of an earlier
 * one still uses the shared memory.  But a pid that somebody else has by now
 * would stop it from starting; its own parent's does not.
 */
static int
disown(struct cluster *c, const char *text, struct err *e)
{
	char *now =
	    mem_printf("%d%s", (int)getpid(), text + strcspn(text, "\n"));
	int r = write_file(c, "data/postmaster.pid", now, e);

	free(now);
	return r;
}

int
cluster_stop_stale(struct cluster *c, struct err *e)
{
	char text[PID_FILE_SIZE];
	long pid;
	int pidfd, r;

	if (!read_pid_file(c, text))
		return 0;
	pid = strtol(text, NULL, 10);
	if (pid <= 1 || pid > INT_MAX ||
	    (pidfd = pidfd_open((pid_t)pid, 0)) == -1)
		return 0; /* gone; the server deals with the file */
	if (works_in((pid_t)pid, c->data)) {
		log_info("stopping the PostgreSQL server of an earlier run, "
			 "process %ld",
		    pid);
		r = stop_by_pid((pid_t)pid, pidfd, e);
	} else
		r = disown(c, text, e);
	close(pidfd);
	return r;
}

/* Setting up. */

static int
psql(struct cluster *c, const char *database, const char *file, int input,
    int timeout_ms, struct err *e)
{
	char *program = mem_printf("%s/psql", c->bindir);
	char *from = mem_printf("--file=%s", file);
	const char *argv[] = { program, "-X", "-q", "-v", "ON_ERROR_STOP=1",
		"-w", "-h", c->run, "-p", CLUSTER_PORT, "-U", CLUSTER_SUPERUSER,
		"-d", database, from, NULL };
	const struct child_options o = { .argv = argv,
		.input = input,
		.output = c->log_fd,
		.death_signal = SIGTERM };
	int r = child_run(&o, timeout_ms, e);

	free(program);
	free(from);
	return r;
}

static int
run_sql(struct cluster *c, const char *database, const char *sql, struct err *e)
{
	int fd = memfd_create("sql", MFD_CLOEXEC), r = -1;
	size_t n = strlen(sql);

	if (fd == -1 || write(fd, sql, n) != (ssize_t)n ||
	    lseek(fd, 0, SEEK_SET) == -1)
		err_sys(e, "cannot pass SQL to psql");
	else
		r = psql(c, database, "-", fd, SQL_MS, e);
	if (fd != -1)
		close(fd);
	return r;
}

int
cluster_set_up(struct cluster *c, const char *init_file, struct err *e)
{
	struct text logins = { 0 }, everything = { 0 };
	int r = -1;

	grants_add_logins(&logins);
	grants_add_everything(&everything);
	if (run_sql(c, "postgres", "CREATE DATABASE " CLUSTER_DATABASE ";\n",
		e) != 0 ||
	    run_sql(c, CLUSTER_DATABASE, text_str(&logins), e) != 0)
		err_wrap(e, "setting up the embedded database");
	else if (init_file != NULL &&
		 psql(c, CLUSTER_DATABASE, init_file, -1, INIT_FILE_MS, e) != 0)
		err_wrap(e, "init file '%s' failed", init_file);
	else if (run_sql(c, CLUSTER_DATABASE, text_str(&everything), e) != 0)
		err_wrap(e, "granting in the embedded database");
	else if (write_file(c, "ready", "1\n", e) == 0) {
		c->is_new = false;
		r = fsync(c->fd) == 0 ? 0
		                      : err_sys(e, "cannot sync '%s'", c->path);
	}
	text_release(&logins);
	text_release(&everything);
	return r;
}

void
cluster_log_tail(const struct cluster *c)
{
	off_t end = lseek(c->log_fd, 0, SEEK_END);
	off_t from = end > TAIL_SIZE ? end - TAIL_SIZE : 0;
	char tail[TAIL_SIZE + 1], *line = tail, *eol;
	ssize_t n = pread(c->log_fd, tail, TAIL_SIZE, from);

	tail[n > 0 ? n : 0] = '\0';
	if (from > 0)
		line += strcspn(line, "\n");
	for (; *line != '\0'; line = eol + (*eol == '\n')) {
		eol = line + strcspn(line, "\n");
		if (eol != line)
			log_warnx("postgres: %.*s", (int)(eol - line), line);
	}
}
