#!/bin/sh
# Runs a command in a window of the tmux server at AIRLOCK_TMUX, copies stdin to
# it line by line and its output to stdout, and exits with its code.
set -eu
tmux() { command tmux -S "$AIRLOCK_TMUX" "$@"; }
dir=$(mktemp -d "${TMPDIR:-/tmp}/ptyrun.XXXXXX")
typist=
# shellcheck disable=SC2154 # code is set by the trap itself
trap 'code=$?; [ -z "$typist" ] || kill "$typist" 2>/dev/null || :
	rm -rf "$dir"; exit $code' EXIT
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
exec 3<&0
while IFS= read -r line; do
	tmux send-keys -t "$pane" -l -- "$line"
	tmux send-keys -t "$pane" Enter
done <&3 &
typist=$!
cat "$dir/out"
exit "$(cat "$dir/code")"
