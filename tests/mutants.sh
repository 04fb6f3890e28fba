#!/bin/sh
# Takes one check after the other out of a copy of the source, and expects the
# tests to notice.
#   tests/mutants.sh [NAME ...]
# BUILD chooses where the copy and its build go (BUILD/mutants).  A mutant is one
# substitution in one file; one that no longer fits is an error, as the check
# may have moved.  The unchanged copy must pass first.
set -eu
cd "$(dirname "$0")/.."
build=${BUILD:-build}
mkdir -p "$build/mutants"
place=$(cd "$build/mutants" && pwd)
tree=$place/tree
failed=

# name | file | sed -E script (whole file as one line is not needed) | hunter
table() {
	grep -v '^#' <<-'END'
	# rows: each side is asked what it sees at the places of the other
	two-way-old|src/core/sweep_pair.c|s/if \(batch_cell\(b, ANSWERED, row, HEIR_SEEN\) != NULL\)/if (false)/|oracle
	two-way-new|src/core/sweep_pair.c|s/if \(find_place\(&s->seen, &im.is\) != -1\)/if (false)/|e2e wrap
	multixact|src/core/sweep.h|s/(\$2::pg_catalog.int8\) & 4294967295\) <) \$3/\1 0 * $3/|oracle
	span-bound|src/core/sweep.h|s/< \$3::pg_catalog.int8\)"/< 2147483648 + 0 * $3::pg_catalog.int8)"/|e2e multixact
	span-again|src/core/sweep_read.c|s/return s->span == SPAN_ANY \|\|/return true ||/|e2e multixact
	span-twice|src/core/sweep_pair.c|s/NULL && met_has\(.*\)$/NULL \&\& false)/|e2e multixact
	subxact-old|src/core/sweep.h|s/(\$1::pg_catalog.int8\) & 4294967295\)) < 2147483648/\1 = 0/|e2e wrap
	subxact-new|src/core/sweep.h|s/(pg_catalog.age\(airlock_s.xmin\)) <= 0/\1 = 0/|oracle
	chain|src/core/sweep_pair.c|s/(is_now) <> (airlock_k.was)/\1 IS NULL AND \1 <> \2/|oracle
	# what an UPDATE leaves as it was
	moves-set|src/diff/capture.c|s/c->moves\[k\] = true;/c->moves[k] = false;/|oracle
	moves-fired|src/diff/capture.c|s/r->before_update_trigger \|\| r->columns/r->columns/|oracle
	moves-made|src/diff/capture.c|s/\|\| r->columns\[k\].generated/|| false/|oracle
	# counters: the images against what the server counted
	counters|src/core/proof.c|s/agrees = leaf != NULL && memcmp\(.*$/agrees = leaf != NULL;/|oracle
	unmentioned|src/core/proof.c|s/agrees = leaf != NULL && memcmp/agrees = leaf == NULL || !memcmp/|oracle
	younger|src/pg/session.c|s/LEFT JOIN LATERAL (\(SELECT k.oid, k.relkind)/JOIN LATERAL \1/|oracle
	strayed|src/core/proof.c|s/if \(strayed != NULL\)/if (false)/|e2e between
	catalogs|src/core/proof.c|s/c->hidden_ddl = true;/;/|oracle
	hidden-rows|src/core/sweep_pair.c|s/s->doubt != NULL \? !equal : !within/!within/|oracle
	narrowed|src/core/sweep_narrow.c|s/\(w->nnew - w->seen != .*\) \{/(false \&\& w) {/;s/w->nold - strtoull\(.*\|\|/false ||/;s/w->nnew < sweep_most_new\(s\)\)/false)/;s/!w->many && w->nold < .*\)$/false)/|e2e visible
	narrowed-many|src/core/sweep_narrow.c|s/s->doubt = doubt;/s->doubt = NULL;/|e2e visible
	map-own|src/core/sweep_visible.c|s/ AND d.deptype = 'e'//;s/ AND l.lanname = 'c'//;s/  AND p.probin IN .*\)"/"/;s/  AND p.prosrc = '.*' AND/ AND/|e2e visible
	map-pages|src/core/sweep_visible.c|s/(n.page\)) \+ 1 AS past/\1 AS past/|e2e visible
	sees-alike|src/core/sweep.c|s/if \(!apart && !sees_alike\(s\)\)/if (false \&\& !sees_alike(s))/|e2e policies
	part|src/core/sweep.c|s/if \(store_forget\(s->run/if (false \&\& store_forget(s->run/|oracle
	stale|src/core/proof.c|s/if \(!c->tables\[i\].exact &&/if (false \&\&/|oracle
	# the transaction
	snapshot|src/core/execute.c|s/BEGIN ISOLATION LEVEL REPEATABLE READ/BEGIN ISOLATION LEVEL READ COMMITTED/|oracle
	deferred|src/core/examine.c|s/"SET CONSTRAINTS ALL IMMEDIATE"/"SET CONSTRAINTS ALL DEFERRED"/|oracle
	# how a change in doubt has ended
	doubt-yes|src/core/decide.c|s/bool yes = strcmp\(status, "committed"\) == 0;/bool yes = true;/|e2e recover
	doubt-no|src/core/decide.c|s/bool yes = strcmp\(status, "committed"\) == 0;/bool yes = false;/|e2e recover
	# what rows come to
	net|src/diff/net.c|s/if \(!is_of\(n, i, hash\)\)/if (true)/|oracle
	flags|src/diff/net.c|s/if \(!any && !flags_differ\(n\)\)/if (!any)/|oracle
	fold|src/diff/folding.c|s/\*at = l->at \+ 1;/*at = 0;/|oracle
	knows|src/core/rows.c|s/!store_knows\(.*\)\) \{/true) {/|oracle
	# the splice: the tree of what is sent against that of what was asked
	splice|src/sql/rewrite.c|s/if \(!is_proved\(/if (false \&\& !is_proved(/|unit sql/test_rewrite
	same-text|src/sql/tree.c|s/return strcmp\(a != NULL \? a : "", b != NULL \? b : ""\) == 0;/return true;/|unit sql/test_parse
	same-list|src/sql/tree.c|s/if \(!same_message\(va\[i\], vb\[i\]\)\)/if (false)/|unit sql/test_parse
	sign|src/sql/unprint.c|s/return find_sign\(r, c\) \|\| fail\(r, FAULT_STRANGE\);/return true;/|unit sql/test_parse
	END
}

mutate() { # file script
	cp "$tree/$1" "$place/whole"
	sed -E "$2" "$place/whole" >"$place/mutant"
	if cmp -s "$place/mutant" "$place/whole"; then
		return 1
	fi
	cp "$place/mutant" "$tree/$1"
}

compile() {
	(cd "$tree" && make -s BUILD="$place/build" CFLAGS="-O1 -g -w -Wno-error" \
	    "$@") >"$place/log" 2>&1 || {
		tail -n 20 "$place/log" >&2
		echo "mutants: it does not compile" >&2
		exit 2
	}
}

# True where the tests notice, and says which; does not come back from a copy
# that does not compile.
noticed() { # hunter
	case $1 in
	oracle)
		compile all && (cd "$tree" && BUILD=$place/build \
		    sh tests/stage.sh node tests/oracle/hunt.mjs) 2>"$place/log" ;;
	unit*)
		compile "$place/build/unit/${1#unit }" &&
		    ! "$place/build/unit/${1#unit }" >"$place/log" 2>&1 &&
		    echo "${1#unit } fails" ;;
	e2e*)
		compile all "$place/build/guard/ptyrun" && ! (cd "$tree" &&
		    BUILD=$place/build sh tests/stage.sh node tests/e2e/run.mjs \
		    "tests/e2e/${1#e2e }.test.mjs") >"$place/log" 2>&1 &&
		    echo "${1#e2e }.test.mjs fails" ;;
	esac
}

rm -rf "$tree" "$place/build" # what an earlier mutant left is newer
mkdir -p "$tree"
for f in Makefile src cli tests examples docs man package.json node_modules README.md; do
	[ ! -e "$f" ] || cp -a "$f" "$tree/"
done

if [ $# -eq 0 ]; then
	for hunter in oracle 'unit sql/test_rewrite' \
	    'unit sql/test_parse' 'e2e wrap' 'e2e multixact' \
	    'e2e visible'; do
		rc=0
		noticed "$hunter" || rc=$?
		if [ $rc -ne 1 ]; then
			echo "mutants: the unchanged source fails ($hunter)" >&2
			exit 1
		fi
	done
	set -- $(table | cut -d'|' -f1)
fi
for name in "$@"; do
	line=$(table | grep "^$name|") || { echo "mutants: no '$name'" >&2; exit 2; }
	file=$(echo "$line" | cut -d'|' -f2)
	hunter=${line##*|}
	script=${line#*|*|}
	script=${script%|*}
	if ! mutate "$file" "$script"; then
		echo "mutants: $name no longer fits $file" >&2
		failed="$failed $name"
		continue
	fi
	rc=0
	how=$(noticed "$hunter") || rc=$?
	case $rc in
	0) printf '%-12s noticed: %s\n' "$name" "$how" ;;
	1) printf '%-12s NOT NOTICED\n' "$name" ;;
	*) exit 2 ;;
	esac
	[ $rc -eq 0 ] || failed="$failed $name"
	cp "$place/whole" "$tree/$file"
done
[ -z "$failed" ] || { echo "mutants: not noticed:$failed" >&2; exit 1; }
