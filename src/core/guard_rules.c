/* guard_rules: the guard's rules 3 to 5, over chains that were already read */
#include "core/guard_rules.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

const char *const guard_rule_name[] = {
	[GUARD_PASS] = "pass",
	[GUARD_PEER] = "peer",
	[GUARD_CHAIN] = "chain",
	[GUARD_TERMINAL] = "terminal",
	[GUARD_CLIENT] = "agent's side",
	[GUARD_FRESH] = "fresh terminal",
};
static_assert(sizeof(guard_rule_name) / sizeof(guard_rule_name[0]) ==
		  GUARD_NRULES,
    "every rule has a name");

/* None of these adopts orphans: that would hand it the agent's. */
/* clang-format off */
const char *const guard_default_hosts[] = {
	"tmux", "screen", "zellij", "sshd", "sshd-session", "mosh-server",
	"login", "gnome-terminal-server", "kgx", "ptyxis-agent", "konsole",
	"yakuake", "xfce4-terminal", "mate-terminal", "lxterminal", "qterminal",
	"tilix", "terminology", "xterm", "urxvt", "urxvtd", "rxvt", "st",
	"kitty", "alacritty", "foot", "wezterm-gui", "wezterm-mux-server",
	"ghostty", "contour", "rio", NULL
};
/* clang-format on */

/* A short one: err_set has 512 bytes for a terminal at night. */
static const char ways_out[] =
    "Ways out: decide under a uid that no agent has; or use a terminal of your "
    "own whose program is in guard_hosts, opened before the agent's client; "
    "or, where that key exists, set approvals = signed.";

int
guard_deny(struct err *e, enum guard_rule rule, const char *fmt, ...)
{
	char what[240];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return err_set(e, ERR_DENIED, "operator guard, rule %d (%s): %s. %s",
	    (int)rule, guard_rule_name[rule], what, ways_out);
}

/* "'vim' (pid 12)" */
struct said {
	char s[4 * PROC_COMM_SIZE + 32];
};

static struct said
say(const struct proc *p)
{
	char name[4 * PROC_COMM_SIZE];
	struct said out;

	text_quote_into(name, sizeof(name), p->comm, strlen(p->comm));
	snprintf(out.s, sizeof(out.s), "'%s' (pid %ld)", name, (long)p->pid);
	return out;
}

bool
guard_is_host(const struct proc *p, const char *const *hosts)
{
	const char *slash = strrchr(p->exe, '/');
	const char *base = slash != NULL ? slash + 1 : p->exe;
	size_t cut = sizeof(p->comm) - 1;

	for (; *hosts != NULL; hosts++) {
		size_t n = strlen(*hosts);

		if (strchr(*hosts, '/') != NULL ? strcmp(p->exe, *hosts) == 0
		    : p->exe[0] != '\0'         ? strcmp(base, *hosts) == 0
					: strncmp(p->comm, *hosts, cut) == 0)
			return true;
		/* tmux calls itself "tmux: server" */
		if (p->exe[0] == '\0' && n < cut && p->comm[n] == ':' &&
		    strncmp(p->comm, *hosts, n) == 0)
			return true;
	}
	return false;
}

/* The service manager of a user (systemd --user) takes the orphans of what
 * runs under it, as pid 1 does those of the others. */
static bool
is_reaper(const struct proc *p)
{
	static const char *const names[] = { "systemd", NULL };

	return p->pid == 1 || (p->ppid == 1 && guard_is_host(p, names));
}

static size_t
find_anchor(const struct chain *c)
{
	size_t i;

	for (i = 0; i < c->n; i++)
		if (c->v[i].root || is_reaper(&c->v[i]))
			break;
	return i;
}

bool
client_is_suspect(const struct client *c, size_t i, const char *const *hosts)
{
	return i < c->anchor && !guard_is_host(&c->chain.v[i], hosts);
}

void
client_measure(struct client *c, const char *const *hosts)
{
	size_t i;

	c->anchor = find_anchor(&c->chain);
	c->since = c->chain.v[0].start;
	for (i = 0; i < c->chain.n; i++) {
		c->lives[i] = true;
		if (client_is_suspect(c, i, hosts) &&
		    c->chain.v[i].start < c->since)
			c->since = c->chain.v[i].start;
	}
}

/* sshd hands a login over by a fork: the child drops to the user's uid and
 * stays the same program. */
static bool
is_forked_login(const struct proc *p, const struct proc *parent)
{
	return parent->root && parent->pid != 1 &&
	       strcmp(p->comm, parent->comm) == 0;
}

int
guard_judge_terminal(const struct chain *peer, const char *const *hosts,
    struct err *e)
{
	const struct proc *p = peer->v, *leader, *holder, *above;
	size_t i;

	if (p->root || is_reaper(p))
		return guard_deny(e, GUARD_TERMINAL,
		    "%s is of a kind that cannot be told from an agent's",
		    say(p).s);
	if (p->tty == 0)
		return guard_deny(e, GUARD_TERMINAL,
		    "%s has no controlling terminal", say(p).s);
	for (i = 0; i < peer->n && peer->v[i].pid != p->sid; i++)
		;
	if (i == peer->n || peer->v[i].tty != p->tty)
		return guard_deny(e, GUARD_TERMINAL,
		    "the process that opened this terminal's session is not "
		    "above %s any more",
		    say(p).s);
	leader = &peer->v[i];
	if (i + 1 == peer->n)
		return guard_deny(e, GUARD_TERMINAL,
		    "who started %s cannot be seen", say(leader).s);
	holder = &peer->v[i + 1];
	above = i + 2 < peer->n ? &peer->v[i + 2] : NULL;
	if (holder->pid != 1 &&
	    (holder->root || guard_is_host(holder, hosts) ||
		(above != NULL && is_forked_login(holder, above))))
		return 0;
	return guard_deny(e, GUARD_TERMINAL,
	    "%s holds this terminal and is not in guard_hosts", say(holder).s);
}

/* A unit that neither of the two could give itself.  Scopes and run-* are made
 * on the spot by any process of the user, session scopes by logind alone. */
static bool
is_unit_of_its_own(const struct proc *p, const struct proc *other)
{
	const char *slash = strrchr(p->unit, '/');
	const char *name = slash != NULL ? slash + 1 : p->unit;
	size_t n = strlen(name);

	if (strcmp(p->unit, other->unit) == 0)
		return false;
	if (n > 6 && strcmp(name + n - 6, ".scope") == 0)
		return text_starts_with(name, "session-") &&
		       text_starts_with(p->unit, "/user.slice/user-") &&
		       strstr(p->unit, "/user@") == NULL;
	return n > 8 && strcmp(name + n - 8, ".service") == 0 &&
	       !text_starts_with(name, "run-");
}

/* The lowest of the peer's chain that is also in the client's. */
static size_t
find_common(const struct chain *peer, const struct chain *client)
{
	size_t i;

	for (i = 0; i < peer->n; i++)
		if (chain_find(client, &peer->v[i]) != client->n)
			break;
	return i;
}

static int
judge_ancestry(const struct chain *peer, const struct client *c, size_t common,
    const char *const *hosts, struct err *e)
{
	size_t i;

	for (i = 0; i < c->chain.n; i++)
		if (c->lives[i] && c->chain.v[i].sid == peer->v[0].sid)
			return guard_deny(e, GUARD_CLIENT,
			    "this terminal is also that of %s, from which an "
			    "agent's client was started",
			    say(&c->chain.v[i]).s);
	for (i = common; i < peer->n; i++) {
		const struct proc *p = &peer->v[i];

		if (p->root || is_reaper(p))
			break;
		if (!guard_is_host(p, hosts))
			return guard_deny(e, GUARD_CLIENT,
			    "%s started both this terminal and an agent's "
			    "client",
			    say(p).s);
	}
	return 0;
}

/*
 * An orphan hangs below pid 1, below the user's service manager or, where a
 * root-owned process adopts them, below one of its former ancestors.  So what
 * hangs there and is younger than the client may be the client's.
 */
static int
judge_top(const struct chain *peer, size_t anchor, const struct client *c,
    const char *const *hosts, struct err *e)
{
	const struct proc *a = &peer->v[anchor], *top = &peer->v[anchor - 1];
	const struct proc *client = &c->chain.v[0];

	if (!is_reaper(a) &&
	    (chain_find(&c->chain, a) == c->chain.n || guard_is_host(a, hosts)))
		return 0;
	if (top->start < c->since ||
	    (guard_is_host(top, hosts) && is_unit_of_its_own(top, client)))
		return 0;
	return guard_deny(e, GUARD_FRESH,
	    "%s, which holds this terminal, is not older than the agent's "
	    "client; use one that was open before it",
	    say(top).s);
}

/* The other way round: a client that hangs below pid 1 may have been started
 * from the peer's own terminal, unless it is older than that. */
static int
judge_orphan(const struct chain *peer, size_t anchor, const struct client *c,
    const char *const *hosts, struct err *e)
{
	const struct proc *v = c->chain.v, *top, *leader = peer->v;
	size_t i, at = c->anchor;

	if (at == 0)
		return 0;
	top = &v[at - 1];
	if (at < c->chain.n && !is_reaper(&v[at]) &&
	    !proc_is_same(&v[at], &peer->v[anchor]))
		return 0;
	for (i = 0; i < peer->n; i++)
		if (peer->v[i].pid == peer->v[0].sid)
			leader = &peer->v[i];
	if (guard_is_host(top, hosts) || top->start < leader->start ||
	    is_unit_of_its_own(top, leader))
		return 0;
	return guard_deny(e, GUARD_FRESH,
	    "%s, above an agent's client, may have been started from this "
	    "terminal; open a new one",
	    say(top).s);
}

int
guard_judge_client(const struct chain *peer, const struct client *c,
    const char *const *hosts, struct err *e)
{
	size_t common = find_common(peer, &c->chain);
	size_t anchor = find_anchor(peer);

	if (anchor == 0 || anchor == peer->n)
		return guard_deny(e, GUARD_CHAIN, "the chain has no anchor");
	if (judge_ancestry(peer, c, common, hosts, e) == -1)
		return -1;
	if (common < anchor)
		return 0; /* they part below the anchor, in a host */
	if (judge_top(peer, anchor, c, hosts, e) == -1 ||
	    judge_orphan(peer, anchor, c, hosts, e) == -1)
		return -1;
	return 0;
}
