#!/bin/bash
# causeway with relay, dispatcher and R-device under the address and undefined behaviour sanitizers. The
# MPI program and its libraries are not ours: leaks are not looked for.
here=$(cd "$(dirname "$0")/../.." && pwd)
asan=$(gcc -print-file-name=libasan.so)
export ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0:abort_on_error=1:handle_segv=0
export LD_PRELOAD=$asan
exec "$here/build/address/causeway" "$@"
