/* proctree: a process and its ancestors, as /proc shows them */
#ifndef AIRLOCK_WIRE_PROCTREE_H
#define AIRLOCK_WIRE_PROCTREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

#define PROC_COMM_SIZE 16 /* TASK_COMM_LEN */
#define PROC_EXE_SIZE 160
#define PROC_UNIT_SIZE 192
#define CHAIN_DEPTH_MAX 64

/* One process; (pid, start) names it for as long as the machine is up. */
struct proc {
	pid_t pid, ppid;
	pid_t sid;      /* session, 0 where its leader is in no pid namespace
	                   that we see */
	int tty;        /* device number of the controlling terminal, 0: none */
	uint64_t start; /* clock ticks since boot */
	bool root; /* real, effective, saved and filesystem uid are all 0 */
	char comm[PROC_COMM_SIZE];
	/* "" where they may not be read, are not there or do not fit */
	char exe[PROC_EXE_SIZE];   /* path, " (deleted)" cut off */
	char unit[PROC_UNIT_SIZE]; /* path of the systemd control group */
};

/* A process (v[0]) and its ancestors; the last is pid 1, or one whose parent is
 * outside of our pid namespace (ppid 0). */
struct chain {
	struct proc *v;
	size_t n;
};

/* Parses the text of /proc/PID/stat: pid, ppid, sid, tty, start, comm. */
int proc_parse_stat(const char *s, size_t len, struct proc *out,
    struct err *e) MUST_CHECK;
/* All uids of the "Uid:" line of /proc/PID/status are 0. */
int proc_parse_status(const char *s, bool *root, struct err *e) MUST_CHECK;
/* The systemd control group out of /proc/PID/cgroup; "" where there is none. */
void proc_parse_cgroup(const char *s, char *out, size_t size);

int proc_read(pid_t pid, struct proc *out, struct err *e) MUST_CHECK;
bool proc_is_same(const struct proc *a, const struct proc *b);
/* That very process still runs (a zombie does not). */
bool proc_is_alive(const struct proc *p);

/*
 * Two walks that must be identical; in each, every process is pinned by a
 * pidfd while it is read and its child is asked again for its parent.
 * ERR_SYSTEM or ERR_GONE where anything could not be read or moved meanwhile.
 * The caller releases *out.
 */
int chain_read(pid_t pid, struct chain *out, struct err *e) MUST_CHECK;
void chain_release(struct chain *c);
/* The index of p in c, c->n where it is not there. */
size_t chain_find(const struct chain *c, const struct proc *p);

/* The sessions that have a process now, ascending; gives the array. */
int proc_sessions(pid_t **out, size_t *n, struct err *e) MUST_CHECK;

#endif
