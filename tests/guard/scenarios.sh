# scenarios: each a denied and an allowed twin that differ in one thing
# Read by run.sh, whose words these are.
# shellcheck shell=sh disable=SC2016,SC2154,SC2034

scenarios="plain wrapped sessions own_pty detached_pty namespaces forged_name
    new_tmux fresh_tmux bridge_elsewhere pane_leader wrong_speaker same_terminal
    after_client orphan_bridge lone_leader send_keys unlisted"

plain() {
	fresh
	operator op
	client c
	expect "unconnected client's shell" "deny 3" c "$ask"
	bridge c
	expect "operator's shell" allow op "$ask"
	expect "client's shell" "deny 3" c "$ask"
	expect "operator's nested shells" allow op "sh -c \"sh -c '$ask; :'; :\""
	expect "client's nested shells" "deny 3" c "sh -c \"sh -c '$ask; :'; :\""
	operator late
	expect "a login after the client" allow late "$ask"
}

# The client itself sits in a login; its bridge is below a wrapper.
wrapped() {
	fresh script tmux
	operator op
	operator c
	expect "a login before any bridge" allow c "$ask"
	bridge c 'setsid sh -c "sh -c \"\$K agent \$S >\$A; :\"; :" &'
	expect "wrapper between client and bridge" "deny 4" c "$ask"
	expect "the same, in a terminal of its own" "deny 4" c "$in_pty"
	expect "another login, in a terminal of its own" allow op "$in_pty"
}

sessions() {
	fresh
	operator op
	client c
	bridge c
	expect "setsid" "deny 3" c "setsid -w sh -c '$ask'"
	expect "setsid -f" "deny 3" c "setsid -f sh -c '$ask'"
	expect "nohup and orphaned" "deny 3" c "(nohup sh -c '$ask' &)"
	expect "operator, in place" allow op "sh -c '$ask'"
	expect "operator, nohup in its terminal" allow op "nohup sh -c '$ask' >/dev/null"
	expect "operator, orphaned" "deny 3" op \
	    "sh -c '(sleep 0; while kill -0 \$\$ 2>/dev/null; do :; done; $ask) &'"
}

own_pty() {
	fresh script
	operator op
	client c
	bridge c
	expect "own pseudo-terminal" "deny 4" c "$in_pty"
	expect "own pseudo-terminal, own session" "deny 4" c \
	    "setsid -w sh -c '$in_pty'"
	expect "operator's own pseudo-terminal" allow op "$in_pty"
}

# Same program, same parent (pid 1): only their age differs.
detached_pty() {
	fresh script
	operator op
	fifo old
	tell op 'setsid -f script -qc "sh $D/loop.sh $S/old" /dev/null </dev/null >/dev/null 2>&1'
	is_up old
	client c
	bridge c
	expect "orphaned terminal from before the client" allow old "$ask"
	expect "orphaned terminal of the client" "deny 5" c "setsid -f $in_pty"
}

namespaces() {
	fresh script
	operator op
	client c
	if ! as "$first" unshare -Urpf true 2>/dev/null; then
		skip "user and pid namespaces: not allowed on this machine"
		return
	fi
	bridge c
	expect "operator, in namespaces" allow op "unshare -Urpf sh -c '$ask; :'"
	expect "client, in namespaces" "deny 3" c "unshare -Urpf sh -c '$ask; :'"
	expect "client, in namespaces and a terminal" "deny 4" c \
	    "unshare -Urpf --mount-proc sh -c '$in_pty; :'"
}

forged_name() {
	fresh
	operator op
	client c
	bridge c
	expect "operator's tmux that is none" "deny 3" op \
	    "bash -c 'exec -a tmux $in_pty'"
	expect "forged argv[0]" "deny 3" c "bash -c 'exec -a tmux $in_pty'"
	cp "$(command -v script)" "$S/tmux"
	chmod 755 "$S/tmux"
	expect "operator's copied program" allow op "\$S/tmux -qc $quoted /dev/null </dev/null >/dev/null"
	expect "client's copied program" "deny 4" c "\$S/tmux -qc $quoted /dev/null </dev/null >/dev/null"
	expect "client's copied program, orphaned" "deny 5" c \
	    "setsid -f \$S/tmux -qc $quoted /dev/null </dev/null >/dev/null"
}

new_tmux() {
	fresh
	server p
	client c
	bridge c
	expect "operator's tmux server, a new window" allow p \
	    'tmux -S $S/tmux new-window -d "\$K control \$S >\$A"'
	expect "agent starts a new tmux server" "deny 5" c \
	    'tmux -S $S/new -f /dev/null new-session -d "\$K control \$S >\$A"'
}

fresh_tmux() {
	fresh
	operator op
	server p
	client c
	bridge c
	expect "a tmux server from before the client" allow p "$ask"
	expect "a fresh tmux server after the client" "deny 5" op \
	    'tmux -S $S/new -f /dev/null new-session -d "\$K control \$S >\$A"'
	says "the refusal says what to do" "rule 5.*open before it.*guard_hosts"
	says "and the other ways" "another uid|under a uid.*approvals = signed"
}

bridge_elsewhere() {
	fresh
	operator op
	operator c
	bridge c 'script -qc "\$K agent \$S >\$A" /dev/null </dev/null >/dev/null 2>&1 &'
	expect "bridge in a terminal of its own, asked from its client" "deny 4" \
	    c "$ask"
	expect "the same from another login" allow op "$ask"
}

pane_leader() {
	fresh script tmux
	server op
	pane c
	expect "a pane without a client" allow c "$ask"
	bridge c
	expect "client is a pane's leader" "deny 4" c "$ask"
	expect "its detached tool shell" "deny 3" c "setsid -f sh -c '$ask'"
	expect "its detached tool shell in a terminal" "deny 5" c \
	    "setsid -f $in_pty"
	expect "operator's other tmux pane" allow op "$ask"
	pane late
	expect "operator's new tmux pane" allow late "$ask"
}

wrong_speaker() {
	fresh
	operator op
	client c
	bridge c
	expect "who connected asks" allow op "$ask"
	expect "a child of who connected asks" "deny 1" op '$K heir $S >$A'
	expect "connector dead, its child asks" "deny 1" op '$K ghost $S >$A'
	expect "a passed descriptor" "deny 1" op '$K passed $S >$A'
}

# The client was stopped with ^Z in the operator's terminal.
same_terminal() {
	fresh
	operator op
	operator busy
	tell busy 'set -m'
	below busy c
	bridge c
	tell busy 'kill -STOP $!'
	expect "same terminal after Ctrl-Z" "deny 4" busy "$ask"
	says "the refusal names rule and ways out" \
	    "rule 4.*under a uid.*guard_hosts.*approvals = signed"
	expect "another terminal after Ctrl-Z" allow op "$ask"
}

# The record outlives bridge and client, as long as the shell above them lives.
after_client() {
	fresh
	operator op
	operator shell
	below shell c
	bridge c 'script -qc "\$K agent \$S >\$A" /dev/null </dev/null >/dev/null 2>&1 & b=$!'
	tell c 'kill $b; wait; echo gone >$A; exit'
	answer
	expect "a client's shell after it has ended" "deny 4" shell "$ask"
	expect "another shell then" allow op "$ask"
}

# A bridge that hid its client by having none above it.
orphan_bridge() {
	fresh
	operator op
	tell op 'setsid -f sh -c "\$K agent \$S >\$A"'
	answer
	[ "$said" = seen ] || fail "the orphaned bridge: $said"
	expect "terminal that an orphaned bridge may be from" "deny 5" op "$ask"
	operator late
	expect "terminal opened after the orphaned bridge" allow late "$ask"
}

# Orphans fall to a root-owned process other than pid 1, as in many containers.
lone_leader() {
	fresh
	operator op
	fifo c
	"$D/knock" adopt setpriv --reuid="$first" --regid="$first" \
	    --clear-groups setsid sh "$D/loop.sh" "$S/c" \
	    </dev/null >/dev/null 2>&1 &
	is_up c
	bridge c
	expect "orphaned leader below a root-owned process" "deny 5" c \
	    '$K lone sh -c "\$K control \$S >\$A"'
	expect "a leader below another root-owned process" allow op "$ask"
}

# Holes, on purpose here: who closes one will find it.
send_keys() {
	fresh
	server op
	client c
	bridge c
	as "$first" tmux -S "$S/tmux" new-window -d -n typed "exec sh -i"
	expect "HOLE: tmux send-keys to the operator's server" allow c \
	    "tmux -S \$S/tmux send-keys -t typed '$ask' Enter"
	expect "HOLE: a window opened on the operator's server" allow c \
	    'tmux -S $S/tmux new-window -d "\$K control \$S >\$A"'
}

unlisted() {
	fresh
	operator op
	expect "a terminal not in guard_hosts" "deny 3" op "$in_pty"
	says "the refusal says how to list it" "'script'.*not in guard_hosts"
	fresh script
	operator op
	expect "the same, listed" allow op "$in_pty"
}
