/* scan: what a line's messages are called, read as it comes, however long */
#include "wire/scan.h"

#include <string.h>

static const struct {
	const char *key;
	enum scan_member member;
	bool in_params;
} members[] = {
	{ "id", SCAN_ID, false },
	{ "method", SCAN_METHOD, false },
	{ "params", SCAN_PARAMS, false },
	{ "result", SCAN_ANSWER, false },
	{ "error", SCAN_ANSWER, false },
	{ "requestId", SCAN_CANCELS, true },
};

void
scan_start(struct scan *s)
{
	memset(s, 0, sizeof(*s));
	s->member = SCAN_OTHER;
}

/* Whether names and values at this depth are of interest. */
static bool
is_watched(const struct scan *s)
{
	return s->in_message && (s->depth == s->level ||
				    (s->in_params && s->depth == s->level + 1));
}

static bool
is_kept(const struct scan *s)
{
	return s->in_value && s->member < SCAN_KEPT && is_watched(s);
}

static void
keep(struct scan *s, const char *p, size_t n)
{
	size_t room = SCAN_TOKEN_MAX - s->kept[s->member].len;

	if (n > room)
		s->kept[s->member].times = 2; /* as if it stood twice */
	else {
		memcpy(s->kept[s->member].s + s->kept[s->member].len, p, n);
		s->kept[s->member].len += n;
	}
}

static void
add_key(struct scan *s, const char *p, size_t n)
{
	if (n >= sizeof(s->key) - s->key_len)
		n = sizeof(s->key) - s->key_len; /* no name is that long */
	memcpy(s->key + s->key_len, p, n);
	s->key_len += n;
}

static void
end_key(struct scan *s)
{
	s->in_key = false;
	s->member = SCAN_OTHER;
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		if (strlen(members[i].key) == s->key_len &&
		    memcmp(members[i].key, s->key, s->key_len) == 0 &&
		    members[i].in_params == (s->depth > s->level))
			s->member = members[i].member;
}

/* The value that was kept, or NULL. */
static json_t *
value(const struct scan *s, enum scan_member m)
{
	json_t *j = s->kept[m].times != 1
	                ? NULL
	                : json_loadb(s->kept[m].s, s->kept[m].len,
			      JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);

	if (json_is_string(j) || json_is_integer(j))
		return j;
	json_decref(j);
	return NULL;
}

static void
tell_message(struct scan *s, scan_tell *tell, void *arg)
{
	json_t *id = value(s, SCAN_ID), *method = value(s, SCAN_METHOD),
	       *cancels = value(s, SCAN_CANCELS);
	struct scan_found f = {
		.id = id,
		.method = json_string_value(method),
		.cancels = cancels,
		.is_answer = s->is_answer,
	};

	s->in_message = s->in_params = false;
	tell(arg, &f);
	json_decref(id);
	json_decref(method);
	json_decref(cancels);
}

static void
begin_message(struct scan *s)
{
	s->in_message = true;
	s->in_params = s->is_answer = false;
	for (int m = 0; m < SCAN_KEPT; m++)
		s->kept[m].len = 0, s->kept[m].times = 0;
}

static void
open_bracket(struct scan *s, char c)
{
	bool at_level = s->depth == s->level;

	if (s->depth == 0)
		s->level = c == '[' ? 2 : 1;
	else if (at_level && s->in_message && s->in_value &&
		 s->member == SCAN_PARAMS)
		s->in_params = true;
	s->depth++;
	s->in_value = false;
	s->member = SCAN_OTHER;
	if (s->depth == s->level && c == '{')
		begin_message(s);
}

static void
close_bracket(struct scan *s, scan_tell *tell, void *arg)
{
	s->depth--;
	s->in_value = true;
	s->member = SCAN_OTHER;
	if (s->depth == s->level)
		s->in_params = false;
	if (s->depth < s->level && s->in_message)
		tell_message(s, tell, arg);
	if (s->depth <= 0)
		s->broken = true; /* what follows belongs to no message */
}

static void
begin_member_value(struct scan *s)
{
	s->in_value = true;
	if (s->member < SCAN_KEPT)
		s->kept[s->member].times++;
	else if (s->member == SCAN_ANSWER)
		s->is_answer = true;
}

/* One byte outside strings. */
static void
step(struct scan *s, char c, scan_tell *tell, void *arg)
{
	bool watched = is_watched(s);

	if (c == '{' || c == '[')
		open_bracket(s, c);
	else if (c == '}' || c == ']')
		close_bracket(s, tell, arg);
	else if (c == ',' && watched) {
		s->in_value = false;
		s->member = SCAN_OTHER;
	} else if (c == ':' && watched && !s->in_value)
		begin_member_value(s);
	else if (c == '"') {
		s->in_string = true;
		s->in_key = watched && !s->in_value;
		s->key_len = 0;
		if (is_kept(s))
			keep(s, &c, 1);
	} else if (is_kept(s))
		keep(s, &c, 1);
}

/* Takes what belongs to the string that is open; gives how much that was. */
static size_t
string(struct scan *s, const char *p, size_t n)
{
	size_t i = 0;

	while (i < n && (s->escaped || p[i] != '"')) {
		s->escaped = !s->escaped && p[i] == '\\';
		i++;
	}
	if (s->in_key)
		add_key(s, p, i);
	if (i < n) {
		s->in_string = false;
		if (s->in_key)
			end_key(s);
		i++;
	}
	if (is_kept(s))
		keep(s, p, i);
	return i;
}

void
scan_feed(struct scan *s, const char *p, size_t n, scan_tell *tell, void *arg)
{
	for (size_t i = 0; i < n && !s->broken;) {
		if (s->in_string)
			i += string(s, p + i, n - i);
		else
			step(s, p[i++], tell, arg);
	}
}

void
scan_end(struct scan *s, scan_tell *tell, void *arg)
{
	if (s->in_message)
		tell_message(s, tell, arg);
}
