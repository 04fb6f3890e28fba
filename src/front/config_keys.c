/* config_keys: the keys of airlockd.conf, one row each, and how to find one */
#include "front/config_keys.h"

#include <assert.h>
#include <string.h>

#include "base/log.h"
#include "front/config_types.h"

#define NEAR_MAX 2 /* edits that still count as a slip */
#define NAME_MAX_LEN 48

const char *const section_name[SECTION_N] = {
	[SECTION_AIRLOCK] = "airlock",
	[SECTION_DATABASE] = "database",
	[SECTION_AGENT] = "agent",
	[SECTION_OPERATOR] = "operator",
	[SECTION_TABLE] = "table",
};
static_assert(sizeof(section_name) / sizeof(section_name[0]) == SECTION_N,
    "one name a section");

#define G(field) offsetof(struct config, gate.field)
#define L(field) offsetof(struct config, gate.limits.field)
#define C(field) offsetof(struct config, field)
#define A(field) offsetof(struct agent_options, field)
#define O(field) offsetof(struct operator_options, field)
#define KB 1024LL
#define MB (1024 * KB)
#define GB (1024 * MB)
#define SECOND 1000LL
#define DAY (24 * 3600 * SECOND)

/* clang-format off */
const struct config_key config_keys[] = {
#define K(name, type, offset, value, min, max, reload, help) \
	{ SECTION_AIRLOCK, name, &(type), offset, value, min, max, reload, help },
	/* where things are */
	K("state_dir", type_path, C(state_dir), NULL, 0, 0, false,
	    "the state directory")
	K("runtime_dir", type_path, C(runtime_dir), NULL, 0, 0, false,
	    "where the sockets are; run in the state directory when not set")
	K("log_level", type_level, C(log_level), "info", 0, 0, true,
	    "the least that is logged")
	/* who may decide */
	K("operator_guard", type_guard, G(guard.mode), "ancestry", 0, 0, false,
	    "how an operator is told from an agent under one uid")
	K("guard_hosts", type_words, C(guard_hosts), NULL, 0, 64, false,
	    "programs that may hold an operator's terminal")
	K("shared_uid", type_bool, C(shared_uid), "no", 0, 0, false,
	    "agents of one uid may differ in access")
	/* times */
	K("ttl", type_duration64, L(ttl_ms), "10m", SECOND, DAY, true,
	    "how long a change is held for a decision")
	K("lock_timeout", type_duration, L(lock_timeout_ms), "2s", 10, 600 * SECOND, true,
	    "how long a statement waits for a lock")
	K("read_timeout", type_duration, L(read_timeout_ms), "10s", 10, 3600 * SECOND, true,
	    "how long a read may run")
	K("write_timeout", type_duration, L(write_timeout_ms), "30s", 10, 3600 * SECOND, true,
	    "how long a write may run")
	K("connect_timeout", type_duration, L(connect_timeout_ms), "10s", 100, 600 * SECOND, true,
	    "how long a connection to the database may take")
	/* how many */
	K("changes_max", type_int, L(changes_max), "8", 1, 1000, true,
	    "changes held at once, of all agents")
	K("agent_changes_max", type_int, L(agent_changes_max), "8", 1, 1000, true,
	    "changes held at once, of one agent")
	K("reads_max", type_int, L(reads_max), "4", 1, 1000, true,
	    "reads that run at once")
	K("agent_calls_max", type_int, L(agent_calls_max), "32", 1, 10000, true,
	    "calls of one agent that wait for their answer at once")
	/* an agent that keeps being refused */
	K("refusals_max", type_int, L(refusals_max), "60", 0, 100000, true,
	    "refusals within refusals_window that make an agent wait; 0 for never")
	K("refusals_window", type_duration64, L(refusals_window_ms), "1m", SECOND, DAY, true,
	    "how far back refusals count")
	K("cool_off", type_duration64, L(cool_off_ms), "30s", SECOND, DAY, true,
	    "how long such an agent waits")
	/* how much of an answer */
	K("result_bytes_max", type_size, L(result_bytes_max), "40000", KB, 16 * MB, true,
	    "one tool result")
	K("cell_bytes_max", type_size, L(cell_bytes_max), "4000", 16, 16 * MB, true,
	    "one value in a result")
	K("rows_max", type_long, L(rows_max), "500", 1, 1000000, true,
	    "the most rows that an agent may ask for")
	K("rows_default", type_long, L(rows_default), "50", 1, 1000000, true,
	    "rows when an agent does not say")
	K("sample_rows", type_long, L(sample_rows), "5", 0, 1000, true,
	    "rows of the diff in an agent's answer")
	K("count_rows_max", type_int64, L(count_rows_max), "10000", 0, 1000000000, true,
	    "tables up to this size are counted exactly")
	/* how much of a statement and its diff */
	K("statement_bytes_max", type_size, L(statement_bytes_max), "64K", KB, MB, false,
	    "one statement")
	K("statement_depth_max", type_int, L(statement_depth_max), "500", 5, 500, true,
	    "how deep one statement may be nested")
	K("statement_names_max", type_int, L(statement_names_max), "1000", 1, 1000, true,
	    "relations, functions, types and operators that one statement may name")
	K("row_bytes_max", type_size, L(row_bytes_max), "64M", 64 * KB, GB, false,
	    "one row that the server sends")
	K("param_bytes_max", type_size, L(param_bytes_max), "1M", KB, 64 * MB, true,
	    "all parameters of a call")
	K("params_max", type_int, L(params_max), "1000", 0, 65535, true,
	    "parameters of a call")
	K("diff_bytes_max", type_uint64, L(diff_bytes_max), "4G", MB, 1024 * GB, true,
	    "the row images of one change, on the disk")
	K("sweep_limit", type_uint64, L(sweep_limit), "1G", 0, 1024 * GB, true,
	    "tables up to this size are searched for rows that a trigger or cascade changed")
	K("narrow_above", type_uint64, L(narrow_above), "1M", 0, 1024 * GB, true,
	    "larger tables are searched by their keys and indexes first")
	K("fold_rows_max", type_uint64, L(fold_rows_max), "200000", 1, 100000000, true,
	    "changed rows up to which a change may be added to")
	/* the parser child */
	K("parser_deadline", type_duration, G(parser.deadline_ms), "2s", 10, 60 * SECOND, false,
	    "how long one statement may be parsed")
	K("parser_memory_max", type_size, G(parser.memory_max), "2G", 64 * MB, 64 * GB, false,
	    "the address space of the process that parses")
	K("parser_queue_max", type_size, G(parser.queue_max), "64", 1, 100000, false,
	    "statements of one agent that wait to be parsed")
	K("operator_run_max", type_size, G(parser.operator_run_max), "256", 1, 100000, false,
	    "operators in a row outside comments and literals")
	K("comment_depth_max", type_size, G(parser.comment_depth_max), "64", 1, 10000, false,
	    "comments inside comments")
	/* the journal */
	K("journal_file_bytes_max", type_uint64, G(journal.file_bytes_max), "64M", MB, 16 * GB, false,
	    "one file of the journal")
	K("journal_reserve_bytes", type_uint64, G(journal.reserve_bytes), "1M", 64 * KB, GB, false,
	    "disk space kept so that decisions can still be written")
	K("journal_record_bytes_max", type_size, G(journal.record_bytes_max), "4M", 64 * KB, 64 * MB, false,
	    "one record")
#undef K
#define K(name, type, offset, value, help) \
	{ SECTION_DATABASE, name, &(type), offset, value, 0, 0, false, help },
	K("writer_dsn", type_dsn_or_embedded, G(database.writer_dsn), NULL,
	    "connection string of the writer, or embedded")
	K("reader_dsn", type_dsn, G(database.reader_dsn), NULL,
	    "of the reader; the writer's when not set")
	K("observer_dsn", type_dsn, G(database.observer_dsn), NULL,
	    "of the observer; the writer's when not set")
	K("search_path", type_string, G(database.search_path), "\"$user\", public",
	    "search_path of every session")
	K("init_file", type_path, C(init_file), NULL,
	    "SQL that a new embedded database begins with")
#undef K
#define K(name, type, offset, value, help) \
	{ SECTION_AGENT, name, &(type), offset, value, 0, 0, false, help },
	K("access", type_access, A(access), "data",
	    "what the agent may propose")
	K("users", type_users, A(uids), NULL,
	    "who may connect to the agent's socket")
	K("group", type_group, A(gid), NULL,
	    "group of the socket: who can try to connect")
	K("writer_dsn", type_dsn, A(writer_dsn), NULL,
	    "this agent's own writer")
	K("reader_dsn", type_dsn, A(reader_dsn), NULL,
	    "this agent's own reader")
	K("search_path", type_string, A(search_path), NULL,
	    "this agent's own search_path")
#undef K
#define K(name, type, offset, value, min, max, help) \
	{ SECTION_OPERATOR, name, &(type), offset, value, min, max, false, help },
	K("user", type_user, O(uid), NULL, 0, 0,
	    "the operator's login")
	K("group", type_group, O(gid), NULL, 0, 0,
	    "whose members are this operator")
	K("role", type_role, O(role), "decide", ROLE_VIEW, ROLE_ADMIN,
	    "what the operator may do")
#undef K
};
/* clang-format on */
const size_t config_nkeys = sizeof(config_keys) / sizeof(config_keys[0]);

/* Edits (insert, delete, replace) that make a of b; names are short. */
static size_t
distance(const char *a, const char *b)
{
	size_t row[NAME_MAX_LEN + 1], na = strlen(a), nb = strlen(b);

	if (na > NAME_MAX_LEN || nb > NAME_MAX_LEN)
		return NAME_MAX_LEN;
	for (size_t j = 0; j <= nb; j++)
		row[j] = j;
	for (size_t i = 1; i <= na; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= nb; j++) {
			size_t best = diagonal + (a[i - 1] != b[j - 1]);

			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			diagonal = row[j];
			row[j] = best;
		}
	}
	return row[nb];
}

static void
nearer(const char *name, const char *candidate, size_t *best, const char **near)
{
	size_t d = distance(name, candidate);

	if (d < *best && d < strlen(candidate)) {
		*best = d;
		*near = candidate;
	}
}

const struct config_key *
config_key_by_name(enum config_section s, const char *name, const char **near)
{
	size_t best = NEAR_MAX + 1;
	const char *like = NULL;

	for (size_t i = 0; i < config_nkeys; i++) {
		if (config_keys[i].section != s)
			continue;
		if (strcmp(config_keys[i].name, name) == 0)
			return &config_keys[i];
		nearer(name, config_keys[i].name, &best, &like);
	}
	if (near != NULL)
		*near = like;
	return NULL;
}

enum config_section
config_section_by_name(const char *name, const char **near)
{
	size_t best = NEAR_MAX + 1;
	const char *like = NULL;
	int s = 0;

	while (s < SECTION_N && strcmp(section_name[s], name) != 0)
		nearer(name, section_name[s++], &best, &like);
	if (s == SECTION_N && near != NULL)
		*near = like;
	return (enum config_section)s;
}

void
config_keys_init(enum config_section s, void *target)
{
	for (size_t i = 0; i < config_nkeys; i++) {
		const struct config_key *k = &config_keys[i];
		struct err e = ERR_INIT;

		if (k->section == s && k->value != NULL &&
		    k->type->parse(k, target, k->value, &e) != 0)
			fatalx("default of '%s': %s", k->name, e.text);
	}
}

void
config_keys_release(enum config_section s, void *target)
{
	for (size_t i = 0; i < config_nkeys; i++) {
		const struct config_key *k = &config_keys[i];

		if (k->section == s && k->type->drop != NULL)
			k->type->drop(k, target);
	}
}

bool
config_key_is_dsn(const struct config_key *k)
{
	return k->type == &type_dsn || k->type == &type_dsn_or_embedded;
}
