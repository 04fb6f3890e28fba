#!/bin/sh
# Looks for what a step needs, says what is missing, and installs only that.
#   tests/deps.sh [-n] build | test | demo | lint | asan | valgrind ...
# Debian's packages come through apt, as root or by sudo; what the tests need
# of npm is put into node_modules as the user who asked.  -n only says.
set -eu
cd "$(dirname "$0")/.."
node_oldest=20
node_spare=22.23.5 # of the npm package, where Debian's Node is older

say() { echo "deps: $*"; }
die() { say "$*" >&2; exit 1; }

# The probes: each asks whether one thing is there.
cmd() { command -v "$1" >/dev/null 2>&1; }
pkg() { cmd pkg-config && pkg-config --exists "$1"; }
header() { ls /usr/include/*/"$1" >/dev/null 2>&1 || test -e /usr/include/"$1"; }
server() { ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || cmd initdb; }
sanitizers() {
	cmd clang &&
	    ls "$(clang -print-resource-dir)"/lib/*/*clang_rt.asan* >/dev/null 2>&1
}
certificates() { test -s /etc/ssl/certs/ca-certificates.crt; }

# step, probe, its argument, Debian's package
table='
build cmd gcc build-essential
build cmd make build-essential
build cmd pkg-config pkg-config
build pkg libevent_core libevent-dev
build pkg libpq libpq-dev
build pkg jansson libjansson-dev
build pkg libcrypto libssl-dev
build header pg_query.h libpg-query-dev
build header protobuf-c/protobuf-c.h libprotobuf-c-dev
build header ini.h libinih-dev
demo server - postgresql
demo cmd setpriv util-linux
demo cmd tmux tmux
demo cmd node nodejs
demo cmd npm npm
demo certificates - ca-certificates
test header cmocka.h libcmocka-dev
test cmd mandoc mandoc
test cmd git git
test cmd ps procps
asan cmd clang clang
asan sanitizers - libclang-rt-dev
lint cmd clang clang
lint cmd clang-format clang-format
lint cmd clang-tidy clang-tidy
lint cmd cppcheck cppcheck
valgrind cmd valgrind valgrind
'

# The sanitizers' package carries clang's version in its name.
rename() {
	case $1 in
	libclang-rt-dev)
		v=$(apt-cache policy clang |
		    sed -n 's/^ *Candidate: *\(.*:\)\{0,1\}\([0-9]*\).*/\2/p')
		echo "libclang-rt-$v-dev" ;;
	*)
		echo "$1" ;;
	esac
}

missing() { # steps: the packages whose things are not there
	echo "$table" | while read -r step probe what package; do
		case " $* " in *" ${step:-none} "*) ;; *) continue ;; esac
		"$probe" "$what" || echo "$package"
	done | sort -u
}

as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	else
		cmd sudo || die "not root and no sudo: as root, run: $*"
		sudo "$@"
	fi
}

install_debian() {
	cmd apt-get || die "no apt-get here; missing: $(echo $1)"
	say "installing from Debian:" $1
	as_root apt-get -qq update
	names=
	for p in $1; do
		names="$names $(rename "$p")"
	done
	# PostgreSQL's own package may start a server of its own; it is not used.
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y \
	    --no-install-recommends install $names >/dev/null
}

node_major() { "$1" -p 'process.versions.node.split(".")[0]' 2>/dev/null || echo 0; }

# Debian 12 has Node 18: a newer one comes as an npm package, for us alone.
install_node() {
	arch=$(node -p process.arch)
	home=build/node
	[ -x "$home/node_modules/node-linux-$arch/bin/node" ] && return
	say "installing from npm: node-linux-$arch@$node_spare (Node $(node -v) is older than $node_oldest)"
	mkdir -p "$home"
	npm install --prefix "$home" --no-save --ignore-scripts --no-audit \
	    --no-fund --loglevel=error "node-linux-$arch@$node_spare"
	mkdir -p build/bin
	ln -sf "../node/node_modules/node-linux-$arch/bin/node" build/bin/node
}

install_npm() {
	say "installing from npm, for the tests: what package-lock.json names"
	npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	cp package-lock.json node_modules/.lock
}

only_say=
if [ "${1:-}" = -n ]; then
	only_say=1
	shift
fi
steps="${*:-build demo test}"
case " $steps " in *" test "*) steps="$steps demo" ;; esac
want=$(missing $steps)
npm_stale=
case " $steps " in
*" demo "*) cmp -s package-lock.json node_modules/.lock || npm_stale=1 ;;
esac

if [ -n "$only_say" ]; then
	[ -z "$want" ] || say "missing from Debian:" $want
	[ -z "$npm_stale" ] || say "missing from npm: node_modules"
	exit 0
fi
[ -z "$want" ] || install_debian "$want"
want=$(missing $steps)
[ -z "$want" ] || die "still missing after the installation:" $want
case " $steps " in
*" demo "*)
	[ "$(node_major node)" -ge $node_oldest ] || install_node
	[ -z "$npm_stale" ] || install_npm ;;
esac
