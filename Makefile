# Builds pdcc and runs its tests. `./configure` writes config.mk; `make help` lists the targets.

ifeq ($(wildcard config.mk),)
$(error run ./configure first)
endif
include config.mk

# By folder, and not VPATH: a build elsewhere must not take objects of a build here for its own.
vpath ir/% $(SRC)
vpath frontend/% $(SRC)
vpath lower/% $(SRC)
vpath codegen/% $(SRC)
vpath tests/% $(SRC)
# $(call say,WHAT,FILE) in front of a command: one short line instead of it, unless V=1.
say = $(if $(V),,@printf '  %-8s %s\n' '$(1)' '$(2)';)

WARN = -std=c11 -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wno-unused-parameter
CPPFLAGS_ALL = -D_POSIX_C_SOURCE=200809L -Iobj -I$(SRC) $(PB_CFLAGS) $(JSON_CFLAGS) $(YAML_CFLAGS)
LIBS = $(PB_LIBS) $(JSON_LIBS) $(YAML_LIBS)
COMPILE = $(CC) $(WARN) $(CPPFLAGS_ALL) $(CFLAGS) -MMD -MP -c

# What is built: each floor lists its sources. Build tools (OPGEN, embed.c) have a main of their own.
LISTS = $(addsuffix /sources.mk,$(addprefix $(SRC)/,ir lower codegen frontend))
include $(LISTS) # SOURCES OPGEN OPS_YAML TEXTS
OBJECTS = $(SOURCES:%.c=obj/%.o) obj/program_desc.pb-c.o
# Everything but main, for unit tests.
LIB_OBJECTS = $(filter-out obj/frontend/driver/pdcc.o,$(OBJECTS))
OPS = $(sort $(OPS_YAML:%=$(SRC)/%))
EMBEDDED = $(TEXTS:%=$(SRC)/%)

.PHONY: all
all: pdcc

pdcc: $(OBJECTS)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(OBJECTS) $(LIBS) -lm -ldl

# configure leaves config.mk alone when nothing changes, so only other flags compile everything again.
obj/%.o: %.c config.mk | obj/ops_enum.inc obj/program_desc.pb-c.h obj/kernels.inc
	@mkdir -p $(@D)
	$(call say,CC,$*.c)$(COMPILE) $< -o $@

obj/opgen: $(OPGEN) ir/gen/opgen.h
	@mkdir -p $(@D)
	$(call say,TOOL,$@)$(CC) $(WARN) $(CPPFLAGS_ALL) $(CFLAGS) $(filter %.c,$^) -o $@ $(YAML_LIBS)

# opgen leaves files alone that would not change; the stamp says when it ran.
obj/ops.stamp: obj/opgen $(OPS)
	$(call say,TABLE,$@)obj/opgen obj $(OPS) && touch $@
OPS_TABLES = enum table functions simplify decompose share emit_c emit_cuda work_cuda
$(OPS_TABLES:%=obj/ops_%.inc): obj/ops.stamp ;

obj/embed: codegen/text/embed.c
	@mkdir -p $(@D)
	$(call say,TOOL,$@)$(CC) $(WARN) $(CPPFLAGS_ALL) $(CFLAGS) $< -o $@

obj/kernels.inc: obj/embed $(EMBEDDED) $(LISTS)
	$(call say,TABLE,$@)obj/embed $@ $(EMBEDDED)

obj/program_desc.pb-c.c: frontend/read/program_desc.proto
	@mkdir -p obj
	$(call say,PROTO,$@)cd $(SRC)/frontend/read && $(PROTOC_C) --c_out=$(CURDIR)/obj program_desc.proto
obj/program_desc.pb-c.h: obj/program_desc.pb-c.c ;
# Generated code is not held to our warnings.
obj/program_desc.pb-c.o: obj/program_desc.pb-c.c
	$(call say,CC,$<)$(CC) $(CPPFLAGS_ALL) $(CFLAGS) -c $< -o $@

# Unit tests: one program per file, with everything but main.
UNIT_TESTS = $(patsubst $(SRC)/tests/unit/%.c,obj/tests/%,$(wildcard $(SRC)/tests/unit/test_*.c))
.PHONY: unit-tests
unit-tests: $(UNIT_TESTS)
obj/tests/%: tests/unit/%.c $(LIB_OBJECTS)
	@mkdir -p $(@D)
	$(call say,CC,tests/unit/$*.c)$(CC) $(WARN) $(CPPFLAGS_ALL) $(CFLAGS) $(LDFLAGS) -MMD -MP $< -o $@ $(LIB_OBJECTS) $(LIBS) $(CMOCKA_LIBS) -lm -ldl

# The style of the C sources is that of .clang-format, in version 14: others differ. Rules between sections end at column 100.
STYLED = $(shell cd $(SRC) && find ir lower codegen frontend runtime_stub tests/unit tests/fault tests/bench -name '*.[ch]' -o -name '*.cc')
.PHONY: format format-check
format:
	@$(if $(CLANG_FORMAT),cd $(SRC) && sed -i -E -e 's!^(// ---- .{92}).*-+$$!\1!' -e 's!^(/\* ---- .{89}).*- \*/$$!\1 */!' $(STYLED) \
		&& $(CLANG_FORMAT) -i $(STYLED),echo 'format: skipped, there is no clang-format-14')
format-check:
	@$(if $(CLANG_FORMAT),cd $(SRC) && $(CLANG_FORMAT) --dry-run --Werror $(STYLED),echo 'format-check: skipped, there is no clang-format-14')

.PHONY: check check-all
check: pdcc
	$(PYTHON) $(SRC)/tests/run.py --build $(CURDIR)
check-all: pdcc
	$(PYTHON) $(SRC)/tests/run.py --build $(CURDIR) --all

# Recorded programs as CUDA, CORPUS=FOLDER... for others than those that are here: on a GPU where there is one, else emulated.
CORPUS = $(SRC)/tests/corpus/cases
.PHONY: check-cuda-corpus
check-cuda-corpus: pdcc
	$(PYTHON) $(SRC)/tests/corpus/score.py --pdcc $(CURDIR)/pdcc --target cuda --timeout 600 $(CORPUS)

-include $(OBJECTS:.o=.d) $(UNIT_TESTS:=.d)

# The compiler under AddressSanitizer and UBSan, in a build folder of its own: obj/asan/pdcc. It is started thousands of times: where
# it may lie anywhere (PIE), half of that is the addresses in what the sanitizers describe.
.PHONY: asan
asan:
	@mkdir -p obj/asan
	cd obj/asan && $(SRC)/configure CC="$(CC)" LDFLAGS=-no-pie CFLAGS="-O1 -g1 -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all -fno-omit-frame-pointer" >/dev/null
	ASAN_OPTIONS=detect_leaks=0 $(MAKE) -C obj/asan # build tools end without freeing

# The compiler with calls that fail on demand (tests/fault), every allocation one of its own: obj/fault/pdcc.
FAULTS = malloc calloc realloc aligned_alloc free open close read write fsync fstat rename mkdir mkdtemp mmap munmap
.PHONY: fault
fault: obj/fault/pdcc
obj/fault/arena.o: ir/base/arena.c
	@mkdir -p $(@D)
	$(COMPILE) -DARENA_CHUNK_BYTES=16 $< -o $@
obj/fault/pdcc: tests/fault/fault.c obj/fault/arena.o $(OBJECTS)
	$(CC) $(CFLAGS) $(LDFLAGS) $(FAULTS:%=-Wl,--wrap=%) -o $@ $< obj/fault/arena.o $(filter-out obj/ir/base/arena.o,$(OBJECTS)) $(LIBS) -lm -ldl

# The kernel templates by themselves: instances of all kinds against plain loops, and their speed.
obj/bench/kernels: tests/bench/kernels.c $(LIB_OBJECTS)
	@mkdir -p $(@D)
	$(CC) $(WARN) $(CPPFLAGS_ALL) $(CFLAGS) $(LDFLAGS) $< -o $@ $(LIB_OBJECTS) $(LIBS) -lm -ldl
.PHONY: check-cuda-all
check-cuda-all: pdcc
	$(PYTHON) $(SRC)/tests/cuda_models.py $(CURDIR)

.PHONY: check-kernels bench-kernels
check-kernels bench-kernels: obj/bench/kernels
	CC="$(CC)" sh $(SRC)/tests/bench/kernels.sh obj/bench/kernels $(if $(filter check-kernels,$@),check,time) $(ISA)

# Side by side with the peers that are installed.
.PHONY: bench bench-all bench-new bench-train
bench: pdcc
	$(PYTHON) $(SRC)/tests/bench/bench.py --pdcc $(CURDIR)/pdcc
bench-all: pdcc
	$(PYTHON) $(SRC)/tests/bench/bench_all.py --pdcc $(CURDIR)/pdcc
bench-new: pdcc
	$(PYTHON) $(SRC)/tests/bench/bench_new.py --pdcc $(CURDIR)/pdcc
bench-train: pdcc
	$(PYTHON) $(SRC)/tests/bench/bench_train.py --pdcc $(CURDIR)/pdcc
	$(PYTHON) $(SRC)/tests/bench/bench_loops.py --pdcc $(CURDIR)/pdcc --cc "$(CC)"
	$(PYTHON) $(SRC)/tests/bench/bench_gradients.py --pdcc $(CURDIR)/pdcc --cc "$(CC)"

# With a GPU: recorded programs on it, and what it takes beside cuBLASLt and cuDNN.
.PHONY: check-gpu bench-gpu
check-gpu: pdcc
	$(PYTHON) $(SRC)/tests/run.py --build $(CURDIR) --only gpu
bench-gpu: pdcc
	$(PYTHON) $(SRC)/tests/bench/bench_gpu.py --pdcc $(CURDIR)/pdcc

# Builds pdcc, compiles the digits sample with it and measures its accuracy.
.PHONY: demo
demo: pdcc
	@$(MAKE) --no-print-directory -C $(SRC)/samples/digits PDCC=$(CURDIR)/pdcc CC="$(CC)" OUT=$(CURDIR)/obj/digits run

# Two networks of Paddle 3 and the program around them, which read a drawn page of text.
.PHONY: demo-ocr
demo-ocr: pdcc
	@$(MAKE) --no-print-directory -C $(SRC)/samples/ocr PDCC=$(CURDIR)/pdcc CC="$(CC)" OUT=$(CURDIR)/obj/ocr run

# The digits classifier and a recurrent net, trained from random weights.
.PHONY: demo-train
demo-train: pdcc
	@$(MAKE) --no-print-directory -C $(SRC)/samples/train PDCC=$(CURDIR)/pdcc CC="$(CC)" OUT=$(CURDIR)/obj/train run

# Renews what is checked in and made by pdcc; a test compares.
.PHONY: golden
golden: pdcc
	$(MAKE) --no-print-directory -C $(SRC)/samples/digits PDCC=$(CURDIR)/pdcc golden

.PHONY: docs
docs: obj/opgen pdcc
	obj/opgen --doc $(OPS) > $(SRC)/docs/operators.md
	$(PYTHON) $(SRC)/docs/control-flow/generate.py ./pdcc > $(SRC)/docs/control-flow.md
	$(PYTHON) $(SRC)/tests/layers.py --map > $(SRC)/docs/map.md
	$(PYTHON) $(SRC)/tests/bench/speed.py

VERSION := $(shell sed -n 's/^\#define PDCC_VERSION "\(.*\)"/\1/p' $(SRC)/frontend/options/options.h)
INSTALL = install
dest = $(DESTDIR)$(prefix)
.PHONY: install
install: pdcc
	$(INSTALL) -d $(dest)/bin $(dest)/include $(dest)/share/pdcc $(dest)/share/man/man1 $(dest)/lib/pkgconfig $(dest)/lib/cmake/pdcc \
		$(dest)/share/bash-completion/completions $(dest)/share/zsh/site-functions $(dest)/share/fish/vendor_completions.d
	$(INSTALL) pdcc $(dest)/bin/pdcc
	$(INSTALL) -m 644 $(addprefix $(SRC)/runtime_stub/,pdrt.h pdrt_threads.h pdrt_cuda.h pdrt_cuda_device.h) $(dest)/include
	$(INSTALL) -m 644 $(addprefix $(SRC)/runtime_stub/,pdrt.c pdrt_threads.c) $(dest)/share/pdcc
	sed -e 's|@prefix@|$(prefix)|' -e 's|@version@|$(VERSION)|' $(SRC)/runtime_stub/pdcc.pc.in > $(dest)/lib/pkgconfig/pdcc.pc
	$(INSTALL) -m 644 $(SRC)/runtime_stub/pdccConfig.cmake.in $(dest)/lib/cmake/pdcc/pdccConfig.cmake
	sed 's|@version@|$(VERSION)|' $(SRC)/runtime_stub/pdccConfigVersion.cmake.in > $(dest)/lib/cmake/pdcc/pdccConfigVersion.cmake
	./pdcc --man > $(dest)/share/man/man1/pdcc.1
	./pdcc --completion=bash > $(dest)/share/bash-completion/completions/pdcc
	./pdcc --completion=zsh > $(dest)/share/zsh/site-functions/_pdcc
	./pdcc --completion=fish > $(dest)/share/fish/vendor_completions.d/pdcc.fish

.PHONY: help
help:
	@echo 'all (default)   the compiler, ./pdcc (V=1 prints the commands)'
	@echo 'demo            compiles the digits sample with it and measures its accuracy'
	@echo 'demo-ocr        reads a page of text with two networks of Paddle 3'
	@echo 'demo-train      trains the digits classifier and a recurrent net from random weights, in C'
	@echo 'check           the tests that take minutes at most'
	@echo 'check-all       all tests'
	@echo 'format          the C sources as .clang-format says; format-check: whether they are'
	@echo 'check-cuda-all  the CUDA of all models of the shared corpus through nvcc, once for each text (MATCH=RE, SECONDS=N, FLAGS=..., HALF=1)'
	@echo 'check-cuda-corpus  recorded programs as CUDA, all that CORPUS=FOLDER... names'
	@echo 'check-kernels   the kernel templates against plain loops; bench-kernels: their speed'
	@echo 'bench           side by side with the peers that are installed; bench-all: all models of the corpus, in docs/performance.md'
	@echo 'bench-new       networks that no corpus has beside the peers'
	@echo 'bench-train     training steps beside Paddle and JAX; gradients beside C by hand, JAX and Enzyme'
	@echo 'check-gpu       recorded programs on a GPU; bench-gpu: what it takes beside cuBLASLt and cuDNN'
	@echo 'asan            the compiler with sanitizers, obj/asan/pdcc'
	@echo 'golden          renews samples/digits/digits.[ch]'
	@echo 'fault          the compiler with failures on demand, obj/fault/pdcc (tests/fault)'
	@echo 'docs            docs/operators.md from the operator table, docs/control-flow.md from pdcc, docs/map.md from the rooms'
	@echo 'install         below prefix ($(prefix)); DESTDIR is honoured'
	@echo 'clean           removes what was built; distclean: also what configure wrote'

.PHONY: clean distclean
clean:
	rm -rf obj pdcc
distclean: clean
	rm -f config.mk config.log
