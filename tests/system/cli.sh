#!/bin/bash
# The command line of causeway: every way of using it wrong, of ending a job, and of
# getting bytes in and out. Prints TAP.
#
#   cli.sh [REGEX]    runs the tests whose titles match
#
# Environment:
#   CAUSEWAY  the command (default: build/causeway of this tree)
#   ENGINE    of the relays (default: the command's own)
# shellcheck disable=SC2016,SC2128,SC2317 # text for bash -c; the command is one word; t calls the tests
set -u

suite=cli
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/lib/system.sh
. "$here/../lib/system.sh"
# shellcheck source=tests/lib/jobs.sh
. "$here/../lib/jobs.sh"
only=${1-}
find_causeway

# --- what the tests run -----------------------------------------------------------

# options_expect CODE REGEX OPTION...: with options, and a program that is well.
options_expect() {
  run_expect "$1" "$2" "$causeway" run "${@:3}" "$actor" init finalize
}

# listener KIND [PATH]: something that is no relay, on TCP without a path; leaves its address in $address.
listener() {
  helper listener perl -MIO::Socket::UNIX -MIO::Socket::INET -e '
    $| = 1; ($kind, $at) = @ARGV;
    $s = $at ? IO::Socket::UNIX->new(Local => $at, Listen => 9) : IO::Socket::INET->new(LocalAddr => "127.0.0.1", Listen => 9);
    print $at ? "unix:$at" : "tcp:127.0.0.1:" . $s->sockport, "\n";
    while ($c = $s->accept) { $kind eq "close" ? close $c : push @open, $c; syswrite $c, "garbage" x 9999 if $kind eq "garbage" }' "$@"
  await_true "the listener" test -s "$tmp/listener.out"
  address=$(<"$tmp/listener.out")
  zero_key
}

# A key, in $work/key, that is no relay's.
zero_key() {
  (umask 077 && printf '%064d\n' 0 >"$work/key")
}

# --- options ----------------------------------------------------------------------

expect_help() {
  run_expect 0 '' "$@" --help
  expect_out_like "^usage: "
}

# in_manual COMMAND: the section of its options has those of --help, and no others
in_manual() {
  "$causeway" "$1" --help | grep -oE '^  (-[a-z-]+, )?-[a-z-]+' | tr -s ' ,' '\n' | grep . | sort -u >"$work/help"
  awk -v title="OPTIONS OF ${1^^}" '/^\.SH/ { on = $0 ~ title "( AND|$)" } on && tp { gsub(/\\-/, "-"); print } { tp = /^\.TP/ }' \
    "$root/docs/causeway.1" | grep -oE '(^|[ "~,])--?[a-z][a-z-]*' | tr -d ' "~,' | sort -u >"$work/manual"
  diff "$work/help" "$work/manual" >"$work/differ" || wrong "--help (<) and the manual (>) differ: $(<"$work/differ")"
}

version() {
  run_expect 0 '' "$causeway" --version
  expect_out_like '^causeway [0-9]'
}

unknown_command() {
  run "$causeway" frobnicate
  expect_code 2
  expect_err_like "unknown command 'frobnicate'"
}

no_command() {
  run "$causeway"
  expect_code 2
  expect_err_like '^usage: '
}

strange_relay() {
  zero_key
  options_expect '1|2|126' 'carrier:pigeon.*unix:PATH' --relay carrier:pigeon --key-file "$work/key"
}

# options_on_hosts CODE TEXT OPTION...: as options_expect. All hosts are this machine, but there is none whose name begins with x.
options_on_hosts() {
  printf '#!/bin/sh\ncase $1 in x*) exit 255;; esac\nshift\nexec "$@"\n' >"$work/launcher"
  chmod +x "$work/launcher"
  options_expect "$1" "$2" --launcher "$work/launcher" "${@:3}"
}

too_many_ranks() {
  options_on_hosts 2 'room for 3.*--oversubscribe' --host a:2,b:1 -n 4
}

# Where no number is said.
too_few_cores() {
  local cores
  cores=$(getconf _NPROCESSORS_ONLN)
  options_on_hosts 0 '' --host a -n "$cores"
  options_on_hosts 2 "room for $((cores + 1))" --host a,b:1 -n $((cores + 2))
}

unreached_first() {
  options_on_hosts 1 'host x: no node could be started' --host x:1 -n 9
}

option_tests() {
  local command
  t "an unknown option" options_expect 2 --frobnicate --frobnicate
  t "an option without its value" run_expect 2 '--relay' "$causeway" run --relay
  t "nothing at all" run_expect 2 'no program' "$causeway" run
  t "--wdir that is not there" options_expect '1|127' '/no/such/dir' --wdir /no/such/dir
  t "--wdir that is a file" options_expect '1|12[67]' '/bin/true' --wdir /bin/true
  t "--relay of a strange form" strange_relay
  t "--channel on where it cannot be" channel_refused
  t "many ranks with --channel on" many_with_channel
  t "more ranks than the hosts have slots" too_many_ranks
  t "more ranks than the hosts have cores" too_few_cores
  t "a host that cannot be reached, and too many ranks" unreached_first
  t "a drill with a relay of a host without ranks" options_on_hosts 2 'has no relay 1, only 0' \
    --host a:1,b:1 --fault kill:relay1@1s
  for command in run relay doctor status log model; do
    t "$command --help" expect_help "$causeway" "$command"
  done
  t "--help" expect_help "$causeway"
  for command in run relay ckptsrv status up log ckpt doctor model; do
    t "the options of $command in the manual" in_manual "$command"
  done
  t "--version" version
  t "doctor looks at what a job would use" doctor_like_a_job
  t "doctor looks at what images need" doctor_of_images
  t "model detector prints the papers' figures" model_of_the_papers
  t "model detector repeats itself" model_repeats_itself
  t "model of what there is none" run_expect 2 'expected detector' "$causeway" model weather
  t "an unknown command" unknown_command
  t "no command" no_command
  t "relay without --listen" run_expect 2 'no --listen' "$causeway" relay
  t "relay with an argument" run_expect 2 "unexpected argument 'now'" \
    "$causeway" relay --listen "unix:$tmp/r" now
  t "relay with an unknown option" run_expect 2 '--frobnicate' "$causeway" relay --frobnicate
  t "relay on tcp without a key" run_expect 1 '--key-file' "$causeway" relay --listen tcp:127.0.0.1:0
}

# [FM] 5.2: P_brr(4) is 0.0095, P_app(2,2) 0.005; its figure 6: T_cleanup of BRR for 256 processes is 8 s, of DBRR 12 s
model_of_the_papers() {
  run_expect 0 '' "$causeway" model detector --trials 1 --part failures
  expect_out_like '^ +4 +brr +0.00951 .* 0.00499 +all sets$'
  expect_out_like '^ +256 +dbrr .* 20000 drawn$'
  run_expect 0 '' "$causeway" model detector --trials 1 --part times
  expect_out_like '^ +256 +brr +8.00 +8\.[0-9]+ .* 0 +0$'
  expect_out_like '^ +256 +dbrr +12.00 +12\.[0-9]+ .* 0 +0$'
}

model_repeats_itself() {
  run_expect 0 '' "$causeway" model detector --trials 1 --part suspicions --seed 7
  expect_out_like '^none( +0 \( +0\)){6}$'
  cp "$tmp/out" "$tmp/first"
  run_expect 0 '' "$causeway" model detector --trials 1 --part suspicions --seed 7
  cmp -s "$tmp/first" "$tmp/out" || wrong "the same seed printed something else"
  run_expect 0 '' "$causeway" model detector --trials 1 --part suspicions --seed 8
  cmp -s "$tmp/first" "$tmp/out" && wrong "another seed printed the same"
}

# It looks at what a job and a relay would use.
doctor_like_a_job() {
  local why
  run env TMPDIR=relative "$causeway" doctor
  expect_out_like '^ok +Unix sockets in /tmp$'
  why=$("$causeway" relay --engine uring --listen "unix:/no/such/dir/r" 2>&1 | sed -n 's/^causeway relay: //p')
  [[ $why == *listen* ]] && why='io_uring, for --engine uring'
  grep -Fq "$why" "$tmp/out" || wrong "expected it to say: $why"
}

# What images of ranks need: said, but nothing that a job without them misses.
doctor_of_images() {
  local plain=${CAUSEWAY_PLAIN:-$causeway} place="$tmp/doctored"
  mkdir -p "$place"
  cp "$plain" "$place/causeway"
  cp "${plain%/*}/librdevice.so" "$place"
  run_expect 0 '' env TMPDIR=/dev/shm "$place/causeway" doctor
  expect_out_like '^warning images of ranks: .*/doctored/causeway-restore.*No such file.*make install'
  expect_out_like '^warning images of ranks: /dev/shm is in memory'
  expect_out_like '^(ok     |warning) images of ranks: .*/proc.*prctl'
  cp /bin/true "$place/causeway-restore"
  run_expect 0 '' env TMPDIR=/no/such/dir "$place/causeway" doctor
  expect_out_like '^ok      images of ranks: .*/doctored/causeway-restore goes on from them'
  expect_out_like '^warning images of ranks: /no/such/dir: No such file'
}

# --- options of recovery ----------------------------------------------------------

# No job of this user is there to be shown.
no_job() {
  run "$causeway" "$@"
  expect_code 1
  expect_err_like 'no job|no running job'
}

status_of_rubbish() {
  mkdir -m 700 "$TMPDIR/causeway-$(id -u).abcdef"
  run "$causeway" status
  expect_code 1
  [[ -s $tmp/err ]] || wrong "expected it to say something"
  rmdir "$TMPDIR/causeway-$(id -u).abcdef" 2>/dev/null
}

events_nowhere() {
  options_expect 1 '/no/such/dir/events' --events /no/such/dir/events
}

# Writing the events fails; the job goes on.
events_full() {
  run_expect 0 '/dev/full' "$causeway" run --events /dev/full -n 2 "$actor" init ring finalize
  expect_out 'ring of 2'
}

recovery_tests() {
  t "--events in a directory that is not there" events_nowhere
  t "--events on a device that is full" events_full
  t "status without a job" no_job status
  t "status of a job that is not there" no_job status 0123456789abcdef
  t "status of an empty directory" status_of_rubbish
  t "status with an unknown option" run_expect 2 '--frobnicate' "$causeway" status --frobnicate
}

# --- programs ---------------------------------------------------------------------

not_executable() {
  echo '#!/bin/sh' >"$work/plain"
  run_expect 126 "$work/plain" "$causeway" run -n 2 "$work/plain"
}

# Also when that is only found at the start, as a shell says it.
busy_program() {
  cp /bin/true "$work/busy"
  run bash -c 'exec 5>>"$1"; exec "${@:2}"' _ "$work/busy" "$causeway" run -n 2 "$work/busy"
  expect_code 126
  expect_message 'starting rank . \(.*busy\): exec: Text file busy'
}

# By which programs choose a GPU; the same after a restart.
local_rank() {
  # shellcheck disable=SC2016 # the ranks' variables
  run "$causeway" run -n 2 bash -c 'echo "$MPI_LOCALRANKID of $MPI_LOCALNRANKS"'
  expect_code 0
  [[ $(sort "$tmp/out") = $'0 of 2\n1 of 2' ]] || wrong "expected the local ranks 0 and 1 of 2"
}

openmpi() {
  if ! printf '#include <mpi.h>\nint main(void) { MPI_Init(0, 0); return MPI_Finalize(); }\n' |
    mpicc.openmpi -x c - -o "$work/other" 2>/dev/null; then
    skip "nothing to compile for Open MPI with"
    return
  fi
  run_expect 126 'other: linked against Open MPI.*mpicc.mpich' "$causeway" run -n 2 "$work/other"
}

# A library that asks UCX for more than the device has, as a later MPICH may.
later_mpich() {
  echo 'int ucp_of_tomorrow(void); int MPI_Init(int *c, char ***v) { (void)c; (void)v; return ucp_of_tomorrow(); }' |
    gcc -shared -fPIC -x c - -Wl,-soname,libmpich.so.12 -Wl,--no-as-needed -l:libucp.so.0 -o "$work/libmpich.so.12"
  echo 'int MPI_Init(int *c, char ***v); int main(int c, char **v) { return MPI_Init(&c, &v); }' |
    gcc -x c - -x none "$work/libmpich.so.12" -Wl,-rpath,"$work" -Wl,--allow-shlib-undefined -o "$work/later"
  run_expect 126 'later: its MPI library .*/libmpich.so.12 calls ucp_of_tomorrow of UCX.*Debian 12 .*13' \
    "$causeway" run -n 2 "$work/later"
  (($(wc -l <"$tmp/err") == 1)) || wrong "expected one line on standard error"
}

# sanitized NAME OPTION...: a program built with that sanitizer runs, and comes back after a kill.
sanitized() {
  mpicc.mpich "-fsanitize=$1" -std=gnu17 -D_GNU_SOURCE -g "$here/programs/token_ring.c" -o "$work/built"
  run env ASAN_OPTIONS=detect_leaks=0 "$causeway" run -n 2 --fault kill:1@event:20 "${@:2}" "$work/built"
  expect_code 0
  expect_out "ok token_ring"
  expect_err_like '^causeway: rank 1 is back'
}

# The user's own library of AddressSanitizer is first, then ours.
preloaded_sanitizer() {
  local library
  library=$(gcc -print-file-name=libasan.so)
  LD_PRELOAD=$library run_expect 0 '' env ASAN_OPTIONS=detect_leaks=0 "$causeway" run -n 1 "$actor" init env=LD_PRELOAD \
    finalize
  grep -Eq "^0 LD_PRELOAD=$library:[^:]*/librdevice.so$" "$tmp/out" || wrong "expected $library before librdevice.so"
}

in_bash() {
  run_expect 0 '' "$causeway" run -n 2 bash -c "\"$actor\" init ring finalize; true"
  expect_out 'ring of 2'
}

# Many readings of a clock before MPI_Init: one warning, or none where nothing is logged.
many_early_readings() {
  run "$causeway" run -n 1 "$programs/readings" 50 100000
  expect_code 0
  expect_out "ok readings"
  expect_err_like '^causeway: rank 0 can no longer be restarted: .*before MPI_Init'
  expect_err_like '^causeway: note: could not have been restarted: rank 0 for the last [0-9.]+ s \(of 1 ranks\)$'
  run_expect 0 '' "$causeway" run --no-log -n 1 "$programs/readings" 50 100000
  expect_out "ok readings"
}

in_script() {
  printf '#!/bin/sh\nexec "%s" "$@"\n' "$actor" >"$work/wrapper"
  chmod +x "$work/wrapper"
  run_expect 0 '' "$causeway" run -n 2 "$work/wrapper" init ring finalize
  expect_out 'ring of 2'
}

# past_relay PROGRAM...: no rank may use MPI without the R-device, with others or alone.
past_relay() {
  run_expect 1 'rank [01] .*uses MPI without librdevice.so.*LD_PRELOAD' "$causeway" run "$@"
}

past_relay_by_script() {
  printf '#!/bin/sh\nunset LD_PRELOAD\nexec "%s" "$@"\n' "$actor" >"$work/wrapper"
  chmod +x "$work/wrapper"
  past_relay -n 2 "$work/wrapper" init ring finalize
}

# The dynamic loader would take such a name for several, or for another one.
strange_place() {
  local plain=${CAUSEWAY_PLAIN:-$causeway} place="$work/a b:c"'$LIB/d'
  mkdir -p "$place" "$work/run dir"
  cp "$plain" "$place/causeway"
  cp "${plain%/*}/librdevice.so" "${plain%/*}/causeway-restore" "$place"
  TMPDIR="$work/run dir" run_expect 0 '' env LD_PRELOAD="libm.so.6 libdl.so.2" \
    "$place/causeway" run -n 2 --env LD_PRELOAD="libm.so.6:libdl.so.2" "$actor" init ring env=LD_PRELOAD finalize
  grep -Eq '^0 LD_PRELOAD=[^ :]*:libm.so.6:libdl.so.2$' "$tmp/out" || wrong "expected the user's own libraries to stay"
  run_expect 0 '' "$place/causeway" doctor "$actor"
}

from_path() {
  PATH=$programs:$PATH run_expect 0 '' "$causeway" run -n 2 actor init ring finalize
  expect_out 'ring of 2'
}

# policy OPTION...: a program and its children find its scheduling policy and its cores as they were, whatever a rank
# that sleeps does to itself.
policy() {
  run_expect 0 '' taskset -c 0 "$causeway" run --spin 0 "$@" -n 2 "$programs/policy" 0
  run_expect 0 '' taskset -c 0 "$causeway" run --spin 0 "$@" -n 2 chrt -i 0 "$programs/policy" 5
  (($(nproc) < 2)) || run_expect 0 '' "$causeway" run --spin 0 "$@" -n 2 "$programs/policy" 0
  (($(nproc) < 2)) || run_expect 0 '' "$causeway" run --spin 0.1ms "$@" -n 2 "$programs/policy" 0
}

program_tests() {
  t "the scheduling policy of ranks, rings" policy
  t "the scheduling policy of ranks, sockets" policy --rings off
  t "a program that is not there" run_expect 127 'no/such/program' \
    "$causeway" run -n 2 no/such/program
  t "a second program that is not there" run_expect 127 'no/such/program' \
    "$causeway" run "$actor" init finalize : no/such/program
  t "a file that is not executable" not_executable
  t "a program that is open for writing" busy_program
  t "MPI_LOCALRANKID" local_rank
  t "a program of Open MPI" openmpi
  t "an MPICH that asks UCX for more" later_mpich
  t "a program with AddressSanitizer" sanitized address
  t "a program with ThreadSanitizer" sanitized thread --no-ckpt
  t "a library of AddressSanitizer that the user preloads" preloaded_sanitizer
  t "a program started by bash -c" in_bash
  t "a program started by a script" in_script
  t "a program that a wrapper starts without LD_PRELOAD" past_relay -n 2 env -u LD_PRELOAD \
    "$actor" init ring finalize
  t "... alone" past_relay -n 1 env -u LD_PRELOAD "$actor" init finalize
  t "... beside one that has it" past_relay -n 1 "$actor" init ring finalize : \
    -n 1 env -u LD_PRELOAD "$actor" init ring finalize
  t "... by a script" past_relay_by_script
  t "causeway in a place of strange name" strange_place
  t "many readings of a clock before MPI_Init" many_early_readings
  t "a program found in PATH" from_path
}

# --- relays that are none ---------------------------------------------------------

at_nowhere() {
  zero_key
  options_expect 1 "$1" --relay "$1" --key-file "$work/key"
}

at_listener() {
  listener "$1" "$work/l"
  options_expect 1 "relay unix:$work/l: .*$2" --relay "$address" --key-file "$work/key"
}

# The handshake has 10 seconds.
at_silence() {
  local before after
  listener silent
  before=$(now_ms)
  options_expect 1 "$address: .*no answer" --relay "$address" --key-file "$work/key"
  after=$(now_ms)
  ((after - before >= 9000 && after - before < 20000)) ||
    wrong "expected it to wait for 10 s, saw $((after - before)) ms"
}

silence_interrupted() {
  listener silent "$work/l"
  start "$causeway" run --relay "$address" --key-file "$work/key" -n 2 "$actor" init finalize
  sleep 0.5
  kill -INT "$pid"
  before=$(now_ms)
  finish
  expect_code 130
  (($(now_ms) - before < 5000)) || wrong "SIGINT did nothing for $(($(now_ms) - before)) ms"
}

no_key_beside() {
  options_expect '1|127' "unix:$work/r.*$work/r.key" --relay "unix:$work/r"
}

no_key_named() {
  options_expect '1|2|126' 'tcp:127.0.0.1:1.*--key-file' --relay tcp:127.0.0.1:1
}

key_wrong() {
  start_relay --listen "unix:$work/r"
  zero_key
  options_expect 1 "unix:$work/r.*wrong credential" --relay "$address" --key-file "$work/key"
}

key_open() {
  printf '%064d\n' 0 >"$work/key"
  chmod 644 "$work/key"
  options_expect 1 "$work/key: others may read it" --relay tcp:127.0.0.1:1 --key-file "$work/key"
}

address_tests() {
  t "--relay unix: on a path that is not there" at_nowhere "unix:$tmp/no/such/socket"
  t "--relay tcp: on a closed port" at_nowhere tcp:127.0.0.1:1
  t "--relay at a listener that sends garbage" at_listener garbage 'speaks something else'
  t "--relay at a listener that closes" at_listener close 'connection broke'
  t "--relay at a listener that is silent" at_silence
  t "--relay at a listener that is silent, interrupted" silence_interrupted
  t "--relay without a key beside it" no_key_beside
  t "--relay tcp: without --key-file" no_key_named
  t "--key-file of another relay" key_wrong
  t "--key-file that others may read" key_open
}

# --- how jobs end -----------------------------------------------------------------

# bad_end CODE REGEX MODE RANK VALUE: of exitcode; of MPICH's libraries come lines too. $options are
# of run.
bad_end() {
  run "$causeway" run "${options[@]}" -n 3 "$programs/exitcode" "${@:3}"
  expect_code "$1"
  expect_err_like "^causeway: $2"
  [[ $(grep -c '^causeway' "$tmp/err") = 1 ]] || wrong "expected one line of causeway's"
}

bad_end_unlogged() {
  local options=(--no-log) # of bad_end
  bad_end "$@"
}

# Whether the others wait or end well meanwhile makes no difference.
aborted_often() {
  local i
  for ((i = 0; i < 5; i++)); do
    bad_end "$2" "rank 1 .*called MPI_Abort with code $2" "$1" 1 "$2"
  done
}

late() {
  run_expect 0 '' "$causeway" run -n 2 "$programs/exitcode" sleep 1 5
  expect_out 'ok exitcode'
}

killed_from_outside() {
  start "$causeway" run --no-log -n 2 "$actor" "pid=$work/pid" init 0:ring stuck
  kill -9 "$(rank_pid 1)"
  expect_end 137 'rank 1 .*killed by signal 9'
}

# Nothing of a job with channel memory waits for a rank that is gone.
killed_with_channel() {
  start "$causeway" run --no-log --channel on -n 2 "$actor" "pid=$work/pid" init 0:ring stuck
  kill -9 "$(rank_pid 1)"
  expect_end 137 'rank 1 .*killed by signal 9'
}

# With a log it comes back, until there is no room for that.
channel_logs() {
  local lost='can no longer be restarted: there is no room for its log'
  run "$causeway" run --channel on --no-ckpt --fault kill:1@event:500 -n 2 "$actor" init ring=1000 finalize
  expect_code 0
  expect_err_like 'rank 1 is back: it repeated [1-9]'
  run "$causeway" run --channel on --no-ckpt --log-memory 1000 --log-disk 0 -n 2 "$actor" init ring=100 finalize
  expect_code 0
  expect_err_like "rank 1 $lost"
  run "$causeway" run --channel on --no-ckpt --log-memory 1000000 --log-disk 0 -n 4 "$programs/token_ring" 200 20000
  expect_code 0
  expect_err_like "rank 0 $lost"
  # what memory does not hold is in a file, up to its bound
  run "$causeway" run --channel on --no-ckpt --log-memory 1000000 --fault kill:1@event:150 -n 4 "$programs/token_ring" 200 20000
  expect_code 0
  expect_err_like 'rank 1 is back: it repeated [1-9]'
  ! grep -q "$lost" "$tmp/err" || wrong "expected its log in a file"
  run "$causeway" run --channel on --no-ckpt --log-memory 1000 --log-disk 1000000 -n 4 "$programs/token_ring" 200 20000
  expect_code 0
  expect_err_like "rank 0 $lost"
}

# Many ranks have short streams, of which a token fills more than one.
many_with_channel() {
  run_expect 0 '' "$causeway" run --no-log --channel on --timeout 60 -n 96 "$programs/token_ring" 2 20000
  expect_out 'ok token_ring'
}

channel_refused() {
  run_expect 2 'not with --log-dir' "$causeway" run --channel on --log-dir "$work" true
  run_expect 2 'not with --spares' "$causeway" run --channel on --host a,b --spares 1 true
  run_expect 2 'not with --relay-at cluster' "$causeway" run --channel on --host a,b --relay-at cluster true
  run_expect 2 'at most 128 ranks' "$causeway" run --no-log --channel on -n 129 true
}

relay_killed() {
  start_job 2 init ring "pid=$work/pid" stuck
  rank_pid 0 >/dev/null && rank_pid 1 >/dev/null
  kill "$1" "$(own_relay)"
  expect_end 1 "relay unix:$TMPDIR/.*$2"
}

foreign_relay_killed() {
  start_relay --listen "unix:$work/r"
  start "$causeway" run --relay "$address" -n 2 "$actor" init ring "pid=$work/pid" stuck
  rank_pid 0 >/dev/null && rank_pid 1 >/dev/null
  kill "$1" "$helper"
  expect_end 1 "relay unix:$work/r"
}

dispatcher_killed() {
  local one all=()
  start_job 2 init ring "pid=$work/pid" stuck
  all=("$(rank_pid 0)" "$(rank_pid 1)" "$(own_relay)")
  kill -9 "$pid"
  finish
  for one in "${all[@]}"; do
    await_true "process $one to end" gone "$one"
  done
  compgen -G "$TMPDIR/causeway-*" >/dev/null || wrong "no directory is left to be removed"
  job_expect 0 '' 1 init finalize
}

in_script_dispatcher_killed() {
  local child
  start "$causeway" run -n 2 bash -c "\"$actor\" init ring pid=$work/pid stuck; true"
  child=$(rank_pid 0)
  rank_pid 1 >/dev/null
  kill -9 "$pid"
  finish
  await_true "rank 0 to end" gone "$child"
  job 1 init finalize
}

interrupted() {
  start_job 2 init ring "pid=$work/pid" stuck
  rank_pid 0 >/dev/null && rank_pid 1 >/dev/null
  kill "-$1" "$pid"
  expect_end "$2" 'ended by signal'
}

ignorant() {
  start "$causeway" run --kill-after "$1" -n 2 "$actor" ignore init ring "pid=$work/pid" stuck
  rank_pid 0 >/dev/null && rank_pid 1 >/dev/null
  before=$(now_ms)
  kill -INT "$pid"
}

ended_after_grace() {
  ignorant 2
  expect_end 130 'ended by signal'
  (($(now_ms) - before > 1500)) || wrong "they had only $(($(now_ms) - before)) ms"
}

ended_by_second() {
  local try
  for try in 1 2 3; do
    rm -f "$work"/pid.*
    ignorant 10
    sleep 0.2
    kill -INT "$pid"
    expect_end 130 'ended by signal'
    (($(now_ms) - before < 8000)) && return
  done
  wrong "in $try tries it never ended before the grace was over"
}

# A launcher that never answers is part of the job's time.
starts_too_long() {
  printf '#!/bin/sh\nexec sleep 100\n' >"$work/launcher"
  chmod +x "$work/launcher"
  run "$causeway" run --timeout 1 --host h1,h2 --launcher "$work/launcher" -n 2 "$actor" init finalize
  expect_code 124
  expect_message 'ran out of its time'
}

# A part of the job that cannot be opened leaves nothing behind that others wait for. The address sanitizer sees more.
opened_in_part() {
  printf '#!/bin/sh\nshift\nexec "$@"\n' >"$work/launcher"
  chmod +x "$work/launcher"
  run "$causeway" run --host localhost:1 --launcher "$work/launcher" --ckpt-dir /nonexistent/a/b "$actor" init finalize
  expect_code 1
  expect_message '--ckpt-dir /nonexistent/a/b: No such file'
}

# A program that writes its last checkpoint after a signal has more time than one that fails.
last_checkpoint() {
  start "$causeway" run -n 1 bash -c \
    "exec 2>/dev/null; trap 'sleep 2.5; echo saved; exit' TERM; : >$work/ready; while :; do sleep 0.1; done"
  await_file "$work/ready"
  kill "-$1" "$pid"
  kill "-$1" "$pid"
  expect_end 143 'ended by signal'
  expect_out saved
}

hangup_ignored() {
  start env --ignore-signal=HUP "$causeway" run -n 2 "$actor" init ring "pid=$work/pid" \
    "await=$work/go" ring finalize
  rank_pid 0 >/dev/null && rank_pid 1 >/dev/null
  kill -HUP "$pid"
  sleep 0.3
  touch "$work/go"
  finish
  expect_code 0
  expect_silence
}

# after ENV-OPTION...: from a parent that left signals so, a job runs, restarts a rank, and ends by SIGTERM; programs
# of its ranks wait for their children.
after() {
  run env "$@" "$causeway" run --fault kill:1@event:3 -n 2 bash -c \
    "(exit 3); [ \$? = 3 ] && exec $actor init ring=20 finalize"
  expect_code 0
  expect_err_like 'restarting it'
  start env "$@" "$causeway" run -n 2 "$actor" init ring "pid=$work/pid" stuck
  rank_pid 0 >/dev/null && rank_pid 1 >/dev/null
  kill -TERM "$pid"
  expect_end 143 'ended by signal'
}

# What a user ignores, with nohup, ranks ignore too.
ignored_by_ranks() {
  run_expect 0 'no rank called MPI_Init' env --ignore-signal=HUP "$causeway" run -n 1 grep SigIgn /proc/self/status
  expect_out_like $'^SigIgn:\t0000000000000001$'
}

# inside COMMAND: an MPI program that a rank starts is no part of the job, which goes on; the rank is not restarted.
inside() {
  run "$causeway" run -n 2 "$actor" init ring "0:shell=$*" ring finalize
  expect_code 0
  [[ $(grep -c '^ring of 2$' "$tmp/out") -ge 2 && $(grep -c '^ring of ' "$tmp/out") = 3 ]] ||
    wrong "expected two rings of 2, and one that was started inside"
  expect_err_like '^causeway: rank 0 can no longer be restarted: its program has started another MPI program, '
}

stopped_and_continued() {
  start_job 2 init ring "pid=$work/pid" "await=$work/go" ring finalize
  kill -STOP "$(rank_pid 1)"
  touch "$work/go"
  sleep 0.3
  kill -CONT "$(rank_pid 1)"
  finish
  expect_code 0
  expect_silence
}

# own_node SIGNAL WHY [OPTION...]: all of a job on this machine is below its node. What that leaves when it is killed is removed.
own_node() {
  local node
  start "$causeway" run --ckpt-every 100ms "${@:3}" -n 2 "$actor" init "pid=$work/pid" "ring_until=$work/go" finalize
  rank_pid 0 >/dev/null && rank_pid 1 >/dev/null
  await_true "images" compgen -G "$TMPDIR/causeway-images-*/*/*" >/dev/null
  node=$(child_of "$pid")
  kill "-$1" "$node"
  finish
  expect_code 1
  expect_err_like "^causeway: the node of this machine \\(causeway node, pid $node\\): $2; the job's ranks and its relay end with it$"
}

left_behind() {
  job_expect 0 '' 2 "background=$1" init ring finalize
}

# What a shell started before it became causeway run, and what that started, is not the job's.
of_the_shell_before() {
  local it
  run bash -c 'sleep 1000 & echo $! >"$1/child"
    (sleep 1000 & echo $! >"$1/grandchild"; sleep 0.2) & shift; exec "$@"' _ "$work" "$causeway" run -n 2 \
    "$actor" init ring finalize
  expect_code 0
  expect_silence
  for it in child grandchild; do
    gone "$(<"$work/$it")" && wrong "expected the $it to live on"
    kill "$(<"$work/$it")"
  done
}

left_behind_by_script() {
  run_expect 0 '' "$causeway" run -n 2 bash -c "(sleep 1000 &) ; exec \"$actor\" init ring finalize"
}

end_tests() {
  t "a program without MPI" run_expect 0 'note: no rank called MPI_Init' \
    "$causeway" run -n 2 "$programs/nompi"
  t "a program that never calls MPI_Init" job_expect 0 'note: no rank called MPI_Init' 2 print=a
  t "... and its exit code" job_expect 3 'rank 1 .*exited with code 3' 2 1:exit=3
  t "a rank that ends without MPI_Init while others wait" \
    bad_end 1 'rank 1 .*without calling MPI_Init' noinit 1
  t "a rank that fails before MPI_Init while others wait" \
    job_expect 5 'rank 1 .*exited with code 5' 3 1:exit=5 init finalize
  t "a rank that exits with code 7 after MPI_Init" bad_end 7 'rank 1 .*exited with code 7' exit 1 7
  t "a rank that exits with code 7 after MPI_Finalize" \
    job_expect 7 'rank 1 .*exited with code 7' 3 init ring finalize 1:exit=7
  t "MPI_Abort with code 9" bad_end 9 'rank 1 .*MPI_Abort with code 9' abort 1 9
  t "MPI_Abort on an intercommunicator, with code 8" aborted_often abort_inter 8
  t "... with code 0" aborted_often abort_inter 0
  t "MPI_Abort on MPI_COMM_SELF, with code 8" aborted_often abort_self 8
  t "... with code 0, on MPI_COMM_SELF" aborted_often abort_self 0
  t "MPI_Abort with code 0" bad_end 0 'rank 1 .*called MPI_Abort with code 0' abort 1 0
  t "a segmentation fault, without logs" bad_end_unlogged 139 'rank 2 .*signal 11' signal 2 11
  t "a rank killed from outside, without logs" killed_from_outside
  t "a rank with channel memory is killed" killed_with_channel
  t "a rank with a log in channel memory is killed" channel_logs
  t "MPI_Init without MPI_Finalize" bad_end 1 'rank 1 .*without MPI_Finalize' nofinalize 1
  t "a rank that comes 5 seconds later" late
  t "a rank that lingers after MPI_Finalize" job_expect 0 '' 2 init ring finalize 0:sleep=1
  t "its relay is terminated" relay_killed -TERM 'ended'
  t "a foreign relay is killed" foreign_relay_killed -KILL
  t "a foreign relay is terminated" foreign_relay_killed -TERM
  t "the dispatcher is killed" dispatcher_killed
  t "the dispatcher is killed, the program being started by a script" in_script_dispatcher_killed
  t "SIGINT" interrupted INT 130
  t "SIGTERM" interrupted TERM 143
  t "SIGHUP" interrupted HUP 129
  t "SIGHUP that is ignored, as nohup does" hangup_ignored
  t "SIGHUP that is ignored, in ranks" ignored_by_ranks
  t "an MPI program alone in a rank" inside "$actor init ring finalize"
  t "mpiexec in a rank" inside "mpiexec.mpich -n 2 $actor init ring finalize"
  t "causeway run in a rank" inside "$causeway run -n 2 $actor init ring finalize"
  t "started with SIGCHLD ignored" after --ignore-signal=CHLD
  t "started with all signals blocked" after --block-signal
  t "a program that ignores signals, ended after the grace" ended_after_grace
  t "a program that ignores signals, ended by a second SIGINT" ended_by_second
  t "a last checkpoint after SIGTERM" last_checkpoint TERM
  t "a launcher that takes more than the time of --timeout" starts_too_long
  t "a job on a host that is opened in part" opened_in_part
  t "a rank that is stopped and goes on" stopped_and_continued
  t "--timeout" run_expect 124 '--timeout' "$causeway" run --timeout 2 -n 2 \
    "$programs/exitcode" hang
  t "the node of this machine is killed" own_node KILL 'the connection was closed'
  t "the node of this machine is stopped" own_node STOP 'nothing was heard of it for 1[0-9]\.[0-9] s \(is it stopped\?\)'
  t "... with another --host-timeout" own_node STOP 'nothing was heard of it for [2-9]\.[0-9] s \(is it stopped\?\)' \
    --host-timeout 2s
  t "a process left behind by a rank" left_behind 1
  t "a chain of processes left behind by a rank" left_behind 4
  t "a process left behind by a script" left_behind_by_script
  t "processes of the shell before" of_the_shell_before
}

# --- what ranks print -------------------------------------------------------------

tagged() {
  run "$causeway" run --tag-output -n 2 "$actor" init print=hello err=oops finalize
  expect_code 0
  [[ $(sort "$tmp/out") = $'[0] hello\n[1] hello' ]] || wrong "expected each line tagged"
  [[ $(sort "$tmp/err") = $'[0] oops\n[1] oops' ]] || wrong "expected each error line tagged"
}

tagged_parts() {
  run_expect 0 '' "$causeway" run --tag-output -n 1 "$actor" part=one sleep=0.3 part=two print= \
    init finalize part=end
  expect_out $'[0] onetwo\n[0] end'
}

into_files() {
  run_expect 0 '' "$causeway" run --output-dir "$work/logs" -n 2 "$actor" init 0:print=zero \
    1:print=one 1:err=oops finalize
  expect_out ''
  [[ $(cd "$work/logs" && echo *) = 'rank.0.err rank.0.out rank.1.err rank.1.out' ]] ||
    wrong "expected four files, saw $(ls "$work/logs")"
  [[ $(<"$work/logs/rank.0.out") = zero && $(<"$work/logs/rank.1.out") = one ]] ||
    wrong "expected the output of each rank in its file"
  [[ $(<"$work/logs/rank.1.err") = oops && ! -s $work/logs/rank.0.err ]] ||
    wrong "expected the errors of rank 1 in its file"
}

into_no_file() {
  options_expect 1 "$1" --output-dir "$1"
}

into_dir_of_files() {
  mkdir -p "$work/logs/rank.1.out"
  run_expect 1 "$work/logs/rank.1.out" "$causeway" run --output-dir "$work/logs" -n 2 "$actor" \
    init print=a finalize
}

into_full_link() {
  mkdir "$work/logs"
  ln -s /dev/full "$work/logs/rank.0.out"
  run_expect 1 "rank 0 to $work/logs/rank.0.out: No space" "$causeway" run \
    --output-dir "$work/logs" -n 2 "$actor" init 0:print=a finalize
}

# A limit of file sizes is an error of the output, not the end of causeway run.
into_small_files() {
  run bash -c 'ulimit -f 8; exec "$@"' _ "$causeway" run --no-log --rings off --output-dir "$work/out" -n 1 seq 1 10000
  expect_code 1
  expect_message 'rank 0 to .*/rank.0.out: File too large'
}

into_full_disk() {
  mkdir "$work/small"
  if ! mount -t tmpfs -o size=64k none "$work/small" 2>/dev/null; then
    skip "mounting a small file system is not allowed"
    return
  fi
  run_expect 1 "rank [01] to $work/small/.*No space" "$causeway" run \
    --output-dir "$work/small" -n 2 "$actor" init lines=2000,100 stuck
  umount "$work/small"
}

# to SHELL-TEXT CODE REGEX STEP...: standard output as the text says.
to() {
  run_expect "$2" "$3" bash -c "exec \"\$@\" $1" _ "$causeway" run -n 2 "$actor" init "${@:4}"
}

to_nobody() {
  run bash -c 'set -o pipefail; "$@" | head -n 1' _ "$causeway" run -n 2 "$actor" init \
    lines=100000,100 stuck
  expect_code 141
  expect_message 'standard output: Broken pipe'
  [[ $(wc -l <"$tmp/out") = 1 ]] || wrong "expected one line"
}

# What ranks print is what comes out.
flood() {
  local expected seen
  expected=$(PMI_RANK=0 "$actor" lines=1000000,100 | sha256sum)
  seen=$(timeout -k 5 "$limit" "$causeway" run "$@" -n 1 "$actor" init lines=1000000,100 \
    finalize 2>"$tmp/err" </dev/null | sed 's/^\[0\] //' | sha256sum)
  [[ $seen = "$expected" ]] || wrong "expected the same 100 MB"
  expect_silence
}

# Reads in pieces that are neither lines nor blocks, and pauses.
slow_reader() {
  local piece
  while IFS= read -r -N 30000 piece; do
    printf %s "$piece"
    sleep 0.002
  done
  printf %s "$piece"
}

# unmixed LENGTH OPTION...: lines of 4 ranks come out whole.
unmixed() {
  local count=$((2000000 / $1))
  timeout -k 5 "$limit" "$causeway" run "${@:2}" -n 4 "$actor" "lines=$count,$1" init finalize \
    2>"$tmp/err" </dev/null | slow_reader | sed 's/^\[[0-9]\] //' >"$work/lines"
  awk -v size="$1" '!/^[0-3]:[0-9]+:(a+|b+|c+|d+)$/ || length($0) != size - 1' "$work/lines" \
    >"$work/bad"
  [[ ! -s $work/bad ]] || wrong "$(wc -l <"$work/bad") lines are mixed, as: $(head -c 300 "$work/bad")"
  [[ $(wc -l <"$work/lines") = $((4 * count)) ]] || wrong "expected $((4 * count)) lines"
  expect_silence
}

# late_reader OPTION...: all that a program printed comes, though it is read only long after its end.
late_reader() {
  local lines
  lines=$(timeout -k 5 "$limit" "$causeway" run "$@" -n 1 bash -c "seq 1 20000; : >$work/printed" 2>"$tmp/err" \
    </dev/null | {
      await_file "$work/printed"
      sleep 2.5
      wc -l
    })
  [[ $lines = 20000 ]] || wrong "expected 20000 lines, saw $lines"
  expect_message 'no rank called MPI_Init'
}

# A signal ends the wait for a reader that never comes.
no_reader() {
  mkfifo "$work/pipe"
  exec 9<>"$work/pipe"
  start bash -c 'exec "$@" >"$0"' "$work/pipe" "$causeway" run -n 1 bash -c "seq 1 20000; : >$work/printed"
  await_file "$work/printed"
  sleep 0.2
  kill -TERM "$pid"
  finish
  exec 9>&-
  expect_code 143
  expect_err_like '^causeway: the end of what ranks printed is lost'
  expect_err_like '^causeway: ended by signal 15'
}

# A rank that never stops printing, faster than lines can be written, keeps nothing from its turn.
endless() {
  run bash -c 'exec "$@" >/dev/null' _ "$causeway" run --timeout 1 --tag-output -n 2 yes
  expect_code 124
  expect_message 'ran out of its time'
}

# Another core that somebody gives a rank while it sleeps, bound to the one it runs on, stays its only one.
bound_from_outside() {
  local rank other=0
  start "$causeway" run -n 2 "$actor" init ring "pid=$work/pid" "1:await=$work/bound" ring 0:cores finalize
  rank=$(rank_pid 0)
  await_true "the rank to sleep" asleep_on_a_core "$rank"
  [[ $(taskset -pc "$rank") = *': 0' ]] && other=1
  taskset -pc "$other" "$rank" >/dev/null
  sleep 0.2
  : >"$work/bound"
  finish
  expect_code 0
  grep -qx 'cores: 1' "$tmp/out" || wrong "expected it to stay on one core"
}

asleep_on_a_core() {
  [[ $(taskset -pc "$1") =~ ': '[01]$ ]]
}

# Standard error takes no more, and nobody reads it.
deaf_error() {
  mkfifo "$work/pipe"
  exec 9<>"$work/pipe"
  start bash -c 'exec "$@" 2>"$0"' "$work/pipe" "$causeway" run --verbose -n 1 \
    bash -c "yes >&2 & sleep 0.3; : >$work/printed; wait"
  await_file "$work/printed"
  kill -TERM "$pid"
  finish
  exec 9>&-
  expect_code 143
}

output_tests() {
  t "--tag-output" tagged
  t "--tag-output of lines that come in parts" tagged_parts
  t "--output-dir" into_files
  t "--output-dir that cannot be made" into_no_file "$tmp/no/such/dir"
  t "--output-dir that is a file" into_no_file /etc/passwd
  t "--output-dir where a file is a directory" into_dir_of_files
  t "--output-dir on a device that is full" into_full_link
  t "--output-dir where files may not be large" into_small_files
  t "--output-dir on a disk that is full" into_full_disk
  t "standard output is full" to '>/dev/full' 1 'standard output: No space' print=a finalize
  t "standard output is closed" to '>&-' 1 'standard output' print=a finalize
  t "standard output is closed, and nothing is printed" to '>&-' 0 '' finalize
  t "standard output is a pipe that nobody reads" to_nobody
  t "a reader that comes late" late_reader
  t "a reader that comes late, of a kept job" late_reader --job-dir "$tmp/kept"
  t "a reader that never comes" no_reader
  t "standard error that nobody reads" deaf_error
  t "a rank that is bound to a core while it sleeps" bound_from_outside
  t "a rank that prints without end" endless
  t "100 MB" flood
  t "100 MB with --tag-output" flood --tag-output
  t "lines of 100 bytes are not mixed" unmixed 100
  t "lines of 9000 bytes are not mixed" unmixed 9000
  t "lines of 100 bytes are not mixed with --tag-output" unmixed 100 --tag-output
  t "lines of 9000 bytes are not mixed with --tag-output" unmixed 9000 --tag-output
}

# --- what ranks read --------------------------------------------------------------

# random_file BYTES: in lines.
random_file() {
  head -c "$1" /dev/urandom | base64 -w 99 | head -c "$1" >"$work/input"
}

# same_as_input COMMAND...
same_as_input() {
  run_expect 0 '' "$@"
  cmp -s "$work/input" "$tmp/out" || wrong "expected the output to be the input"
}

from_file() {
  random_file 300000
  input=$work/input same_as_input "$causeway" run -n 2 "$actor" init 0:cat finalize
}

from_pipe() {
  random_file 10000000
  same_as_input bash -c 'cat "$1" | "${@:2}"' _ "$work/input" \
    "$causeway" run -n 2 "$actor" 0:cat init finalize
}

# Half of it comes when the rank waits already.
from_slow_pipe() {
  random_file 200000
  same_as_input bash -c '{ head -c 100000 "$1"; sleep 0.3; tail -c 100000 "$1"; } | "${@:2}"' _ \
    "$work/input" "$causeway" run -n 2 "$actor" init 0:cat finalize
}

# Rank 0 alone has it.
from_file_for_all() {
  random_file 1000
  input=$work/input same_as_input "$causeway" run -n 3 "$actor" init cat finalize
}

from_nothing() {
  job_expect 0 '' 2 init cat ring finalize
  expect_out 'ring of 2'
}

from_closed() {
  run_expect 0 '' bash -c 'exec "$@" <&-' _ "$causeway" run -n 2 "$actor" init cat ring finalize
  expect_out 'ring of 2'
}

from_pipe_unread() {
  run_expect 0 '' bash -c 'yes | "$@"' _ "$causeway" run -n 2 "$actor" init ring finalize
  expect_out 'ring of 2'
}

# What "ring" prints ends the job, for nobody can read it.
all_closed() {
  run bash -c 'exec "$@" <&- >&- 2>&-' _ "$causeway" run -n 2 "$actor" init "touch=$work/done" ring \
    finalize
  expect_code 1
  [[ -e $work/done ]] || wrong "expected the ranks to run"
}

input_tests() {
  t "standard input from a file" from_file
  t "standard input from a pipe, 10 MB" from_pipe
  t "standard input from a slow pipe" from_slow_pipe
  t "standard input goes to rank 0 alone" from_file_for_all
  t "standard input from /dev/null" from_nothing
  t "standard input is closed" from_closed
  t "standard input that no rank reads" from_pipe_unread
  t "standard input, output and error are closed" all_closed
}

# --- what ranks are given ---------------------------------------------------------

several() {
  mkdir "$work/a" "$work/b"
  run_expect 0 '' "$causeway" run --genv ALL=yes -n 1 --env COLOUR=red --wdir "$work/a" "$actor" \
    init env=ALL env=COLOUR cwd ring finalize : \
    -n 2 --env COLOUR=blue --wdir "$work/b" "$actor" init env=ALL env=COLOUR cwd ring finalize
  [[ $(sort "$tmp/out") = "0 ALL=yes
0 COLOUR=red
0 in $work/a
1 ALL=yes
1 COLOUR=blue
1 in $work/b
2 ALL=yes
2 COLOUR=blue
2 in $work/b
ring of 3" ]] || wrong "expected each program with its own environment and directory"
}

exported() {
  HUE=green run "$causeway" run -x HUE -x TINT=pale -n 1 "$actor" env=HUE env=TINT init finalize
  expect_code 0
  expect_silence
  expect_out $'0 HUE=green\n0 TINT=pale'
}

relative_wdir() {
  mkdir "$work/a"
  ln -s "$actor" "$work/a/here"
  cd "$work" || return
  run_expect 0 '' "$causeway" run --wdir a -n 1 ./here init cwd finalize
  cd "$tmp" || return
  expect_out "0 in $work/a"
}

wdir_deleted() {
  mkdir "$work/a"
  run_expect '1|126' 'current directory' \
    bash -c 'cd "$1" && rmdir "$1" && exec "${@:2}"' _ "$work/a" \
    "$causeway" run -n 1 "$actor" init finalize
}

# Of 2 ranks, in rows: rank, sent, bytes, received, bytes, unexpected, polls, sleeps, syscalls.
statistics() {
  run "$causeway" run --stats -n 2 "$actor" init ring=100 finalize
  expect_code 0
  expect_out 'ring of 2'
  awk '
    $1 == "rank" && $2 == "sent" { heads++ }
    NF >= 9 && $1 ~ /^[01]$/ {
      rows++
      sent += $2; sent_bytes += $3; received += $4; received_bytes += $5
      if ($2 < 200 || $3 < 800 || $6 > $4 || $7 < $4 || $9 < 1) bad++
    }
    /^ relay: frames in [1-9][0-9]*, out [1-9]/ { relays++ }
    END { exit !(heads == 1 && rows == 2 && relays == 1 && !bad && sent == received &&
                 sent_bytes == received_bytes) }
  ' "$tmp/err" || wrong "expected a table whose numbers agree"
}

# What a rank does to its own windows does not go through the relay.
statistics_own() {
  run "$causeway" run --stats -n 1 "$programs/rma_lock"
  expect_code 0
  expect_err_like '^ +0 +0 +0 +0 +0 +0 '
}

# polls RANKS ARG...: thousands of calls that may return; a rank that slept in them would sleep once each.
# How often each rank polled and slept. Beside other programs a thread may wait for the other rank, and sleep, while that
# has no core; a call that sleeps each time it asks sleeps about as often as it polls.
polls() {
  local limit=120 # each round trip takes turns on cores that others compute on, too
  run "$causeway" run --stats -n "$1" "$programs/polling" "${@:2}"
  expect_code 0
  awk -v threads="${3-}" 'NF >= 9 && $1 ~ /^[01]$/ { rows++; if ($8 > (threads == "threads" ? 500 + $7 / 10 : 500)) bad++ }
    END { exit !(rows && !bad) }' "$tmp/err" || wrong "expected few sleeps"
}

verbose() {
  local it
  run "$causeway" run --verbose -n 2 "$actor" init finalize
  expect_code 0
  for it in 'relay started' 'rank 0 started' 'rank 1 has called MPI_Init' \
    'rank 1 has called MPI_Finalize' 'rank 0 ended \(exit code 0\)'; do
    expect_err_like "^causeway: $it"
  done
}

long_arguments() {
  local long
  long=$(printf '%0100000d' 7)
  job_expect 0 '' 2 init "0:print=$long" finalize
  expect_out "$long"
}

given_tests() {
  t "several programs with environments and directories" several
  t "-x" exported
  t "a relative --wdir" relative_wdir
  t "a working directory that was deleted" wdir_deleted
  t "--stats" statistics
  t "--stats of RMA within a rank" statistics_own
  t "a program of one rank that polls" polls 1 2000 20000
  t "programs that poll" polls 2 500 2000
  t "threads that poll" polls 2 300 threads
  t "--verbose" verbose
  t "an argument of 100000 bytes" long_arguments
}

# --- relays -----------------------------------------------------------------------

# Two jobs at once, over the relay at $address.
two_jobs() {
  local first
  "$causeway" run --relay "$address" "$@" -n 2 "$actor" init ring "pid=$work/first" \
    "await=$work/pid.0" ring=100 finalize >"$work/first.out" 2>"$work/first.err" </dev/null &
  first=$!
  run_expect 0 '' "$causeway" run --relay "$address" "$@" -n 3 "$actor" init ring \
    "pid=$work/pid" "await=$work/first.1" ring=100 finalize
  expect_out $'ring of 3\nring of 3'
  wait "$first" || wrong "expected exit code 0 of the other job, saw $?"
  [[ $(<"$work/first.out") = $'ring of 2\nring of 2' ]] || wrong "expected the other job to work"
}

two_jobs_unix() {
  start_relay --listen "unix:$work/r"
  two_jobs
}

two_jobs_tcp() {
  start_tcp_relay
  two_jobs --key-file "$work/key"
}

two_addresses() {
  start_relay --listen "unix:$work/r" --listen tcp:127.0.0.1:0
  run_expect 0 '' "$causeway" run --relay "unix:$work/r" -n 2 "$actor" init ring finalize
  address=$(sed -n '2s/.*listening on \([^ ]*\).*/\1/p' "$tmp/relay.err")
  run_expect 0 '' "$causeway" run --relay "$address" --key-file "$work/r.key" -n 2 "$actor" \
    init ring finalize
  expect_out 'ring of 2'
}

terminated() {
  start_relay --listen "unix:$work/r"
  [[ $(stat -c %a "$work/r.key") = 600 ]] || wrong "expected a key for its owner alone"
  kill "-$1" "$helper"
  wait "$job"
  code=$?
  expect_code 0
  [[ ! -e $work/r && ! -e $work/r.key ]] || wrong "expected socket and key to be gone"
}

# hangs_up COMMAND...: a server that ignores SIGHUP from its start on, by nohup, still listens after it.
hangs_up() {
  helper server env --ignore-signal=HUP "$@"
  await_true "the server to listen" test -S "$work/s"
  kill -HUP "$helper"
  sleep 0.3
  gone "$helper" && wrong "expected it to go on"
  kill -TERM "$helper"
  wait "$job"
  code=$?
  expect_code 0
}

over_stale() {
  start_relay --listen "unix:$work/r"
  kill -9 "$helper"
  await_true "the relay to end" gone "$helper"
  [[ -e $work/r ]] || wrong "expected the socket to be left"
  start_relay --listen "unix:$work/r"
  run_expect 0 '' "$causeway" run --relay "unix:$work/r" -n 2 "$actor" init ring finalize
}

over_living() {
  start_relay --listen "unix:$work/r"
  run_expect 1 "unix:$work/r: another process listens there" "$causeway" relay --listen "unix:$work/r"
  run_expect 0 '' "$causeway" run --relay "unix:$work/r" -n 2 "$actor" init ring finalize
}

with_open_key() {
  printf '%064d\n' 0 >"$work/key"
  chmod 644 "$work/key"
  run_expect 1 "$work/key: others may read it" "$causeway" relay --listen "unix:$work/r" \
    --key-file "$work/key"
  [[ -e $work/key ]] || wrong "expected the key file to stay"
  [[ ! -e $work/r ]] || wrong "expected no socket to be left"
}

with_open_key_beside() {
  printf '%064d\n' 0 >"$work/r.key"
  chmod 644 "$work/r.key"
  run_expect 1 "$work/r.key: others may read it" "$causeway" relay --listen "unix:$work/r"
  [[ -e $work/r.key ]] || wrong "expected the key file, which it did not make, to stay"
}

copies_unkept() {
  run_expect 2 "--copy-fds needs --log-safety copy and --state-fd" "$causeway" relay --log-safety copy \
    --copy-fds 5,2 --listen "unix:$work/r"
  run_expect 2 "--copy-fds 5,17: expected FIRST,COUNT" "$causeway" relay --copy-fds 5,17 --listen "unix:$work/r"
}

copies_engine() {
  run_expect 1 "--log-safety copy needs --engine poll" "$causeway" relay --log-safety copy --engine thread \
    --listen "unix:$work/r"
}

relay_tests() {
  t "two jobs at once on one relay, unix" two_jobs_unix
  t "two jobs at once on one relay, tcp" two_jobs_tcp
  t "a relay with two addresses" two_addresses
  t "relay: SIGTERM" terminated TERM
  t "relay: SIGINT" terminated INT
  t "relay: SIGHUP that is ignored" hangs_up "$causeway" relay --listen "unix:$tmp/work/s"
  t "relay: SIGHUP that is ignored, kept" hangs_up "$causeway" relay --log-safety file --log-dir "$tmp" \
    --listen "unix:$tmp/work/s"
  t "ckptsrv: SIGHUP that is ignored" hangs_up "$causeway" ckptsrv --dir "$tmp/images" --key-file "$tmp/images.key" \
    --listen "unix:$tmp/work/s"
  t "relay: over the socket of a killed one" over_stale
  t "relay: where another one lives" over_living
  t "relay: copies in memory that it does not keep" copies_unkept
  t "relay: copies with an engine that cannot" copies_engine
  t "relay: with a key that others may read" with_open_key
  t "relay: with a key beside it that others may read" with_open_key_beside
}

# --- limits -----------------------------------------------------------------------

# limited OPTION VALUE REGEX RANKS: the message names the limit.
limited() {
  run bash -c 'ulimit "$1" "$2" && exec "${@:3}"' _ "$1" "$2" \
    "$causeway" run -n "$4" "$actor" init finalize
  expect_code 1
  expect_message "$3"
}

limit_tests() {
  t "too few descriptors for any rank" limited -n 28 'ulimit -n' 1
  t "too few descriptors for all ranks" limited -n 64 'ulimit -n' 32
  t "too few descriptors for the last ranks" limited -n 150 'ulimit -n' 40
  t "too little address space" limited -v 120000 'ulimit -v' 2
}

# --- peers that do not behave -----------------------------------------------------

# A job is going on at the relay, and goes on when the command is through.
beside() {
  start_tcp_relay
  start "$causeway" run --relay "$address" --key-file "$work/key" -n 2 "$actor" init ring \
    "pid=$work/pid" "await=$work/go" ring=100 finalize
  rank_pid 0 >/dev/null && rank_pid 1 >/dev/null
  "$@"
  touch "$work/go"
  finish
  expect_code 0
  expect_silence
  expect_out $'ring of 2\nring of 2'
  kill -0 "$helper" || wrong "the relay is gone"
  [[ $(grep -vc 'listening on' "$tmp/relay.err") = 0 ]] || wrong "the relay complains"
}

# client COMMAND: says the relay what that prints, and prints what it answers; false when it does not close the connection.
client() {
  timeout -k 5 "$limit" bash -c 'exec 3<>"/dev/tcp/127.0.0.1/$1"; eval "$2" >&3; cat <&3' _ "${address##*:}" "$1" 2>/dev/null
  (($? != 124))
}

# The relay waits 10 seconds for a HELLO.
strangers() {
  client 'yes | head -c 65536' | grep -aq 'frame of unknown type' || wrong "expected that the relay says why"
  client : >/dev/null &
  client 'printf half' >/dev/null || wrong "the relay waits for the rest of a frame"
  wait $! || wrong "the relay waits for who says nothing"
}

main() {
  local it
  for it in "$causeway" "$programs"/{actor,exitcode,nompi}; do
    [[ -x $it ]] || { echo "cli.sh: no $it" >&2 && exit 2; }
  done
  lib_start
  cd "$tmp" || exit 2
  option_tests
  recovery_tests
  program_tests
  address_tests
  end_tests
  output_tests
  input_tests
  given_tests
  relay_tests
  limit_tests
  t "clients that say nothing, or what is no frame, beside a job" beside strangers
  tap_end
}

main
