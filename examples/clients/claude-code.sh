#!/bin/sh
# Claude Code: adds Airlock for this user, in all of their projects.
# usage: claude-code.sh [STATE_DIR]
set -eu
state=${1:-${XDG_STATE_HOME:-$HOME/.local/state}/airlock}
exec claude mcp add --scope user airlock -- airlock-mcp --state-dir "$state"
