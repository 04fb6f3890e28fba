/* test_guard: the rules over drawn chains, and the table of clients */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/guard.h"
#include "core/guard_rules.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))
#define TTY 34816
#define SCOPE "/user.slice/user-7.slice/user@7.service/app.slice/x.scope"
#define SERVICE "/user.slice/user-7.slice/user@7.service/app.slice/gt.service"
#define RUN_UNIT                                                               \
	"/user.slice/user-7.slice/user@7.service/app.slice/run-1.service"
#define LOGIN "/user.slice/user-7.slice/session-3.scope"
#define FORGED "/user.slice/user-7.slice/user@7.service/session-3.scope"

/* A process is drawn as { pid, ppid, sid, tty, start, root, comm, exe, unit }.
 * A chain ends with pid 1. */
/* clang-format off */
#define INIT { 1, 0, 1, 0, 1, true, "init", "", "" }
#define SSHD { 20, 1, 20, 0, 20, true, "sshd", "", "" }
#define TMUX { 30, 1, 30, 0, 30, false, "tmux: server", "", "" }
#define ASK(sid, parent) { 99, parent, sid, TTY, 990, false, "airlock", "", "" }
/* clang-format on */

#define CHAIN_MAX 8
struct drawn {
	struct proc v[CHAIN_MAX];
};

static struct chain
chain_of(struct drawn *d)
{
	struct chain c = { .v = d->v };

	while (c.n < CHAIN_MAX && d->v[c.n].pid != 0)
		c.n++;
	return c;
}

static enum guard_rule
rule_of(const struct err *e)
{
	const char *at = strstr(e->text, "rule ");

	assert_int_equal(e->code, ERR_DENIED);
	assert_non_null(at);
	assert_non_null(strstr(e->text, "approvals = signed"));
	return (enum guard_rule)(at[5] - '0');
}

static enum guard_rule
judge(struct drawn *peer, struct drawn *client)
{
	struct chain p = chain_of(peer);
	struct client c = { 0 };
	struct err e = { 0 };

	if (guard_judge_terminal(&p, guard_default_hosts, &e) == -1)
		return rule_of(&e);
	c.chain = chain_of(client);
	client_measure(&c, guard_default_hosts);
	return guard_judge_client(&p, &c, guard_default_hosts, &e) == 0
	           ? GUARD_PASS
	           : rule_of(&e);
}

/* A bridge of a client in a pane of tmux: 60 <- 50 <- 40 (leader) <- 30. */
static struct drawn in_pane = { {
    { 60, 50, 40, TTY, 600, false, "airlock-mcp", "", SCOPE },
    { 50, 40, 40, TTY, 500, false, "agent", "", SCOPE },
    { 40, 30, 40, TTY, 400, false, "bash", "", SCOPE },
    TMUX,
    INIT,
} };
/* One whose wrapper has ended, still in the session of a pane. */
static struct drawn in_session = { {
    { 60, 1, 40, TTY, 600, false, "airlock-mcp", "", SCOPE },
    INIT,
} };
/* One in a terminal that gives its windows no units of their own. */
static struct drawn in_service = { {
    { 60, 50, 40, TTY, 600, false, "airlock-mcp", "", SERVICE },
    { 50, 1, 40, TTY, 500, false, "agent", "", SERVICE },
    INIT,
} };
/* A server and a pane of it that started in one tick of the clock. */
static struct drawn in_haste = { {
    { 60, 40, 40, TTY, 30, false, "airlock-mcp", "", SCOPE },
    { 40, 30, 40, TTY, 30, false, "agent", "", SCOPE },
    TMUX,
    INIT,
} };
/* One below the user's service manager, started from a menu. */
static struct drawn in_menu = { {
    { 60, 50, 50, 0, 600, false, "airlock-mcp", "", SCOPE },
    { 50, 15, 50, 0, 500, false, "desktop-agent", "", SCOPE },
    { 15, 1, 15, 0, 15, false, "systemd", "", "" },
    INIT,
} };

static const struct {
	const char *what;
	enum guard_rule rule;
	struct drawn *client;
	struct drawn peer;
} table[] = {
	{ "ssh: root holds the terminal", GUARD_PASS, &in_pane,
	    { { ASK(80, 80), { 80, 21, 80, TTY, 800, false, "bash", "", "" },
		{ 21, 20, 20, 0, 790, false, "sshd", "", "" }, SSHD, INIT } } },
	{ "a user's process of another name below sshd", GUARD_TERMINAL,
	    &in_pane,
	    { { ASK(80, 80), { 80, 21, 80, TTY, 800, false, "bash", "", "" },
		{ 21, 20, 20, 0, 790, false, "agent", "", "" }, SSHD,
		INIT } } },
	{ "another pane", GUARD_PASS, &in_pane,
	    { { ASK(41, 41), { 41, 30, 41, TTY, 410, false, "bash", "", "" },
		TMUX, INIT } } },
	{ "the client's pane", GUARD_CLIENT, &in_pane,
	    { { ASK(40, 40), { 40, 30, 40, TTY, 400, false, "bash", "", "" },
		TMUX, INIT } } },
	{ "tmux below the client", GUARD_CLIENT, &in_pane,
	    { { ASK(70, 70), { 70, 65, 70, TTY, 700, false, "bash", "", "" },
		{ 65, 50, 65, 0, 650, false, "tmux", "", "" },
		{ 50, 40, 40, TTY, 500, false, "agent", "", "" },
		{ 40, 30, 40, TTY, 400, false, "bash", "", "" }, TMUX,
		INIT } } },
	{ "the pane of a bridge whose wrapper has ended", GUARD_CLIENT,
	    &in_session,
	    { { ASK(40, 40), { 40, 30, 40, TTY, 400, false, "bash", "", "" },
		TMUX, INIT } } },
	{ "another pane, all in one tick", GUARD_PASS, &in_haste,
	    { { ASK(41, 41), { 41, 30, 41, TTY, 410, false, "bash", "", "" },
		TMUX, INIT } } },
	{ "leader below pid 1", GUARD_TERMINAL, &in_pane,
	    { { ASK(70, 70), { 70, 1, 70, TTY, 100, false, "bash", "", "" },
		INIT } } },
	{ "no terminal", GUARD_TERMINAL, &in_pane,
	    { { { 99, 20, 99, 0, 990, false, "airlock", "", "" }, SSHD,
		INIT } } },
	{ "the leader has another terminal", GUARD_TERMINAL, &in_pane,
	    { { ASK(80, 80),
		{ 80, 20, 80, TTY + 1, 800, false, "bash", "", "" }, SSHD,
		INIT } } },
	{ "the leader is no ancestor", GUARD_TERMINAL, &in_pane,
	    { { ASK(80, 81), { 81, 20, 80, TTY, 810, false, "bash", "", "" },
		SSHD, INIT } } },
	{ "root asks", GUARD_TERMINAL, &in_pane,
	    { { { 99, 20, 99, TTY, 990, true, "airlock", "", "" }, SSHD,
		INIT } } },
	{ "a fake service manager asks", GUARD_TERMINAL, &in_pane,
	    { { { 99, 1, 99, TTY, 990, false, "systemd", "", "" }, INIT } } },
	{ "a tmux server older than the client", GUARD_PASS, &in_pane,
	    { { ASK(70, 70), { 70, 35, 70, TTY, 700, false, "bash", "", "" },
		{ 35, 1, 35, 0, 350, false, "tmux", "", "" }, INIT } } },
	{ "one of the same age as the client's shell", GUARD_FRESH, &in_pane,
	    { { ASK(70, 70), { 70, 35, 70, TTY, 700, false, "bash", "", "" },
		{ 35, 1, 35, 0, 400, false, "tmux", "", "" }, INIT } } },
	{ "a terminal below an orphaned wrapper", GUARD_FRESH, &in_pane,
	    { { ASK(70, 70), { 70, 66, 70, TTY, 700, false, "bash", "", "" },
		{ 66, 65, 65, 0, 660, false, "xterm", "", "" },
		{ 65, 1, 65, 0, 650, false, "sh", "", "" }, INIT } } },
	{ "a fresh one in a unit of its own", GUARD_PASS, &in_pane,
	    { { ASK(70, 70), { 70, 65, 70, TTY, 700, false, "bash", "", "" },
		{ 65, 1, 65, 0, 650, false, "gnome-terminal-", "", SERVICE },
		INIT } } },
	{ "a fresh one in the client's own unit", GUARD_FRESH, &in_service,
	    { { ASK(70, 70), { 70, 65, 70, TTY, 700, false, "bash", "", "" },
		{ 65, 1, 65, 0, 650, false, "tmux", "", SERVICE }, INIT } } },
	{ "a fresh one in a session of logind", GUARD_PASS, &in_pane,
	    { { ASK(70, 70), { 70, 65, 70, TTY, 700, false, "bash", "", "" },
		{ 65, 1, 65, 0, 650, false, "tmux", "", LOGIN }, INIT } } },
	{ "a fresh one in a forged session", GUARD_FRESH, &in_pane,
	    { { ASK(70, 70), { 70, 65, 70, TTY, 700, false, "bash", "", "" },
		{ 65, 1, 65, 0, 650, false, "tmux", "", FORGED }, INIT } } },
	{ "a fresh one in a transient unit", GUARD_FRESH, &in_pane,
	    { { ASK(70, 70), { 70, 65, 70, TTY, 700, false, "bash", "", "" },
		{ 65, 1, 65, 0, 650, false, "tmux", "", RUN_UNIT }, INIT } } },
	{ "a fresh unlisted one in a unit of its own", GUARD_FRESH, &in_pane,
	    { { ASK(70, 70), { 70, 66, 70, TTY, 700, false, "bash", "", "" },
		{ 66, 65, 65, 0, 660, false, "tmux", "", SERVICE },
		{ 65, 1, 65, 0, 650, false, "mine", "", SERVICE }, INIT } } },
	{ "a desktop's terminal opened after the client", GUARD_PASS, &in_menu,
	    { { ASK(70, 70), { 70, 16, 70, TTY, 700, false, "bash", "", "" },
		{ 16, 15, 16, 0, 16, false, "gnome-terminal-", "", SERVICE },
		{ 15, 1, 15, 0, 15, false, "systemd", "", "" }, INIT } } },
	{ "a client that may be an orphan of this terminal", GUARD_FRESH,
	    &in_menu,
	    { { ASK(45, 45), { 45, 16, 45, TTY, 450, false, "bash", "", "" },
		{ 16, 15, 16, 0, 16, false, "gnome-terminal-", "", SERVICE },
		{ 15, 1, 15, 0, 15, false, "systemd", "", "" }, INIT } } },
};

static void
each_chain_is_judged(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < LEN(table); i++) {
		struct drawn peer = table[i].peer;
		enum guard_rule got = judge(&peer, table[i].client);

		if (got != table[i].rule)
			fail_msg("%s: rule %d, expected %d", table[i].what,
			    (int)got, (int)table[i].rule);
	}
}

static void
hosts_are_known_by_file_else_by_name(void **state)
{
	static const char *const hosts[] = { "tmux", "gnome-terminal-server",
		"/opt/t/term", NULL };
	static const struct {
		const char *comm, *exe;
		bool is_host;
	} cases[] = {
		{ "tmux", "", true },
		{ "tmux: server", "", true },
		{ "tmuxinator", "", false },
		{ "tmux: server", "/usr/bin/tmux", true },
		{ "tmux: server", "/tmp/evil", false },
		{ "evil", "/usr/bin/tmux", true },
		{ "gnome-terminal-", "", true },
		{ "gnome-terminal-", "/usr/libexec/gnome-terminal-server",
		    true },
		{ "gnome-terminal", "", false },
		{ "term", "/opt/t/term", true },
		{ "term", "/tmp/t/term", false },
		{ "term", "", false },
		{ "", "", false },
	};
	size_t i;

	(void)state;
	for (i = 0; i < LEN(cases); i++) {
		struct proc p = { 0 };

		memcpy(p.comm, cases[i].comm, strlen(cases[i].comm));
		memcpy(p.exe, cases[i].exe, strlen(cases[i].exe));
		if (guard_is_host(&p, hosts) != cases[i].is_host)
			fail_msg("'%s' '%s'", p.comm, p.exe);
	}
}

/* Foreign bytes of a name cannot start a line or move a cursor. */
static void
the_longest_refusal_fits(void **state)
{
	struct drawn peer = { { ASK(80, 80),
	    { 80, 21, 80, TTY, 800, false, "bash", "", "" },
	    { 21, 1, 20, 0, 790, false,
		"\x1b\x1b\x1b\x1b\x1b\x1b\x1b\x1b\n\n\n", "", "" },
	    INIT } };
	struct chain c = chain_of(&peer);
	struct err e = { 0 };

	(void)state;
	peer.v[2].pid = peer.v[1].ppid = 0x7fffffff;
	assert_int_equal(guard_judge_terminal(&c, guard_default_hosts, &e), -1);
	assert_null(strchr(e.text, '\x1b'));
	assert_null(strchr(e.text, '\n'));
	assert_true(strlen(e.text) < sizeof(e.text) - 1);
	assert_string_equal(e.text + strlen(e.text) - 7, "signed.");
	assert_non_null(strstr(e.text, "guard_hosts"));
}

/* A process, never root's, that stays until it is killed. */
static struct peer
sleeper(bool in_own_session)
{
	struct peer p = { .uid = getuid() == 0 ? 4711 : getuid() };
	int ready[2];
	char c;

	assert_int_equal(pipe(ready), 0);
	p.pid = fork();
	assert_int_not_equal(p.pid, -1);
	if (p.pid == 0) {
		if (setresuid(p.uid, p.uid, p.uid) == -1)
			_exit(1);
		if (in_own_session)
			setsid();
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ready[0]);
		close(ready[1]);
		for (;;)
			pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 0);
	close(ready[0]);
	p.pidfd = (int)syscall(SYS_pidfd_open, p.pid, 0);
	assert_int_not_equal(p.pidfd, -1);
	return p;
}

static void
end(struct peer *p)
{
	kill(p->pid, SIGKILL);
	waitpid(p->pid, NULL, 0);
	peer_release(p);
}

static struct guard *
guard_for_test(enum guard_mode mode, uid_t uid)
{
	const struct guard_options o = { .mode = mode };
	struct guard *g = guard_new(&o);

	guard_add_agent_uid(g, uid);
	guard_add_agent_uid(g, uid);
	return g;
}

/* The guard denies where a process cannot be held; valgrind 3.19 cannot. */
static void
need_pidfd(void)
{
	int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	if (fd == -1)
		skip();
	close(fd);
}

/* Bridge after bridge of one client leaves one record, not one each. */
static void
reconnecting_does_not_fill_the_table(void **state)
{
	struct peer stays;
	struct guard *g;
	int i;

	(void)state;
	need_pidfd();
	stays = sleeper(false);
	g = guard_for_test(GUARD_ANCESTRY, stays.uid);
	for (i = 0; i < 200; i++) {
		struct peer p = sleeper(false);

		assert_true(guard_saw_client(g, &p));
		assert_true(guard_saw_client(g, &p));
		end(&p);
	}
	assert_true(guard_saw_client(g, &stays));
	end(&stays);
	guard_free(g);
}

static void
a_full_table_forgets_nobody(void **state)
{
	struct peer v[80];
	struct guard *g = NULL;
	size_t i, seen = 0;

	(void)state;
	need_pidfd();
	for (i = 0; i < LEN(v); i++) {
		v[i] = sleeper(true);
		if (g == NULL)
			g = guard_for_test(GUARD_ANCESTRY, v[i].uid);
		if (guard_saw_client(g, &v[i]))
			seen++;
	}
	assert_int_equal(seen, 64);
	assert_false(guard_saw_client(g, &v[70]));
	assert_true(guard_saw_client(g, &v[0]));
	v[70].uid++;
	assert_true(guard_saw_client(g, &v[70]));
	v[71].uid = v[0].uid;
	for (i = 0; i < 2; i++)
		end(&v[i]);
	assert_true(guard_saw_client(g, &v[71]));
	for (i = 2; i < LEN(v); i++)
		end(&v[i]);
	guard_free(g);
}

static void
who_cannot_be_recorded_is_told(void **state)
{
	struct peer p, unknown = { .pidfd = -1 };
	struct guard *g, *off;

	(void)state;
	need_pidfd();
	p = sleeper(false);
	g = guard_for_test(GUARD_ANCESTRY, p.uid);
	off = guard_for_test(GUARD_OFF, p.uid);
	unknown.uid = p.uid;
	assert_false(guard_saw_client(g, &unknown));
	assert_true(guard_saw_client(off, &unknown));
	kill(p.pid, SIGKILL);
	waitpid(p.pid, NULL, 0);
	assert_false(guard_saw_client(g, &p));
	peer_release(&p);
	guard_free(g);
	guard_free(off);
}

static void
rule_one_asks_who_speaks(void **state)
{
	struct peer p, gone, other;
	struct guard *g, *off;
	struct err e = { 0 };

	(void)state;
	need_pidfd();
	p = sleeper(false);
	gone = sleeper(false);
	g = guard_for_test(GUARD_ANCESTRY, p.uid);
	off = guard_for_test(GUARD_OFF, p.uid);
	kill(gone.pid, SIGKILL);
	waitpid(gone.pid, NULL, 0);
	assert_int_equal(guard_check(g, &p, p.pid + 1, &e), -1);
	assert_int_equal(rule_of(&e), GUARD_PEER);
	assert_int_equal(guard_check(g, &p, 0, &e), -1);
	assert_int_equal(rule_of(&e), GUARD_PEER);
	assert_int_equal(guard_check(g, &gone, gone.pid, &e), -1);
	assert_int_equal(rule_of(&e), GUARD_PEER);
	other = p;
	other.uid = p.uid + 1;
	assert_false(guard_applies_to(g, other.uid));
	assert_int_equal(guard_check(g, &other, 0, &e), 0);
	other.uid = 65534;
	assert_int_equal(guard_check(g, &other, other.pid, &e), -1);
	assert_int_equal(rule_of(&e), GUARD_PEER);
	assert_int_equal(guard_check(off, &p, 0, &e), 0);
	other.uid = p.uid + 1;
	assert_true(guard_saw_client(g, &other));
	assert_true(guard_applies_to(g, other.uid));
	end(&p);
	peer_release(&gone);
	guard_free(g);
	guard_free(off);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_chain_is_judged),
		cmocka_unit_test(hosts_are_known_by_file_else_by_name),
		cmocka_unit_test(the_longest_refusal_fits),
		cmocka_unit_test(reconnecting_does_not_fill_the_table),
		cmocka_unit_test(a_full_table_forgets_nobody),
		cmocka_unit_test(who_cannot_be_recorded_is_told),
		cmocka_unit_test(rule_one_asks_who_speaks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
