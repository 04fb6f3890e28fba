/* verbs_view: pending, show and log: the verbs that only look */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "verb.h"

#define PENDING_FETCHED 10000 /* rows of each change, to check its digest */
#define PENDING_SHOWN 10
#define SHOW_SHOWN 100
#define LOG_TAIL_MAX 100000
#define FOLLOW_MS 400

/* One change of the list; one that was decided meanwhile is left out. */
static enum ctl_exit
list_one(struct run *run, struct page *page, const char *id)
{
	struct window w = { NULL, -1, PENDING_FETCHED };
	enum ctl_exit code = CTL_DONE;
	struct review review;
	struct reply r;

	page->show = PENDING_SHOWN;
	if (verb_fetch(run, id, &w, page, &review, &r) != CTL_DONE)
		code = strcmp(r.code, "NOT_FOUND") == 0 ? CTL_DONE
		                                        : verb_refused(run, &r);
	reply_release(&r);
	review_release(&review);
	return code;
}

enum ctl_exit
verb_pending(struct run *run)
{
	json_t *list = json_array(), *one;
	struct page page = { .w = run->w->list,
		.term = run->out,
		.brief = true };
	enum ctl_exit worst = CTL_DONE, code;
	struct reply r;
	size_t i;

	if (client_ask(run->client, CTL_PENDING, NULL, verb_collect, &list,
		&r) != CTL_DONE) {
		json_decref(list);
		return verb_refused(run, &r);
	}
	reply_release(&r);
	page.w->begin(&page);
	json_array_foreach (list, i, one) {
		const char *id = json_string_value(json_object_get(one, "id"));

		if (id == NULL)
			continue;
		code = list_one(run, &page, id);
		worst = code > worst ? code : worst;
	}
	page.w->end(&page);
	if (json_array_size(list) == 0)
		verb_say(run, CTL_DONE, "no change is pending");
	json_decref(list);
	return worst;
}

/* A new file for --export; an old one is never written over. */
static FILE *
create(struct run *run, const char *path)
{
	int fd = open(path,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	FILE *f = fd == -1 ? NULL : fdopen(fd, "w");

	if (f == NULL)
		verb_say(run, CTL_NO, "cannot create '%s': %s",
		    term_quote_str(path, 300), strerror(errno));
	return f;
}

static enum ctl_exit
export_rows(struct run *run, const char *id)
{
	const char *path = run->o->file;
	struct window w = { run->o->table, run->o->offset, run->o->limit };
	struct page page = { .w = writer_json.one, .show = UINT64_MAX };
	struct review review;
	struct reply r;
	bool good, written;

	page.term.out = create(run, path);
	if (page.term.out == NULL)
		return CTL_NO;
	good = verb_fetch(run, id, &w, &page, &review, &r) == CTL_DONE;
	written = !ferror(page.term.out);
	written = fclose(page.term.out) == 0 && written;
	if (good && !written) {
		good = false;
		reply_fail(&r, CTL_NO, "NOT_WRITTEN", "cannot write '%s'",
		    path);
	}
	if (good)
		verb_say(run, CTL_DONE, "wrote %" PRIu64 " rows of %s to '%s'",
		    review.rows, id, term_quote_str(path, 300));
	else
		unlink(path);
	review_release(&review);
	if (!good)
		return verb_refused(run, &r);
	reply_release(&r);
	return CTL_DONE;
}

/* An ended change of before a restart has no tables to name. */
static bool
lacks_table(const json_t *header, const char *name)
{
	json_t *tables = json_object_get(header, "tables"), *one;
	size_t i;

	json_array_foreach (tables, i, one) {
		const char *s =
		    json_string_value(json_object_get(one, "table"));

		if (s != NULL && strcmp(s, name) == 0)
			return false;
	}
	return json_array_size(tables) > 0;
}

/* For people all rows are fetched and checked, and a page of them is shown; a
 * program gets what it asks for. */
enum ctl_exit
verb_show(struct run *run)
{
	const struct options *o = run->o;
	struct window w = { NULL, -1, -1 };
	struct page page = { .w = run->w->one,
		.term = run->out,
		.show = UINT64_MAX,
		.column = o->column };
	char id[15], digest[65];
	struct review review;
	enum ctl_exit code;
	struct reply r;

	if (!verb_change(run, id, digest, &code))
		return code;
	if (o->file != NULL)
		return export_rows(run, id);
	if (o->json) {
		w = (struct window){ o->table, o->offset, o->limit };
	} else {
		page.table = o->table;
		page.skip = o->offset > 0 ? (uint64_t)o->offset : 0;
		page.show = o->limit >= 0 ? (uint64_t)o->limit : SHOW_SHOWN;
	}
	code = verb_fetch(run, id, &w, &page, &review, &r);
	if (code != CTL_DONE) {
		review_release(&review);
		return verb_refused(run, &r);
	}
	if (o->table != NULL && lacks_table(review.header, o->table))
		code = verb_say(run, CTL_NO,
		    "%s changes no table '%s': write it as the counts do", id,
		    term_quote_str(o->table, 300));
	else if (page.shown > 0 && o->column != NULL && !page.has_column)
		code = verb_say(run, CTL_NO,
		    "no row of %s that is shown has a column '%s'", id,
		    term_quote_str(o->column, 300));
	review_release(&review);
	reply_release(&r);
	return code;
}

/* Records as they come; with --limit the last ones are kept for the end. */
struct tail {
	struct run *run;
	json_t **kept;
	size_t size, n; /* of kept; records seen */
	json_int_t seq; /* of the last one */
};

static bool
take_record(void *arg, json_t *rec)
{
	struct tail *t = arg;
	json_int_t seq = json_integer_value(json_object_get(rec, "seq"));

	if (seq > t->seq)
		t->seq = seq;
	if (t->kept == NULL) {
		t->run->w->record(&t->run->out, rec);
	} else if (t->size > 0) {
		json_decref(t->kept[t->n % t->size]);
		t->kept[t->n % t->size] = json_incref(rec);
	}
	t->n++;
	return true;
}

static void
print_kept(struct tail *t)
{
	for (size_t i = 0; i < t->size; i++) {
		json_t *rec = t->kept[(t->n + i) % t->size];

		if (rec != NULL)
			t->run->w->record(&t->run->out, rec);
		json_decref(rec);
	}
	free(t->kept);
	t->kept = NULL;
}

static enum ctl_exit
ask_log(struct run *run, struct tail *t, long limit, struct reply *r)
{
	json_t *args = json_object();

	if (t->seq > 0)
		json_object_set_new(args, "from", json_integer(t->seq + 1));
	if (limit >= 0)
		json_object_set_new(args, "limit", json_integer(limit));
	if (run->o->change != NULL)
		json_object_set_new(args, "change",
		    json_string(run->o->change));
	return client_ask(run->client, CTL_LOG, args, take_record, t, r);
}

/* The daemon has no word for "go on", so it is asked again from where the last
 * answer ended. */
static enum ctl_exit
follow(struct run *run, struct tail *t)
{
	const struct timespec pause = { .tv_nsec = FOLLOW_MS * 1000000L };
	struct reply r;

	while (fflush(run->out.out) == 0) {
		nanosleep(&pause, NULL);
		if (ask_log(run, t, -1, &r) != CTL_DONE)
			return verb_refused(run, &r);
		reply_release(&r);
	}
	return CTL_NO;
}

static enum ctl_exit
verify(struct run *run)
{
	struct reply r;

	if (client_ask(run->client, CTL_LOG, json_pack("{s:b}", "verify", 1),
		NULL, NULL, &r) != CTL_DONE)
		return verb_refused(run, &r);
	run->w->verified(&run->out, r.ok);
	reply_release(&r);
	return CTL_DONE;
}

enum ctl_exit
verb_log(struct run *run)
{
	const struct options *o = run->o;
	struct tail t = { .run = run };
	char id[15], digest[65];
	struct err e = { 0 };
	struct reply r;

	if (o->change != NULL &&
	    (ctl_parse_change(o->change, id, digest, &e) == -1 ||
		digest[0] != '\0'))
		return verb_say(run, CTL_USAGE,
		    "'%s' is not the id of a change",
		    term_quote_str(o->change, 100));
	if (o->verify)
		return verify(run);
	if (o->limit >= 0) {
		t.size =
		    o->limit < LOG_TAIL_MAX ? (size_t)o->limit : LOG_TAIL_MAX;
		t.kept = mem_array(t.size + 1, sizeof(t.kept[0]));
	}
	ask_log(run, &t, o->limit, &r);
	if (t.kept != NULL)
		print_kept(&t);
	if (r.exit != CTL_DONE)
		return verb_refused(run, &r);
	reply_release(&r);
	return o->follow ? follow(run, &t) : CTL_DONE;
}
