# Airlock: one Makefile, not recursive.  `make help` lists the targets.
BUILD   ?= build
CC      ?= cc
PREFIX  ?= /usr/local
PKGS     = libevent_core libpq jansson libcrypto
LAYERS  := $(shell cat src/LAYERS)

WARN     = -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes \
           -Wmissing-prototypes -Wcast-qual -Wwrite-strings -Wformat=2 -Wvla
HARDEN   = -fstack-protector-strong -fPIE -D_FORTIFY_SOURCE=2
CFLAGS  ?= -O2 -g
CPPFLAGS += -D_GNU_SOURCE -Isrc $(shell pkg-config --cflags $(PKGS))
LDLIBS   = $(shell pkg-config --libs $(PKGS)) -lpg_query -linih
LDHARDEN = -pie -Wl,-z,relro,-z,now

objs     = $(patsubst %.c,$(BUILD)/%.o,$(1))
# $(call upto,rule): the archives of a layer and of those above it, that layer
# first, as the linker wants them.
reverse  = $(if $(1),$(call reverse,$(wordlist 2,99,$(1))) $(firstword $(1)))
before   = $(if $(filter $(1),$(firstword $(2))),$(1),$(firstword $(2)) \
           $(call before,$(1),$(wordlist 2,99,$(2))))
archives = $(patsubst %,$(BUILD)/lib/%.a,$(call reverse,$(1)))
upto     = $(call archives,$(call before,$(1),$(LAYERS)))

PROGRAMS = $(BUILD)/airlockd $(BUILD)/airlock $(BUILD)/airlock-mcp
UNIT     = $(patsubst tests/unit/%.c,$(BUILD)/unit/%,\
           $(wildcard tests/unit/*/test_*.c))

all: $(PROGRAMS) ## build the three programs

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) -std=c11 $(WARN) $(HARDEN) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

define archive
$(BUILD)/lib/$(1).a: $$(call objs,$$(filter-out src/front/main.c,$$(wildcard src/$(1)/*.c)))
	@mkdir -p $$(@D)
	@rm -f $$@
	$$(AR) rcs $$@ $$^

$(BUILD)/unit/$(1)/%: $(BUILD)/tests/unit/$(1)/%.o $$(call upto,$(1))
	@mkdir -p $$(@D)
	$$(CC) $$(CFLAGS) $$(LDHARDEN) $$(LDFLAGS) -o $$@ $$^ $$(LDLIBS) -lcmocka
endef
$(foreach l,$(LAYERS),$(eval $(call archive,$(l))))

$(BUILD)/airlockd: $(BUILD)/src/front/main.o $(call archives,$(LAYERS))
	$(CC) $(CFLAGS) $(LDHARDEN) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(BUILD)/airlock: $(call objs,$(filter-out cli/airlock-mcp.c,$(wildcard cli/*.c))) \
    $(call archives,base wire diff)
	$(CC) $(CFLAGS) $(LDHARDEN) $(LDFLAGS) -o $@ $^ $(shell pkg-config --libs jansson libcrypto)

$(BUILD)/airlock-mcp: $(BUILD)/cli/airlock-mcp.o $(call archives,base)
	$(CC) $(CFLAGS) $(LDHARDEN) $(LDFLAGS) -o $@ $^ $(shell pkg-config --libs jansson libcrypto)

check-unit: $(UNIT) ## unit tests
	@for t in $(UNIT); do $$t || exit 1; done

check-layers: ## includes run one way
	@sh tests/layers.sh

check-headers: ## every header compiles on its own
	@for h in src/*/*.h; do $(CC) -std=c11 $(WARN) $(CPPFLAGS) -fsyntax-only \
	    -x c $$h || exit 1; done

clean: ## remove what was built
	rm -rf $(BUILD)

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "%-16s %s\n", $$1, $$2}' Makefile

.PHONY: all check-unit check-layers check-headers clean help
-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
