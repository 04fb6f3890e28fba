/* test_digest: SHA-256, and fields that cannot be mistaken for others */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/digest.h"
#include "base/err.h"
#include "base/text.h"

static void
known_answers(void **state UNUSED)
{
	static const struct {
		const char *in, *hex;
	} cases[] = {
		{ "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b"
		      "7852b855" },
		{ "abc",
		    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61"
		    "f20015ad" },
		{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
		    "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd4"
		    "19db06c1" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char hex[DIGEST_HEX_SIZE];

		digest_hex(hex, cases[i].in, strlen(cases[i].in));
		assert_string_equal(hex, cases[i].hex);
	}
}

/* What the fields are made of, byte by byte. */
static void
fields_are_encoded_as_documented(void **state UNUSED)
{
	static const char bytes[] = "s\0\0\0\0\0\0\0\3abc"
				    "s\0\0\0\0\0\0\0\0"
				    "n"
				    "u\1\2\3\4\5\6\7\10";
	struct digest *d = digest_new();
	unsigned char sum[DIGEST_SIZE];
	char want[DIGEST_HEX_SIZE], got[DIGEST_HEX_SIZE];

	digest_field(d, "abc", 3);
	digest_field(d, "", 0);
	digest_null(d);
	digest_u64(d, UINT64_C(0x0102030405060708));
	digest_end(d, sum);
	text_hex(got, sum, sizeof(sum));
	digest_hex(want, bytes, sizeof(bytes) - 1);
	assert_string_equal(got, want);
	digest_free(d);
}

static void
reset_starts_over(void **state UNUSED)
{
	struct digest *d = digest_new();
	unsigned char one[DIGEST_SIZE], two[DIGEST_SIZE];

	digest_bytes(d, "abc", 3);
	digest_end(d, one);
	digest_reset(d);
	digest_bytes(d, "left over", 9);
	digest_reset(d);
	digest_bytes(d, "a", 1);
	digest_bytes(d, "", 0);
	digest_bytes(d, "bc", 2);
	digest_end(d, two);
	assert_memory_equal(one, two, DIGEST_SIZE);
	digest_free(d);
	digest_free(NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_answers),
		cmocka_unit_test(fields_are_encoded_as_documented),
		cmocka_unit_test(reset_starts_over),
	};

	return cmocka_run_group_tests_name("digest", tests, NULL, NULL);
}
