/* verbs_decide: commit and rollback, bound to what was seen */
#include <string.h>

#include "ask.h"
#include "verb.h"

#define REASON_MAX 4096
#define MOVED_SHOWN 10

/* Sends a decision (takes args).  The outcome must be the one asked for. */
static enum ctl_exit
decide(struct run *run, enum ctl_verb verb, json_t *args, const char *want,
    struct reply *r)
{
	json_t *change;
	const char *status;

	if (client_ask(run->client, verb, args, NULL, NULL, r) != CTL_DONE)
		return r->exit;
	change = json_object_get(r->ok, "change");
	status = json_string_value(json_object_get(change, "status"));
	if (status == NULL || strcmp(status, want) != 0)
		return verb_say(run, CTL_NO, "it is not %s but: %s", want,
		    status != NULL ? term_quote_str(status, 64) : "not said");
	run->w->decided(&run->out, change);
	return CTL_DONE;
}

/* After a refusal; where the answer was lost nobody here knows the end. */
static enum ctl_exit
undecided(struct run *run, const char *id, struct reply *r)
{
	bool lost = strcmp(r->code, "BROKEN_ANSWER") == 0;
	enum ctl_exit code = verb_refused(run, r);

	if (lost)
		verb_say(run, code,
		    "whether it was done is not known here; ask: airlock show "
		    "%s",
		    id);
	return code;
}

static bool
has_moved(const struct reply *r)
{
	return r->exit == CTL_NO && strcmp(r->code, "DIGEST_MOVED") == 0;
}

/* Says what differs, and what the change is now; `shown` is what was shown
 * before, or NULL where only its digest is known here: then the daemon tells
 * what it was. */
static void
show_moved(struct run *run, const char *id, const json_t *shown,
    const json_t *refusal)
{
	const json_t *was =
	    shown != NULL ? shown : json_object_get(refusal, "was");
	const json_t *now = json_object_get(refusal, "change");
	struct window w = { NULL, -1, -1 };
	struct page page = { .w = writer_text.one,
		.term = run->talk,
		.brief = true,
		.show = MOVED_SHOWN };
	struct review review;
	struct reply r;

	verb_say(run, CTL_NO, "nothing was done: %s %s", id,
	    shown != NULL ? "has changed since it was shown"
			  : "is no longer what the digest names");
	if (json_is_object(was) && json_is_object(now)) {
		verb_say(run, CTL_NO, "what differs, then -> now:");
		writer_compare(&run->talk, was, now);
	}
	verb_say(run, CTL_NO, "it is now:");
	if (verb_fetch(run, id, &w, &page, &review, &r) != CTL_DONE)
		verb_refused(run, &r);
	reply_release(&r);
	review_release(&review);
}

static enum ctl_exit
commit_digest(struct run *run, const char *id, const char *digest,
    const json_t *shown)
{
	struct reply r;
	enum ctl_exit code = decide(run, CTL_COMMIT,
	    json_pack("{s:s, s:s}", "change", id, "digest", digest),
	    "committed", &r);

	if (r.exit == CTL_DONE) {
		reply_release(&r);
		return code;
	}
	if (!has_moved(&r))
		return undecided(run, id, &r);
	code = verb_say(run, CTL_NO, "%s (%s)", r.error, r.code);
	show_moved(run, id, shown, r.refusal);
	reply_release(&r);
	return code;
}

static bool
is_high(const json_t *header)
{
	const char *risk = json_string_value(json_object_get(header, "risk"));

	return risk == NULL ||
	       (strcmp(risk, "low") != 0 && strcmp(risk, "medium") != 0);
}

/* What was fetched is shown, its digest is known to be that of its rows. */
static enum ctl_exit
ask_and_commit(struct run *run, const char *id, const struct review *review)
{
	uint64_t rows = review_changed(review->header);

	if (!review_is_pending(review->header))
		return verb_say(run, CTL_NO, "%s is already decided: %s", id,
		    term_member(review->header, "status", 64));
	if (!review->complete)
		return verb_say(run, CTL_NO,
		    "not all rows of %s could be fetched: nothing was done",
		    id);
	writer_summary(&run->out, review->header);
	/* A high risk without any row is asked for as well: by y. */
	if (!ask_commit(id, is_high(review->header) ? rows : 0))
		return verb_say(run, CTL_NO,
		    "%s was not committed; it stays pending", id);
	return commit_digest(run, id, review->digest, review->header);
}

enum ctl_exit
verb_commit(struct run *run)
{
	struct window w = { NULL, -1, -1 };
	struct page page = { .w = writer_text.one,
		.term = run->out,
		.show = UINT64_MAX };
	char id[15], digest[65];
	struct review review;
	enum ctl_exit code;
	struct reply r;

	if (!verb_change(run, id, digest, &code))
		return code;
	if (digest[0] != '\0')
		return commit_digest(run, id, digest, NULL);
	if (!ask_is_possible() || run->o->json)
		return verb_say(run, CTL_USAGE,
		    "without a terminal to ask on, commit needs what it commits: "
		    "airlock commit %s@DIGEST (the token that airlock show %s "
		    "prints)",
		    id, id);
	code = verb_fetch(run, id, &w, &page, &review, &r);
	if (code == CTL_DONE)
		code = ask_and_commit(run, id, &review);
	else
		verb_refused(run, &r);
	reply_release(&r);
	review_release(&review);
	return code;
}

enum ctl_exit
verb_rollback(struct run *run)
{
	const char *reason = run->o->reason;
	char id[15], digest[65];
	enum ctl_exit code;
	struct reply r;
	json_t *args;

	if (!verb_change(run, id, digest, &code))
		return code;
	if (reason != NULL && (strlen(reason) > REASON_MAX ||
				  !text_is_utf8(reason, strlen(reason))))
		return verb_say(run, CTL_USAGE,
		    "a reason is UTF-8 text of at most %d bytes", REASON_MAX);
	args = json_pack("{s:s}", "change", id);
	if (reason != NULL)
		json_object_set_new(args, "reason", json_string(reason));
	code = decide(run, CTL_ROLLBACK, args, "rolled_back", &r);
	if (r.exit != CTL_DONE)
		return undecided(run, id, &r);
	reply_release(&r);
	return code;
}
