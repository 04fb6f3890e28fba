/* guard: does this peer sit in a terminal of the operator's own? */
#include "core/guard.h"

#include <stdlib.h>
#include <sys/queue.h>

#include "base/log.h"
#include "base/mem.h"
#include "core/guard_rules.h"
#include "wire/proctree.h"

/* A uid with more clients than this at once is not served (SIZE_MAX: none). */
#define CLIENTS_MAX 64
/* What the kernel says for a uid that has no number in our user namespace. */
#define OVERFLOW_UID 65534

struct record {
	struct client client;
	uid_t uid;
	TAILQ_ENTRY(record) entry;
};

struct guard {
	enum guard_mode mode;
	char **hosts; /* owned, NULL: the built-in list */
	uid_t *uids;
	size_t nuids;
	TAILQ_HEAD(record_list, record) records;
};

static const char *const *
hosts_of(const struct guard *g)
{
	return g->hosts != NULL ? (const char *const *)g->hosts
	                        : guard_default_hosts;
}

struct guard *
guard_new(const struct guard_options *o)
{
	struct guard *g = mem_new(sizeof(*g));
	size_t n = 0;

	g->mode = o->mode;
	TAILQ_INIT(&g->records);
	if (o->hosts == NULL)
		return g;
	while (o->hosts[n] != NULL)
		n++;
	g->hosts = mem_array(n + 1, sizeof(*g->hosts));
	while (n-- > 0)
		g->hosts[n] = mem_strdup(o->hosts[n]);
	return g;
}

static void
forget(struct guard *g, struct record *r)
{
	TAILQ_REMOVE(&g->records, r, entry);
	chain_release(&r->client.chain);
	free(r);
}

void
guard_free(struct guard *g)
{
	struct record *r;
	size_t i;

	if (g == NULL)
		return;
	while ((r = TAILQ_FIRST(&g->records)) != NULL)
		forget(g, r);
	for (i = 0; g->hosts != NULL && g->hosts[i] != NULL; i++)
		free(g->hosts[i]);
	free(g->hosts);
	free(g->uids);
	free(g);
}

void
guard_add_agent_uid(struct guard *g, uid_t uid)
{
	if (guard_applies_to(g, uid))
		return;
	g->uids = mem_grow(g->uids, g->nuids + 1, sizeof(*g->uids));
	g->uids[g->nuids++] = uid;
}

bool
guard_applies_to(const struct guard *g, uid_t uid)
{
	size_t i;

	for (i = 0; i < g->nuids; i++)
		if (g->uids[i] == uid)
			return true;
	return false;
}

/* The sessions that have a process, read at most once a round. */
struct round {
	bool asked, known;
	pid_t *v;
	size_t n;
};

static int
by_pid(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

/* When they cannot be read, every session lives. */
static bool
session_lives(struct round *r, pid_t sid)
{
	struct err e = ERR_INIT;

	if (!r->asked)
		r->known = proc_sessions(&r->v, &r->n, &e) == 0;
	r->asked = true;
	if (!r->known)
		return true;
	return sid > 0 && r->n > 0 &&
	       bsearch(&sid, r->v, r->n, sizeof(sid), by_pid) != NULL;
}

/* False when nothing that could be the agent's is left of it. */
static bool
refresh(struct client *c, const char *const *hosts, struct round *round)
{
	bool any = false;
	size_t i;

	for (i = 0; i < c->chain.n; i++) {
		if (c->lives[i] && !proc_is_alive(&c->chain.v[i]))
			c->lives[i] = session_lives(round, c->chain.v[i].sid);
		if (c->lives[i] && client_is_suspect(c, i, hosts))
			any = true;
	}
	return any;
}

/*
 * All that lives of a is in b: a says nothing more but its age.  A client that
 * starts bridge after bridge would fill the table otherwise.
 */
static bool
is_covered(const struct client *a, const struct client *b)
{
	size_t i, j, at;

	if (a->anchor >= a->chain.n || b->anchor >= b->chain.n ||
	    !proc_is_same(&a->chain.v[a->anchor], &b->chain.v[b->anchor]))
		return false;
	for (i = 0; i < a->chain.n; i++) {
		if (!a->lives[i])
			continue;
		at = chain_find(&b->chain, &a->chain.v[i]);
		if (at < b->chain.n)
			continue;
		if (proc_is_alive(&a->chain.v[i]))
			return false;
		for (j = 0; j < b->chain.n; j++)
			if (b->chain.v[j].sid == a->chain.v[i].sid)
				break;
		if (j == b->chain.n)
			return false;
	}
	return true;
}

/* Takes over into b what b covers. */
static void
absorb(const struct client *a, struct client *b)
{
	if (a->since < b->since)
		b->since = a->since;
}

static void
refresh_all(struct guard *g)
{
	struct round round = { 0 };
	struct record *r = TAILQ_FIRST(&g->records), *next;

	for (; r != NULL; r = next) {
		next = TAILQ_NEXT(r, entry);
		if (!refresh(&r->client, hosts_of(g), &round))
			forget(g, r);
	}
	free(round.v);
}

/* True where it is in the table now, by itself or by another. */
static bool
add(struct guard *g, struct record *new)
{
	struct record *r, *next;
	size_t n = 0;

	for (r = TAILQ_FIRST(&g->records); r != NULL; r = next) {
		next = TAILQ_NEXT(r, entry);
		if (is_covered(&new->client, &r->client)) {
			absorb(&new->client, &r->client);
			chain_release(&new->client.chain);
			free(new);
			return true;
		}
		if (is_covered(&r->client, &new->client)) {
			absorb(&r->client, &new->client);
			forget(g, r);
		} else if (r->uid == new->uid) {
			n++;
		}
	}
	if (n >= CLIENTS_MAX)
		return false;
	TAILQ_INSERT_TAIL(&g->records, new, entry);
	return true;
}

bool
guard_saw_client(struct guard *g, const struct peer *p)
{
	struct record *new;
	struct err e = ERR_INIT;

	if (g->mode == GUARD_OFF)
		return true;
	guard_add_agent_uid(g, p->uid); /* may be let in by its group */
	refresh_all(g);
	new = mem_new(sizeof(*new));
	new->uid = p->uid;
	if (chain_read(p->pid, &new->client.chain, &e) == 0) {
		client_measure(&new->client, hosts_of(g));
		if (!peer_is_alive(p))
			err_set(&e, ERR_GONE, "it has ended");
		else if (add(g, new))
			return true;
		else
			err_set(&e, ERR_LIMIT,
			    "uid %lu has more than %d clients",
			    (unsigned long)p->uid, CLIENTS_MAX);
	}
	log_warnx("guard: process %ld is not served: %s", (long)p->pid, e.text);
	chain_release(&new->client.chain);
	free(new);
	return false;
}

/* Rules 1 and 2: one process is at the other end, and all above it is seen. */
static int
see_peer(const struct peer *p, pid_t sender_pid, struct chain *chain,
    struct err *e)
{
	struct err why = ERR_INIT;

	if (p->pid <= 0 || sender_pid != p->pid || !peer_is_alive(p))
		return guard_deny(e, GUARD_PEER,
		    "the process that connected (pid %ld) is not the one that "
		    "asks (pid %ld)",
		    (long)p->pid, (long)sender_pid);
	if (chain_read(p->pid, chain, &why) == -1)
		return guard_deny(e, GUARD_CHAIN, "%s", why.text);
	if (chain->v[chain->n - 1].pid != 1)
		return guard_deny(e, GUARD_CHAIN,
		    "pid %ld was started from outside of what can be seen",
		    (long)chain->v[chain->n - 1].pid);
	if (!peer_is_alive(p))
		return guard_deny(e, GUARD_PEER,
		    "the process that asks (pid %ld) has ended", (long)p->pid);
	return 0;
}

int
guard_check(struct guard *g, const struct peer *p, pid_t sender_pid,
    struct err *e)
{
	struct chain chain = { 0 };
	struct record *r;
	int ret = -1;

	if (g->mode == GUARD_OFF)
		return 0;
	if (p->uid == OVERFLOW_UID)
		return guard_deny(e, GUARD_PEER,
		    "uid %lu stands for users that have no number here",
		    (unsigned long)p->uid);
	if (!guard_applies_to(g, p->uid))
		return 0;
	if (see_peer(p, sender_pid, &chain, e) == -1 ||
	    guard_judge_terminal(&chain, hosts_of(g), e) == -1)
		goto out;
	refresh_all(g);
	TAILQ_FOREACH (r, &g->records, entry)
		if (guard_judge_client(&chain, &r->client, hosts_of(g), e) ==
		    -1)
			goto out;
	ret = 0;
out:
	chain_release(&chain);
	return ret;
}
