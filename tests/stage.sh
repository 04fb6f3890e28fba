#!/bin/sh
# Runs a command where PostgreSQL and airlockd can run: neither does as root.
#   tests/stage.sh COMMAND [ARG ...]
# An ordinary user's command runs in place, in a window of a tmux server that
# AIRLOCK_TMUX then names: the operator's terminals in the tests are windows of
# it too, and it must be older than all that an agent's client descends from.
# Root's runs in a copy of what was
# built and of the tests, in a directory that others may read, since the
# checkout may be closed to them; it is told in AIRLOCK_UID, AIRLOCK_GID and
# AIRLOCK_USER as whom to start the programs.  AIRLOCK_BUILD says where they
# are.  BUILD chooses the build, as for make.
set -eu
cd "$(dirname "$0")/.."
build=${BUILD:-build}
user=airlock-test

newer_node() { # the spare Node of deps.sh, where there is one
	[ ! -x "$1/build/bin/node" ] || PATH=$1/build/bin:$PATH
	export PATH
}

in_window() { # the command, its output and code as if it were run in place
	dir=$(mktemp -d "${TMPDIR:-/tmp}/airlock.XXXXXX")
	AIRLOCK_TMUX=$dir/tmux
	export AIRLOCK_TMUX
	trap 'tmux -S "$AIRLOCK_TMUX" kill-server 2>/dev/null || :
		rm -rf "$dir"' EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	mkfifo "$dir/out" "$dir/err"
	cat "$dir/out" &
	out=$!
	cat "$dir/err" >&2 &
	err=$!
	# shellcheck disable=SC2016 # the window's shell fills them in
	SHELL=/bin/sh command tmux -S "$AIRLOCK_TMUX" -f /dev/null new-session -d \
	    -x 80 -y 24 sh -c 'dir=$1; shift
		{ "$@"; echo $? >"$dir/code"; } </dev/null >"$dir/out" 2>"$dir/err"' \
	    sh "$dir" "$@"
	wait $out
	wait $err
	exit "$(cat "$dir/code")"
}

if [ "$(id -u)" -ne 0 ]; then
	AIRLOCK_BUILD=$(cd "$build" && pwd)
	export AIRLOCK_BUILD
	newer_node "$PWD"
	in_window "$@"
fi

id "$user" >/dev/null 2>&1 || useradd --system --user-group --no-create-home \
    --home-dir /nonexistent --shell /usr/sbin/nologin "$user"
umask 022
stage=$(mktemp -d "${TMPDIR:-/tmp}/airlock.XXXXXX")
trap 'rm -rf "$stage"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
chmod 755 "$stage"
mkdir -p "$stage/build"
for f in tests examples docs man package.json node_modules README.md; do
	[ ! -e "$f" ] || cp -a "$f" "$stage/"
done
for f in node bin; do
	[ ! -e "build/$f" ] || cp -a "build/$f" "$stage/build/"
done
(cd "$build" && find . -maxdepth 2 -type f -perm -u+x ! -path './node/*' \
    ! -path './unit/*' ! -path './fuzz/*' \
    -exec cp -p --parents '{}' "$stage/build" \;)
chmod -R u=rwX,go=rX "$stage"

AIRLOCK_USER=$user
AIRLOCK_UID=$(id -u "$user")
AIRLOCK_GID=$(id -g "$user")
AIRLOCK_BUILD=$stage/build
export AIRLOCK_USER AIRLOCK_UID AIRLOCK_GID AIRLOCK_BUILD
newer_node "$stage"
cd "$stage"
status=0
"$@" || status=$?
exit $status
