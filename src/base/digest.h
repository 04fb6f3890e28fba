/* digest: SHA-256 over bytes and over length-prefixed fields */
#ifndef AIRLOCK_BASE_DIGEST_H
#define AIRLOCK_BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#define DIGEST_SIZE 32
#define DIGEST_HEX_SIZE (2 * DIGEST_SIZE + 1)

struct digest; /* one hash being made */

struct digest *digest_new(void);
void digest_free(struct digest *d);
/* Starts over. */
void digest_reset(struct digest *d);
/* Raw bytes. */
void digest_bytes(struct digest *d, const void *p, size_t n);
/* A field: 's', the length as 8 bytes big-endian, the bytes. */
void digest_field(struct digest *d, const void *p, size_t n);
/* A field that is absent (SQL NULL): the byte 'n'. */
void digest_null(struct digest *d);
/* A whole number: 'u' and 8 bytes big-endian. */
void digest_u64(struct digest *d, uint64_t v);
void digest_end(struct digest *d, unsigned char out[DIGEST_SIZE]);
/* In one call, as 64 lower-case hex digits. */
void digest_hex(char out[DIGEST_HEX_SIZE], const void *p, size_t n);

#endif
