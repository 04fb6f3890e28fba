#!/bin/sh
# Sums gcov up by layer, and fails where a layer is below its floor.
#   tests/cover.sh BUILD
set -eu
cd "$(dirname "$0")/.."
build=$1
status=0
while read -r layer floor; do
	line=$(find "$build/src/$layer" -name '*.gcno' -exec gcov -n {} + |
	    awk -v layer="src/$layer/" '
		/^File/ { mine = index($0, layer) && /\.c.$/ }
		mine && /^Lines executed/ {
			split($0, p, /[:% ]+/)
			total += p[5]; hit += p[3] * p[5] / 100
			mine = 0
		}
		END { if (total) printf "%d %d", 100 * hit / total, total }')
	set -- ${line:-0 0}
	echo "cover: $layer: $1% of $2 lines (floor $floor%)"
	[ "$1" -ge "$floor" ] || status=1
done <<EOF
sql 80
rule 80
wire 80
EOF
exit $status
