#!/bin/bash
# The long tests, each bounded: all of scalapack-mpi-test, every MPI program many times over, ranks
# killed at random, alone and with relays, random faults of a grid, images of ranks with every engine, the fuzzers.
#
# Environment: TIME (seconds for each fuzzer, and at most for each program of build/interleave, default 600), ROUNDS
# (of the MPI programs, default 5), KILLS (at least so many ranks are killed, default 500), SEEDS (of simulated jobs,
# FROM:COUNT, default 1:100000)
set -u
cd "$(dirname "$0")/.." || exit 1
TIME=${TIME:-600}
ROUNDS=${ROUNDS:-5}
KILLS=${KILLS:-500}
failed=0

run() {
  echo "== $*"
  "$@" || failed=1
}

# run_engine ENGINE: its name, perhaps with options. One that cannot run here says why.
run_engine() {
  if build/causeway relay --engine "${1%% *}" --listen unix:/no/such/dir 2>&1 | grep -v '/no/such/dir'; then
    return
  fi
  run env ENGINE="$1" tests/system/cli.sh
  run env ENGINE="$1" tests/system/programs.sh
  run env ENGINE="$1" tests/system/programs.sh --relay-tcp
  run env ENGINE="$1" tests/system/kills.sh --campaign "$KILLS"
  run env ENGINE="$1" tests/system/kills.sh --relays --campaign "$KILLS"
  run env ENGINE="$1" tests/system/programs.sh --images --kills-per-run 2
  run env ENGINE="$1" tests/system/kills.sh --images
  run env ENGINE="$1" tests/system/kills.sh --relays --images
  run env ENGINE="$1" tests/system/relay_return.sh
  run env ENGINE="$1" tests/system/relay_keeper.sh
  run env ENGINE="$1" tests/system/relay_sync.sh
  run env ENGINE="$1" tests/system/job_resume.sh
  for suite in images_job images_states images_restore images_programs images_faults; do
    run env ENGINE="$1" tests/system/$suite.sh
  done
  run env ENGINE="$1" CAUSEWAY="$PWD/tests/system/engine.sh" tests/system/scalapack.sh --causeway --slice 20
}

run tests/system/scalapack.sh --causeway
run tests/system/scalapack.sh --images
run env HOSTED_LOSSES=5 tests/system/hosts_programs.sh --all
run tests/system/kills.sh --images --campaign "$KILLS"
for _ in $(seq "$ROUNDS"); do
  run tests/system/programs.sh
done
run tests/system/engines.sh
for suite in images images_user ckptsrv files log_disk resume grid_lab grid_up grid_doctor grid_jobs grid_faults sites hosts_jobs lost_hosts hosts_images hosts_doctor hosts_stage orphans orphans_hosts tunnels; do
  run tests/system/$suite.sh
done
run env BUILD="$PWD/build/undefined" tests/system/images.sh
for suite in files resume relay_return relay_keeper relay_sync; do
  run env IMAGES=200ms tests/system/$suite.sh
done
run tests/system/debian13.sh --all
for variant in build build/address build/thread; do
  run "$variant/unit"
done
run build/interleave --slow --seconds "$TIME" --seed "$RANDOM"
for option in '' --channel --hosts; do
  # shellcheck disable=SC2086 # an option, or none
  run build/address/sim --seeds 1:2000 $option
  # shellcheck disable=SC2086
  run build/sim --seeds "${SEEDS:-1:100000}" --jobs 2 $option
done
run env CAUSEWAY="$PWD/tests/system/sanitized.sh" tests/system/programs.sh --slice --kills-per-run 2
run env ENGINE="poll --relays 2" tests/system/programs.sh --kills 2
run env ENGINE="poll --relays 2" tests/system/kills.sh --relays
run env ENGINE="poll --relays 2" tests/system/programs.sh --images --kills-per-run 2
run env ENGINE="poll --relays 2" tests/system/kills.sh --relays --images
for engine in $(build/causeway relay --list-engines | cut -d ' ' -f 1) \
  'poll --rings off'; do
  run_engine "$engine"
done
run build/causeway run -n 2 --timeout 300 build/programs/sizes 268435456
for fuzzer in build/fuzz/*; do
  corpus=$(mktemp -d)
  run "$fuzzer" -max_total_time="$TIME" "$corpus"
  rm -rf "$corpus"
done
[ "$failed" -eq 0 ] && echo "campaign passed" || echo "campaign failed"
exit "$failed"
