/* partition: the topmost table of a partition, as SQL */
#ifndef AIRLOCK_PG_PARTITION_H
#define AIRLOCK_PG_PARTITION_H

/* The oid of what is no partition is its own. */
#define ROOT(oid)                                                              \
	"COALESCE(pg_catalog.pg_partition_root(" oid ")::pg_catalog.oid, " oid \
	")"

#endif
