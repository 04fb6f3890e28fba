#!/bin/sh
# The operator guard's scenarios, on real processes.
#   sh tests/guard/run.sh [PATTERN]
# Root drops to uids that nobody has; anybody else needs sudo without a
# password.  One line a scenario, and "N passed, N failed, N skipped" last.
# Everything runs twice: under a daemon of a uid of its own, which can read of
# others' programs only what they call themselves, and under one of the agent's.
set -u
here=$(cd "$(dirname "$0")" && pwd)
if [ "$(id -u)" -ne 0 ]; then
	if sudo -n true 2>/dev/null; then
		exec sudo -n env AIRLOCK_BUILD="${AIRLOCK_BUILD:-}" \
		    BUILD="${BUILD:-}" sh "$here/run.sh" "$@"
	fi
	echo "guard scenarios: SKIPPED, they need root or sudo without a password"
	echo "0 passed, 0 failed, all skipped"
	exit 0
fi
only=${1:-}
build=${AIRLOCK_BUILD:-}
if [ -z "$build" ]; then
	build=${BUILD:-build}
	for f in guardd knock ptyrun; do
		make -s -C "$here/../.." BUILD="$build" "$build/guard/$f" || exit 1
	done
	build=$(cd "$here/../.." && cd "$build" && pwd)
fi

# The checkout may be closed to others.
umask 022
D=$(mktemp -d /tmp/airlock-guard.XXXXXX)
chmod 755 "$D"
cp "$build/guard/guardd" "$build/guard/knock" "$build/guard/ptyrun" \
    "$here/loop.sh" "$D/"
chmod 755 "$D"/*
first=$((61184 + 2 * ($$ % 2000)))
# shellcheck disable=SC2009 # pgrep may not be there
while ps -o pid= -u "$first,$((first + 1))" | grep -q .; do
	first=$((first + 2))
done
K=$D/knock
HOME=$D
SHELL=/bin/sh
export D K HOME SHELL
unset TMUX TMUX_PANE

as() { # as UID COMMAND ...
	uid=$1
	shift
	setpriv --reuid="$uid" --regid="$first" --clear-groups "$@"
}
# Both uids are ours alone.
sweep() {
	for uid in $first $((first + 1)); do
		as "$uid" sh -c 'kill -KILL -1' 2>/dev/null
	done
	wait
}
trap 'sweep 2>/dev/null; rm -rf "$D"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP PIPE

passed=0 failed=0 skipped=0 round=0 said=
pass() { passed=$((passed + 1)); echo "ok - $who: $*"; }
fail() { failed=$((failed + 1)); echo "not ok - $who: $*"; }
skip() { skipped=$((skipped + 1)); echo "SKIPPED - $who: $*"; }

# fresh [HOST ...]: no process but a new daemon is left.
fresh() {
	sweep
	round=$((round + 1))
	S=$D/$round
	A=$S/answer
	export S A
	mkdir "$S"
	chown "$first:$first" "$S"
	chmod 777 "$S"
	mkfifo "$A" "$S/ready"
	chmod 666 "$A"
	exec 9<>"$A" # held open: no writer waits, no reader sees an end
	as "$daemon" setsid "$D/guardd" "$S" "$first" "$@" \
	    >"$S/ready" 2>"$S/log" &
	timeout 20 head -n 1 "$S/ready" >/dev/null || {
		cat "$S/log"
		exit 1
	}
}
answer() { said=$(timeout 20 head -n 1 <&9 | tr -d '\r'); }
tell() { # tell WHO COMMAND
	# shellcheck disable=SC2016
	timeout 20 sh -c 'printf "%s\n" "$1" >"$2"' sh "$2" "$S/$1" ||
	    fail "$1 does not listen"
}
# is_up WHO: waits for its first sign
fifo() { mkfifo "$S/$1" && chmod 666 "$S/$1"; }
is_up() {
	# shellcheck disable=SC2016
	tell "$1" 'echo up >$A'
	answer
	[ "$said" = up ] || fail "$1 does not come up"
}
# The kinds of places that somebody may sit in.
operator() { # a login: a terminal held by root
	fifo "$1"
	"$D/ptyrun" -u "$first" sh "$D/loop.sh" "$S/$1" </dev/null >/dev/null 2>&1 &
	is_up "$1"
}
client() { # an agent's client in a session of its own
	fifo "$1"
	as "$first" setsid sh "$D/loop.sh" "$S/$1" </dev/null >/dev/null 2>&1 &
	is_up "$1"
}
server() { # a tmux server and a pane of it
	fifo "$1"
	as "$first" tmux -S "$S/tmux" -f /dev/null new-session -d \
	    "exec sh '$D/loop.sh' '$S/$1'" >/dev/null 2>&1
	is_up "$1"
}
pane() {
	fifo "$1"
	as "$first" tmux -S "$S/tmux" new-window -d \
	    "exec sh '$D/loop.sh' '$S/$1'"
	is_up "$1"
}
below() { # below OTHER WHO [WRAPPER ...]: started by OTHER
	other=$1 name=$2
	shift 2
	fifo "$name"
	tell "$other" "$* sh '$D/loop.sh' '$S/$name' </dev/null >/dev/null 2>&1 &"
	is_up "$name"
}
bridge() { # bridge WHO [COMMAND]: from WHO's place
	# shellcheck disable=SC2016
	tell "$1" "${2:-\$K agent \$S >\$A &}"
	answer
	[ "$said" = seen ] || fail "the bridge of $1: $said"
}
is_wanted() { case $1 in *"$only"*) ;; *) return 1 ;; esac; }
# expect NAME VERDICT WHO COMMAND: what the command in WHO's place is told
expect() {
	tell "$3" "$4"
	answer
	case $said in
	"$2"*) pass "$1: $2" ;;
	*) fail "$1: expected $2, got ${said:-nothing}" ;;
	esac
}
says() { # says NAME PATTERN: the last answer
	if printf '%s\n' "$said" | grep -Eq "$2"; then
		pass "$1"
	else
		fail "$1: $said"
	fi
}
# shellcheck disable=SC2016
ask='$K control $S >$A'
# shellcheck disable=SC2016
quoted='"\$K control \$S >\$A"'
in_pty="script -qc $quoted /dev/null </dev/null >/dev/null 2>&1"

# shellcheck source=tests/guard/scenarios.sh
. "$here/scenarios.sh"
for daemon in $((first + 1)) $first; do
	who=$([ "$daemon" = "$first" ] && echo "one uid" || echo "own uid")
	for s in $scenarios; do
		is_wanted "$s" && "$s"
	done
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
