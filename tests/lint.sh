#!/bin/sh
# What a grep can see: calls that are banned, traces of a machine in the tree,
# and the sizes of files.  Says file and line, and exits 1 if anything is found.
set -u
cd "$(dirname "$0")/.."
report=$(mktemp)
trap 'rm -f "$report"' EXIT

# found TITLE: what comes in is a finding each line.
found() {
	lines=$(cat)
	[ -z "$lines" ] || printf 'lint: %s:\n%s\n' "$1" "$lines" >>"$report"
}
sources() { find src cli tests -name '*.[ch]' ! -path '*/node_modules/*'; }
files() {
	git ls-files 2>/dev/null | grep . ||
	    find . -type f ! -path './build/*' ! -path './node_modules/*'
}

# Each has a checked stand-in: text.h, clock.h, mem.h, or a _r function.
banned='strcpy|strcat|strncpy|strncat|sprintf|vsprintf|strtok|gets'
banned="$banned|gmtime|localtime|asctime|ctime|atoi|atol|atoll|atof"
banned="$banned|alloca|system|popen|mktemp|tmpnam|tempnam|rand|srand"
sources | grep -v '^tests/' | xargs grep -nE "(^|[^_[:alnum:].>\"])($banned)\(" |
    found "banned calls"

# A path of one machine, or the host of a package registry, has no place here.
files | grep -v '^tests/lint.sh$' |
    xargs grep -nIE '(^|[^[:alnum:]_.])/(work|root|home/[a-z]+)/|https?://[a-z0-9.-]*(registry|mirror|proxy|deb|ftp)\.' |
    cut -c1-160 | found "paths or hosts of one machine"
grep -nE '"resolved"|https?://' package-lock.json |
    found "addresses in package-lock.json"

# clang-format takes a word of C++ in a name for the word, and formats no more.
sources | xargs grep -nE '^[a-z].*\) \{$' |
    found "functions that are not laid out (a C++ keyword as a name?)"

# First line of each source says what it is.
for f in $(sources); do
	head -n 1 "$f" | grep -q '^/\*' || echo "$f:1: no opening comment"
done | found "files that do not say what they are"

sources | grep -v '^tests/' | xargs wc -l |
    awk '$2 != "total" && $1 > 600 { print $2 ": " $1 " lines" }' |
    found "files over 600 lines"
cat "$report" >&2
[ ! -s "$report" ]
