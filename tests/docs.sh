#!/bin/sh
# Every key of airlockd.conf, every flag of airlockd and every verb of the
# control socket is found in its manual page; says which is not.
set -u
cd "$(dirname "$0")/.."
status=0

# need PAGE PATTERN WORD: one line of the page is like the pattern.
need() {
	grep -qsE -- "$2" "$1" && return
	echo "docs: $1 does not speak of '$3'"
	status=1
}

# each TABLE SED: the words of a table; finding none is a broken check.
each() {
	words=$(sed -n "$2" "$1")
	[ -n "$words" ] && printf '%s\n' "$words" && return
	echo "docs: no table found in $1" >&2
	return 1
}

keys=$(each src/front/config_keys.c 's/^[[:space:]]*K("\([a-z_]*\)",.*/\1/p') ||
    status=1
flags=$(each src/front/flags.c 's/^[[:space:]]*\[FLAG_[A-Z_]*\] = *{ *"\([a-z-]*\)",.*/\1/p') ||
    status=1
verbs=$(each src/wire/ctl.c 's/^[[:space:]]*\[CTL_[A-Z]*\] *= *{ "\([a-z-]*\)",.*/\1/p') ||
    status=1

offline=$(each cli/offline.c 's/^[[:space:]]*{ "\([a-z-]*\)", "\[.*/\1/p') ||
    status=1

for key in $keys; do
	need man/airlockd.conf.5 "^\.It Ic $key " "$key"
done
for flag in $flags; do
	[ "$flag" = parser ] && continue # internal
	need man/airlockd.8 "^\.It .*Fl -$flag( |$)" "--$flag"
done
for verb in $verbs $offline; do
	need man/airlock.1 "^\.(It|Ss) (.* )?$verb( |$)" "$verb"
done

# And the way back: no page speaks of a key that is not there.
for key in $(sed -n 's/^\.It Ic \([a-z_]*\) Ns = .*/\1/p' man/airlockd.conf.5); do
	printf '%s\n' "$keys" | grep -qx "$key" && continue
	echo "docs: man/airlockd.conf.5 speaks of '$key', which is no key"
	status=1
done

# A code that nothing in the source gives is no code.
codes=$(each src/rule/reasons.h 's/^[[:space:]]*X(\([A-Z_]*\),.*/\1/p') || status=1
for code in $codes; do
	grep -rqE "REASON_$code\>|\"$code\"" src --include='*.c' && continue
	echo "docs: src/rule/reasons.h has '$code', which nothing gives"
	status=1
done
exit $status
