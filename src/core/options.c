/* options: the names of access levels and the limits at their defaults */
#include "core/options.h"

#include <assert.h>

#include "sql/parse.h"

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

const char *const access_name[ACCESS_N] = {
	[ACCESS_READ] = "read",
	[ACCESS_DATA] = "data",
	[ACCESS_SCHEMA] = "schema",
};
static_assert(sizeof(access_name) / sizeof(access_name[0]) == ACCESS_N,
    "one name an access level");

void
limits_init(struct limits *l)
{
	*l = (struct limits){
		.ttl_ms = INT64_C(10) * 60 * 1000,
		.changes_max = 8,
		.agent_changes_max = 8,
		.reads_max = 4,
		.agent_calls_max = 32,
		.lock_timeout_ms = 2000,
		.read_timeout_ms = 10000,
		.write_timeout_ms = 30000,
		.connect_timeout_ms = 10000,
		.result_bytes_max = 40000,
		.cell_bytes_max = 4000,
		.rows_max = 500,
		.rows_default = 50,
		.sample_rows = 5,
		.param_bytes_max = MIB,
		.params_max = 1000,
		.diff_bytes_max = 4 * GIB,
		.sweep_limit = GIB,
		.narrow_above = 1 << 20,
		.fold_rows_max = 200000,
		.count_rows_max = 10000,
		.statement_bytes_max = 64 * KIB,
		.statement_depth_max = PARSE_DEPTH_MAX,
		.statement_names_max = 1000,
		.row_bytes_max = 64 * MIB,
		.refusals_max = 60,
		.refusals_window_ms = INT64_C(60) * 1000,
		.cool_off_ms = INT64_C(30) * 1000,
	};
}
