/* parser_child: the child that runs libpg_query, and the cell it sits in */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "core/parser.h"
#include "core/parser_spawn.h"
#include "sql/answer.h"

#define CPU_SECONDS 30 /* a statement; the keeper's deadline comes first */
#define KEPT_BYTES (64 << 20) /* of memory, from one statement to the next */

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

static void
set_limit(__rlimit_resource_t what, rlim_t soft, rlim_t hard)
{
	struct rlimit l = { soft, hard };

	setrlimit(what, &l);
}

#ifdef ARCHITECTURE
/* What libc needs to read, write, allocate, fail and end; all else kills.  The
 * filter is a second wall: where the kernel will not have it, the child
 * still has no descriptor but its channel. */
static void
forbid_system_calls(void)
{
	static const unsigned short allowed[] = {
		__NR_read,
		__NR_write,
		__NR_brk,
		__NR_mmap,
		__NR_munmap,
		__NR_mremap,
		__NR_madvise,
		__NR_mprotect,
		__NR_futex,
		__NR_prlimit64,
		__NR_clock_gettime,
		__NR_getpid,
		__NR_gettid,
		__NR_tgkill,
		__NR_getrandom,
		__NR_rt_sigprocmask,
		__NR_rt_sigaction,
		__NR_rt_sigreturn,
		__NR_restart_syscall,
		__NR_exit,
		__NR_exit_group,
	};
	enum { N = sizeof(allowed) / sizeof(allowed[0]) };
	struct sock_filter code[N + 6];
	struct sock_fprog program = { N + 6, code };
	size_t n = 0;

	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
	    offsetof(struct seccomp_data, arch));
	code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
	    ARCHITECTURE, 1, 0);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
	    SECCOMP_RET_KILL_PROCESS);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
	    offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < N; i++)
		code[n++] =
		    (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
			allowed[i], (unsigned char)(N - i), 0);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
	    SECCOMP_RET_KILL_PROCESS);
	code[n++] =
	    (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}
#else
static void
forbid_system_calls(void)
{
}
#endif

static void
harden(void)
{
	set_limit(RLIMIT_CORE, 0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (SPAWN_SANITIZED)
		return;
	prctl(PR_SET_DUMPABLE, 0);
	set_limit(RLIMIT_NOFILE, 0, 0);
	set_limit(RLIMIT_FSIZE, 0, 0);
	forbid_system_calls();
}

/* The limit counts the process's whole life, so it moves on. */
static void
allow_cpu(void)
{
	struct timespec used;

	if (SPAWN_SANITIZED ||
	    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) == -1)
		return;
	set_limit(RLIMIT_CPU, (rlim_t)used.tv_sec + CPU_SECONDS, RLIM_INFINITY);
}

static bool
read_all(void *p, size_t n)
{
	char *at = p;

	while (n > 0) {
		ssize_t got = read(SPAWN_CHANNEL, at, n);

		if (got == -1 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		at += got;
		n -= (size_t)got;
	}
	return true;
}

static bool
write_all(const char *p, size_t n)
{
	while (n > 0) {
		ssize_t put = write(SPAWN_CHANNEL, p, n);

		if (put == -1 && errno == EINTR)
			continue;
		if (put <= 0)
			return false;
		p += put;
		n -= (size_t)put;
	}
	return true;
}

/* false where the keeper has gone, or an answer would be too long for it */
static bool
tell(const struct answer *a)
{
	struct text out = { 0 };
	bool told;

	answer_pack(&out, a);
	told = out.len - FRAME_HEADER <= ANSWER_BYTES_MAX &&
	       write_all(out.s, out.len);
	text_release(&out);
	return told;
}

static bool
serve(void)
{
	unsigned char header[FRAME_HEADER];
	struct err e = ERR_INIT;
	struct answer a;
	struct ask ask;
	bool told = false;
	char *in;
	size_t n;

	if (!read_all(header, sizeof(header)) ||
	    (n = frame_length(header, ASK_BYTES_MAX)) == 0)
		return false;
	in = mem_array(n, 1);
	if (read_all(in, n) && ask_unpack(in, n, &ask, &e) == 0) {
		allow_cpu();
		answer_make(&ask, &a);
		told = tell(&a);
		answer_release(&a);
		ask_release(&ask);
	}
	free(in);
	return told;
}

/* jansson reads its seed and libc its own on first use, which is not possible
 * any more once the door is closed. */
static void
warm_up(void)
{
	static char sql[] = "SELECT 1";
	const struct ask ask = { .sql = sql };
	struct text out = { 0 };
	struct answer a;

	answer_make(&ask, &a);
	answer_pack(&out, &a);
	answer_release(&a);
	text_release(&out);
}

int
parser_child(void)
{
	static const struct answer ready = { .status = ANSWER_READY };

	mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
	mallopt(M_MMAP_THRESHOLD, KEPT_BYTES / 2);
	warm_up();
	harden();
	if (!tell(&ready))
		return 1;
	while (serve())
		;
	return 0;
}
