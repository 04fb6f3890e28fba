/* config_types: what a value of airlockd.conf can be, parsed and printed */
#include "front/config_types.h"

#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "front/dsn.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define AGENT_UIDS_MAX 64

static void *
field(const struct config_key *k, void *target)
{
	return (char *)target + k->offset;
}

static const void *
const_field(const struct config_key *k, const void *target)
{
	return (const char *)target + k->offset;
}

/* Strings. */

static void
replace(const struct config_key *k, void *target, char *value)
{
	char **p = field(k, target);

	mem_free_secret(*p);
	*p = value;
}

static int
parse_string(const struct config_key *k, void *target, const char *value,
    struct err *e)
{
	if (*value == '\0')
		return err_set(e, ERR_INPUT, "there is nothing behind the '='");
	for (const char *p = value; *p != '\0'; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			return err_set(e, ERR_INPUT,
			    "there is a control character in it");
	replace(k, target, mem_strdup(value));
	return 0;
}

static void
show_string(const struct config_key *k, const void *target, struct text *out)
{
	const char *const *p = const_field(k, target);

	if (*p != NULL)
		text_add(out, *p);
}

static void
drop_string(const struct config_key *k, void *target)
{
	replace(k, target, NULL);
}

/* Kept absolute: a reload must not depend on where the daemon stands. */
static int
parse_path(const struct config_key *k, void *target, const char *value,
    struct err *e)
{
	char cwd[PATH_MAX], *whole;
	int r;

	if (*value == '\0')
		return err_set(e, ERR_INPUT, "an empty path");
	if (*value == '/')
		return parse_string(k, target, value, e);
	if (getcwd(cwd, sizeof(cwd)) == NULL)
		return err_sys(e, "cannot find the current directory");
	whole = mem_printf("%s/%s", strcmp(cwd, "/") == 0 ? "" : cwd, value);
	r = parse_string(k, target, whole, e);
	free(whole);
	return r;
}

static int
parse_dsn(const struct config_key *k, void *target, const char *value,
    struct err *e)
{
	char *dsn;

	if (dsn_parse(value, &dsn, e) != 0)
		return -1;
	replace(k, target, dsn);
	return 0;
}

static int
parse_dsn_or_embedded(const struct config_key *k, void *target,
    const char *value, struct err *e)
{
	if (strcmp(value, CONFIG_EMBEDDED) == 0)
		return parse_string(k, target, value, e);
	return parse_dsn(k, target, value, e);
}

static void
show_dsn(const struct config_key *k, const void *target, struct text *out)
{
	const char *const *p = const_field(k, target);
	char *masked;

	if (*p == NULL)
		return;
	masked =
	    strcmp(*p, CONFIG_EMBEDDED) == 0 ? mem_strdup(*p) : dsn_masked(*p);
	text_add(out, masked);
	free(masked);
}

/* Lists of words. */

static void
drop_words(const struct config_key *k, void *target)
{
	char ***p = field(k, target);

	for (size_t i = 0; *p != NULL && (*p)[i] != NULL; i++)
		free((*p)[i]);
	free(*p);
	*p = NULL;
}

/* The next word behind blanks and commas at *p, NULL at the end; to be freed.
 */
static char *
next_word(const char **p)
{
	size_t n;
	char *word;

	*p += strspn(*p, " \t,");
	n = strcspn(*p, " \t,");
	if (n == 0)
		return NULL;
	word = mem_strndup(*p, n);
	*p += n;
	return word;
}

static int
parse_words(const struct config_key *k, void *target, const char *value,
    struct err *e)
{
	size_t n = 0, max = (size_t)k->max;
	char **list = mem_array(max + 1, sizeof(*list)), *word;

	while ((word = next_word(&value)) != NULL && n < max)
		list[n++] = word;
	if (n == 0 || word != NULL) {
		free(word);
		while (n > 0)
			free(list[--n]);
		free(list);
		return err_set(e, ERR_INPUT, "write from 1 to %zu words", max);
	}
	drop_words(k, target);
	memcpy(field(k, target), &list, sizeof(list));
	return 0;
}

static void
show_words(const struct config_key *k, const void *target, struct text *out)
{
	char *const *const *p = const_field(k, target);

	for (size_t i = 0; *p != NULL && (*p)[i] != NULL; i++)
		text_addf(out, "%s%s", i > 0 ? " " : "", (*p)[i]);
}

/* Enumerations: an int-sized field, a word for each value. */

static int
parse_enum(const struct config_key *k, void *target, const char *value,
    struct err *e)
{
	size_t from = (size_t)k->min, n = k->type->nwords;
	struct text t = { 0 };

	for (size_t i = from; i < n; i++) {
		int v = (int)i;

		if (strcmp(value, k->type->words[i]) == 0) {
			memcpy(field(k, target), &v, sizeof(v));
			return 0;
		}
	}
	for (size_t i = from; i < n; i++)
		text_addf(&t, "%s%s",
		    i == from   ? ""
		    : i + 1 < n ? ", "
				: " or ",
		    k->type->words[i]);
	err_set(e, ERR_INPUT, "'%.40s' is not %s", value, text_str(&t));
	text_release(&t);
	return -1;
}

static void
show_enum(const struct config_key *k, const void *target, struct text *out)
{
	int v;

	memcpy(&v, const_field(k, target), sizeof(v));
	if (v >= 0 && (size_t)v < k->type->nwords)
		text_add(out, k->type->words[v]);
}

static int
parse_bool(const struct config_key *k, void *target, const char *value,
    struct err *e)
{
	bool *p = field(k, target);

	if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
		return err_set(e, ERR_INPUT, "'%.40s' is not yes or no", value);
	*p = value[0] == 'y';
	return 0;
}

static void
show_bool(const struct config_key *k, const void *target, struct text *out)
{
	const bool *p = const_field(k, target);

	text_add(out, *p ? "yes" : "no");
}

/* Numbers: one reader and one writer a width. */

static const struct unit {
	char letter;
	long long factor;
} units[] = {
	{ 'G', 1024LL * 1024 * 1024 },
	{ 'M', 1024LL * 1024 },
	{ 'K', 1024LL },
};

static int
parse_number(const struct config_key *k, const char *value, bool suffix,
    long long *out, struct err *e)
{
	size_t n = strlen(value);
	long long factor = 1, v = 0;
	char digits[32];
	struct err bad = ERR_INIT;

	for (size_t i = 0; suffix && n > 1 && i < COUNT(units); i++)
		if (value[n - 1] == units[i].letter)
			factor = units[i].factor;
	if (factor > 1)
		n--;
	if (n >= sizeof(digits))
		n = 0;
	memcpy(digits, value, n);
	digits[n] = '\0';
	if (text_to_long(digits, 0, LLONG_MAX / factor, &v, &bad) != 0 ||
	    v * factor < k->min || v * factor > k->max)
		return err_set(e, ERR_INPUT,
		    "'%.40s' is not a number from %lld to %lld%s", value,
		    k->min, k->max, suffix ? " (K, M, G may follow)" : "");
	*out = v * factor;
	return 0;
}

static void
show_number(struct text *out, long long v, bool suffix)
{
	for (size_t i = 0; suffix && i < COUNT(units); i++)
		if (v != 0 && v % units[i].factor == 0) {
			text_addf(out, "%lld%c", v / units[i].factor,
			    units[i].letter);
			return;
		}
	text_addf(out, "%lld", v);
}

#define NUMBER(name, type, suffix)                                             \
	static int parse_##name(const struct config_key *k, void *target,      \
	    const char *value, struct err *e)                                  \
	{                                                                      \
		__typeof__(type) *p = field(k, target);                        \
		long long v = 0;                                               \
                                                                               \
		if (parse_number(k, value, suffix, &v, e) != 0)                \
			return -1;                                             \
		*p = (type)v;                                                  \
		return 0;                                                      \
	}                                                                      \
	static void show_##name(const struct config_key *k,                    \
	    const void *target, struct text *out)                              \
	{                                                                      \
		const __typeof__(type) *p = const_field(k, target);            \
                                                                               \
		show_number(out, (long long)*p, suffix);                       \
	}

NUMBER(int, int, false)
NUMBER(long, long, false)
NUMBER(int64, int64_t, false)
NUMBER(uint64, uint64_t, true)
NUMBER(size, size_t, true)

static int
parse_time(const struct config_key *k, const char *value, int64_t *ms,
    struct err *e)
{
	char min[32], max[32];

	if (clock_parse_duration(value, ms, e) != 0)
		return -1;
	if (*ms >= k->min && *ms <= k->max)
		return 0;
	clock_print_duration(min, sizeof(min), k->min);
	clock_print_duration(max, sizeof(max), k->max);
	return err_set(e, ERR_INPUT, "'%.40s' is not from %s to %s", value, min,
	    max);
}

#define DURATION(name, type)                                                   \
	static int parse_##name(const struct config_key *k, void *target,      \
	    const char *value, struct err *e)                                  \
	{                                                                      \
		__typeof__(type) *p = field(k, target);                        \
		int64_t ms = 0;                                                \
                                                                               \
		if (parse_time(k, value, &ms, e) != 0)                         \
			return -1;                                             \
		*p = (type)ms;                                                 \
		return 0;                                                      \
	}                                                                      \
	static void show_##name(const struct config_key *k,                    \
	    const void *target, struct text *out)                              \
	{                                                                      \
		const __typeof__(type) *p = const_field(k, target);            \
		char s[32];                                                    \
                                                                               \
		clock_print_duration(s, sizeof(s), *p);                        \
		text_add(out, s);                                              \
	}

DURATION(duration, int)
DURATION(duration64, int64_t)

/* Users and groups, by name or number; printed as numbers, which do not depend
 * on a name service. */

static int
find_id(const char *value, bool group, unsigned *id, struct err *e)
{
	struct passwd *pw = group ? NULL : getpwnam(value);
	struct group *gr = group ? getgrnam(value) : NULL;
	struct err bad = ERR_INIT;
	long long n;

	if (pw != NULL || gr != NULL)
		*id = pw != NULL ? pw->pw_uid : gr->gr_gid;
	else if (text_to_long(value, 0, UINT_MAX - 1, &n, &bad) == 0)
		*id = (unsigned)n;
	else
		return err_set(e, ERR_INPUT, "there is no %s '%.40s'",
		    group ? "group" : "user", value);
	return 0;
}

static int
parse_user(const struct config_key *k, void *target, const char *value,
    struct err *e)
{
	return find_id(value, false, field(k, target), e);
}

static int
parse_group(const struct config_key *k, void *target, const char *value,
    struct err *e)
{
	return find_id(value, true, field(k, target), e);
}

static void
show_id(const struct config_key *k, const void *target, struct text *out)
{
	const unsigned *p = const_field(k, target);

	if (*p != (unsigned)-1)
		text_addf(out, "%u", *p);
}

static int
parse_users(const struct config_key *k UNUSED, void *target, const char *value,
    struct err *e)
{
	struct agent_options *a = target;
	uid_t *uids = mem_array(AGENT_UIDS_MAX, sizeof(*uids));
	size_t n = 0;
	char *word;

	while ((word = next_word(&value)) != NULL && n < AGENT_UIDS_MAX &&
	       find_id(word, false, &uids[n], e) == 0) {
		n++;
		free(word);
	}
	if (word != NULL || n == 0) {
		if (word == NULL || n == AGENT_UIDS_MAX)
			err_set(e, ERR_INPUT, "write from 1 to %d users",
			    AGENT_UIDS_MAX);
		free(word);
		free(uids);
		return -1;
	}
	free(a->uids);
	a->uids = uids;
	a->nuids = n;
	return 0;
}

static void
show_users(const struct config_key *k UNUSED, const void *target,
    struct text *out)
{
	const struct agent_options *a = target;

	for (size_t i = 0; i < a->nuids; i++)
		text_addf(out, "%s%u", i > 0 ? " " : "", a->uids[i]);
}

static void
drop_users(const struct config_key *k UNUSED, void *target)
{
	struct agent_options *a = target;

	free(a->uids);
	a->uids = NULL;
	a->nuids = 0;
}

/* The table. */

static const char *const level_words[] = { "error", "warn", "info", "debug" };
static const char *const guard_words[] = { "ancestry", "off" };

/* clang-format off */
#define TYPE(name, form, shape, drop) \
	const struct config_type type_##name = { \
	    form, parse_##name, shape, drop, NULL, 0 };
TYPE(string, "text", show_string, drop_string)
TYPE(path, "path", show_string, drop_string)
TYPE(words, "words", show_words, drop_words)
TYPE(bool, "yes or no", show_bool, NULL)
TYPE(int, "number", show_int, NULL)
TYPE(long, "number", show_long, NULL)
TYPE(int64, "number", show_int64, NULL)
TYPE(uint64, "number", show_uint64, NULL)
TYPE(size, "number", show_size, NULL)
TYPE(duration, "duration", show_duration, NULL)
TYPE(duration64, "duration", show_duration64, NULL)
TYPE(user, "user", show_id, NULL)
TYPE(group, "group", show_id, NULL)
TYPE(users, "users", show_users, drop_users)
TYPE(dsn, "connection string", show_dsn, drop_string)
TYPE(dsn_or_embedded, "connection string", show_dsn, drop_string)
#define ENUM(name, words) \
	const struct config_type type_##name = { \
	    "word", parse_enum, show_enum, NULL, words, COUNT(words) };
ENUM(level, level_words)
ENUM(guard, guard_words)
ENUM(access, access_name)
ENUM(role, role_name)
/* clang-format on */
