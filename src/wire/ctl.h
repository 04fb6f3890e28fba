/* ctl: the control protocol and its verbs, one table for daemon and command */
#ifndef AIRLOCK_WIRE_CTL_H
#define AIRLOCK_WIRE_CTL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/*
 * One JSON object a line over control.sock.
 *   daemon: {"airlock":1,"version":"0.1.0","nonce":"<32 hex>"}   on connect
 *   client: {"airlock":1,"nonce":"<the same>","verb":"show","args":{...}}
 *           sent with SCM_CREDENTIALS (the kernel adds them); one a connection
 *           at a time, further requests after the answer
 *   daemon: any number of {"data":...}, then one of
 *           {"ok":true,...}   {"ok":false,"exit":1,"code":"...","error":"..."}
 */
#define CTL_PROTOCOL 1
#define CTL_LINE_MAX 65536

enum role { ROLE_NONE, ROLE_VIEW, ROLE_DECIDE, ROLE_ADMIN, ROLE_N };
extern const char *const role_name[ROLE_N];

/* Exit codes of airlock(1). */
enum ctl_exit { CTL_DONE, CTL_NO, CTL_USAGE, CTL_UNREACHABLE, CTL_DENIED };

enum ctl_verb {
	CTL_PING,
	CTL_VERSION,
	CTL_STATUS,
	CTL_PENDING,
	CTL_SHOW,
	CTL_COMMIT,
	CTL_ROLLBACK,
	CTL_LOG,
	CTL_AGENTS,
	CTL_NVERBS
};

struct ctl_row {
	const char *name;
	const char *pattern; /* "<change[@digest]>", as help says it */
	enum role role;      /* least role; ROLE_NONE: whoever can connect */
	bool guarded;        /* the operator guard is asked first */
	const char *help;    /* one line */
};
extern const struct ctl_row ctl_verbs[CTL_NVERBS];
/* CTL_NVERBS where there is none. */
enum ctl_verb ctl_verb_by_name(const char *name);

/* clang-format off */
/*
 * args of each verb (all optional unless marked *):
 *   pending   {}                          data: one header object a change
 *   show      {"change"*, "table", "offset", "limit"}
 *             data: the header, then one row object each; ok: {"rows":n,"next":m}
 *   commit    {"change"*, "digest"* }     ok: {"change":{...}}
 *             DIGEST_MOVED: also "was", what the change was at that digest:
 *             {"digest", "statements":n, "risk", "complete", "tables":[{"table",
 *             "inserted","updated","deleted","unchanged","complete"}]}, and
 *             "change", its header now
 *   rollback  {"change"*, "reason"}       ok: {"change":{...}}
 *   log       {"from","limit","change","verify"} data: one record each;
 *             ok: {"next":n}, for verify {"records":n,"files":n}
 *   status    {}   data: one object; a guarded peer gets the bare health part
 *   agents    {}   data: one object each
 */
/* clang-format on */

/* Splits "chg_0123456789@<64 hex>": id into 15 bytes, digest into 65 (empty
 * where there is no @).  ERR_INPUT says what a change is written like. */
int ctl_parse_change(const char *s, char id[15], char digest[65],
    struct err *e) MUST_CHECK;
/* Parses one request line; *args is a borrowed object of *msg. */
int ctl_parse_request(const char *line, size_t len, json_t **msg,
    enum ctl_verb *verb, json_t **args, struct err *e) MUST_CHECK;

#endif
