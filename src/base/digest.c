/* digest: SHA-256 over bytes and over length-prefixed fields */
#include "base/digest.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"

struct digest {
	EVP_MD_CTX *ctx;
};

static void
check(int ok)
{
	if (ok != 1)
		fatalx("SHA-256 is not available from OpenSSL");
}

struct digest *
digest_new(void)
{
	struct digest *d = mem_new(sizeof(*d));

	d->ctx = EVP_MD_CTX_new();
	check(d->ctx != NULL);
	digest_reset(d);
	return d;
}

void
digest_free(struct digest *d)
{
	if (d == NULL)
		return;
	EVP_MD_CTX_free(d->ctx);
	free(d);
}

/* EVP_sha256() is looked up anew by every init that names it (OpenSSL 3), so
 * it is named once. */
void
digest_reset(struct digest *d)
{
	static EVP_MD *sha256;

	if (sha256 == NULL)
		sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
	check(sha256 != NULL && EVP_DigestInit_ex2(d->ctx, sha256, NULL) == 1);
}

void
digest_bytes(struct digest *d, const void *p, size_t n)
{
	check(EVP_DigestUpdate(d->ctx, p, n));
}

static void
tagged(struct digest *d, char tag, uint64_t v)
{
	unsigned char b[9] = { (unsigned char)tag };

	for (int i = 0; i < 8; i++)
		b[8 - i] = (unsigned char)(v >> (8 * i));
	digest_bytes(d, b, sizeof(b));
}

void
digest_field(struct digest *d, const void *p, size_t n)
{
	tagged(d, 's', n);
	digest_bytes(d, p, n);
}

void
digest_null(struct digest *d)
{
	digest_bytes(d, "n", 1);
}

void
digest_u64(struct digest *d, uint64_t v)
{
	tagged(d, 'u', v);
}

void
digest_end(struct digest *d, unsigned char out[DIGEST_SIZE])
{
	check(EVP_DigestFinal_ex(d->ctx, out, NULL));
}

void
digest_hex(char out[DIGEST_HEX_SIZE], const void *p, size_t n)
{
	struct digest *d = digest_new();
	unsigned char sum[DIGEST_SIZE];

	digest_bytes(d, p, n);
	digest_end(d, sum);
	digest_free(d);
	text_hex(out, sum, sizeof(sum));
}
