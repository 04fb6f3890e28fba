/* view: a change as its operator and as its agent are shown it */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "core/internal.h"
#include "diff/unpack.h"

static json_t *
string_or_null(const char *s)
{
	return s != NULL ? json_string(s) : json_null();
}

/* A database in SQL_ASCII may have names of any bytes. */
json_t *
shown_json(const char *s)
{
	json_t *j = json_string(s);
	struct text t = { 0 };

	if (j != NULL)
		return j;
	text_add_utf8(&t, s, strlen(s));
	j = json_string(text_str(&t));
	text_release(&t);
	return j;
}

static json_t *
iso(int64_t wall_ms)
{
	char out[CLOCK_ISO_SIZE];

	clock_iso(out, wall_ms);
	return json_string(out);
}

static json_t *
size_or_null(int64_t rows)
{
	return rows >= 0 ? json_integer(rows) : json_null();
}

json_t *
change_tables_json(const struct change *c, bool filled)
{
	json_t *list = json_array();

	for (size_t i = 0; i < c->ntables; i++) {
		const struct change_table *t = &c->tables[i];
		json_t *j =
		    json_pack("{s:o, s:I, s:I, s:I, s:I, s:b, s:o, s:o, s:b}",
			"table", shown_json(t->name), "inserted",
			(json_int_t)t->n[IMAGE_INSERT], "updated",
			(json_int_t)t->n[IMAGE_UPDATE], "deleted",
			(json_int_t)t->n[IMAGE_DELETE], "unchanged",
			(json_int_t)t->unchanged, "collateral", t->collateral,
			"rows_before", size_or_null(t->rows_before),
			"rows_after", size_or_null(t->rows_after), "complete",
			t->complete);
		json_t *out;

		if (t->collateral && t->by != NULL)
			json_object_set(j, "by", t->by);
		if (filled && (out = filled_json(t)) != NULL)
			json_object_set_new(j, "filled", out);
		if (t->estimated)
			json_object_set_new(j, "rows_estimated", json_true());
		json_array_append_new(list, j);
	}
	return list;
}

/* What raised the risk; a bare note is an effect and stands there. */
json_t *
reasons_json(const struct verdict *v)
{
	json_t *list = json_array();

	for (size_t i = 0; i < v->n; i++)
		json_array_append_new(list,
		    json_pack("{s:s, s:o}", "code",
			reasons[v->v[i].reason].code, "text",
			shown_json(v->v[i].text)));
	return list;
}

static void
set_ending(const struct change *c, json_t *j)
{
	if (c->why != NULL)
		json_object_set_new(j, "why", json_string(c->why));
	if (c->reason != NULL)
		json_object_set_new(j, "reason", json_string(c->reason));
}

/* NULL for both where a change was refused before it was judged: it is neither
 * of low risk nor complete. */
static const char *
risk_or_none(const struct change *c)
{
	return c->risk != SEVERITY_NOTE ? severity_name[c->risk] : NULL;
}

static json_t *
complete_or_none(const struct change *c)
{
	return c->risk != SEVERITY_NOTE ? json_boolean(c->complete) : NULL;
}

json_t *
change_header(const struct change *c)
{
	json_t *j = json_pack(
	    "{s:s, s:s, s:s, s:s, s:o, s:s*, s:o, s:O, s:o, s:o*, s:O}", "id",
	    c->id, "agent", c->agent->o->name, "database",
	    c->gate->o->database.name, "status", change_status[c->state],
	    "intent", string_or_null(c->intent), "risk", risk_or_none(c),
	    "reasons", reasons_json(&c->verdict), "statements", c->statements,
	    "tables", change_tables_json(c, true), "complete",
	    complete_or_none(c), "effects", c->effects);
	char token[CHANGE_ID_SIZE + DIGEST_HEX_SIZE];

	snprintf(token, sizeof(token), "%s@%s", c->id, c->digest);
	json_object_set_new(j, "digest", json_string(c->digest));
	json_object_set_new(j, "replay_digest", json_string(c->replay));
	json_object_set_new(j, "token", json_string(token));
	json_object_set_new(j, "created_at", iso(c->created_wall));
	json_object_set_new(j, "expires_at",
	    c->expires_wall != 0 ? iso(c->expires_wall) : json_null());
	set_ending(c, j);
	if (c->decided_by != NULL)
		json_object_set_new(j, "decided_by",
		    json_string(c->decided_by));
	return j;
}

/* --- the agent's view --- */

/* How many bytes of stored rows are looked at for one sample, whatever rows
 * there are: all others wait meanwhile. */
#define SAMPLED_BYTES_MAX ((size_t)4 << 20)
#define SAMPLED_VALUE_MAX 200

struct sampling {
	const struct limits *l;
	json_t *rows;
	size_t bytes, looked_at;
	struct unpacked row;
};

static json_t *
cut_value(const struct value *v)
{
	size_t keep;
	char *s;
	json_t *out;

	if (v->p == NULL)
		return json_null();
	if (v->len <= SAMPLED_VALUE_MAX)
		return json_stringn(v->p, v->len);
	keep = text_utf8_cut(v->p, v->len, SAMPLED_VALUE_MAX);
	s = mem_printf("%.*s... (%zu bytes)", (int)keep, v->p, v->len);
	out = json_string(s);
	free(s);
	return out;
}

/* Whether the column that is number i of c is the same in the other image. */
static bool
is_left_alone(const struct columns *c, size_t i, const struct columns *other)
{
	const struct value *v = &c->values[i], *w;
	size_t k = i;

	if (k >= other->n || strcmp(other->names[k], c->names[i]) != 0)
		for (k = 0; k < other->n; k++)
			if (strcmp(other->names[k], c->names[i]) == 0)
				break;
	if (k == other->n)
		return false;
	w = &other->values[k];
	if (v->p == NULL || w->p == NULL)
		return v->p == w->p;
	return v->len == w->len && memcmp(v->p, w->p, v->len) == 0;
}

/* An image; of one beside another the columns that differ only. */
static json_t *
columns_json(const struct columns *c, const struct columns *other)
{
	json_t *j;

	if (!c->there)
		return json_null();
	j = json_object();
	for (size_t i = 0; i < c->n; i++)
		if (other == NULL || !other->there ||
		    !is_left_alone(c, i, other))
			json_object_set_new(j, c->names[i],
			    cut_value(&c->values[i]));
	return j;
}

static bool
sample_row(void *arg, const char *line, size_t len)
{
	struct sampling *s = arg;
	const struct rowline l = { .line = line, .json_len = len };
	struct unpacked *u = &s->row;
	struct err e = ERR_INIT;
	json_t *row;
	char *dump;

	s->looked_at += len;
	if (json_array_size(s->rows) > 0 && s->looked_at > SAMPLED_BYTES_MAX)
		return false;
	if (unpack(u, &l, &e) == -1)
		return false;
	row = json_pack("{s:o, s:s, s:b, s:o, s:o, s:o}", "table",
	    shown_json(u->table), "op", image_op_name[u->op], "collateral",
	    u->collateral, "key", columns_json(&u->key, NULL), "before",
	    columns_json(&u->before, &u->after), "after",
	    columns_json(&u->after, &u->before));
	dump = json_dumps(row, JSON_COMPACT);
	s->bytes += dump != NULL ? strlen(dump) : 0;
	free(dump);
	if (s->bytes > s->l->result_bytes_max / 4) {
		json_decref(row);
		return false;
	}
	json_array_append_new(s->rows, row);
	return json_array_size(s->rows) < (size_t)s->l->sample_rows;
}

static json_t *
sample(const struct change *c)
{
	struct sampling s = { .l = &c->gate->o->limits, .rows = json_array() };
	struct err e = ERR_INIT;
	uint64_t next;

	if (c->store != NULL && s.l->sample_rows > 0 &&
	    store_read(c->store, 0, sample_row, &s, &next, &e) == -1)
		json_array_clear(s.rows);
	unpack_release(&s.row);
	return s.rows;
}

/* clang-format off */
static const char *const message[CHANGE_NSTATES] = {
	[CHANGE_RUNNING]     = "The statement is running.",
	[CHANGE_HELD]        = "NOT applied yet. The change is held in an open transaction until an operator decides; nobody else sees it. Call db_status with wait_s to learn the decision, db_withdraw to take it back.",
	[CHANGE_ADDING]      = "NOT applied yet. A statement is being added.",
	[CHANGE_COMMITTING]  = "NOT applied yet. An operator has approved it; the server's answer is awaited.",
	[CHANGE_ENDING]      = "NOT applied. It is being rolled back.",
	[CHANGE_COMMITTED]   = "Applied: the server confirmed the COMMIT.",
	[CHANGE_ROLLED_BACK] = "NOT applied: the change was rolled back. Drop whatever you believed because of it.",
	[CHANGE_IN_DOUBT]    = "Not known yet: the answer to COMMIT was lost and is being asked for. Do not send the change again.",
	[CHANGE_FAILED]      = "NOT applied: the server refused the COMMIT. Drop whatever you believed because of it.",
};
/* clang-format on */

json_t *
change_result(const struct change *c, bool with_sample)
{
	json_t *j = json_pack("{s:s, s:s, s:s*, s:o, s:o, s:o*}", "change_id",
	    c->id, "status", change_status[c->state], "risk", risk_or_none(c),
	    "reasons", reasons_json(&c->verdict), "tables",
	    change_tables_json(c, false), "complete", complete_or_none(c));

	set_ending(c, j);
	if (json_array_size(c->effects) > 0)
		json_object_set(j, "effects", c->effects);
	if (with_sample)
		json_object_set_new(j, "sample", sample(c));
	if (!change_has_ended(c) && c->expires_wall != 0)
		json_object_set_new(j, "expires_at", iso(c->expires_wall));
	json_object_set_new(j, "message", json_string(message[c->state]));
	return j;
}
