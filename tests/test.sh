#!/bin/bash
# The tests for every save, of what is built without sanitizers: unit tests but the slow ones, some simulated jobs,
# and a handful of system tests. The last line is "N passed, N failed". `make test` calls this.
#
# Environment: LANES (suites that run at a time; one more than there are cores)
set -u
cd "$(dirname "$0")/.." || exit 1
# shellcheck source=tests/lib/suites.sh
. tests/lib/suites.sh

suites_start
suite unit build/unit --quick --without engine --without nodes
suite "unit, nodes" build/unit --quick --without engine nodes
suite "unit, engines" build/unit --quick engine
suite "simulated jobs" build/sim --seeds 1:300
suite "command line" tests/system/cli.sh '^--|that does not exist|--stats|SIGINT'
suite "MPI programs" tests/system/programs.sh --slice '^(p2p_modes|collectives \(|rma_fence|sizes \()'
suite "ranks killed" tests/system/kills.sh --slice '^(p2p_modes|master_worker, a worker|kill -9 of a rank|killed in MPI_Finalize)'
suite "files that ranks share" tests/system/files.sh 'own file'
suite "several relays" tests/system/relays.sh '^(two, ranks in turn|statistics)$'
suite "bounds of the documents" tests/bounds.sh
run_queued "${LANES:-$(($(nproc) + 1))}"
finish_tests
