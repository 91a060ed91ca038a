# Causeway.
#
#   make                  build/causeway and build/librdevice.so, which run from the tree
#   make test             the tests for every save: less than a minute
#   make deps             installs the Debian packages that are needed to build and to run (apt, as root or by sudo)
#   make install          DESTDIR and PREFIX as usual
#   make format           clang-format over all sources
#
# These install what they need before they start:
#
#   make run              a demonstration; make run PROG=./a.out N=4 ARGS="..." for a program of yours
#   make run HOSTS=3      one with hosts, which are network namespaces: needs root
#   make grid             one with three sites that only SSH joins, likewise: needs root
#   make check            every test suite; ends with "N passed, N failed"
#   make bench            the figures of docs/benchmarks.md, beside stock MPICH over TCP
#   make netpipe          compares relay engines; make netpipe ARGS="--engines poll --quick": operations.md
#   make campaign         long tests: all of scalapack-mpi-test, long fuzzing (TIME=600 seconds each)
#
# WERROR=-Werror turns warnings into errors, as make check does.

SHELL = /bin/bash
VERSION = 0.1
PREFIX = /usr/local
BUILD = build
CC = gcc
WERROR =
N = 2

# as many commands at once as there are cores, unless the command line says otherwise
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc)
endif

# SANITIZE=address,undefined or SANITIZE=thread builds with sanitizers, in a directory of its own
SANITIZE =
OPTIMIZE = -O2 -g
ifneq ($(SANITIZE),)
# compiled in half the time; gcc then takes more texts for too long than at -O2
OPTIMIZE = -O1 -g1 -Wno-format-truncation
BUILD = build/$(firstword $(subst $(comma), ,$(SANITIZE)))
SANITIZE_FLAGS = -fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer
# that of threads does not see the fences of common/ring.c; nothing but two flags is ordered by them
SANITIZE_FLAGS += $(if $(filter thread,$(SANITIZE)),-Wno-tsan)
endif
comma = ,

CPPFLAGS = -I. -Ibuild/include -D_GNU_SOURCE -DCAUSEWAY_VERSION='"$(VERSION)"' -DPREFIX='"$(PREFIX)"'
CFLAGS = -std=gnu17 $(OPTIMIZE) -Wall -Wextra $(WERROR) -fPIC -fvisibility=hidden $(SANITIZE_FLAGS)
LDFLAGS = $(SANITIZE_FLAGS)

COMMON = $(wildcard common/*.c)
RELAY_CORE = $(wildcard relay/core/*.c relay/log/*.c relay/memory/*.c)
RELAY = $(wildcard relay/*.c relay/engine/*.c relay/inspect/*.c) $(RELAY_CORE)
CKPTSRV = $(wildcard ckptsrv/*.c)
DISPATCHER = $(wildcard dispatcher/*/*.c)
TUNNELS = $(wildcard tunnels/*.c)
RDEVICE = $(wildcard rdevice/*.c rdevice/image/*.c rdevice/collectives/*.c) $(addprefix common/,channel.c copy.c cred.c decided.c err.c frame.c hello.c kept.c match.c pack.c readings.c ring.c secret.c setup.c transport.c wire.c)
# What each message passes
MESSAGES = $(addprefix common/,channel.c copy.c match.c ring.c wire.c) $(addprefix rdevice/,arena.c channel.c contents.c cursor.c device.c \
	exchange.c inbox.c mailbox.c operation.c probes.c request.c session.c trace.c ucp.c ucp_data.c wait.c wait_policy.c)
RESTORER = $(wildcard rdevice/restorer/*.c) rdevice/image/maps_line.c common/image.c
UNIT = $(wildcard tests/unit/*.c tests/trace/*.c tests/conformance/*.c) tests/lib/codec.c tests/lib/fake_disk.c tests/lib/image_maker.c tests/lib/journals.c tests/lib/left.c tests/lib/scratch.c tests/lib/said.c
objects = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))

PROGRAMS = $(BUILD)/causeway $(BUILD)/librdevice.so $(BUILD)/causeway-restore

all: $(PROGRAMS)

# --- what is needed -------------------------------------------------------------------------------
# What is missing is installed by the targets deps, run, check, bench, netpipe and campaign, and by no other.
RUN_PACKAGES = gcc libc6-dev libsodium-dev libelf-dev libjansson-dev libconfig-dev liburing-dev libxxhash-dev liblz4-dev libssh2-1-dev libucx-dev mpich libmpich-dev \
	netpipe-mpich2 scalapack-mpi-test openssh-client
HOSTS_PACKAGES = iproute2 nftables openssh-client openssh-server
CHECK_PACKAGES = mmdebstrap libcunit1-dev g++ gfortran clang libclang-rt-dev clang-format shellcheck procps $(HOSTS_PACKAGES)
BENCH_PACKAGES = netpipe-tcp jq gnuplot-nox procps nwchem-mpich $(HOSTS_PACKAGES)

build/.run-deps: PACKAGES = $(RUN_PACKAGES)
build/.check-deps: PACKAGES = $(CHECK_PACKAGES)
build/.bench-deps: PACKAGES = $(BENCH_PACKAGES)
build/.hosts-deps: PACKAGES = $(HOSTS_PACKAGES)
build/.%-deps: Makefile
	@mkdir -p build
	@tests/install-packages.sh $(PACKAGES)
	@touch $@

deps: build/.run-deps
deps-check: build/.run-deps build/.check-deps build/.bench-deps
deps-bench: build/.run-deps build/.bench-deps

# after a command that may have failed for want of a package
hint = { echo "  If a header, library or compiler is missing: 'make $(1)' installs the Debian packages." >&2; exit 1; }

# --- building -------------------------------------------------------------------------------------
$(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	@echo '  CC    $@'
	@$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@ || $(call hint,deps)

# the sanitizers open files themselves, before they can watch anything
$(BUILD)/obj/rdevice/files.o: SANITIZE_FLAGS =

$(BUILD)/causeway: $(call objects,$(COMMON) $(RELAY) $(CKPTSRV) $(DISPATCHER) $(TUNNELS) rdevice/image/probe.c)
	@echo '  LINK  $@'
	@$(CC) $(LDFLAGS) $^ -o $@ -lsodium -lelf -ljansson -lconfig -luring -llz4 -lssh2 -lm || $(call hint,deps)

# Every function of the installed MPI that may look for progress, for rdevice/calls.c
build/include/rdevice/calls.inc: Makefile
	@mkdir -p $(@D)
	@nm -D --defined-only "$$(mpicc.mpich -print-file-name=libmpich.so)" | \
		awk '$$2 ~ /[TW]/ && $$3 ~ /^P?MPI_/ && $$3 !~ /^P?MPI_(T_|Wti|Abort$$)/ { print "CALL(" n++ ", " $$3 ")" } \
			END { exit !n }' >$@ || \
		$(call hint,deps)
$(BUILD)/obj/rdevice/calls.o: build/include/rdevice/calls.inc

# an exception may leave a handler that it calls
$(BUILD)/obj/rdevice/handlers.o: CFLAGS += -fexceptions

# As one unit: half as many instructions a message. Other programs link the same objects one by one.
ifeq ($(SANITIZE)$(findstring clang,$(CC)),)
$(call objects,$(MESSAGES)): CFLAGS += -flto -ffat-lto-objects
LDFLAGS = -fno-lto
$(BUILD)/librdevice.so: LDFLAGS = $(OPTIMIZE) -flto=auto
endif

# Where the installed MPI has mpi.h
$(BUILD)/obj/rdevice/collectives/%.o: CPPFLAGS += $(filter -I%,$(shell mpicc.mpich -show -c 2>/dev/null))

# constructors of other libraries call it before that of the sanitizer has run, which its own begin with
ifneq ($(findstring address,$(SANITIZE)),)
$(BUILD)/librdevice.so: LDFLAGS += -Wl,-z,initfirst
endif
$(BUILD)/librdevice.so: $(call objects,$(RDEVICE))
	@echo '  LINK  $@'
	@$(CC) $(LDFLAGS) -shared -Wl,-soname,libucp.so.0 -Wl,-z,defs $(filter %.o,$^) -o $@ -lsodium -llz4 || $(call hint,deps)

# Without libc, and where no program has anything: rdevice/image/system.h says where
$(BUILD)/restorer/%.o: %.c
	@mkdir -p $(@D)
	@echo '  CC    $@'
	@$(CC) $(CPPFLAGS) -std=gnu17 -O2 -g -Wall -Wextra $(WERROR) -fpie -fno-stack-protector -fcf-protection=none \
		-fno-asynchronous-unwind-tables -fno-tree-loop-distribute-patterns -fno-builtin-strcpy -ffunction-sections \
		-MMD -MP -c $< -o $@ || $(call hint,deps)

$(BUILD)/causeway-restore: $(patsubst %.c,$(BUILD)/restorer/%.o,$(RESTORER))
	@echo '  LINK  $@'
	@$(CC) -static -no-pie -nostdlib -Wl,--no-relax,--gc-sections,-z,noexecstack,-z,norelro,--build-id=none \
		-Wl,-Ttext-segment=0x200000000000 $^ -o $@ -l:liblz4.a || $(call hint,deps)

$(BUILD)/unit: $(call objects,$(UNIT) $(COMMON) $(RELAY) $(CKPTSRV) \
		$(addprefix rdevice/,bell.c contents.c frames.c session.c shift.c tally.c wait_policy.c collectives/plan.c) \
		$(addprefix rdevice/image/,interrupted.c maps_line.c probe.c seen.c stream.c) \
		$(filter-out dispatcher/cli/main.c,$(DISPATCHER)) $(TUNNELS))
	@echo '  LINK  $@'
	@$(CC) $(LDFLAGS) $^ -o $@ -lcunit -lsodium -lelf -ljansson -lconfig -luring -llz4 -lssh2 -lm || $(call hint,deps-check)

# The simulator runs the project's own code, compiled once more over a simulated system; the device
# is a library, which is loaded once for each simulated process
SIM_WITHOUT = $(addprefix rdevice/,abort.c arena.c calls.c files.c handlers.c heap.c held.c ipc.c libc_host.c libc_input.c libc_names.c libc_waits.c lock.c store.c ucp_unreachable.c ucs.c)
SIM_DEVICE = $(patsubst %.c,$(BUILD)/sim-code/%.o,$(filter-out $(SIM_WITHOUT),$(wildcard rdevice/*.c)) \
	$(addprefix common/,channel.c cred.c decided.c err.c frame.c hello.c kept.c match.c readings.c ring.c setup.c wire.c) tests/sim/device_inside.c)
SIM_SYSTEM = $(addprefix $(BUILD)/sim-code/,common/channel.o common/decided.o common/dial.o common/follow.o common/hello.o common/kept.o common/ring.o common/wire.o \
	dispatcher/servers/party.o dispatcher/servers/relays.o) \
	$(patsubst %.c,$(BUILD)/sim-code/%.o,$(RELAY_CORE))
$(BUILD)/sim-code/%.o: %.c
	@mkdir -p $(@D)
	@echo '  CC    $@'
	@$(CC) $(CPPFLAGS) $(CFLAGS) -include tests/sim/system_shim.h -MMD -MP -c $< -o $@ || $(call hint,deps)

$(SIM_DEVICE): CFLAGS += -fvisibility=default
$(BUILD)/sim-code/common/channel.o: CPPFLAGS += -DSIM_STORES_GIVE_WAY
$(BUILD)/obj/tests/sim/%.o: CPPFLAGS += -include tests/sim/sizes.h
$(BUILD)/sim-device.so: $(SIM_DEVICE) $(call objects,common/copy.c common/transport.c)
	@echo '  LINK  $@'
	@$(CC) $(LDFLAGS) -shared -Wl,-Bsymbolic $^ -o $@ -lsodium

$(BUILD)/sim: $(SIM_SYSTEM) $(call objects,$(filter-out tests/sim/device_inside.c,$(wildcard tests/sim/*.c)) \
		tests/lib/codec.c tests/lib/fake_disk.c tests/lib/journals.c $(addprefix common/,copy.c cred.c err.c frame.c match.c parse.c readings.c setup.c stranger.c transport.c) \
		$(addprefix dispatcher/,job/backups.c job/homes.c job/job.c job/liveness.c job/slots.c wire/gate.c) relay/dial_request.c tunnels/ssh_address.c) $(BUILD)/sim-device.so
	@echo '  LINK  $@'
	@$(CC) $(LDFLAGS) -rdynamic $(filter %.o,$^) -o $@ -lsodium -llz4

# All schedules of small programs over common/channel.c: it calls tests/interleave/hooks.c at each access to memory, as
# gcc has it call the thread sanitizer, which is not there; what the code reads twice it does read twice there
$(BUILD)/interleave-code/%.o: %.c
	@mkdir -p $(@D)
	@echo '  CC    $@'
	@$(CC) $(CPPFLAGS) -std=gnu17 -O2 -g -Wall -Wextra $(WERROR) -include tests/interleave/sizes.h $(HOOKED) -MMD -MP -c $< -o $@ || $(call hint,deps)
$(BUILD)/interleave-code/common/%.o: HOOKED = -fsanitize=thread -Wno-tsan -O1 -fno-tree-fre
$(BUILD)/interleave: $(patsubst %.c,$(BUILD)/interleave-code/%.o,common/channel.c common/clock.c tests/sim/coroutine.c $(wildcard tests/interleave/*.c))
	@echo '  LINK  $@'
	@$(CC) $^ -o $@

# Programs of the tests of images, without MPI; the library is theirs
IMAGE_PROGRAMS = $(patsubst tests/image/%,$(BUILD)/image/%,$(basename $(filter-out tests/image/taker.c,$(wildcard tests/image/*.c)) \
	$(wildcard tests/image/*.cc tests/image/*.f90)))
image-programs: $(IMAGE_PROGRAMS) $(BUILD)/causeway-restore
# what they call, which is hidden in librdevice.so
$(BUILD)/image-code/%.o: %.c
	@mkdir -p $(@D)
	@echo '  CC    $@'
	@$(CC) $(CPPFLAGS) $(CFLAGS) -fvisibility=default -MMD -MP -c $< -o $@ || $(call hint,deps)
$(BUILD)/image/libtaker.so: $(addprefix $(BUILD)/image-code/,tests/image/taker.o common/err.o rdevice/image/image.o) \
		$(call objects,common/pack.c $(filter-out rdevice/image/image.c,$(wildcard rdevice/image/*.c)))
	@mkdir -p $(@D)
	@echo '  LINK  $@'
	@$(CC) $(LDFLAGS) -shared -Wl,-z,defs $^ -o $@ -llz4
$(BUILD)/image/%: tests/image/%.c $(BUILD)/image/libtaker.so
	@echo '  CC    $@'
	@$(CC) $(CPPFLAGS) -std=gnu17 -O2 -g -Wall -Wextra $(WERROR) -mcmodel=large $(if $(filter pool,$*),-fopenmp) $< -o $@ -L$(BUILD)/image -ltaker \
		-Wl,-rpath,'$$ORIGIN' -lm -lpthread
$(BUILD)/image/%: tests/image/%.cc $(BUILD)/image/libtaker.so
	@echo '  CXX   $@'
	@g++ $(CPPFLAGS) -O2 -g -Wall -Wextra $< -o $@ -L$(BUILD)/image -ltaker -Wl,-rpath,'$$ORIGIN'
$(BUILD)/image/%: tests/image/%.f90 $(BUILD)/image/libtaker.so
	@echo '  F90   $@'
	@gfortran -O2 -g $< -o $@ -L$(BUILD)/image -ltaker -Wl,-rpath,'$$ORIGIN'

# A client of many connections, for tests and benchmarks of relays
build/crowd: $(call objects,tests/bench/crowd.c $(addprefix common/,copy.c clock.c cred.c err.c frame.c hello.c keyfile.c lockfile.c parse.c \
		ring.c transport.c wire.c))
	@echo '  LINK  $@'
	@$(CC) $(LDFLAGS) $^ -o $@ -lsodium

# Makes a directory of logs, for tests of what looks at them
build/left_logs: $(call objects,tests/lib/left_logs.c tests/lib/left_job.c tests/lib/codec.c $(addprefix common/,channel.c copy.c cred.c decided.c err.c \
		follow.c frame.c keyfile.c lockfile.c match.c readings.c stranger.c) $(RELAY_CORE))
	@echo '  LINK  $@'
	@$(CC) $(LDFLAGS) $^ -o $@ -lsodium -llz4

# A client of checkpoint servers, with images that it makes up
build/image_tool: $(call objects,tests/lib/image_tool.c tests/lib/image_maker.c tests/lib/image_client.c $(addprefix common/,copy.c \
		clock.c cred.c err.c frame.c hello.c keyfile.c lockfile.c parse.c ring.c transport.c wire.c))
	@echo '  LINK  $@'
	@$(CC) $(LDFLAGS) $^ -o $@ -lsodium -llz4

# Changes images of a checkpoint server
build/tamper: $(call objects,tests/lib/tamper.c ckptsrv/index.c $(addprefix common/,err.c frame.c image.c))
	@echo '  LINK  $@'
	@$(CC) $(LDFLAGS) $^ -o $@

# Breaks connections off
build/cut: $(call objects,tests/lib/cut.c)
	@echo '  LINK  $@'
	@$(CC) $(LDFLAGS) $^ -o $@

# Delays and limits what passes between the sites of a grid
build/wire: $(call objects,tests/lib/wire.c)
	@echo '  LINK  $@'
	@$(CC) $(LDFLAGS) $^ -o $@

-include $(shell find build -name '*.d' 2>/dev/null)

# MPI programs of the tests, by the ordinary compilers of Debian's MPICH
MPI_C = $(patsubst tests/system/programs/%.c,build/programs/%,$(wildcard tests/system/programs/*.c)) \
	$(patsubst tests/bench/%.c,build/programs/%,$(filter-out tests/bench/crowd.c,$(wildcard tests/bench/*.c))) \
	$(patsubst netpipe/%.c,build/programs/%,$(wildcard netpipe/*.c))
MPI_CXX = $(patsubst tests/system/programs/%.cc,build/programs/%,$(wildcard tests/system/programs/*.cc))
MPI_F = $(patsubst tests/system/programs/%.f90,build/programs/%,$(wildcard tests/system/programs/*.f90))

build/programs/nompi: tests/system/programs/nompi.c
	@mkdir -p $(@D)
	@echo '  CC    $@'
	@gcc -O2 -Wall -Wextra $(WERROR) $< -o $@
build/programs/%: tests/system/programs/%.c $(wildcard tests/system/programs/*.h)
	@mkdir -p $(@D)
	@echo '  MPICC $@'
	@mpicc.mpich -std=gnu17 -O2 -Wall -Wextra $(WERROR) $(if $(filter pool,$*),-fopenmp) $< -o $@ -pthread || $(call hint,deps)
build/programs/%: tests/bench/%.c $(wildcard tests/bench/*.h)
	@mkdir -p $(@D)
	@echo '  MPICC $@'
	@mpicc.mpich -std=gnu17 -D_GNU_SOURCE -O2 -Wall -Wextra $(WERROR) $< -o $@ -pthread || $(call hint,deps)
build/programs/%: netpipe/%.c
	@mkdir -p $(@D)
	@echo '  MPICC $@'
	@mpicc.mpich -std=gnu17 -D_GNU_SOURCE -O2 -Wall -Wextra $(WERROR) $< -o $@ -lm || $(call hint,deps)
build/programs/%: tests/system/programs/%.f90
	@mkdir -p build/programs/mod
	@echo '  MPIFC $@'
	@mpif90.mpich -O2 -J build/programs/mod $< -o $@ || $(call hint,deps-check)

build/programs/%: tests/system/programs/%.cc
	@mkdir -p $(@D)
	@echo '  MPICXX $@'
	@mpicxx.mpich -std=c++17 -O2 $(if $(filter left,$*),-fnon-call-exceptions) -Wall -Wextra $(WERROR) $< -o $@ || $(call hint,deps-check)
build/programs/libplugin.so: tests/system/plugin/plugin.c
	@mkdir -p $(@D)
	@echo '  CC    $@'
	@$(CC) -std=gnu17 -O2 -Wall -Wextra $(WERROR) -shared -fPIC $< -o $@

programs: $(MPI_C) $(MPI_CXX) $(MPI_F) build/programs/libplugin.so

# --- using ----------------------------------------------------------------------------------------
grid: deps build/.hosts-deps
	@$(MAKE) --no-print-directory all build/wire build/programs/solver
	@tests/demo_grid.sh

run: deps $(if $(HOSTS),build/.hosts-deps)
	@$(MAKE) --no-print-directory all $(if $(PROG),,build/programs/solver)
ifneq ($(HOSTS),)
	@tests/demo_hosts.sh $(HOSTS)
else ifeq ($(PROG),)
	@tests/demo.sh
else
	$(BUILD)/causeway run -n $(N) $(PROG) $(ARGS)
endif

# What check and test run. tests/check.sh builds it, and the variants with sanitizers.
CHECKED = all build/unit build/interleave build/sim build/crowd build/left_logs build/image_tool build/cut build/tamper build/wire programs image-programs fuzzers
TESTED = all build/unit build/sim $(addprefix build/programs/,actor collectives crash exitcode master_worker nompi p2p_modes \
	rma_fence rma_lock sizes solver storm)

checked: $(CHECKED)

check: deps-check
	@CC='$(CC)' WERROR=-Werror tests/check.sh

test: $(TESTED)
	@tests/test.sh

bench: deps-bench
	@$(MAKE) --no-print-directory all build/crowd programs
	@tests/bench/bench.sh

netpipe: deps-bench
	@$(MAKE) --no-print-directory all build/programs/pairs
	@netpipe/netpipe.sh $(ARGS)

campaign: deps-check
	@$(MAKE) --no-print-directory checked
	@$(MAKE) --no-print-directory SANITIZE=address,undefined all build/address/unit build/address/sim
	@$(MAKE) --no-print-directory SANITIZE=thread build/thread/unit
	@$(MAKE) --no-print-directory SANITIZE=undefined image-programs
	@tests/campaign.sh

# --- fuzzing --------------------------------------------------------------------------------------
FUZZERS = $(patsubst tests/fuzz/%.c,build/fuzz/%,$(wildcard tests/fuzz/*.c))
# with small segments of logs, so that few bytes go to disk, a small ledger, and short journals
FUZZ_FLAGS = -std=gnu17 -g -O1 -fno-sanitize-recover=all -DSTORE_SEGMENT_BYTES=4096u -DLOG_PART_SLICES=70 \
	-DLEDGER_CELLS=256u -DLEDGER_EXTENTS=1024u -DJOURNAL_PART_MAX=65536u -DCOMMIT_JOURNAL_MIN=262144ull
fuzz_objects = $(patsubst %.c,build/fuzz-obj/%.o,$(1))
# Threads are replaced by those fuzzers that need them.
FUZZED = $(filter-out common/workers.c,$(COMMON)) $(RELAY_CORE) tunnels/ssh_address.c tunnels/stripe_frame.c tunnels/stripe_order.c \
	$(addprefix dispatcher/hosts/,host_files.c host_lines.c host_list.c placement.c rankfile.c slurm.c) \
	$(addprefix dispatcher/ranks/,pmi.c pmi_line.c places.c)
FUZZED_DEVICE = $(addprefix rdevice/,arrivals.c bell.c channel.c contents.c cursor.c exchange.c inbox.c mailbox.c operation.c probes.c \
	request.c session.c tally.c)
fuzzers: $(FUZZERS)
build/fuzz-obj/%.o: %.c
	@mkdir -p $(@D)
	@echo '  CLANG $@'
	@clang $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link,address,undefined $(CPPFLAGS) -MMD -MP -c $< -o $@ || \
		$(call hint,deps-check)
build/fuzz/%: build/fuzz-obj/tests/fuzz/%.o $(call fuzz_objects,$(FUZZED))
	@mkdir -p $(@D)
	@echo '  FUZZ  $@'
	@clang $(FUZZ_FLAGS) -fsanitize=fuzzer,address,undefined $^ -o $@ -lsodium -llz4 $(FUZZ_LIBRARIES)
build/fuzz/fuzz_device: $(call fuzz_objects,$(FUZZED_DEVICE))
build/fuzz/fuzz_image: $(call fuzz_objects,rdevice/image/maps_line.c rdevice/image/remark.c rdevice/restorer/vdso.c \
	dispatcher/ranks/output.c dispatcher/ranks/output_file.c dispatcher/wire/channel.c dispatcher/wire/gate.c \
	dispatcher/wire/mux.c)
build/fuzz/fuzz_jobs: $(call fuzz_objects,$(addprefix tests/lib/,codec.c fake_disk.c fuzz_client.c left.c))
build/fuzz/fuzz_left: $(call fuzz_objects,tests/lib/codec.c tests/lib/left_job.c)
build/fuzz/fuzz_journal: $(call fuzz_objects,tests/lib/codec.c tests/lib/left_job.c $(wildcard relay/inspect/*.c) \
	$(addprefix dispatcher/status/,json_value.c log_document.c table.c) relay/log_dir.c relay/disk.c common/workers.c)
build/fuzz/fuzz_job_state: $(call fuzz_objects,dispatcher/state/job_state.c)
build/fuzz/fuzz_image_index: $(call fuzz_objects,ckptsrv/index.c)
build/fuzz/fuzz_ckptsrv: $(call fuzz_objects,$(addprefix ckptsrv/,handshake.c index.c intake.c) tests/lib/image_maker.c)
build/fuzz/fuzz_service: $(call fuzz_objects,$(addprefix ckptsrv/,handshake.c download.c fetch.c guest.c imgdir.c index.c \
	intake.c put.c registry.c service.c units.c upload.c vault.c) tests/lib/image_maker.c)
build/fuzz/fuzz_image_links: $(call fuzz_objects,dispatcher/servers/opener.c dispatcher/servers/party.c)
build/fuzz/fuzz_restorer: $(call fuzz_objects,tests/lib/image_maker.c)
FUZZED_WIRE = $(addprefix dispatcher/wire/,greeting.c mux.c node_frames.c node_states.c stage_program.c)
build/fuzz/fuzz_mux: $(call fuzz_objects,$(FUZZED_WIRE))
build/fuzz/fuzz_nodes: $(call fuzz_objects,$(FUZZED_WIRE) $(addprefix dispatcher/launch/,far_units.c remote.c staging.c) \
	$(addprefix dispatcher/wire/,channel.c gate.c stream_fd.c))
build/fuzz/fuzz_grid: $(call fuzz_objects,$(addprefix dispatcher/hosts/,grid.c grid_file.c routes.c settings.c))
build/fuzz/fuzz_grid: FUZZ_LIBRARIES = -lconfig
build/fuzz/fuzz_detector: $(call fuzz_objects,$(addprefix dispatcher/detector/,detector.c gossip.c routing.c swim.c swim_message.c table_message.c))
build/fuzz/fuzz_detector: FUZZ_LIBRARIES = -lm
build/fuzz/fuzz_answers: $(call fuzz_objects,$(addprefix dispatcher/doctor/,causes.c compare.c findings.c host_report.c tcp_probe.c) \
	dispatcher/wire/service_format.c dispatcher/wire/ssh_says.c dispatcher/status/json_value.c)
build/fuzz/fuzz_answers: FUZZ_LIBRARIES = -ljansson
build/fuzz/fuzz_journal: FUZZ_LIBRARIES = -ljansson -luring

# --- installing -----------------------------------------------------------------------------------
UNIT_FILE = $(DESTDIR)$(PREFIX)/lib/systemd/system/causeway-relay@.service
install: all
	install -D -m 755 build/causeway $(DESTDIR)$(PREFIX)/bin/causeway
	install -D -m 755 build/librdevice.so $(DESTDIR)$(PREFIX)/lib/causeway/librdevice.so
	install -D -m 755 build/causeway-restore $(DESTDIR)$(PREFIX)/lib/causeway/causeway-restore
	install -D -m 644 docs/causeway.1 $(DESTDIR)$(PREFIX)/share/man/man1/causeway.1
	install -D -m 644 docs/causeway.bash \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions/causeway
	install -d $(dir $(UNIT_FILE))
	sed 's|@PREFIX@|$(PREFIX)|' docs/causeway-relay@.service.in >$(UNIT_FILE)
	chmod 644 $(UNIT_FILE)

uninstall:
	rm -rf $(DESTDIR)$(PREFIX)/bin/causeway $(DESTDIR)$(PREFIX)/lib/causeway \
		$(DESTDIR)$(PREFIX)/share/man/man1/causeway.1 \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions/causeway $(UNIT_FILE)

format:
	git ls-files '*.c' '*.h' | xargs clang-format -i

clean:
	rm -rf build

.PHONY: all deps deps-check deps-bench run grid check test bench netpipe campaign install uninstall format clean programs fuzzers image-programs checked
.SECONDARY:
.DELETE_ON_ERROR:
