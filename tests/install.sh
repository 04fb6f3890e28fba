#!/bin/sh
# Installs below a directory of its own and sees that all is there, that what is
# installed names nothing that is not, and that uninstalling leaves no file.
#   BUILD=build sh tests/install.sh
set -eu
cd "$(dirname "$0")/.."
root=$(mktemp -d "${TMPDIR:-/tmp}/airlock-install.XXXXXX")
trap 'rm -rf "$root"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
status=0
bad() { echo "install: $*"; status=1; }
make_() {
	make -s --no-print-directory BUILD="${BUILD:-build}" DESTDIR="$root" \
	    PREFIX=/opt/airlock "$@" >/dev/null
}

make_ install
top=$root/opt/airlock
for f in bin/airlockd bin/airlock bin/airlock-mcp share/man/man8/airlockd.8 \
    share/man/man5/airlockd.conf.5 share/doc/airlock/README.md \
    share/doc/airlock/examples/airlockd.conf \
    lib/systemd/system/airlockd.service; do
	[ -e "$top/$f" ] || bad "$f is missing"
done
for p in airlockd airlock airlock-mcp; do
	"$top/bin/$p" --version | grep -q "^$p [0-9]" || bad "$p does not run"
done

# The unit runs what was installed, and comments name no other place.
named=$(grep -rhoE '/(usr/local|opt/airlock)/s?bin/[a-z-]+' \
    "$top/lib/systemd" | sort -u)
for p in $named; do
	[ -x "$root$p" ] || bad "the unit names $p"
done
# Examples do not need a checkout.
! grep -rlE 'tests/|node_modules' "$top/share/doc/airlock/examples" ||
    bad "an example needs the source"

make_ uninstall
left=$(find "$root" ! -type d)
[ -z "$left" ] || bad "left behind: $left"
[ $status -ne 0 ] || echo "install: whole, and gone again"
exit $status
