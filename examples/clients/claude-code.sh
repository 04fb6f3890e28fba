#!/bin/sh
# Claude Code: adds Airlock for this user, in all of their projects.
# usage: claude-code.sh [AGENT]
set -eu
exec claude mcp add --scope user airlock -- airlock-mcp --agent "${1:-agent}"
