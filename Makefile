# Causeway. `make run` shows it at work, `make check` tests it; both install what they need.
#
#   make                  build/causeway and build/librdevice.so, which run from the tree
#   make run              a demonstration; make run PROG=./a.out N=4 ARGS="..." for a program of yours
#   make check            every test suite; ends with "N passed, N failed"
#   make bench            the figures of docs/benchmarks.md, beside stock MPICH over TCP
#   make netpipe          compares relay engines; make netpipe ARGS="--engines poll --quick": operations.md
#   make campaign         long tests: all of scalapack-mpi-test, long fuzzing (TIME=600 seconds each)
#   make install          DESTDIR and PREFIX as usual
#   make format           clang-format over all sources

SHELL = /bin/bash
VERSION = 0.1
PREFIX = /usr/local
BUILD = build
CC = gcc
N = 2

# SANITIZE=address,undefined or SANITIZE=thread builds with sanitizers, in a directory of its own
SANITIZE =
ifneq ($(SANITIZE),)
BUILD = build/$(firstword $(subst $(comma), ,$(SANITIZE)))
SANITIZE_FLAGS = -fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer
# that of threads does not see the fences of common/ring.c; nothing but two flags is ordered by them
SANITIZE_FLAGS += $(if $(filter thread,$(SANITIZE)),-Wno-tsan)
endif
comma = ,

CPPFLAGS = -I. -D_GNU_SOURCE -DCAUSEWAY_VERSION='"$(VERSION)"' -DPREFIX='"$(PREFIX)"'
CFLAGS = -std=gnu17 -O2 -g -Wall -Wextra -Werror -fPIC -fvisibility=hidden $(SANITIZE_FLAGS)
LDFLAGS = $(SANITIZE_FLAGS)

COMMON = $(wildcard common/*.c)
RELAY = $(wildcard relay/*.c relay/core/*.c relay/engine/*.c)
DISPATCHER = $(wildcard dispatcher/*.c)
RDEVICE = $(wildcard rdevice/*.c) $(addprefix common/,copy.c cred.c err.c frame.c hello.c ring.c setup.c transport.c wire.c)
UNIT = $(wildcard tests/unit/*.c tests/trace/*.c tests/conformance/*.c)
objects = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))

PROGRAMS = $(BUILD)/causeway $(BUILD)/librdevice.so

all: $(PROGRAMS)

# --- what is needed -------------------------------------------------------------------------------
RUN_PACKAGES = gcc libc6-dev libsodium-dev libelf-dev libjansson-dev liburing-dev libucx-dev mpich libmpich-dev \
	netpipe-mpich2 scalapack-mpi-test
CHECK_PACKAGES = libcunit1-dev gfortran clang libclang-rt-dev clang-format shellcheck procps
BENCH_PACKAGES = netpipe-tcp jq gnuplot-nox procps

build/.run-deps: PACKAGES = $(RUN_PACKAGES)
build/.check-deps: PACKAGES = $(CHECK_PACKAGES)
build/.bench-deps: PACKAGES = $(BENCH_PACKAGES)
build/.%-deps: Makefile
	@mkdir -p build
	@tests/install-packages.sh $(PACKAGES)
	@touch $@

# --- building -------------------------------------------------------------------------------------
$(BUILD)/obj/%.o: %.c | build/.run-deps
	@mkdir -p $(@D)
	@echo '  CC    $@'
	@$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

$(BUILD)/causeway: $(call objects,$(COMMON) $(RELAY) $(DISPATCHER))
	@echo '  LINK  $@'
	@$(CC) $(LDFLAGS) $^ -o $@ -lsodium -lelf -ljansson -luring

$(BUILD)/librdevice.so: $(call objects,$(RDEVICE)) rdevice/exports.map
	@echo '  LINK  $@'
	@$(CC) $(LDFLAGS) -shared -Wl,-soname,libucp.so.0 -Wl,--version-script=rdevice/exports.map \
		-Wl,-z,defs $(filter %.o,$^) -o $@ -lsodium

$(BUILD)/unit: $(call objects,$(UNIT) $(COMMON) $(RELAY) rdevice/readings.c \
		$(filter-out dispatcher/main.c,$(DISPATCHER)))
	@echo '  LINK  $@'
	@$(CC) $(LDFLAGS) $^ -o $@ -lcunit -lsodium -lelf -ljansson -luring

# The simulator runs the device's own code, compiled once more over its own system
SIM_DEVICE = $(addprefix $(BUILD)/sim-device/,$(addprefix rdevice/,device.o input.o output.o probe.o \
	replay.o request.o ucp.o wait.o) common/hello.o common/wire.o)
$(BUILD)/sim-device/%.o: %.c | build/.run-deps
	@mkdir -p $(@D)
	@echo '  CC    $@'
	@$(CC) $(CPPFLAGS) $(CFLAGS) -include tests/sim/device_shim.h -MMD -MP -c $< -o $@

$(BUILD)/sim: $(SIM_DEVICE) $(call objects,$(wildcard tests/sim/*.c relay/core/*.c) tests/trace/codec.c \
		$(addprefix common/,copy.c cred.c err.c frame.c ring.c setup.c transport.c) dispatcher/job.c rdevice/readings.c)
	@echo '  LINK  $@'
	@$(CC) $(LDFLAGS) $^ -o $@ -lsodium

# A client of many connections, for tests and benchmarks of relays
build/crowd: $(call objects,tests/bench/crowd.c $(addprefix common/,copy.c clock.c cred.c err.c frame.c hello.c keyfile.c parse.c \
		ring.c transport.c wire.c))
	@echo '  LINK  $@'
	@$(CC) $(LDFLAGS) $^ -o $@ -lsodium

# How fast bytes go through a ring between two cores
build/caches: $(call objects,tests/bench/caches.c $(addprefix common/,clock.c copy.c ring.c))
	@echo '  LINK  $@'
	@$(CC) $(LDFLAGS) $^ -o $@

-include $(shell find build -name '*.d' 2>/dev/null)

# MPI programs of the tests, by the ordinary compilers of Debian's MPICH
MPI_C = $(patsubst tests/system/programs/%.c,build/programs/%,$(wildcard tests/system/programs/*.c)) \
	$(patsubst tests/bench/%.c,build/programs/%,$(filter-out tests/bench/crowd.c tests/bench/caches.c,$(wildcard tests/bench/*.c))) \
	$(patsubst netpipe/%.c,build/programs/%,$(wildcard netpipe/*.c))
MPI_F = $(patsubst tests/system/programs/%.f90,build/programs/%,$(wildcard tests/system/programs/*.f90))

build/programs/nompi: tests/system/programs/nompi.c | build/.run-deps
	@mkdir -p $(@D)
	@echo '  CC    $@'
	@gcc -O2 -Wall -Wextra -Werror $< -o $@
build/programs/%: tests/system/programs/%.c $(wildcard tests/system/programs/*.h) | build/.run-deps
	@mkdir -p $(@D)
	@echo '  MPICC $@'
	@mpicc.mpich -std=gnu17 -O2 -Wall -Wextra -Werror $< -o $@ -pthread
build/programs/%: tests/bench/%.c | build/.run-deps
	@mkdir -p $(@D)
	@echo '  MPICC $@'
	@mpicc.mpich -std=gnu17 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror $< -o $@
build/programs/%: netpipe/%.c | build/.run-deps
	@mkdir -p $(@D)
	@echo '  MPICC $@'
	@mpicc.mpich -std=gnu17 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror $< -o $@ -lm
build/programs/%: tests/system/programs/%.f90 | build/.run-deps build/.check-deps
	@mkdir -p build/programs/mod
	@echo '  MPIFC $@'
	@mpif90.mpich -O2 -J build/programs/mod $< -o $@

programs: $(MPI_C) $(MPI_F)

# --- using ----------------------------------------------------------------------------------------
run: all $(if $(PROG),,build/programs/solver)
ifeq ($(PROG),)
	@tests/demo.sh
else
	$(BUILD)/causeway run -n $(N) $(PROG) $(ARGS)
endif

check: build/.run-deps build/.check-deps build/.bench-deps
	@$(MAKE) --no-print-directory all build/unit build/sim build/crowd programs fuzzers
	@$(MAKE) --no-print-directory SANITIZE=address,undefined all build/address/unit build/address/sim
	@$(MAKE) --no-print-directory SANITIZE=thread build/thread/causeway build/thread/unit
	@tests/check.sh

bench: build/.run-deps build/.bench-deps
	@$(MAKE) --no-print-directory all build/crowd build/caches programs
	@tests/bench/bench.sh

netpipe: build/.run-deps build/.bench-deps
	@$(MAKE) --no-print-directory all build/programs/pairs
	@netpipe/netpipe.sh $(ARGS)

campaign: build/.run-deps build/.check-deps
	@$(MAKE) --no-print-directory all build/sim build/crowd programs fuzzers
	@tests/campaign.sh

# --- fuzzing --------------------------------------------------------------------------------------
FUZZERS = $(patsubst tests/fuzz/%.c,build/fuzz/%,$(wildcard tests/fuzz/*.c))
fuzzers: $(FUZZERS)
build/fuzz/%: tests/fuzz/%.c $(COMMON) $(wildcard relay/core/*.[ch] common/*.h dispatcher/pmi.[ch] rdevice/readings.[ch]) | build/.run-deps build/.check-deps
	@mkdir -p $(@D)
	@echo '  FUZZ  $@'
	@clang -std=gnu17 -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all $(CPPFLAGS) \
		$< $(COMMON) $(wildcard relay/core/*.c) dispatcher/pmi.c rdevice/readings.c $(FUZZED) -o $@ -lsodium
build/fuzz/fuzz_device: FUZZED = $(addprefix rdevice/,input.c output.c probe.c replay.c request.c)
build/fuzz/fuzz_device: $(wildcard rdevice/*.[ch])

# --- installing -----------------------------------------------------------------------------------
install: all
	install -D -m 755 build/causeway $(DESTDIR)$(PREFIX)/bin/causeway
	install -D -m 755 build/librdevice.so $(DESTDIR)$(PREFIX)/lib/causeway/librdevice.so
	install -D -m 644 docs/causeway.1 $(DESTDIR)$(PREFIX)/share/man/man1/causeway.1
	install -D -m 644 docs/causeway.bash \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions/causeway

uninstall:
	rm -rf $(DESTDIR)$(PREFIX)/bin/causeway $(DESTDIR)$(PREFIX)/lib/causeway \
		$(DESTDIR)$(PREFIX)/share/man/man1/causeway.1 \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions/causeway

format:
	git ls-files '*.c' '*.h' | xargs clang-format -i

clean:
	rm -rf build

.PHONY: all run check bench netpipe campaign install uninstall format clean programs fuzzers
.SECONDARY:
