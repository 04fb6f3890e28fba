/* config_types: what a value of airlockd.conf can be, parsed and printed */
#ifndef AIRLOCK_FRONT_CONFIG_TYPES_H
#define AIRLOCK_FRONT_CONFIG_TYPES_H

#include "front/config_keys.h"

/* The field that each stands for. */
extern const struct config_type type_string;     /* char * */
extern const struct config_type type_path;       /* char *, made absolute */
extern const struct config_type type_words;      /* char **, NULL-ended */
extern const struct config_type type_bool;       /* bool */
extern const struct config_type type_int;        /* int */
extern const struct config_type type_long;       /* long */
extern const struct config_type type_int64;      /* int64_t */
extern const struct config_type type_uint64;     /* uint64_t, with K, M, G */
extern const struct config_type type_size;       /* size_t, with K, M, G */
extern const struct config_type type_duration;   /* int, milliseconds */
extern const struct config_type type_duration64; /* int64_t, milliseconds */
extern const struct config_type type_level;      /* int: enum log_level */
extern const struct config_type type_guard;      /* enum guard_mode */
extern const struct config_type type_access;     /* enum access */
extern const struct config_type type_role;       /* enum role */
extern const struct config_type type_user;       /* uid_t, -1 not set */
extern const struct config_type type_group;      /* gid_t, -1 not set */
extern const struct config_type type_users; /* uids and nuids of an agent */
extern const struct config_type type_dsn;   /* char *, see front/dsn.h */
extern const struct config_type type_dsn_or_embedded;

#endif
