#!/bin/sh
# Each folder of src/ may include only itself and the folders above it in
# src/LAYERS; says file and line of each include that does not.
set -eu
status=0
allowed=
while read -r layer; do
	allowed=${allowed:+$allowed|}$layer
	if grep -nE '^#include "' src/"$layer"/*.[ch] /dev/null |
	    grep -vE "#include \"($allowed)/"; then
		status=1
	fi
done <src/LAYERS
exit $status
