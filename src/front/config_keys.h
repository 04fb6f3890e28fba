/* config_keys: the keys of airlockd.conf, one row each, and their types */
#ifndef AIRLOCK_FRONT_CONFIG_KEYS_H
#define AIRLOCK_FRONT_CONFIG_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/text.h"
#include "front/config.h"

enum config_section {
	SECTION_AIRLOCK,  /* one; keys are in struct config */
	SECTION_DATABASE, /* one for now; in struct config too */
	SECTION_AGENT,    /* each name one struct agent_options */
	SECTION_OPERATOR, /* each name one struct operator_options */
	SECTION_TABLE,    /* no key yet */
	SECTION_N
};
extern const char *const section_name[SECTION_N];

struct config_key;
/* Sets the key's field in target; the old value is freed. */
typedef int config_parse(const struct config_key *k, void *target,
    const char *value, struct err *e);
/* Appends what parses back to the same; nothing where the field is not set. */
typedef void config_show(const struct config_key *k, const void *target,
    struct text *out);
/* Frees the field. */
typedef void config_drop(const struct config_key *k, void *target);

struct config_type {
	const char *form; /* as the manual calls it */
	config_parse *parse;
	config_show *show;
	config_drop *drop;        /* NULL: nothing to free */
	const char *const *words; /* of an enumeration, nwords of them */
	size_t nwords;
};

struct config_key {
	enum config_section section;
	const char *name;
	const struct config_type *type;
	size_t offset;     /* of the field in the section's struct */
	const char *value; /* default as one would write it; NULL: not set */
	long long min, max;
	bool reloadable;
	const char *help;
};
extern const struct config_key config_keys[];
extern const size_t config_nkeys;

/* NULL where there is none; *near, if not NULL, is then the name most like it
 * (NULL where none is like it). */
const struct config_key *config_key_by_name(enum config_section s,
    const char *name, const char **near);
/* SECTION_N where there is none; near as above. */
enum config_section config_section_by_name(const char *name, const char **near);
/* Finds or makes what a section is about. */
int config_find(struct config *c, const char *kind, const char *name,
    enum config_section *section, void **target, struct err *e) MUST_CHECK;
/* Sets each key of a section to its default (the target is zeroed). */
void config_keys_init(enum config_section s, void *target);
void config_keys_release(enum config_section s, void *target);
/* The field is a char * that front/dsn.h understands (or CONFIG_EMBEDDED). */
bool config_key_is_dsn(const struct config_key *k);

#endif
