#!/bin/sh
# Runs a command in a window of the tmux server at AIRLOCK_TMUX, types what
# comes on stdin, copies its output to stdout, and exits with its code.
set -eu
tmux() { command tmux -S "$AIRLOCK_TMUX" "$@"; }
dir=$(mktemp -d "${TMPDIR:-/tmp}/ptyrun.XXXXXX")
typist='' reader='' pane=''
# shellcheck disable=SC2154,SC2086 # code is set by the trap itself
trap 'code=$?; kill $typist $reader 2>/dev/null || :
	[ -z "$pane" ] || tmux kill-pane -t "$pane" 2>/dev/null || :
	rm -rf "$dir"; exit $code' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
mkfifo "$dir/out"

quoted=
for word; do
	quoted="$quoted '$(printf %s "$word" | sed "s/'/'\\\\''/g")'"
done
{
	export -p | grep -v '^export TMUX'
	echo "cd '$PWD'"
	echo "command tmux -S '$AIRLOCK_TMUX' wait-for 'go-$$'"
	echo "code=0;$quoted || code=\$?"
	echo "echo \$code >'$dir/code'"
} >"$dir/command"

pane=$(tmux new-window -d -P -F '#{pane_id}' "sh '$dir/command'")
tmux pipe-pane -t "$pane" "cat >'$dir/out'"
tmux wait-for -S "go-$$"
# Byte by byte, as they come: a control character may end no line.
exec 3<&0
while keys=$(dd bs=256 count=1 2>/dev/null | od -An -v -tx1) && [ -n "$keys" ]; do
	# shellcheck disable=SC2086 # one word a key
	tmux send-keys -t "$pane" -H $keys
done <&3 &
typist=$!
exec 3<&-
cat "$dir/out" &
reader=$!
wait $reader
exit "$(cat "$dir/code")"
