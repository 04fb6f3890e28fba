/* proctree: a process and its ancestors, as /proc shows them */
#include "wire/proctree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"

#define PROC_FILE_SIZE 8192

/*
 * Reads a file of /proc in one go, so that it is one moment's truth.  What is
 * long (a status with thousands of groups) is cut: what we need comes first.
 */
static int
slurp(pid_t pid, const char *name, char *out, size_t size, struct err *e)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%ld/%s", (long)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd == -1)
		return err_sys(e, "cannot open '%s'", path);
	n = read(fd, out, size - 1);
	close(fd);
	if (n == -1)
		return err_sys(e, "cannot read '%s'", path);
	if (n == 0)
		return err_set(e, ERR_GONE, "nothing is in '%s'", path);
	out[n] = '\0';
	return 0;
}

/* Reads the next number of a line of /proc; *s moves behind it. */
static int
number(const char **s, long long *out)
{
	char *end;

	errno = 0;
	*out = strtoll(*s, &end, 10);
	if (end == *s || errno != 0)
		return -1;
	*s = end;
	return 0;
}

/*
 * "PID (COMM) S PPID PGRP SESSION TTY ... STARTTIME ...": COMM is the process's
 * own choice and may hold blanks and parentheses, hence the last ')'.
 */
int
proc_parse_stat(const char *s, size_t len, struct proc *out, struct err *e)
{
	enum { PPID = 4, SESSION = 6, TTY = 7, START = 22 };
	const char *open = memchr(s, '(', len), *close = memrchr(s, ')', len);
	long long v[START + 1] = { 0 };
	const char *at = s;
	size_t n;
	int i;

	if (open == NULL || close == NULL || close < open ||
	    number(&at, &v[1]) == -1 || strlen(close) < 4)
		return err_set(e, ERR_INPUT, "a stat line of /proc is odd");
	n = (size_t)(close - open - 1);
	if (n >= sizeof(out->comm))
		n = sizeof(out->comm) - 1;
	at = close + 3; /* behind ") S" */
	for (i = PPID; i <= START; i++)
		if (number(&at, &v[i]) == -1)
			return err_set(e, ERR_INPUT,
			    "a stat line of /proc is short");
	memcpy(out->comm, open + 1, n);
	out->comm[n] = '\0';
	out->pid = (pid_t)v[1];
	out->ppid = (pid_t)v[PPID];
	out->sid = (pid_t)v[SESSION];
	out->tty = (int)v[TTY];
	out->start = (uint64_t)v[START];
	return 0;
}

/*
 * Not the owner of the directory: that is root's for whatever made itself
 * undumpable.  All four, since a setuid program keeps its caller's real uid.
 */
int
proc_parse_status(const char *s, bool *root, struct err *e)
{
	const char *at = strstr(s, "\nUid:");
	long long uid, any = 0;
	int i;

	if (at == NULL)
		return err_set(e, ERR_INPUT, "a status of /proc has no Uid");
	at += strlen("\nUid:");
	for (i = 0; i < 4; i++) {
		if (number(&at, &uid) == -1)
			return err_set(e, ERR_INPUT,
			    "a Uid line of /proc is short");
		any |= uid;
	}
	*root = any == 0;
	return 0;
}

/* What does not fit is not known. */
static void
copy_path(char *out, size_t size, const char *p, size_t n)
{
	if (n >= size)
		n = 0;
	memcpy(out, p, n);
	out[n] = '\0';
}

/*
 * Lines of "7:name=systemd:/path" (version 1) and "0::/path".  By its fields:
 * the path is the user's choice and may hold anything but a newline.
 */
void
proc_parse_cgroup(const char *s, char *out, size_t size)
{
	const char *end, *names, *path;

	out[0] = '\0';
	for (; (end = strchr(s, '\n')) != NULL; s = end + 1) {
		size_t len;

		names = memchr(s, ':', (size_t)(end - s));
		if (names == NULL)
			continue;
		names++;
		path = memchr(names, ':', (size_t)(end - names));
		if (path == NULL)
			continue;
		len = (size_t)(path - names);
		path++;
		if ((len == 0 && out[0] == '\0') ||
		    (len == 12 && memcmp(names, "name=systemd", 12) == 0))
			copy_path(out, size, path, (size_t)(end - path));
		if (len == 12)
			return;
	}
}

static void
read_exe(struct proc *p)
{
	static const char deleted[] = " (deleted)";
	char path[64], *end;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%ld/exe", (long)p->pid);
	n = readlink(path, p->exe, sizeof(p->exe) - 1);
	if (n <= 0 || (size_t)n == sizeof(p->exe) - 1)
		n = 0;
	p->exe[n] = '\0';
	end = strrchr(p->exe, ' ');
	if (end != NULL && strcmp(end, deleted) == 0)
		*end = '\0';
}

int
proc_read(pid_t pid, struct proc *out, struct err *e)
{
	char buf[PROC_FILE_SIZE];
	struct proc p = { 0 };
	struct err none = ERR_INIT;

	if (slurp(pid, "stat", buf, sizeof(buf), e) == -1 ||
	    proc_parse_stat(buf, strlen(buf), &p, e) == -1 ||
	    slurp(pid, "status", buf, sizeof(buf), e) == -1 ||
	    proc_parse_status(buf, &p.root, e) == -1)
		return -1;
	if (p.pid != pid)
		return err_set(e, ERR_SYSTEM,
		    "/proc is of another pid namespace");
	if (slurp(pid, "cgroup", buf, sizeof(buf), &none) == 0)
		proc_parse_cgroup(buf, p.unit, sizeof(p.unit));
	read_exe(&p);
	*out = p;
	return 0;
}

bool
proc_is_same(const struct proc *a, const struct proc *b)
{
	return a->pid == b->pid && a->start == b->start;
}

bool
proc_is_alive(const struct proc *p)
{
	char buf[PROC_FILE_SIZE];
	struct err e = ERR_INIT;
	struct proc now = { 0 };
	const char *state;

	if (slurp(p->pid, "stat", buf, sizeof(buf), &e) == -1 ||
	    proc_parse_stat(buf, strlen(buf), &now, &e) == -1)
		return false;
	state = strrchr(buf, ')') + 2;
	return proc_is_same(p, &now) && *state != 'Z' && *state != 'X';
}

static int
pin(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

static bool
has_ended(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	return poll(&p, 1, 0) != 0;
}

/* One process, pinned while it is read; `child` must still be its child. */
static int
hop(pid_t pid, const struct proc *child, struct proc *out, struct err *e)
{
	struct proc again = { 0 };
	int fd = pin(pid), ret = -1;

	if (fd == -1)
		return err_sys(e, "cannot hold process %ld", (long)pid);
	if (proc_read(pid, out, e) == -1)
		goto out;
	if (child != NULL && proc_read(child->pid, &again, e) == -1)
		goto out;
	if (child != NULL &&
	    (!proc_is_same(child, &again) || again.ppid != pid)) {
		err_set(e, ERR_GONE, "process %ld moved while it was read",
		    (long)child->pid);
		goto out;
	}
	if (has_ended(fd)) {
		err_set(e, ERR_GONE, "process %ld ended while it was read",
		    (long)pid);
		goto out;
	}
	ret = 0;
out:
	close(fd);
	return ret;
}

static int
walk(pid_t pid, struct chain *c, struct err *e)
{
	const struct proc *child = NULL;

	c->v = mem_array(CHAIN_DEPTH_MAX, sizeof(*c->v));
	c->n = 0;
	for (; pid > 0; pid = child->ppid) {
		if (c->n == CHAIN_DEPTH_MAX)
			return err_set(e, ERR_LIMIT, "more than %d ancestors",
			    CHAIN_DEPTH_MAX);
		if (hop(pid, child, &c->v[c->n], e) == -1)
			return -1;
		child = &c->v[c->n++];
	}
	if (c->n == 0)
		return err_set(e, ERR_GONE, "no process is known");
	return 0;
}

static bool
is_alike(const struct chain *a, const struct chain *b)
{
	size_t i;

	if (a->n != b->n)
		return false;
	for (i = 0; i < a->n; i++) {
		const struct proc *x = &a->v[i], *y = &b->v[i];

		if (!proc_is_same(x, y) || x->ppid != y->ppid ||
		    x->sid != y->sid || x->tty != y->tty ||
		    x->root != y->root || strcmp(x->comm, y->comm) != 0 ||
		    strcmp(x->exe, y->exe) != 0 ||
		    strcmp(x->unit, y->unit) != 0)
			return false;
	}
	return true;
}

int
chain_read(pid_t pid, struct chain *out, struct err *e)
{
	struct chain a = { 0 }, b = { 0 };
	int ret = -1;

	if (walk(pid, &a, e) == -1 || walk(pid, &b, e) == -1)
		goto out;
	if (!is_alike(&a, &b)) {
		err_set(e, ERR_GONE, "the ancestors of process %ld moved",
		    (long)pid);
		goto out;
	}
	a.v = mem_grow(a.v, a.n, sizeof(*a.v));
	*out = a;
	a.v = NULL;
	ret = 0;
out:
	chain_release(&a);
	chain_release(&b);
	return ret;
}

void
chain_release(struct chain *c)
{
	free(c->v);
	c->v = NULL;
	c->n = 0;
}

size_t
chain_find(const struct chain *c, const struct proc *p)
{
	size_t i;

	for (i = 0; i < c->n; i++)
		if (proc_is_same(&c->v[i], p))
			break;
	return i;
}

static int
by_pid(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

int
proc_sessions(pid_t **out, size_t *n, struct err *e)
{
	char buf[PROC_FILE_SIZE];
	struct err gone = ERR_INIT;
	struct dirent *d;
	struct proc p = { 0 };
	DIR *dir = opendir("/proc");
	pid_t *v = NULL;
	size_t len = 0;
	long long pid;

	if (dir == NULL)
		return err_sys(e, "cannot open '/proc'");
	while ((d = readdir(dir)) != NULL) {
		const char *s = d->d_name;

		if (number(&s, &pid) == -1 ||
		    slurp((pid_t)pid, "stat", buf, sizeof(buf), &gone) == -1 ||
		    proc_parse_stat(buf, strlen(buf), &p, &gone) == -1)
			continue;
		if ((len & (len - 1)) == 0)
			v = mem_grow(v, len != 0 ? 2 * len : 1, sizeof(*v));
		v[len++] = p.sid;
	}
	closedir(dir);
	if (len > 0)
		qsort(v, len, sizeof(*v), by_pid);
	*out = v;
	*n = len;
	return 0;
}
