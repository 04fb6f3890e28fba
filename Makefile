# Airlock: one Makefile, not recursive.  `make help` lists the targets.
BUILD   ?= build
CC      ?= cc
PREFIX  ?= /usr/local
JOBS    ?= $(shell nproc 2>/dev/null || echo 2)
PKGS     = libevent_core libpq jansson libcrypto
LAYERS  := $(shell cat src/LAYERS)
VERSION := $(shell sed -n 's/.*VERSION "\(.*\)".*/\1/p' src/base/version.h)

# Asked once, and only by what compiles: `make deps` comes before pkg-config.
once         = $(eval $(1) := $(2))$($(1))
PKG_CFLAGS   = $(call once,PKG_CFLAGS,$(shell pkg-config --cflags $(PKGS)))
PKG_LIBS     = $(call once,PKG_LIBS,$(shell pkg-config --libs $(PKGS)))
CLI_LIBS     = $(call once,CLI_LIBS,$(shell pkg-config --libs jansson libcrypto))

WARN     = -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes \
           -Wmissing-prototypes -Wcast-qual -Wwrite-strings -Wformat=2 -Wvla
HARDEN   = -fstack-protector-strong -fPIE -D_FORTIFY_SOURCE=2
CFLAGS  ?= -O2 -g
CPPFLAGS += -D_GNU_SOURCE -Isrc $(PKG_CFLAGS)
LDLIBS   = $(PKG_LIBS) -lpg_query -linih -lm
LDHARDEN = -pie -Wl,-z,relro,-z,now
SANITIZE = -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined \
           -fno-sanitize-recover=all

# What runs is shown in short; all of it with V=1.
ifndef V
short    = @printf '  %-5s %s\n' '$(1)' '$@';
endif
COMPILE  = $(CC) -std=c11 $(WARN) $(HARDEN) $(CPPFLAGS) $(CFLAGS)
LINK     = $(CC) $(CFLAGS) $(LDHARDEN) $(LDFLAGS)
objs     = $(patsubst %.c,$(BUILD)/%.o,$(1))
# $(call upto,rule): the archives of a layer and of those above it, that layer
# first, as the linker wants them.
reverse  = $(if $(1),$(call reverse,$(wordlist 2,99,$(1))) $(firstword $(1)))
before   = $(if $(filter $(1),$(firstword $(2))),$(1),$(firstword $(2)) \
           $(call before,$(1),$(wordlist 2,99,$(2))))
archives = $(patsubst %,$(BUILD)/lib/%.a,$(call reverse,$(1)))
upto     = $(call archives,$(call before,$(1),$(LAYERS)))

PROGRAMS = $(BUILD)/airlockd $(BUILD)/airlock $(BUILD)/airlock-mcp
SOURCES  = $(wildcard src/*/*.c cli/*.c tests/unit/*/*.c tests/fuzz/*.c \
           tests/guard/*.c tests/bench/*.c)
HEADERS  = $(wildcard src/*/*.h cli/*.h tests/unit/*.h tests/unit/*/*.h tests/fuzz/*.h \
           tests/bench/*.h)
UNIT     = $(patsubst tests/unit/%.c,$(BUILD)/unit/%,\
           $(wildcard tests/unit/*/test_*.c))
FUZZ     = $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
REPLAY   = $(patsubst %,$(BUILD)/fuzz/replay_%,$(FUZZ))
HELPERS  = $(patsubst tests/%.c,$(BUILD)/%,$(wildcard tests/guard/*.c))
MAN      = $(wildcard man/*.[158])
E2E      = $(wildcard tests/e2e/*.test.mjs) tests/oracle/oracle.test.mjs

all: $(PROGRAMS) ## build the three programs

deps: ## install what is missing from Debian and npm, after saying what
	@sh tests/deps.sh build test

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(call short,CC)$(COMPILE) -MMD -MP -c -o $@ $<

define archive
$(BUILD)/lib/$(1).a: $$(call objs,$$(filter-out src/front/main.c,$$(wildcard src/$(1)/*.c)))
	@mkdir -p $$(@D)
	@rm -f $$@
	$$(call short,AR)$$(AR) rcs $$@ $$^

$(BUILD)/unit/$(1)/%: $(BUILD)/tests/unit/$(1)/%.o $$(call upto,$(1))
	@mkdir -p $$(@D)
	$$(call short,LINK)$$(LINK) -o $$@ $$^ $$(LDLIBS) -lcmocka
endef
$(foreach l,$(LAYERS),$(eval $(call archive,$(l))))

# Whole archives: of two functions of one name a linker would else take, for both,
# whichever it meets first, without a word.
$(BUILD)/airlockd: $(BUILD)/src/front/main.o $(call archives,$(LAYERS))
	$(call short,LINK)$(LINK) -o $@ -Wl,--whole-archive $^ \
	    -Wl,--no-whole-archive $(LDLIBS)

$(BUILD)/airlock: $(call objs,$(filter-out cli/airlock-mcp.c,$(wildcard cli/*.c))) \
    $(call archives,base wire rule diff)
	$(call short,LINK)$(LINK) -o $@ $^ $(CLI_LIBS)

$(BUILD)/unit/cli/%: $(BUILD)/tests/unit/cli/%.o \
    $(call objs,$(filter-out cli/airlock.c cli/airlock-mcp.c,$(wildcard cli/*.c))) \
    $(call archives,base wire rule diff)
	@mkdir -p $(@D)
	$(call short,LINK)$(LINK) -o $@ $^ $(CLI_LIBS) -lcmocka

$(BUILD)/airlock-mcp: $(BUILD)/cli/airlock-mcp.o $(call archives,base wire)
	$(call short,LINK)$(LINK) -o $@ $^ $(CLI_LIBS)

$(BUILD)/guard/guardd: $(call upto,core)
$(BUILD)/guard/%: $(BUILD)/tests/guard/%.o
	@mkdir -p $(@D)
	$(call short,LINK)$(LINK) -o $@ $^ $(LDLIBS)

$(BUILD)/bench/judge: $(BUILD)/tests/bench/judge.o $(call archives,$(LAYERS))
	@mkdir -p $(@D)
	$(call short,LINK)$(LINK) -o $@ $^ $(LDLIBS)

$(BUILD)/bench/bench $(BUILD)/bench/diff: $(BUILD)/bench/%: \
    $(BUILD)/tests/bench/%.o $(BUILD)/tests/bench/talk.o
	@mkdir -p $(@D)
	$(call short,LINK)$(LINK) -o $@ $^ $(LDLIBS)

$(BUILD)/fuzz/replay_%: $(BUILD)/tests/fuzz/fuzz_%.o \
    $(BUILD)/tests/fuzz/replay.o $(call archives,$(LAYERS))
	@mkdir -p $(@D)
	$(call short,LINK)$(LINK) -o $@ $^ $(LDLIBS)

$(BUILD)/fuzz/fuzz_%: $(BUILD)/tests/fuzz/fuzz_%.o $(call archives,$(LAYERS))
	@mkdir -p $(@D)
	$(call short,LINK)$(LINK) -fsanitize=fuzzer -o $@ $^ $(LDLIBS)

# Everything that is proved without looking at how it was built.
check: deps ## install what is missing, build, and pass every test
	@$(MAKE) --no-print-directory check-static check-built

check-static: check-layers check-headers check-man check-docs
check-built: ## the tests of a build that `make deps` made possible
	@$(MAKE) --no-print-directory -j$(JOBS) programs-and-tests
	@$(MAKE) --no-print-directory check-unit check-fuzz check-install check-e2e

programs-and-tests: $(PROGRAMS) $(UNIT) $(REPLAY) $(HELPERS)

check-unit: $(UNIT) ## unit tests
	@for t in $(UNIT); do $$t || exit 1; done

check-fuzz: $(REPLAY) ## what the fuzzers have found before, replayed
	@for f in $(FUZZ); do \
	    $(BUILD)/fuzz/replay_$$f tests/fuzz/corpus/$$f || exit 1; done

check-e2e: $(PROGRAMS) $(HELPERS) ## real daemon, database, client and operator
	@BUILD=$(BUILD) sh tests/stage.sh node tests/e2e/run.mjs $(E2E)

check-layers: ## includes run one way
	@sh tests/layers.sh

check-headers: ## every header compiles on its own
	@for h in src/*/*.h; do $(CC) -std=c11 $(WARN) $(CPPFLAGS) -fsyntax-only \
	    -x c $$h || exit 1; done

check-man: ## the manual pages are clean
	@test -z "$(MAN)" || mandoc -Tlint -Wwarning $(MAN)

check-install: $(PROGRAMS) ## what is installed is whole, and goes again
	@BUILD=$(BUILD) sh tests/install.sh

check-docs: $(BUILD)/airlock ## every verb, key, option and code is in the manual
	@test ! -e tests/docs.sh || sh tests/docs.sh
	@$(BUILD)/airlock reasons --markdown | diff docs/reasons.md - || \
	    { echo "docs: docs/reasons.md is made by 'make reasons'"; exit 1; }

reasons: $(BUILD)/airlock ## make docs/reasons.md from the table
	@$(BUILD)/airlock reasons --markdown >docs/reasons.md

check-asan: ## the same tests under ASan and UBSan
	@sh tests/deps.sh build test asan
	@$(MAKE) --no-print-directory BUILD=build/asan CC=clang HARDEN=-fPIE \
	    CFLAGS="$(SANITIZE)" check-built

check-valgrind: ## unit tests under valgrind
	@sh tests/deps.sh build test valgrind
	@$(MAKE) --no-print-directory -j$(JOBS) $(UNIT)
	@for t in $(UNIT); do valgrind -q --leak-check=full \
	    --error-exitcode=99 $$t || exit 1; done

ORACLE_CASES ?= 2000
check-oracle: $(PROGRAMS) $(HELPERS) ## the diff against what tables really hold
	@BUILD=$(BUILD) ORACLE_CASES=$(ORACLE_CASES) sh tests/stage.sh \
	    node tests/e2e/run.mjs tests/oracle/oracle.test.mjs

SIEGE_VARIANTS ?= 5000
READS          ?= 2000
CHAOS_ROUNDS   ?= 200
siege: $(PROGRAMS) $(HELPERS) ## variants of the red cases, reads beside psql's, kills
	@BUILD=$(BUILD) SIEGE_VARIANTS=$(SIEGE_VARIANTS) READS=$(READS) \
	    CHAOS_ROUNDS=$(CHAOS_ROUNDS) sh tests/stage.sh node tests/e2e/run.mjs \
	    tests/e2e/siege.test.mjs tests/e2e/reads.test.mjs \
	    tests/e2e/chaos.test.mjs

check-mutants: ## builds without one of the checks must fail the tests; slow
	@sh tests/deps.sh build test
	@BUILD=$(BUILD) sh tests/mutants.sh

check-matrix: ## cases and oracle on PostgreSQL 14 to 18; servers come from npm
	@sh tests/deps.sh build test
	@$(MAKE) --no-print-directory -s -j$(JOBS) $(PROGRAMS) $(HELPERS)
	@BUILD=$(BUILD) sh tests/matrix.sh

FUZZ_SECONDS ?= 60
fuzz: ## look for new inputs, FUZZ_SECONDS each; they go to build/fuzz/corpus
	@sh tests/deps.sh build asan
	@$(MAKE) --no-print-directory BUILD=build/fuzz CC=clang HARDEN=-fPIE \
	    CFLAGS="$(SANITIZE) -fsanitize=fuzzer-no-link" fuzz-run
fuzz-run: $(patsubst %,$(BUILD)/fuzz/fuzz_%,$(FUZZ))
	@for f in $(FUZZ); do \
	    mkdir -p $(BUILD)/corpus/$$f && dict=tests/fuzz/$$f.dict && \
	    $(BUILD)/fuzz/fuzz_$$f -max_total_time=$(FUZZ_SECONDS) \
	    $$([ ! -e $$dict ] || echo -dict=$$dict) -timeout=10 \
	    -artifact_prefix=$(BUILD)/ $(BUILD)/corpus/$$f \
	    tests/fuzz/corpus/$$f || exit 1; done

lint: ## all that a machine can say about the source
	@sh tests/deps.sh build test lint
	@$(MAKE) --no-print-directory lint-source

lint-source: check-layers check-headers format-check lint-calls warnings \
    cppcheck tidy

lint-calls:
	@sh tests/lint.sh

warnings: ## gcc and clang, warnings as errors, tests too
	@for cc in gcc clang; do \
	    $(MAKE) --no-print-directory -s -j$(JOBS) CC=$$cc \
	    BUILD=build/lint-$$cc objects || exit 1; done
objects: $(call objs,$(SOURCES))

format: ## lay the source out
	clang-format -i $(SOURCES) $(HEADERS)

format-check:
	@clang-format --dry-run -Werror $(SOURCES) $(HEADERS)

# err.c itself defines what contract.h tells of it.  Unit tests are left to the
# compilers and sanitizers: they would take as long again.
TIDY_FLAGS = -std=c11 $(CPPFLAGS)
tidy: ## clang-tidy
	@clang-tidy --quiet src/base/err.c -- $(TIDY_FLAGS)
	@printf '%s\n' $(filter-out src/base/err.c tests/unit/%,$(SOURCES)) | \
	    xargs -P$(JOBS) -n1 sh -c 'clang-tidy --quiet "$$@" -- \
	    $(TIDY_FLAGS) -include tests/lint/contract.h 2>/dev/null' tidy

QUEUE_H = $(firstword $(wildcard /usr/include/sys/queue.h /usr/include/*/sys/queue.h))
# internalAstError: its own parser gives up where both compilers do not.
cppcheck: ## cppcheck
	@cppcheck -q --std=c11 --enable=warning,portability,performance \
	    --inline-suppr --suppress=internalAstError --error-exitcode=1 -j$(JOBS) -D_GNU_SOURCE -Isrc \
	    --library=tests/lint/cppcheck.cfg --include=$(QUEUE_H) \
	    src cli

analyze: ## gcc -fanalyzer
	@$(MAKE) --no-print-directory -s -j$(JOBS) BUILD=build/analyze CC=gcc \
	    CFLAGS="-O1 -g -fanalyzer" all

cover: ## gcov of the unit tests, with a floor for sql, rule and wire
	@sh tests/deps.sh build test
	@$(MAKE) --no-print-directory -s -j$(JOBS) BUILD=build/cover CC=gcc \
	    HARDEN=-fPIE CFLAGS="-O0 -g --coverage" \
	    LDFLAGS=-Wl,-u,__gcov_dump check-unit
	@sh tests/cover.sh build/cover

demo: ## install what is missing, build, and show a write held and decided
	@sh tests/deps.sh build demo
	@$(MAKE) --no-print-directory -s -j$(JOBS) $(PROGRAMS) $(HELPERS)
	@BUILD=$(BUILD) sh tests/stage.sh node examples/demo/demo.mjs

demo-update: ## the same, into docs/demo.txt
	@mkdir -p $(BUILD)
	@$(MAKE) --no-print-directory -s demo >$(BUILD)/demo.txt
	@sed -n '/^# Airlock/,$$p' $(BUILD)/demo.txt >docs/demo.txt

bench: ## measure, against raw libpq; see docs/performance.md
	@sh tests/deps.sh build demo
	@$(MAKE) --no-print-directory -s -j$(JOBS) $(PROGRAMS) $(BUILD)/bench/bench
	@BUILD=$(BUILD) sh tests/stage.sh node tests/bench/bench.mjs $(PARTS)

bench-diff: ## measure what it costs to hold up to a million rows
	@sh tests/deps.sh build demo
	@$(MAKE) --no-print-directory -s -j$(JOBS) $(PROGRAMS) $(BUILD)/bench/diff
	@BUILD=$(BUILD) sh tests/stage.sh node tests/bench/diff.mjs

bench-judge: ## measure what it costs to judge a statement
	@sh tests/deps.sh build demo
	@$(MAKE) --no-print-directory -s -j$(JOBS) $(PROGRAMS) $(BUILD)/bench/judge
	@BUILD=$(BUILD) sh tests/stage.sh node tests/bench/judge.mjs

man: $(MAN) ## show the manual pages
	@man -l $(MAN)

DOC   = $(DESTDIR)$(PREFIX)/share/doc/airlock
UNITS = $(wildcard examples/*.service)
# The demo runs from a checkout only: it is played with what the tests have.
EXAMPLES = $(filter-out $(UNITS) examples/demo,$(wildcard examples/*))
install: all ## install below DESTDIR and PREFIX
	install -d $(DESTDIR)$(PREFIX)/bin $(DOC)/examples
	install -m 755 $(PROGRAMS) $(DESTDIR)$(PREFIX)/bin
	for m in $(MAN); do \
	    d=$(DESTDIR)$(PREFIX)/share/man/man$${m##*.}; \
	    install -d $$d && install -m 644 $$m $$d || exit 1; done
	install -m 644 README.md LICENSE NEWS.md $(wildcard docs/*.md) $(DOC)
	for e in $(EXAMPLES); do \
	    cp -R $$e $(DOC)/examples || exit 1; done
	for u in $(UNITS); do d=$(DESTDIR)$(PREFIX)/lib/systemd/system; \
	    install -d $$d && sed 's,/usr/local,$(PREFIX),g' $$u \
	    >$$d/$${u##*/} || exit 1; done

uninstall: ## take back what install put there
	rm -f $(patsubst $(BUILD)/%,$(DESTDIR)$(PREFIX)/bin/%,$(PROGRAMS))
	for m in $(MAN); do rm -f \
	    $(DESTDIR)$(PREFIX)/share/man/man$${m##*.}/$${m##*/}; done
	rm -f $(patsubst examples/%,$(DESTDIR)$(PREFIX)/lib/systemd/system/%,$(UNITS))
	rm -rf $(DOC)

dist: ## a release archive of what is committed
	@mkdir -p $(BUILD)
	git archive --prefix=airlock-$(VERSION)/ -o \
	    $(BUILD)/airlock-$(VERSION).tar.gz HEAD

clean: ## remove what was built
	rm -rf $(BUILD)

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "%-16s %s\n", $$1, $$2}' Makefile

.PHONY: all deps check check-static check-built programs-and-tests \
    check-unit check-fuzz check-install check-e2e check-layers check-headers check-man \
    check-docs check-asan check-valgrind check-oracle siege \
    check-mutants check-matrix fuzz fuzz-run lint lint-source \
    lint-calls warnings objects format format-check tidy cppcheck analyze \
    cover demo demo-update bench bench-diff bench-judge man install uninstall dist clean help
.SECONDARY:
-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
