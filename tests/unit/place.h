/* place: for tests: a folder of its own for each, gone with it */
#ifndef AIRLOCK_TESTS_PLACE_H
#define AIRLOCK_TESTS_PLACE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"

struct place {
	char dir[64];
	int fd;
};

/* A test's set-up and tear-down: *state is a struct place. */
static inline int
make_place(void **state)
{
	struct place *p = mem_new(sizeof(*p));

	snprintf(p->dir, sizeof(p->dir), "/tmp/test_place.XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	p->fd = open(p->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_not_equal(p->fd, -1);
	*state = p;
	return 0;
}

static inline int
drop_place(void **state)
{
	struct place *p = *state;
	char *command = mem_printf("rm -rf %s", p->dir);
	int r = system(command);

	free(command);
	close(p->fd);
	free(p);
	return r;
}

#endif
