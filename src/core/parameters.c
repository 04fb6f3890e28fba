/* parameters: the values of $1, $2, ... as an agent gives them, as text */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "core/internal.h"

/* Numbers and booleans are taken as SQL would write them: models send them. */
static int
one(const json_t *v, int i, char **out, struct err *e)
{
	if (json_is_null(v))
		*out = NULL;
	else if (json_is_string(v) &&
		 strlen(json_string_value(v)) != json_string_length(v))
		return err_set(e, ERR_INPUT,
		    "parameter $%d holds a NUL character", i + 1);
	else if (json_is_string(v))
		*out = mem_strdup(json_string_value(v));
	else if (json_is_integer(v))
		*out =
		    mem_printf("%" JSON_INTEGER_FORMAT, json_integer_value(v));
	else if (json_is_boolean(v))
		*out = mem_strdup(json_is_true(v) ? "true" : "false");
	else if (json_is_real(v))
		*out = json_dumps(v, JSON_ENCODE_ANY | JSON_REAL_PRECISION(17));
	else
		return err_set(e, ERR_INPUT,
		    "parameter $%d is not text or null: give each value as "
		    "text, an array as '{1,2}', JSON as its text",
		    i + 1);
	return 0;
}

int
parameters_read(const json_t *array, const struct limits *l,
    struct parameters *out, struct err *e)
{
	struct parameters p = { 0 };
	size_t bytes = 0, n = json_array_size(array);

	if (array != NULL && !json_is_array(array))
		return err_set(e, ERR_INPUT,
		    "params must be an array of text values or null");
	if (n > (size_t)l->params_max)
		return err_set(e, ERR_INPUT, "%zu parameters, %d at most", n,
		    l->params_max);
	p.v = mem_array(n, sizeof(*p.v));
	for (; (size_t)p.n < n; p.n++) {
		if (one(json_array_get(array, (size_t)p.n), p.n, &p.v[p.n],
			e) == -1)
			goto bad;
		bytes += p.v[p.n] != NULL ? strlen(p.v[p.n]) : 0;
	}
	if (bytes > l->param_bytes_max) {
		err_set(e, ERR_INPUT,
		    "the parameters are %zu bytes long, %zu at most", bytes,
		    l->param_bytes_max);
		goto bad;
	}
	*out = p;
	return 0;
bad:
	parameters_release(&p);
	return -1;
}

void
parameters_release(struct parameters *p)
{
	for (int i = 0; i < p->n; i++)
		free(p->v[i]);
	free(p->v);
	memset(p, 0, sizeof(*p));
}

const char *const *
parameters_values(const struct parameters *p)
{
	return (const char *const *)p->v;
}
