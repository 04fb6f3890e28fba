/* ctl: the control protocol and its verbs, one table for daemon and command */
#include "wire/ctl.h"

#include <assert.h>
#include <string.h>

#include "base/text.h"

const char *const role_name[] = {
	[ROLE_NONE] = "none",
	[ROLE_VIEW] = "view",
	[ROLE_DECIDE] = "decide",
	[ROLE_ADMIN] = "admin",
};
static_assert(sizeof(role_name) / sizeof(role_name[0]) == ROLE_N,
    "every role has a name");

/* clang-format off */
const struct ctl_row ctl_verbs[] = {
	[CTL_PING]     = { "ping", "", ROLE_NONE, false,
			   "say whether the daemon answers" },
	[CTL_VERSION]  = { "version", "", ROLE_NONE, false,
			   "print the versions of command and daemon" },
	[CTL_STATUS]   = { "status", "", ROLE_NONE, false,
			   "show the state of daemon, database and links" },
	[CTL_PENDING]  = { "pending", "", ROLE_VIEW, true,
			   "list the changes that wait for a decision" },
	[CTL_SHOW]     = { "show", "<change>", ROLE_VIEW, true,
			   "show one change with every row" },
	[CTL_COMMIT]   = { "commit", "<change[@digest]>", ROLE_DECIDE, true,
			   "commit a change as it was reviewed" },
	[CTL_ROLLBACK] = { "rollback", "<change> [--reason TEXT]", ROLE_DECIDE, true,
			   "roll a change back and tell the agent why" },
	[CTL_LOG]      = { "log", "[--verify]", ROLE_VIEW, true,
			   "show the journal, or check its chain" },
	[CTL_AGENTS]   = { "agents", "", ROLE_VIEW, true,
			   "list the agents and what they may do" },
};
/* clang-format on */
static_assert(sizeof(ctl_verbs) / sizeof(ctl_verbs[0]) == CTL_NVERBS,
    "every verb has a row");

enum ctl_verb
ctl_verb_by_name(const char *name)
{
	int v = 0;

	while (v < CTL_NVERBS && strcmp(ctl_verbs[v].name, name) != 0)
		v++;
	return (enum ctl_verb)v;
}

#define HEX "0123456789abcdef"
#define ID_LEN 14 /* chg_ and 10 digits */
#define DIGEST_LEN 64

int
ctl_parse_change(const char *s, char id[15], char digest[65], struct err *e)
{
	size_t digits, rest;
	char said[128]; /* fit for a terminal and for JSON */

	text_quote_into(said, sizeof(said), s, strlen(s));
	if (strncmp(s, "chg_", 4) != 0 || strspn(s + 4, HEX) != ID_LEN - 4)
		return err_set(e, ERR_INPUT,
		    "'%s' is not a change: chg_ and 10 hex digits, as "
		    "'airlock pending' lists them",
		    said);
	digits = s[ID_LEN] == '@' ? strspn(s + ID_LEN + 1, HEX) : 0;
	rest = s[ID_LEN] == '@' ? digits + 1 : 0;
	if (s[ID_LEN + rest] != '\0' || (rest != 0 && digits != DIGEST_LEN))
		return err_set(e, ERR_INPUT,
		    "'%s' is not a change: after its id there may be @ and "
		    "all 64 hex digits of its digest, nothing else",
		    said);
	memcpy(id, s, ID_LEN);
	id[ID_LEN] = '\0';
	if (rest != 0)
		memcpy(digest, s + ID_LEN + 1, DIGEST_LEN);
	digest[digits] = '\0';
	return 0;
}

static int
check_envelope(const json_t *msg, struct err *e)
{
	const json_t *version = json_object_get(msg, "airlock");

	if (!json_is_object(msg))
		return err_set(e, ERR_INPUT, "the request is not an object");
	if (!json_is_integer(version))
		return err_set(e, ERR_INPUT,
		    "the request does not name its protocol version");
	if (json_integer_value(version) != CTL_PROTOCOL)
		return err_set(e, ERR_INPUT,
		    "protocol version %lld is not spoken here, %d is; use "
		    "airlock and airlockd of one release",
		    (long long)json_integer_value(version), CTL_PROTOCOL);
	if (!json_is_string(json_object_get(msg, "nonce")))
		return err_set(e, ERR_INPUT, "the request has no nonce");
	return 0;
}

static int
find_verb(const json_t *msg, enum ctl_verb *verb, struct err *e)
{
	const char *name = json_string_value(json_object_get(msg, "verb"));
	char said[64];

	if (name == NULL)
		return err_set(e, ERR_INPUT, "the request has no verb");
	*verb = ctl_verb_by_name(name);
	if (*verb != CTL_NVERBS)
		return 0;
	text_quote_into(said, sizeof(said), name, strlen(name));
	return err_set(e, ERR_INPUT, "there is no verb '%s'", said);
}

/* What is absent reads as {}, so that callers need not ask. */
static int
find_args(json_t *msg, json_t **args, struct err *e)
{
	*args = json_object_get(msg, "args");
	if (*args == NULL) {
		*args = json_object();
		if (json_object_set_new(msg, "args", *args) == -1)
			return err_set(e, ERR_BUG, "cannot add arguments");
	}
	if (!json_is_object(*args))
		return err_set(e, ERR_INPUT, "the arguments are not an object");
	return 0;
}

int
ctl_parse_request(const char *line, size_t len, json_t **msg,
    enum ctl_verb *verb, json_t **args, struct err *e)
{
	json_error_t why;
	json_t *j = json_loadb(line, len, JSON_REJECT_DUPLICATES, &why);
	enum ctl_verb v = CTL_NVERBS;
	json_t *a = NULL;

	if (j == NULL)
		return err_set(e, ERR_INPUT,
		    "the request is not JSON (byte %d)", why.position);
	if (check_envelope(j, e) == -1 || find_verb(j, &v, e) == -1 ||
	    find_args(j, &a, e) == -1) {
		json_decref(j);
		return -1;
	}
	*msg = j;
	*verb = v;
	*args = a;
	return 0;
}
