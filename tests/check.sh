#!/bin/bash
# Runs every suite and counts: the last line is "N passed, N failed". `make check` calls this, and all is built here:
# first what `make run` needs, by `make run`. Jobs of several processes run one suite after the other, for programs that
# exchange messages suffer beside others; then the suites that compute or wait for most of their time run side by side.
#
# Environment: LANES (of those, how many at a time; as many as there are cores), FUZZ_SECONDS (of each fuzzer, 3), CC,
# WERROR, and SLICE: the seed that draws what runs of the unit tests under sanitizers, and of the suites with jobs.
# The default is the commit; `make campaign` runs all of them.
# shellcheck disable=SC2317 # functions are called by their names
set -u
cd "$(dirname "$0")/.." || exit 1
# shellcheck source=tests/lib/suites.sh
. tests/lib/suites.sh
SLICE=${SLICE:-$(git rev-parse --short=12 HEAD 2>/dev/null || echo 1)}

# Not below the make that has called this, whose -j and job server are its own.
make_apart=(env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS make --no-print-directory CC="${CC:-gcc}" WERROR="${WERROR-}")

fuzz() {
  local corpus status
  corpus=$(mktemp -d)
  build/fuzz/"$1" -max_total_time="${FUZZ_SECONDS:-3}" -print_final_stats=1 "$corpus"
  status=$?
  rm -rf "$corpus"
  return "$status"
}

layout() {
  git ls-files '*.c' '*.h' | xargs -r clang-format --dry-run -Werror
}

scripts() {
  git ls-files '*.sh' .ci/run | xargs -r shellcheck -x
}

# What a user does first: in a fresh clone nothing has been built.
demonstration() {
  timeout "${DEMONSTRATION_SECONDS:-300}" "${make_apart[@]}" run
}

# Two at once, with an apt-get that cannot bear that; each package is installed once.
# shellcheck disable=SC2016 # text of scripts
two_installs() {
  local bin first status
  bin=$(mktemp -d)
  echo 'grep -qx installed "${0%/*}/$4" 2>/dev/null && echo installed' >"$bin/dpkg-query"
  echo 'at=${0%/*}; mkdir "$at/lock" || exit; sleep 0.2; echo installed >>"$at/${@: -1}"; rmdir "$at/lock"' \
    >"$bin/apt-get"
  echo 'exec "$@"' >"$bin/sudo"
  sed -i '1i #!/bin/bash' "$bin"/*
  chmod +x "$bin"/*
  PATH=$bin:$PATH tests/install-packages.sh one &
  first=$!
  PATH=$bin:$PATH tests/install-packages.sh one
  status=$?
  wait "$first" && ((status == 0)) && [ "$(wc -l <"$bin/one")" = 1 ]
  status=$?
  rm -rf "$bin"
  return "$status"
}

# `make` alone installs nothing: it says what failed, and which target installs what is missing.
# shellcheck disable=SC2016 # text of scripts
no_install() {
  local bin out status
  bin=$(mktemp -d)
  printf '#!/bin/bash\ntouch "%s"\n' "$bin/called" | tee "$bin/apt-get" >"$bin/sudo"
  chmod +x "$bin"/*
  out=$(PATH=$bin:$PATH "${make_apart[@]}" CC=/no/such/compiler BUILD="$bin/build" all 2>&1)
  status=$?
  echo "$out" | tail -n 5
  [ ! -e "$bin/called" ] && ((status)) && grep -q "/no/such/compiler" <<<"$out" && grep -q "make deps" <<<"$out"
  status=$?
  rm -rf "$bin"
  return "$status"
}

# The engines that a relay does not take by itself.
other_engines() {
  local default
  default=$(build/causeway relay --help | sed -n 's/.*--engine NAME.*(default \([a-z]*\)).*/\1/p')
  build/causeway relay --list-engines | cut -d ' ' -f 1 | grep -vx "$default"
}

# Whether this system can run it: if not, it says why and does not get as far as its listener.
engine_runs() {
  ! build/causeway relay --engine "$1" --listen unix:/no/such/dir 2>&1 | grep -v '/no/such/dir'
}

# What an engine could do wrong in a way of its own; the kills are at events, not at times.
engine_programs='p2p_modes|^probe|^collectives \(|^collectives 5|icollectives \(|rma_lock|sizes|storm|unsafe|master_worker|token_ring'
engine_kills='^(p2p_modes|storm|unsafe|master_worker, (a worker|all)|all ranks but rank 0|killed again while|kill -9 of a rank)'

# one_engine SUFFIX ENGINE-WITH-OPTIONS: half of that
one_engine() {
  suite "MPI programs, $1" env ENGINE="$2" DRAW="1/4 $SLICE" tests/system/programs.sh --slice "$engine_programs"
  suite "ranks killed, $1" env ENGINE="$2" DRAW="1/4 $SLICE" tests/system/kills.sh --slice "$engine_kills"
  suite "ranks killed, with images, $1" env ENGINE="$2" DRAW="1/16 $SLICE" tests/system/kills.sh --images --slice \
    "$engine_kills"
}

one_engine_waiting() {
  suite "relays that come back, $1" env ENGINE="$2" DRAW="1/4 $SLICE" tests/system/relay_return.sh '^(started again$|rings: (killed|with ranks))'
  suite "relays that lose power, $1" env ENGINE="$2" DRAW="1/4 $SLICE" tests/system/relay_sync.sh '^(rings: once|storm)'
  suite "images of states, $1" env ENGINE="$2" DRAW="1/48 $SLICE" tests/system/images_states.sh
  suite "images of jobs, $1" env ENGINE="$2" DRAW="1/12 $SLICE" tests/system/images_job.sh
}

# Suites whose jobs end before their first image is due, with images from the first moment on.
queue_with_images() {
  suite "files that ranks share, with images" env IMAGES=200ms DRAW="1/4 $SLICE" tests/system/files.sh
  suite "sessions that resume, with images" env IMAGES=200ms tests/system/resume.sh '^with kills$'
  suite "relays that come back, with images" env IMAGES=200ms tests/system/relay_return.sh '^rings: with ranks killed$'
  suite "relays by hand that come back, with images" env IMAGES=200ms tests/system/relay_keeper.sh \
    '^rings: with ranks killed$'
  suite "relays that lose power, with images" env IMAGES=200ms tests/system/relay_sync.sh '^rings: once$'
}

# What the thread sanitizer does not run: tests of the core alone start no thread, nodes need the command, and the tests
# of interrupted calls look at the frames of their own signal handler.
threadless=(--without "nodes" --without "interrupted calls" --without "trace of" --without "restored journals" --without "group commit" --without "points of")

queue_builds() {
  one "make run" demonstration
  build checked "${make_apart[@]}" checked FUZZERS=
  build undefined "${make_apart[@]}" SANITIZE=undefined image-programs
}

# What jobs do not need is built beside those that wait, out of the time that they leave: it begins with them, and ends
# long before they do.
later_builds() {
  local nice_make=(nice -n 19 "${make_apart[@]}") failed=0
  "${nice_make[@]}" SANITIZE=address,undefined all build/address/unit build/address/sim || failed=1
  "${nice_make[@]}" SANITIZE=thread build/thread/unit || failed=1
  "${nice_make[@]}" fuzzers || failed=1
  return "$failed"
}

# Jobs of several processes.
queue_jobs() {
  local engine
  suite "MPI programs" env DRAW="1/5 $SLICE" tests/system/programs.sh
  suite "ranks killed" env DRAW="1/10 $SLICE" tests/system/kills.sh --slice
  suite "ranks and relays killed" env DRAW="1/24 $SLICE" tests/system/kills.sh --relays --slice
  suite "ranks killed, with images" env DRAW="1/20 $SLICE" tests/system/kills.sh --images --slice
  suite "ranks and relays killed, with images" env DRAW="1/32 $SLICE" tests/system/kills.sh --relays --images --slice
  suite "MPI programs, by the relay" env ENGINE=poll DRAW="1/4 $SLICE" tests/system/programs.sh --slice \
    --kills-per-run 2 --images
  suite "ranks killed, by the relay" env ENGINE=poll DRAW="1/16 $SLICE" tests/system/kills.sh --slice
  suite "MPI programs, relay on TCP" env DRAW="1/2 $SLICE" tests/system/programs.sh --relay-tcp --slice
  suite "channel memory" tests/system/channel.sh
  suite "files that ranks share" tests/system/files.sh
  suite "images of processes" env DRAW="1/3 $SLICE" tests/system/images.sh
  suite "several relays, ranks killed" env ENGINE="poll --relays 2" DRAW="1/8 $SLICE" tests/system/programs.sh --slice --kills 2
  suite engines env DRAW="1/2 $SLICE" tests/system/engines.sh
  suite "MPI programs, poll over sockets" env ENGINE="poll --rings off" DRAW="1/4 $SLICE" tests/system/programs.sh --slice \
    "$engine_programs"
  for engine in $(other_engines); do
    engine_runs "$engine" && one_engine "engine $engine" "$engine"
  done
  suite scalapack tests/system/scalapack.sh --causeway --slice 3
  suite "scalapack, with images" tests/system/scalapack.sh --images --slice 2
  suite "comparison of engines" env DRAW="1/3 $SLICE" tests/system/netpipe.sh
}

# Jobs that wait for most of their time: for relays, servers and ranks that come back, and for clocks.
queue_waiting() {
  local engine
  suite "Debian 13" env DRAW="1/8 $SLICE" tests/system/debian13.sh
  suite "command line" env DRAW="1/5 $SLICE" tests/system/cli.sh
  suite "images that ranks go on from" env DRAW="1/5 $SLICE" SEED="$SLICE" tests/system/images_restore.sh
  suite "images, programs" env DRAW="1/5 $SLICE" tests/system/images_programs.sh
  suite "images, faults" env DRAW="1/3 $SLICE" tests/system/images_faults.sh
  suite "logs on disk" env DRAW="1/8 $SLICE" tests/system/log_disk.sh
  suite "logs that are looked at" env DRAW="1/2 $SLICE" tests/system/log_command.sh
  suite "checkpoint servers" env DRAW="1/2 $SLICE" SEED="$SLICE" tests/system/ckptsrv.sh
  suite "images of jobs" env DRAW="1/4 $SLICE" tests/system/images_job.sh
  suite "images of jobs, over sockets" env ENGINE="poll --rings off" DRAW="1/12 $SLICE" tests/system/images_job.sh
  suite "images of states" env DRAW="1/16 $SLICE" tests/system/images_states.sh
  suite "images, user and limits" env DRAW="1/3 $SLICE" tests/system/images_user.sh
  suite "images of processes, drawn, undefined behaviour sanitizer" env BUILD="$PWD/build/undefined" \
    DRAW="1/4 $SLICE" tests/system/images.sh
  suite "jobs that are resumed" env DRAW="1/8 $SLICE" tests/system/job_resume.sh
  suite "several relays" env DRAW="1/2 $SLICE" tests/system/relays.sh
  suite "collectives that know sites" env DRAW="1/8 $SLICE" tests/system/sites.sh
  suite "grids in namespaces" env DRAW="1/10 $SLICE" tests/system/grid_lab.sh
  ((UID)) || one "make run HOSTS=3" "${make_apart[@]}" run HOSTS=3
  suite "jobs on several hosts" env DRAW="1/10 $SLICE" tests/system/hosts_jobs.sh
  suite "hosts lost with their relays" env DRAW="1/4 $SLICE" tests/system/lost_hosts.sh
  suite "jobs that are orphaned" env DRAW="1/3 $SLICE" SEED="$SLICE" tests/system/orphans.sh
  suite "jobs that are orphaned, on hosts" env DRAW="1/2 $SLICE" tests/system/orphans_hosts.sh
  suite "images on several hosts" env DRAW="1/3 $SLICE" tests/system/hosts_images.sh
  suite "MPI programs on hosts" env DRAW="1/40 $SLICE" tests/system/hosts_programs.sh
  suite "doctor of several hosts" env DRAW="1/4 $SLICE" tests/system/hosts_doctor.sh
  suite "programs sent to hosts" env DRAW="1/8 $SLICE" tests/system/hosts_stage.sh
  suite "doctor of grids" env DRAW="1/10 $SLICE" tests/system/grid_doctor.sh
  suite "jobs on grids" env DRAW="1/10 $SLICE" tests/system/grid_jobs.sh
  suite "grids, random faults" env FAULTS_SECONDS=25 SEED="$SLICE" tests/system/grid_faults.sh
  suite "services of a grid" env DRAW="1/8 $SLICE" tests/system/grid_up.sh
  suite tunnels env DRAW="1/8 $SLICE" tests/system/tunnels.sh
  suite "sessions that resume" env DRAW="1/4 $SLICE" tests/system/resume.sh
  suite "relays that come back" env DRAW="1/6 $SLICE" tests/system/relay_return.sh
  suite "relays by hand that come back" env DRAW="1/5 $SLICE" tests/system/relay_keeper.sh
  suite "relays that lose power" env DRAW="1/8 $SLICE" tests/system/relay_sync.sh
  queue_with_images
  for engine in $(other_engines); do
    engine_runs "$engine" && one_engine_waiting "engine $engine" "$engine"
  done
}

# One process each, of one thread or a few; the longest first.
queue_processes() {
  local fuzzer
  suite "unit, without engines" build/unit --quick --without engine
  suite "unit, engines drawn" build/unit --quick --draw 1/3 "$SLICE" engine
  suite "simulated jobs" build/sim --seeds 1:300
  suite "simulated jobs, channel memory" build/sim --seeds 50001:200 --channel
  suite "simulated jobs, hosts" build/sim --seeds 60001:100 --hosts
  suite "all schedules of channel memory" build/interleave
  suite "unit, the slow tests drawn" build/unit --slow --draw 1/3 "$SLICE"
  for fuzzer in tests/fuzz/*.c; do
    fuzzer=$(basename "$fuzzer" .c)
    one "fuzz $fuzzer" fuzz "$fuzzer"
  done
  one shellcheck scripts
  one clang-format layout
  suite "bounds of the documents" tests/bounds.sh
  suite "functions of libc" tests/system/libc.sh
  # shellcheck disable=SC2046 # folders
  one "layers: no two files of a folder call each other" tests/layers.sh \
    $(find build/obj/{common,relay,rdevice,ckptsrv,dispatcher,tunnels} -type d)
  one "packages installed by two at once" two_installs
  one "make installs nothing" no_install
}

queue_sanitized() {
  local sanitized="$PWD/tests/system/sanitized.sh"
  suite "unit, drawn, address and undefined behaviour sanitizers" build/address/unit --quick --draw 1/12 "$SLICE" \
    engine
  suite "ranks that are threads, thread sanitizer" build/thread/unit --quick "ranks of channel memory" thread_to_thread
  suite "unit, drawn, thread sanitizer" build/thread/unit --quick "${threadless[@]}" --draw 1/32 "$SLICE"
  suite "unit without engines, drawn, address and undefined behaviour sanitizers" \
    build/address/unit --quick --draw 1/10 "$SLICE" --without engine
  suite "unit, the slow tests drawn, address and undefined behaviour sanitizers" \
    build/address/unit --slow --draw 1/12 "$SLICE"
  suite "unit, the slow tests drawn, thread sanitizer" build/thread/unit --slow "${threadless[@]}" --draw 1/12 "$SLICE"
  suite "simulated jobs, sanitizers" build/address/sim --seeds 2001:40
  suite "simulated jobs, channel memory, sanitizers" build/address/sim --seeds 2001:20 --channel
  suite "MPI programs, sanitizers" env CAUSEWAY="$sanitized" DRAW="1/6 $SLICE" tests/system/programs.sh --slice
}

suites_start
echo "# slices drawn by SLICE=$SLICE"
queue_builds
run_queued 1
queue_jobs
run_queued 1
build "fuzzers, and builds with sanitizers" later_builds
queue_waiting
queue_processes
queue_sanitized
run_queued "${LANES:-$(nproc)}"
finish_tests
