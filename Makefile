# SPDX-License-Identifier: GPL-2.0-only
#
# See `make help`. Nothing but make is presumed: what is asked of the system
# (pkg-config, root) is asked when a rule needs it.

BUILD := build
PREFIX ?= /usr
PLUGINDIR ?= $(PREFIX)/lib/criu
BINDIR ?= $(PREFIX)/bin
MANDIR ?= $(PREFIX)/share/man
DOCDIR ?= $(PREFIX)/share/doc/criu-shmem
CRIU_VERSION ?= 4.2.1
FUZZ_SECONDS ?= 60
CC ?= gcc
CLANG ?= clang
PYTHON ?= python3

ifeq ($(V),1)
say = @:
run =
else
say = @printf '  %-5s %s\n'
run = @
endif

WARN := -Wall -Wextra -Werror
CFLAGS ?= -O2 -g
SHP_CFLAGS = -std=gnu11 $(WARN) -D_GNU_SOURCE -fPIC -fvisibility=hidden -Iinclude -Iplugin \
	-I$(BUILD)/proto -MMD -MP
FORTIFY := -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
SAN_FLAGS := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined \
	-fno-sanitize-recover=undefined
LIBS = $(shell pkg-config --libs libprotobuf-c zlib)
TOOL_LIBS = $(shell pkg-config --libs json-c)
LIB_CFLAGS = $(shell pkg-config --cflags libprotobuf-c zlib json-c)

COMMON := log fault config proc residency objects sysv probe source source_pagemap \
	source_cachestat source_mincore image criu_images pageout record replay
PLUGIN := shmem_plugin
TOOL := tool tool_probe tool_table tool_map tool_diff
PROTO := residency criu_images

PROTO_C := $(PROTO:%=$(BUILD)/proto/%.pb-c.c)
COMMON_OBJ := $(COMMON:%=$(BUILD)/obj/%.o) $(PROTO:%=$(BUILD)/obj/%.pb-c.o)
PLUGIN_OBJ := $(PLUGIN:%=$(BUILD)/obj/%.o) $(COMMON_OBJ)
TOOL_OBJ := $(TOOL:%=$(BUILD)/obj/%.o) $(COMMON_OBJ)
SAN_OBJ := $(COMMON_OBJ:$(BUILD)/obj/%=$(BUILD)/san/obj/%)

UNIT := $(patsubst test/unit/%.c,%,$(wildcard test/unit/test_*.c))
WORKLOADS := $(patsubst test/workloads/%.c,%,$(wildcard test/workloads/wl_*.c))
BENCHES := $(patsubst test/bench/%.c,%,$(wildcard test/bench/bench_*.c))

.PHONY: all
all: $(BUILD)/shmem_plugin.so $(BUILD)/criu-shmem

.PHONY: help
help:
	@echo 'make             build/shmem_plugin.so and build/criu-shmem (no root, no CRIU sources)'
	@echo 'make demo        see it work (root): installs what is missing'
	@echo 'make test        all tests (root): installs what is missing'
	@echo 'make test-unit   unit tests; test-e2e: real CRIU, real swap (root)'
	@echo 'make bench       figures side by side with stock CRIU (root)'
	@echo 'make fuzz        fuzz the image reader for FUZZ_SECONDS=$(FUZZ_SECONDS)'
	@echo 'make lint        clang-format, cppcheck, clang-tidy, checkpatch'
	@echo 'make criu-stock  CRIU_VERSION=$(CRIU_VERSION) from Debian'"'"'s source archive, or CRIU_SRC=DIR'
	@echo 'make criu        the same with criu-patches applied'
	@echo 'make check-abi   our description of CRIU'"'"'s plugin interface against CRIU'"'"'s own'
	@echo 'make install     PREFIX=$(PREFIX) DESTDIR= PLUGINDIR=$(PLUGINDIR); uninstall'
	@echo 'make deps        all Debian packages; deps-build deps-criu deps-test deps-lint deps-fuzz'
	@echo 'make clean'

# Packages

.PHONY: deps
deps:
	@test/install-deps build criu test lint fuzz bench

.PHONY: deps-build deps-criu deps-test deps-lint deps-fuzz deps-bench
deps-build deps-criu deps-test deps-lint deps-fuzz deps-bench:
	@test/install-deps $(@:deps-%=%)

# Plugin and tool

$(BUILD)/have-deps:
	@mkdir -p $(BUILD)
	@for tool in $(firstword $(CC)) pkg-config protoc-c; do command -v $$tool >/dev/null || { \
		echo "$$tool is missing: as root, make deps-build" >&2; exit 1; }; done
	@for lib in libprotobuf-c zlib json-c; do pkg-config --exists $$lib || { \
		echo "the headers of $$lib are missing: as root, make deps-build" >&2; exit 1; }; done
	@touch $@

$(BUILD)/proto/%.pb-c.c $(BUILD)/proto/%.pb-c.h: proto/%.proto | $(BUILD)/have-deps
	$(say) PROTO $<
	$(run)mkdir -p $(BUILD)/proto
	$(run)protoc-c --proto_path=proto --c_out=$(BUILD)/proto $<

PROTO_H := $(PROTO_C:.c=.h)

$(BUILD)/obj/%.o: plugin/%.c | $(PROTO_H)
	$(say) CC $<
	$(run)mkdir -p $(@D)
	$(run)$(CC) $(SHP_CFLAGS) $(FORTIFY) $(LIB_CFLAGS) $(CFLAGS) -c -o $@ $<

$(BUILD)/obj/%.pb-c.o: $(BUILD)/proto/%.pb-c.c
	$(say) CC $<
	$(run)mkdir -p $(@D)
	$(run)$(CC) $(SHP_CFLAGS) $(FORTIFY) $(LIB_CFLAGS) $(CFLAGS) -c -o $@ $<

# nodelete: an exit handler of the plugin runs after CRIU has closed it.
$(BUILD)/shmem_plugin.so: $(PLUGIN_OBJ)
	$(say) LINK $@
	$(run)$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-z,nodelete -Wl,-z,relro,-z,now -o $@ $^ $(LIBS)

$(BUILD)/criu-shmem: $(TOOL_OBJ)
	$(say) LINK $@
	$(run)$(CC) $(CFLAGS) $(LDFLAGS) -Wl,-z,relro,-z,now -o $@ $^ $(LIBS) $(TOOL_LIBS)

# The same objects under ASan and UBSan, for the unit tests

$(BUILD)/san/obj/%.o: plugin/%.c | $(PROTO_H)
	$(say) SAN $<
	$(run)mkdir -p $(@D)
	$(run)$(CC) $(SHP_CFLAGS) $(LIB_CFLAGS) $(SAN_FLAGS) -c -o $@ $<

$(BUILD)/san/obj/%.pb-c.o: $(BUILD)/proto/%.pb-c.c
	$(run)mkdir -p $(@D)
	$(run)$(CC) $(SHP_CFLAGS) $(LIB_CFLAGS) $(SAN_FLAGS) -c -o $@ $<

# CRIU

.PHONY: criu-stock criu criu-for-test check-abi
criu-stock:
	@CRIU_VERSION=$(CRIU_VERSION) CRIU_SRC=$(CRIU_SRC) BUILD=$(BUILD) criu-patches/build-criu stock
	@$(MAKE) --no-print-directory check-abi CRIU_TREE=$(BUILD)/criu-stock

criu:
	@CRIU_VERSION=$(CRIU_VERSION) CRIU_SRC=$(CRIU_SRC) BUILD=$(BUILD) criu-patches/build-criu patched
	@$(MAKE) --no-print-directory check-abi CRIU_TREE=$(BUILD)/criu

# The tests and the demo take $CRIU, else an installed one >= 4.1, else ours.
criu-for-test:
	@criu-patches/find-criu >/dev/null || { test/install-deps criu && \
		$(MAKE) --no-print-directory criu-stock; }

CRIU_TREE ?= $(BUILD)/criu-stock

check-abi:
	@[ -f $(CRIU_TREE)/criu/include/criu-plugin.h ] || { \
		echo "check-abi: no CRIU source in $(CRIU_TREE): make criu-stock" >&2; exit 1; }
	@$(CC) -std=gnu11 $(WARN) -Wno-unused-function -Wno-unused-parameter -fsyntax-only -Iinclude \
		-iquote $(CRIU_TREE)/criu/include test/check_abi.c
	@echo "plugin interface: as in $(CRIU_TREE)/criu/include/criu-plugin.h"

# Tests

$(BUILD)/test/%: test/unit/%.c $(COMMON_OBJ) $(wildcard test/unit/*.h)
	$(say) TEST $<
	$(run)mkdir -p $(@D)
	$(run)$(CC) $(SHP_CFLAGS) $(CFLAGS) -o $@ $< $(COMMON_OBJ) $(LIBS) -lcmocka

$(BUILD)/san/test/%: test/unit/%.c $(SAN_OBJ) $(wildcard test/unit/*.h)
	$(say) TEST "$< (ASan, UBSan)"
	$(run)mkdir -p $(@D)
	$(run)$(CC) $(SHP_CFLAGS) $(SAN_FLAGS) -o $@ $< $(SAN_OBJ) $(LIBS) -lcmocka

WORKLOAD_SHARED := test/workloads/wl.c test/workloads/pages.c

$(BUILD)/workloads/%: test/workloads/%.c $(WORKLOAD_SHARED) test/workloads/wl.h
	$(say) CC $<
	$(run)mkdir -p $(@D)
	$(run)$(CC) -std=gnu11 -O2 $(WARN) -D_GNU_SOURCE -o $@ $< $(WORKLOAD_SHARED)

.PHONY: unit-tests workloads test test-unit test-e2e
unit-tests: $(UNIT:%=$(BUILD)/test/%) $(UNIT:%=$(BUILD)/san/test/%)

workloads: $(WORKLOADS:%=$(BUILD)/workloads/%)

test-unit:
	@test/install-deps build test
	@$(MAKE) --no-print-directory unit-tests
	@$(PYTHON) test/unit/run.py $(UNIT)

test-e2e:
	@[ "$$(id -u)" = 0 ] || { echo "test-e2e: CRIU and swap need root" >&2; exit 1; }
	@test/install-deps build test
	@$(MAKE) --no-print-directory all workloads criu-for-test
	@$(PYTHON) test/e2e/run.py

test:
	@test/install-deps build test
	@$(PYTHON) test/run.py $(MAKE)

.PHONY: fuzz bench demo lint
FUZZ_SOURCES = $(COMMON:%=plugin/%.c) $(PROTO_C)

$(BUILD)/fuzz/fuzz_image: test/fuzz/fuzz_image.c $(COMMON:%=plugin/%.c) $(PROTO_C) \
		$(wildcard plugin/*.h include/*.h)
	$(say) FUZZ $<
	$(run)mkdir -p $(@D)
	$(run)$(CLANG) -std=gnu11 -Wall -Wextra -D_GNU_SOURCE -Iinclude -Iplugin -I$(BUILD)/proto \
		$(LIB_CFLAGS) -O1 -g -fsanitize=fuzzer,address,undefined \
		-fno-sanitize-recover=undefined -o $@ $< $(FUZZ_SOURCES) $(LIBS)

# Only when the format of the image changes.
.PHONY: fuzz-corpus
fuzz-corpus: test/fuzz/make_corpus.c $(COMMON_OBJ)
	$(CC) $(SHP_CFLAGS) -MF $(BUILD)/make_corpus.d $(CFLAGS) -o $(BUILD)/make_corpus \
		test/fuzz/make_corpus.c $(COMMON_OBJ) $(LIBS)
	$(BUILD)/make_corpus test/fuzz/corpus

# New findings go to build/fuzz/corpus; the corpus in the tree only seeds.
fuzz:
	@test/install-deps build fuzz
	@$(MAKE) --no-print-directory $(BUILD)/fuzz/fuzz_image
	@mkdir -p $(BUILD)/fuzz/corpus
	$(BUILD)/fuzz/fuzz_image -max_total_time=$(FUZZ_SECONDS) -rss_limit_mb=4096 -timeout=20 \
		-artifact_prefix=$(BUILD)/fuzz/ -print_final_stats=1 -verbosity=0 \
		$(BUILD)/fuzz/corpus test/fuzz/corpus

$(BUILD)/bench/%: test/bench/%.c $(COMMON_OBJ) $(wildcard test/bench/*.h)
	$(say) CC $<
	$(run)mkdir -p $(@D)
	$(run)$(CC) $(SHP_CFLAGS) $(CFLAGS) -o $@ $< $(COMMON_OBJ) $(LIBS)

.PHONY: benches
benches: $(BENCHES:%=$(BUILD)/bench/%)

bench:
	@test/install-deps build bench
	@$(MAKE) --no-print-directory all workloads benches criu-for-test
	@$(PYTHON) test/bench/bench.py $(BENCH)

$(BUILD)/workloads/demo_workload: test/demo/demo_workload.c
	$(say) CC $<
	$(run)mkdir -p $(@D)
	$(run)$(CC) -std=gnu11 -O2 $(WARN) -D_GNU_SOURCE -o $@ $<

demo:
	@[ "$$(id -u)" = 0 ] || { echo "demo: CRIU and swap need root" >&2; exit 1; }
	@test/install-deps build bench
	@$(MAKE) --no-print-directory all $(BUILD)/workloads/demo_workload criu-for-test
	@$(PYTHON) test/demo/demo.py $(DEMO)

lint:
	@test/install-deps build lint
	@$(MAKE) --no-print-directory $(PROTO_H)
	@test/lint

# Install

.PHONY: install uninstall clean
install: all
	install -d $(DESTDIR)$(PLUGINDIR) $(DESTDIR)$(BINDIR) $(DESTDIR)$(MANDIR)/man1 \
		$(DESTDIR)$(MANDIR)/man7 $(DESTDIR)$(DOCDIR)
	install -m 755 $(BUILD)/shmem_plugin.so $(DESTDIR)$(PLUGINDIR)/
	install -m 755 $(BUILD)/criu-shmem $(DESTDIR)$(BINDIR)/
	install -m 644 plugin/man/criu-shmem.1 $(DESTDIR)$(MANDIR)/man1/
	install -m 644 plugin/man/shmem-plugin.7 $(DESTDIR)$(MANDIR)/man7/
	install -m 644 plugin/shmem-plugin.conf.example README.md $(DESTDIR)$(DOCDIR)/

uninstall:
	rm -f $(DESTDIR)$(PLUGINDIR)/shmem_plugin.so $(DESTDIR)$(BINDIR)/criu-shmem \
		$(DESTDIR)$(MANDIR)/man1/criu-shmem.1 $(DESTDIR)$(MANDIR)/man7/shmem-plugin.7
	rm -rf $(DESTDIR)$(DOCDIR)

clean:
	rm -rf $(BUILD)

-include $(wildcard $(BUILD)/obj/*.d $(BUILD)/san/obj/*.d $(BUILD)/test/*.d $(BUILD)/san/test/*.d \
	$(BUILD)/bench/*.d)
.SECONDARY:
