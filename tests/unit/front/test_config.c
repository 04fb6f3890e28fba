/* test_config: the key table, the file's errors, and back to text */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "front/config.h"
#include "front/config_keys.h"
#include "front/dsn.h"
#include "front/flags.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static int
read_text(struct config *c, const char *text, struct err *e)
{
	config_init(c);
	return config_read_text(c, "t.conf", text, strlen(text), NULL, e);
}

static char *
printed(const struct config *c)
{
	char *out = NULL;
	size_t n;
	FILE *f = open_memstream(&out, &n);

	assert_non_null(f);
	config_print(c, f);
	assert_int_equal(fclose(f), 0);
	return out;
}

/* Each text with what its error must say. */
static const struct {
	const char *text, *says;
} errors[] = {
	{ "[airlock]\nttll = 5m\n", "t.conf:2: unknown key 'ttll' in "
				    "[airlock]; did you mean 'ttl'?" },
	{ "[airlock]\nxyzzy = 5m\n", "see airlockd.conf(5)" },
	{ "[operator a]\nxyzzy = 1\n", "there are user, group, role" },
	{ "\n[agnet a]\n", "t.conf:2: unknown section [agnet]; did you mean "
			   "[agent]?" },
	{ "[zebra]\n", "there are [airlock], [database NAME]" },
	{ "ttl = 5m\n", "t.conf:1: 'ttl' stands before any [section]" },
	{ "[airlock]\nttl = 5m\nttl = 6m\n",
	    "t.conf:3: 'ttl' in [airlock] is given twice (first in line 2)" },
	{ "[agent a]\n[agent a]\n", "t.conf:2: [agent a] is given twice" },
	{ "[agent]\n", "needs a name" },
	{ "[airlock x]\n", "takes no name" },
	{ "[agent UPPER]\n", "'UPPER' is not a name" },
	{ "[agent abcdefghijklmnopqrstuvwxyz0123456]\n", "is not a name" },
	{ "[agent aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	  "]\n",
	    "is not a name" },
	{ "[database a]\n[database b]\n", "one database for now" },
	{ "[table public.t]\n", "no setting for a single table yet" },
	{ "[airlock\n", "t.conf:1: ']' is missing" },
	{ "[airlock] x\n", "text behind ']'" },
	{ "[airlock]\nwhat\n", "t.conf:2: not 'key = value'" },
	{ "[airlock]\nttl = soon\n", "t.conf:2: 'ttl': not a duration" },
	{ "[airlock]\nttl = 100ms\n", "'100ms' is not from 1s to 24h" },
	{ "[airlock]\nttl = 25h\n", "'25h' is not from 1s to 24h" },
	{ "[airlock]\nchanges_max = 0\n", "is not a number from 1 to 1000" },
	{ "[airlock]\nchanges_max = 8x\n", "is not a number" },
	{ "[airlock]\nchanges_max = -1\n", "is not a number" },
	{ "[airlock]\nstatement_bytes_max = 2M\n", "from 1024 to 1048576" },
	{ "[airlock]\nstatement_bytes_max = K\n", "is not a number" },
	{ "[airlock]\ndiff_bytes_max = 99999999999999G\n", "is not a number" },
	{ "[airlock]\noperator_guard = on\n", "'on' is not ancestry or off" },
	{ "[airlock]\nlog_level = loud\n",
	    "'loud' is not error, warn, info or debug" },
	{ "[airlock]\nshared_uid = true\n", "'true' is not yes or no" },
	{ "[airlock]\nstate_dir =\n", "an empty path" },
	{ "[operator a]\nrole = none\n",
	    "'none' is not view, decide or admin" },
	{ "[operator a]\nuser = no-such-user-here\n",
	    "there is no user 'no-such-user-here'" },
	{ "[agent a]\nusers = 1 2 no-such-user-here\n", "there is no user" },
	{ "[agent a]\nusers =\n", "write from 1 to 64 users" },
	{ "[agent a]\ngroup = 4294967295\n", "there is no group" },
	{ "[database d]\nwriter_dsn = postgresql://u:100%r@/db\n",
	    "t.conf:2: 'writer_dsn': not a connection string: "
	    "percent-encoding is wrong" },
	{ "[database d]\nreader_dsn = embedded\n", "not a connection string" },
	{ "\xff\n", "not UTF-8" },
};

static void
test_errors(void **state UNUSED)
{
	for (size_t i = 0; i < COUNT(errors); i++) {
		struct config c;
		struct err e = ERR_INIT;

		assert_int_equal(read_text(&c, errors[i].text, &e), -1);
		if (strstr(e.text, errors[i].says) == NULL)
			fail_msg("case %zu: '%s' lacks '%s'", i, e.text,
			    errors[i].says);
		config_release(&c);
	}
}

/* After reading, what does not fit together. */
static const struct {
	const char *text, *says; /* NULL: it fits */
} misfits[] = {
	{ "[agent a]\n", "no database" },
	{ "[database d]\nwriter_dsn = host=h\n", NULL },
	{ "[database d]\nwriter_dsn = embedded\ninit_file = /x\n", NULL },
	{ "[database d]\nwriter_dsn = host=h\ninit_file = /x\n",
	    "for the embedded database only" },
	{ "[database d]\nwriter_dsn = embedded\nreader_dsn = host=h\n",
	    "logins of its own" },
	{ "[airlock]\nrows_default = 600\n[database d]\nwriter_dsn = host=h\n",
	    "rows_default is more than rows_max" },
	{ "[database d]\nwriter_dsn = host=h\n[agent a]\n[agent b]\n", NULL },
	{ "[database d]\nwriter_dsn = host=h\n[agent a]\naccess = read\n"
	  "[agent b]\n",
	    "agents 'a' and 'b' differ in access but uid" },
	{ "[airlock]\nshared_uid = yes\n[database d]\nwriter_dsn = host=h\n"
	  "[agent a]\naccess = read\n[agent b]\n",
	    NULL },
	{ "[airlock]\nruntime_dir = /r\n[database d]\nwriter_dsn = host=h\n"
	  "[agent a]\naccess = read\nusers = 5001 5002\n"
	  "[agent b]\nusers = 5003 5002\n",
	    "but uid 5002 may connect to both" },
	{ "[airlock]\nruntime_dir = /r\n[database d]\nwriter_dsn = host=h\n"
	  "[agent a]\naccess = read\nusers = 5001\n[agent b]\nusers = 5003\n",
	    NULL },
	{ "[airlock]\nruntime_dir = /r\n[database d]\nwriter_dsn = host=h\n"
	  "[agent a]\ngroup = 77\n",
	    "has a group but no users" },
	{ "[database d]\nwriter_dsn = host=h\n[agent a]\nusers = 5001\n",
	    "set runtime_dir" },
	{ "[database d]\nwriter_dsn = host=h\n[operator o]\nuser = 5001\n",
	    "set runtime_dir" },
	{ "[database d]\nwriter_dsn = host=h\n[operator o]\n",
	    "needs either a user or a group" },
};

static void
test_misfits(void **state UNUSED)
{
	for (size_t i = 0; i < COUNT(misfits); i++) {
		struct config c;
		struct err e = ERR_INIT;
		int r;

		if (read_text(&c, misfits[i].text, &e) != 0)
			fail_msg("case %zu: %s", i, e.text);
		r = config_finish(&c, &e);
		if (misfits[i].says == NULL && r != 0)
			fail_msg("case %zu: %s", i, e.text);
		if (misfits[i].says != NULL &&
		    (r == 0 || strstr(e.text, misfits[i].says) == NULL))
			fail_msg("case %zu: '%s' lacks '%s'", i, e.text,
			    misfits[i].says);
		config_release(&c);
	}
}

/* A value other than the default for each type of key. */
static const struct {
	const char *form, *value;
} samples[] = {
	{ "text", "app, public" },
	{ "path", "/some/where" },
	{ "words", "tmux kitty" },
	{ "yes or no", "yes" },
	{ "duration", "7s" },
	{ "user", "5001" },
	{ "group", "5002" },
	{ "users", "5001 5003" },
	{ "connection string", "host='/run/p q'" },
};

/* For numbers the key's own maximum, for words the last one. */
static void
sample_of(const struct config_key *k, char *out, size_t size)
{
	if (strcmp(k->type->form, "number") == 0) {
		snprintf(out, size, "%lld", k->max);
		return;
	}
	if (k->type->nwords > 0) {
		snprintf(out, size, "%s", k->type->words[k->type->nwords - 1]);
		return;
	}
	for (size_t i = 0; i < COUNT(samples); i++)
		if (strcmp(samples[i].form, k->type->form) == 0)
			snprintf(out, size, "%s", samples[i].value);
	assert_true(out[0] != '\0');
}

/* Every key set to something of its own prints what reads back to the same. */
static void
test_round_trip(void **state UNUSED)
{
	struct config c, again;
	struct err e = ERR_INIT;
	char *first, *second;

	config_init(&c);
	for (size_t i = 0; i < config_nkeys; i++) {
		const struct config_key *k = &config_keys[i];
		char value[128] = "";

		sample_of(k, value, sizeof(value));
		if (config_set(&c, section_name[k->section],
			k->section == SECTION_AIRLOCK ? NULL : "x", k->name,
			value, &e) != 0)
			fail_msg("%s: %s", k->name, e.text);
	}
	first = printed(&c);
	for (size_t i = 0; i < config_nkeys; i++) {
		char *line = mem_printf("\n%s = ", config_keys[i].name);

		if (strstr(first, line) == NULL)
			fail_msg("'%s' is not printed", config_keys[i].name);
		free(line);
	}
	if (read_text(&again, first, &e) != 0)
		fail_msg("%s\n%s", e.text, first);
	second = printed(&again);
	assert_string_equal(first, second);
	free(first);
	free(second);
	config_release(&c);
	config_release(&again);
}

/* The table's defaults are the rooms' own. */
static void
test_defaults(void **state UNUSED)
{
	struct config c, own;
	char *text, *other;

	config_init(&c);
	own = c;
	limits_init(&own.gate.limits);
	other = printed(&own);
	text = printed(&c);
	assert_string_equal(text, other);
	free(other);
	free(text);
	assert_int_equal(c.gate.guard.mode, GUARD_ANCESTRY);
	assert_int_equal(c.gate.parser.deadline_ms, 2000);
	assert_int_equal(c.gate.parser.operator_run_max, 256);
	assert_int_equal(c.gate.parser.comment_depth_max, 64);
	assert_int_equal(c.gate.journal.file_bytes_max, 64 << 20);
	text = printed(&c);
	assert_non_null(strstr(text, "\nttl = 10m\n"));
	assert_non_null(strstr(text, "\nstatement_bytes_max = 64K\n"));
	free(text);
	config_release(&c);
}

/* What stands in a file as it is written, comments and a mark in front. */
static void
test_reading(void **state UNUSED)
{
	struct config c;
	struct err e = ERR_INIT;
	const char *text = "\xef\xbb\xbf; a comment\r\n"
			   "  [airlock]  \r\n"
			   "  ttl=5m\r\n"
			   "# another\n"
			   "[database shop]\n"
			   "writer_dsn = host=h password='a ; b # c'\n"
			   "[agent a]\n"
			   "[agent b]\n"
			   "users = 7, 8\n"
			   "access = read";

	if (read_text(&c, text, &e) != 0)
		fail_msg("%s", e.text);
	assert_int_equal(c.gate.limits.ttl_ms, 300000);
	assert_string_equal(c.gate.database.name, "shop");
	assert_string_equal(c.gate.database.writer_dsn,
	    "password='a ; b # c' host=h");
	assert_int_equal(c.gate.nagents, 2);
	assert_int_equal(c.gate.agents[0].access, ACCESS_DATA);
	assert_int_equal(c.gate.agents[1].access, ACCESS_READ);
	assert_int_equal(c.gate.agents[1].nuids, 2);
	assert_int_equal(c.gate.agents[1].uids[1], 8);
	config_release(&c);
}

static void
test_long_line(void **state UNUSED)
{
	struct config c;
	struct err e = ERR_INIT;
	char *line = mem_new(9000), *text;

	memset(line, 'h', 4000);
	text = mem_printf("[database d]\nwriter_dsn = host=%s\n", line);
	assert_int_equal(read_text(&c, text, &e), 0);
	assert_int_equal(strlen(c.gate.database.writer_dsn), 4005);
	config_release(&c);
	free(text);
	memset(line, 'h', 8990);
	text = mem_printf("[database d]\nwriter_dsn = host=%s\n", line);
	assert_int_equal(read_text(&c, text, &e), -1);
	assert_non_null(strstr(e.text, "t.conf:2: the line is too long"));
	config_release(&c);
	free(text);
	free(line);
}

/* A password never leaves by -nv or by an error. */
static void
test_secrets(void **state UNUSED)
{
	struct config c;
	struct err e = ERR_INIT;
	char *text;

	config_init(&c);
	assert_int_equal(config_set(&c, "database", "d", "writer_dsn",
			     "postgresql://u:hunter2@h/d", &e),
	    0);
	text = printed(&c);
	assert_null(strstr(text, "hunter2"));
	assert_non_null(strstr(text, "password=********"));
	free(text);
	config_release(&c);
}

/* F093 to F095: each form of one place and password, to one string. */
static const struct {
	const char *dsn, *parsed; /* NULL: refused */
} dsns[] = {
	{ "postgresql://f_pw:p%40ss%2Fw%3Ard%23%25%3F%26%2B%20%22x@/"
	  "db?host=/d&port=1",
	    "user=f_pw password='p@ss/w:rd#%?&+ \"x' dbname=db host=/d "
	    "port=1" },
	{ "user=f_pw password='p@ss/w:rd#%?&+ \"x' dbname=db host=/d port=1",
	    "user=f_pw password='p@ss/w:rd#%?&+ \"x' dbname=db host=/d "
	    "port=1" },
	{ "password='it\\'s \\\\'", "password='it\\'s \\\\'" },
	{ "password=''", "password=''" },
	{ "postgresql://f_pct:100%25r@/db", "user=f_pct password=100%r "
					    "dbname=db" },
	{ "postgresql:///DB?host=/dir&port=7", "dbname=DB host=/dir port=7" },
	{ "postgresql://%2Fdir:7/DB", "dbname=DB host=/dir port=7" },
	{ "host=/dir port=7 dbname=DB", "dbname=DB host=/dir port=7" },
	{ "postgresql://u@h/d?sslmode=verify-full", "user=u dbname=d host=h "
						    "sslmode=verify-full" },
	{ "postgresql://[::1]:7/d", "dbname=d host=::1 port=7" },
	{ "host=a,b port=1,2", "host=a,b port=1,2" },
	{ "postgresql://u:100%r@/db", NULL },
	{ "postgresql://u:p@ss@h/db", NULL },
	{ "postgresql://u:p/x@h/d", NULL },
	{ "postgresql://u:p%00@h/d", NULL },
	{ "postgresql://h:99999/d", NULL },
	{ "host=h foo=secret", NULL },
	{ "secret", NULL },
	{ "host=h password='secret", NULL },
	{ "host=h replication=database", NULL },
	{ "host=h application_name='a\nb'", NULL },
};

static void
test_dsn(void **state UNUSED)
{
	for (size_t i = 0; i < COUNT(dsns); i++) {
		struct err e = ERR_INIT;
		char *out = NULL, *again;
		int r = dsn_parse(dsns[i].dsn, &out, &e);

		if (dsns[i].parsed == NULL) {
			assert_int_equal(r, -1);
			assert_null(strstr(e.text, "secret"));
			assert_null(strstr(e.text, "100%r"));
			assert_null(strstr(e.text, "ss@"));
			continue;
		}
		if (r != 0)
			fail_msg("case %zu: %s", i, e.text);
		assert_string_equal(out, dsns[i].parsed);
		assert_int_equal(dsn_parse(out, &again, &e), 0);
		assert_string_equal(out, again);
		free(out);
		free(again);
	}
}

static void
test_percent_message(void **state UNUSED)
{
	struct err e = ERR_INIT;
	char *out;

	assert_int_equal(dsn_parse("postgresql://u:100%r@/db", &out, &e), -1);
	assert_non_null(strstr(e.text, "percent-encod"));
	assert_int_equal(e.code, ERR_INPUT);
}

/* What the environment and a service say is put in, and named no more. */
static void
test_resolve(void **state UNUSED)
{
	char file[] = "/tmp/airlock-service-XXXXXX", *out;
	int fd = mkstemp(file);
	struct err e = ERR_INIT;

	assert_true(fd != -1);
	assert_true(dprintf(fd, "[shop]\nhost=/from/service\nport=6000\n") > 0);
	close(fd);
	setenv("PGPASSWORD", "from env", 1);
	setenv("PGPORT", "7000", 1);
	setenv("PGUSER", "me", 1);
	setenv("PGSSLMODE", "require", 1);
	assert_int_equal(dsn_resolve("host=h dbname=d", &out, &e), 0);
	assert_string_equal(out, "user=me password='from env' dbname=d host=h "
				 "port=7000 sslmode=require");
	free(out);
	assert_int_equal(dsn_resolve("password=own port=5432 user=u", &out, &e),
	    0);
	assert_string_equal(out,
	    "user=u password=own port=5432 sslmode=require");
	free(out);
	setenv("PGSERVICEFILE", file, 1);
	assert_int_equal(dsn_resolve("service=shop", &out, &e), 0);
	assert_string_equal(out, "user=me password='from env' "
				 "host=/from/service port=6000 "
				 "sslmode=require");
	free(out);
	setenv("PGSERVICE", "shop", 1);
	assert_int_equal(dsn_resolve("port=1", &out, &e), 0);
	assert_non_null(strstr(out, "host=/from/service port=1"));
	free(out);
	assert_string_equal(getenv("PGSERVICE"), "shop");
	setenv("PGSERVICE", "nowhere", 1);
	assert_int_equal(dsn_resolve("port=1", &out, &e), -1);
	assert_non_null(strstr(e.text, "service 'nowhere'"));
	unsetenv("PGSERVICE");
	unsetenv("PGSERVICEFILE");
	unsetenv("PGPASSWORD");
	unsetenv("PGPORT");
	unsetenv("PGUSER");
	unsetenv("PGSSLMODE");
	unlink(file);
}

/* Who may own, read and write the file. */
static const struct {
	mode_t mode;
	const char *password, *says;
} modes[] = {
	{ 0600, "", NULL },
	{ 0644, "", NULL },
	{ 0600, "password=x", NULL },
	{ 0640, "password=x", "holds a password" },
	{ 0604, "password=x", "holds a password" },
	{ 0620, "", "can be written by others" },
	{ 0602, "", "can be written by others" },
};

static void
test_modes(void **state UNUSED)
{
	for (size_t i = 0; i < COUNT(modes); i++) {
		char path[] = "/tmp/airlock-conf-XXXXXX";
		int fd = mkstemp(path), r;
		struct err e = ERR_INIT;
		struct config c;

		assert_true(fd != -1);
		assert_true(
		    dprintf(fd, "[database d]\nwriter_dsn = host=h %s\n",
			modes[i].password) > 0);
		assert_int_equal(fchmod(fd, modes[i].mode), 0);
		close(fd);
		config_init(&c);
		r = config_read(&c, path, &e);
		if ((modes[i].says == NULL) != (r == 0) ||
		    (r != 0 && strstr(e.text, modes[i].says) == NULL))
			fail_msg("case %zu: %d '%s'", i, r, e.text);
		config_release(&c);
		unlink(path);
	}
}

static void
load(struct config *c, const char *text)
{
	struct err e = ERR_INIT;

	if (read_text(c, text, &e) != 0 || config_finish(c, &e) != 0)
		fail_msg("%s", e.text);
}

/* Limits change at once; who may do what waits. */
static void
test_reload(void **state UNUSED)
{
	const char *before = "[airlock]\nruntime_dir = /r\n"
			     "[database d]\nwriter_dsn = host=h password=a\n"
			     "[agent a]\nusers = 1\n[agent gone]\n";
	const char *after = "[airlock]\nruntime_dir = /r\nttl = 7m\n"
			    "log_level = debug\noperator_guard = off\n"
			    "[database d]\nwriter_dsn = host=h password=b\n"
			    "[agent a]\nusers = 1 2\n[agent fresh]\n";
	struct config running, read, fresh;
	struct text waits = { 0 };

	load(&running, before);
	load(&read, before);
	load(&fresh, after);
	assert_int_equal(config_reload(&running, &read, &fresh, &waits), 2);
	assert_string_equal(text_str(&waits),
	    "'operator_guard' in [airlock], 'writer_dsn' in [database d], "
	    "'users' in [agent a], new [agent fresh], removed [agent gone]");
	assert_int_equal(running.gate.limits.ttl_ms, 420000);
	assert_int_equal(running.log_level, 3);
	assert_int_equal(running.gate.guard.mode, GUARD_ANCESTRY);
	assert_int_equal(running.gate.agents[0].nuids, 1);
	text_reset(&waits);
	assert_int_equal(config_reload(&running, &read, &read, &waits), 0);
	assert_int_equal(waits.len, 0);
	text_release(&waits);
	config_release(&running);
	config_release(&read);
	config_release(&fresh);
}

/* Guard, roles and access are none of the keys that a reload takes over. */
static void
test_reloadable(void **state UNUSED)
{
	static const char *const never[] = { "operator_guard", "guard_hosts",
		"shared_uid", "role", "access", "users", "user", "group",
		"writer_dsn", "state_dir", "runtime_dir" };

	for (size_t i = 0; i < config_nkeys; i++)
		for (size_t j = 0; j < COUNT(never); j++)
			if (strcmp(config_keys[i].name, never[j]) == 0)
				assert_false(config_keys[i].reloadable);
}

static void
test_overlaps(void **state UNUSED)
{
	struct config c;
	struct text t = { 0 };
	char *text = mem_printf("[airlock]\nruntime_dir = /r\n"
				"[database d]\nwriter_dsn = host=h\n"
				"[agent a]\nusers = 4001\n"
				"[operator o]\nuser = 4001\n"
				"[operator p]\nuser = 4002\n");

	load(&c, text);
	config_overlaps(&c, &t);
	assert_string_equal(text_str(&t),
	    "agent 'a' and operator 'o' share uid 4001: only operator_guard, "
	    "which is no wall, keeps the agent from deciding\n");
	text_release(&t);
	config_release(&c);
	free(text);
}

static void
test_flags(void **state UNUSED)
{
	char url[] = "postgresql://u:hunter2@h/d", ttl[] = "--ttl=3m";
	char db[] = "--db", program[] = "airlockd", access[] = "--access";
	char read[] = "read";
	char *argv[] = { program, db, url, ttl, access, read, NULL };
	struct err e = ERR_INIT;
	struct flags f;
	struct config c;

	assert_int_equal(flags_parse(&f, 6, argv, &e), 0);
	assert_true(f.db_secret);
	assert_int_equal(url[0], '\0');
	assert_int_equal(url[15], '\0'); /* where the password stood */
	config_init(&c);
	assert_int_equal(flags_apply(&f, &c, &e), 0);
	assert_string_equal(c.gate.database.writer_dsn,
	    "user=u password=hunter2 dbname=d host=h");
	assert_int_equal(c.gate.limits.ttl_ms, 180000);
	assert_int_equal(c.gate.nagents, 1);
	assert_string_equal(c.gate.agents[0].name, "agent");
	assert_int_equal(c.gate.agents[0].access, ACCESS_READ);
	flags_release(&f);
	config_release(&c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_misfits),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_reading),
		cmocka_unit_test(test_long_line),
		cmocka_unit_test(test_secrets),
		cmocka_unit_test(test_dsn),
		cmocka_unit_test(test_percent_message),
		cmocka_unit_test(test_resolve),
		cmocka_unit_test(test_modes),
		cmocka_unit_test(test_reload),
		cmocka_unit_test(test_reloadable),
		cmocka_unit_test(test_overlaps),
		cmocka_unit_test(test_flags),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
