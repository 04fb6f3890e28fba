/* functions: which built-in and well-known functions reach outside */
#include "rule/functions.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

/* A star at the end stands for any rest.  Kept in the order of PostgreSQL's
 * manual: chapter 9 (functions), then appendix F (contrib). */
static const char *const reaching[] = {
	/* 9.13, 12: text that runs as SQL */
	"ts_stat",
	"ts_rewrite",
	"query_to_xml*",
	"table_to_xml*",
	"cursor_to_xml*",
	"schema_to_xml*",
	"database_to_xml*",
	/* 9.17: not taken back by a rollback */
	"setval",
	/* 9.27.1, 9.28: settings and signals */
	"set_config",
	"pg_reload_conf",
	"pg_rotate_logfile*",
	"pg_cancel_backend",
	"pg_terminate_backend",
	"pg_log_backend_memory_contexts",
	"pg_notify",
	"setseed",
	/* 9.28.3 to 9.28.6: backup, recovery, snapshots, replication */
	"pg_create_restore_point",
	"pg_backup_*",
	"pg_start_backup",
	"pg_stop_backup",
	"pg_switch_wal",
	"pg_switch_xlog",
	"pg_promote",
	"pg_wal_replay_*",
	"pg_export_snapshot",
	"pg_log_standby_snapshot",
	"pg_create_*_replication_slot",
	"pg_create_physical_replication_slot",
	"pg_create_logical_replication_slot",
	"pg_drop_replication_slot",
	"pg_copy_physical_replication_slot",
	"pg_copy_logical_replication_slot",
	"pg_logical_*",
	"pg_replication_*",
	"pg_sync_replication_slots",
	/* 9.28.7 to 9.28.10: files, locks, statistics */
	"pg_import_system_collations",
	"brin_summarize_*",
	"brin_desummarize_*",
	"gin_clean_pending_list",
	"pg_ls_*",
	"pg_read_file*",
	"pg_read_binary_file*",
	"pg_stat_file",
	"pg_file_*",
	"pg_logdir_ls",
	"pg_advisory_*",
	"pg_try_advisory_*",
	"pg_stat_reset*",
	"pg_stat_force_next_flush",
	"pg_stat_clear_snapshot",
	"pg_clear_relation_stats",
	"pg_restore_*_stats",
	"pg_restore_relation_stats",
	"pg_restore_attribute_stats",
	"pg_clear_attribute_stats",
	"pg_extension_config_dump",
	"pg_current_logfile",
	"pg_hba_file_rules",
	"pg_ident_file_mappings",
	"pg_show_all_file_settings",
	/* 9.9.5, time only */
	"pg_sleep",
	"pg_sleep_for",
	"pg_sleep_until",
	/* 35.4: large objects */
	"lo_*",
	"loread",
	"lowrite",
	/* transaction ids: two-phase and binary upgrade */
	"binary_upgrade_*",
	"pg_prepared_xact",
	/* contrib */
	"dblink*",
	"pg_prewarm",
	"autoprewarm_*",
	"pg_file_write",
	"pg_buffercache_evict*",
	"pg_truncate_visibility_map",
	"heap_force_*",
	"pg_stat_statements_reset",
	"postgres_fdw_disconnect*",
};

/* Files, other connections, background jobs, other programs, or text that runs
 * as SQL (crosstab, xpath_table). */
const char functions_extensions[] =
    "{adminpack,aws_lambda,aws_s3,dblink,file_fdw,http,lo,pageinspect,"
    "pg_background,pg_cron,pg_net,pg_prewarm,pg_surgery,pg_task,pgagent,"
    "plproxy,plsh,postgres_fdw,tablefunc,xml2}";

const char functions_harmless[] =
    "{random,random_normal,clock_timestamp,timeofday,gen_random_uuid,uuidv4,"
    "uuidv7,currval,lastval,nextval,"
    "pg_relation_size,pg_total_relation_size,pg_table_size,pg_indexes_size,"
    "pg_database_size,pg_tablespace_size,pg_column_size,"
    "pg_current_wal_lsn,pg_current_wal_insert_lsn,pg_current_wal_flush_lsn,"
    "pg_is_in_recovery,pg_last_wal_receive_lsn,pg_last_wal_replay_lsn,"
    "pg_last_xact_replay_timestamp,pg_is_wal_replay_paused,"
    "pg_get_wal_replay_pause_state,pg_blocking_pids,"
    "pg_safe_snapshot_blocking_pids,pg_lock_status,"
    "pg_notification_queue_usage,pg_listening_channels,"
    "pg_stat_get_xact_numscans,pg_stat_get_xact_tuples_returned,"
    "pg_stat_get_xact_tuples_fetched,pg_stat_get_xact_tuples_inserted,"
    "pg_stat_get_xact_tuples_updated,pg_stat_get_xact_tuples_deleted,"
    "pg_control_system,pg_control_checkpoint,pg_control_recovery,"
    "pg_control_init,pg_get_multixact_members,pg_xact_commit_timestamp,"
    "pg_last_committed_xact,pg_stat_get_activity,pg_show_all_settings,"
    "pg_cursor,pg_prepared_statement,pg_get_keywords,"
    "pg_available_extensions,pg_available_extension_versions,"
    "pg_timezone_names,pg_timezone_abbrevs,pg_get_backend_memory_contexts,"
    "pg_get_shmem_allocations,pg_stat_get_progress_info,pg_sequence_last_value,"
    "pg_get_replication_slots,pg_stat_get_wal_senders,pg_mcv_list_items,"
    "pg_trigger_depth,pg_tablespace_databases,pg_relation_is_updatable,"
    "pg_partition_tree,pg_partition_ancestors,"
    /* methods of TABLESAMPLE */
    "bernoulli,system,tsm_system_rows.system_rows,tsm_system_time.system_time,"
    /* appendix F: what only looks, and what only makes random values */
    "pg_stat_statements.pg_stat_statements,"
    "pg_stat_statements.pg_stat_statements_info,"
    "pg_buffercache.pg_buffercache_pages,"
    "pg_buffercache.pg_buffercache_summary,"
    "pg_buffercache.pg_buffercache_usage_counts,"
    "pg_freespacemap.pg_freespace,pgrowlocks.pgrowlocks,"
    "pgstattuple.pgstattuple,pgstattuple.pgstattuple_approx,"
    "pgstattuple.pgstatindex,pgstattuple.pgstatginindex,"
    "pgstattuple.pgstathashindex,pgstattuple.pg_relpages,"
    "pg_visibility.pg_visibility,pg_visibility.pg_visibility_map,"
    "pg_visibility.pg_visibility_map_summary,"
    "uuid-ossp.uuid_generate_v1,uuid-ossp.uuid_generate_v1mc,"
    "uuid-ossp.uuid_generate_v4,pgcrypto.gen_salt,pgcrypto.gen_random_bytes,"
    "pgcrypto.gen_random_uuid,pgcrypto.pgp_sym_encrypt,"
    "pgcrypto.pgp_sym_encrypt_bytea,pgcrypto.pgp_pub_encrypt,"
    "pgcrypto.pgp_pub_encrypt_bytea}";

static bool
matches(const char *pattern, const char *name)
{
	size_t n = strlen(pattern);

	return pattern[n - 1] == '*' ? strncasecmp(pattern, name, n - 1) == 0
	                             : strcasecmp(pattern, name) == 0;
}

bool
function_reaches_out(const char *name)
{
	for (size_t i = 0; i < sizeof(reaching) / sizeof(reaching[0]); i++)
		if (matches(reaching[i], name))
			return true;
	return false;
}

char *
functions_pattern(void)
{
	struct text t = { 0 };

	text_add(&t, "^(");
	for (size_t i = 0; i < sizeof(reaching) / sizeof(reaching[0]); i++) {
		text_add(&t, i > 0 ? "|" : "");
		for (const char *c = reaching[i]; *c != '\0'; c++)
			text_add(&t, *c == '*' ? ".*" : (char[]){ *c, '\0' });
	}
	text_add(&t, ")$");
	return text_take(&t);
}
