/* test_statedir: made, checked, locked by one, and known by its version */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "front/harden.h"
#include "front/notify.h"
#include "front/statedir.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static char dir[] = "/tmp/airlock-state-XXXXXX";

static char *
in(const char *name)
{
	return mem_printf("%s/%s", dir, name);
}

static void
refused(const char *path, const char *says)
{
	struct statedir s;
	struct err e = ERR_INIT;

	assert_int_equal(statedir_open(path, &s, &e), -1);
	if (strstr(e.text, says) == NULL)
		fail_msg("'%s' lacks '%s'", e.text, says);
}

static void
test_made(void **state UNUSED)
{
	char *path = in("a/b/c/"), *version = in("a/b/c/version");
	char *run = in("a/b/c/run");
	struct statedir s;
	struct stat st;
	struct err e = ERR_INIT;

	if (statedir_open(path, &s, &e) != 0)
		fail_msg("%s", e.text);
	assert_int_equal(fstat(s.fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(stat(version, &st), 0);
	assert_int_equal(st.st_size, 2);
	assert_int_equal(statedir_runtime(&s, NULL, &e), 0);
	assert_string_equal(s.runtime, run);
	assert_int_equal(stat(run, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	statedir_close(&s);
	/* and again, as it was left */
	assert_int_equal(statedir_open(path, &s, &e), 0);
	assert_int_equal(statedir_runtime(&s, NULL, &e), 0);
	statedir_close(&s);
	free(path);
	free(version);
	free(run);
}

/* A second daemon is told of the first. */
static void
test_locked(void **state UNUSED)
{
	char *path = in("locked"), pid[16];
	struct statedir s;
	struct err e = ERR_INIT;

	assert_int_equal(statedir_open(path, &s, &e), 0);
	snprintf(pid, sizeof(pid), "process %d", (int)getpid());
	refused(path, pid);
	assert_true((fcntl(s.lock_fd, F_GETFD) & FD_CLOEXEC) != 0);
	statedir_close(&s);
	assert_int_equal(statedir_open(path, &s, &e), 0);
	statedir_close(&s);
	free(path);
}

static void
test_refused(void **state UNUSED)
{
	char *open_one = in("open"), *link = in("link"), *file = in("file");
	char *missing = in("locked/version");
	int fd;

	refused("relative", "not an absolute path");
	assert_int_equal(mkdir(open_one, 0700), 0);
	assert_int_equal(chmod(open_one, 0750), 0);
	refused(open_one, "has mode 0750 and is open to others; chmod 0700");
	assert_int_equal(symlink(open_one, link), 0);
	refused(link, "is a symbolic link or not a directory");
	fd = open(file, O_CREAT | O_WRONLY, 0600);
	assert_true(fd != -1);
	close(fd);
	refused(file, "is a symbolic link or not a directory");
	refused(missing, "is a symbolic link or not a directory");
	free(open_one);
	free(link);
	free(file);
	free(missing);
}

static void
test_foreign(void **state UNUSED)
{
	char *path = in("foreign");

	if (geteuid() != 0)
		skip();
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chown(path, 4321, (gid_t)-1), 0);
	refused(path, "belongs to uid 4321");
	free(path);
}

static const struct {
	const char *holds, *says;
} versions[] = {
	{ "2\n", "of version 2 and this airlockd knows 1" },
	{ "one\n", "holds no number" },
	{ "", "holds no number" },
};

static void
test_version(void **state UNUSED)
{
	char *path = in("version"), *file = in("version/version");

	assert_int_equal(mkdir(path, 0700), 0);
	for (size_t i = 0; i < COUNT(versions); i++) {
		FILE *f = fopen(file, "w");

		assert_non_null(f);
		fputs(versions[i].holds, f);
		assert_int_equal(fclose(f), 0);
		refused(path, versions[i].says);
	}
	assert_int_equal(unlink(file), 0);
	assert_int_equal(symlink("/etc/hostname", file), 0);
	refused(path, "cannot open");
	free(path);
	free(file);
}

static void
test_runtime(void **state UNUSED)
{
	char *path = in("s"), *run = in("r"), *longer;
	char many[120];
	struct statedir s;
	struct stat st;
	struct err e = ERR_INIT;

	assert_int_equal(statedir_open(path, &s, &e), 0);
	assert_int_equal(statedir_runtime(&s, run, &e), 0);
	assert_int_equal(stat(run, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0711);
	assert_int_equal(chmod(run, 0773), 0);
	assert_int_equal(statedir_runtime(&s, run, &e), -1);
	assert_non_null(strstr(e.text, "chmod go-w"));
	memset(many, 'x', sizeof(many) - 1);
	many[sizeof(many) - 1] = '\0';
	longer = in(many);
	assert_int_equal(statedir_runtime(&s, longer, &e), -1);
	assert_non_null(strstr(e.text, "too long for the path of a socket"));
	statedir_close(&s);
	free(path);
	free(run);
	free(longer);
}

static const struct {
	const char *variable, *value, *dir;
} defaults[] = {
	{ "HOME", "/h/x", "/h/x/.local/state/airlock" },
	{ "XDG_STATE_HOME", "relative", "/h/x/.local/state/airlock" },
	{ "XDG_STATE_HOME", "/xdg", "/xdg/airlock" },
	{ "STATE_DIRECTORY", "/var/lib/airlock:/other", "/var/lib/airlock" },
	{ "AIRLOCK_STATE_DIR", "/own", "/own" },
};

static void
test_default(void **state UNUSED)
{
	for (size_t i = 0; i < COUNT(defaults); i++) {
		struct err e = ERR_INIT;
		char *got;

		setenv(defaults[i].variable, defaults[i].value, 1);
		assert_int_equal(statedir_default(&got, &e), 0);
		assert_string_equal(got, defaults[i].dir);
		free(got);
	}
}

static void
test_environment(void **state UNUSED)
{
	setenv("PGPASSWORD", "x", 1);
	setenv("LD_PRELOAD_NOT", "x", 1);
	setenv("PG", "x", 1);
	setenv("XPG", "x", 1);
	harden_environment();
	assert_null(getenv("PGPASSWORD"));
	assert_null(getenv("LD_PRELOAD_NOT"));
	assert_null(getenv("PG"));
	assert_string_equal(getenv("XPG"), "x");
}

/* The service manager's socket may have a path or an abstract name. */
static void
one_notification(const struct sockaddr_un *a, socklen_t len, const char *name)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	char got[32];
	ssize_t n;

	assert_int_equal(bind(fd, (const struct sockaddr *)a, len), 0);
	setenv("NOTIFY_SOCKET", name, 1);
	notify_init();
	assert_null(getenv("NOTIFY_SOCKET"));
	notify("READY=1");
	n = recv(fd, got, sizeof(got), MSG_DONTWAIT);
	assert_int_equal(n, 7);
	assert_memory_equal(got, "READY=1", 7);
	close(fd);
}

static void
test_notify(void **state UNUSED)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	char *path = in("notify"), name[64];
	size_t n;

	memcpy(a.sun_path, path, strlen(path));
	one_notification(&a, sizeof(a), path);
	n = (size_t)snprintf(name, sizeof(name), "@airlock-test-%d",
	    (int)getpid());
	memset(a.sun_path, 0, sizeof(a.sun_path));
	memcpy(a.sun_path + 1, name + 1, n - 1);
	one_notification(&a,
	    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n), name);
	free(path);
}

static int
make_dir(void **state UNUSED)
{
	return mkdtemp(dir) != NULL ? 0 : -1;
}

static int
remove_dir(void **state UNUSED)
{
	pid_t pid = fork();

	if (pid == 0) {
		execlp("rm", "rm", "-rf", dir, (char *)NULL);
		_exit(1);
	}
	return waitpid(pid, NULL, 0) == pid ? 0 : -1;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_made),
		cmocka_unit_test(test_locked),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_foreign),
		cmocka_unit_test(test_version),
		cmocka_unit_test(test_runtime),
		cmocka_unit_test(test_default),
		cmocka_unit_test(test_environment),
		cmocka_unit_test(test_notify),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
