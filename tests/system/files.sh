#!/bin/bash
# Ranks that share a file which one of them writes to are not restarted, and say so; all others are.
# Prints TAP.
#
#   files.sh [REGEX]
#
#   REGEX   the tests whose titles match
#
# Environment:
#   CAUSEWAY  the command (default: build/causeway of this tree)
# shellcheck disable=SC2317 # the tests are called by t
set -u

suite=files
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/lib/system.sh
. "$here/../lib/system.sh"
# shellcheck source=tests/lib/jobs.sh
. "$here/../lib/jobs.sh"
find_causeway
only=${1-}

# killed RANK OPTION... -- STEP...: a job of 3 ranks, of which RANK kills itself after the steps.
killed() {
  local rank=$1 options=()
  shift
  while [[ $1 != -- ]]; do
    options+=("$1")
    shift
  done
  shift
  echo 'to be read' >"$work/given"
  run "${causeway[@]}" run "${options[@]}" --events "$tmp/events" --fault "kill:$rank@event:30" -n 3 \
    "$actor" init "$@" ring=20 finalize
  count_faults "$tmp/events"
}

# refused RANK WHY STEP...: it is not restarted, and one line has said so before.
refused() {
  killed "$1" -- "${@:3}"
  ends_refused "$1" "$2"
}

ends_refused() {
  expect_code 137
  expect_restarts 0 0
  [[ $(grep -c 'can no longer be restarted' "$tmp/err") = 1 ]] || wrong "expected one warning"
  expect_err_like '^causeway: rank [0-2] can no longer be restarted: .*--trust-files'
  expect_err_like "^causeway: rank $1 .*killed by signal 9.*cannot be restarted because it $2"
}

# restarted RANK OPTION... -- STEP...: nothing is said but that.
restarted() {
  killed "$@"
  expect_code 0
  expect_restarts 1 1
  expect_only_restarts
  expect_out_like '^ring of 3$'
}

shared_by() {
  refused 1 "writes to '$work/file', which rank [02] has opened" "file=$1,$work/file"
}

shared_in_fortran() {
  run "${causeway[@]}" run --events "$tmp/events" --fault kill:1@event:10 -n 3 \
    "$programs/fortran_file" "$work/file"
  count_faults "$tmp/events"
  ends_refused 1 "writes to '$work/file', which rank [02] has opened"
}

shared_by_children() {
  run "${causeway[@]}" run --events "$tmp/events" --fault kill:0@event:30 -n 2 \
    sh -c "echo >>$work/file; exec $actor init ring=40 finalize"
  count_faults "$tmp/events"
  ends_refused 0 "writes to '$work/file'"
}

shared_by_links() {
  ln -s file "$work/link"
  refused 0 "writes to '$work/file', which rank 1" "0:file=open,$work/link" ring "1:file=read,$work/file"
}

# shared_with KIND NAME WORDS: as own files, which other ranks have too
shared_with() {
  refused 1 "writes to '$3.*', which rank [02] has opened" "file=$1,$2"
  ipcrm --shmem-key "$2" --semaphore-key "$2" --queue-key "$2" 2>/dev/null
  rm -f "/dev/shm$2" "/dev/shm/sem.${2#/}"
  python3 -c 'import ctypes, sys; ctypes.CDLL("librt.so.1").mq_unlink(sys.argv[1].encode())' "$2"
}

own_files() {
  restarted 1 -- "0:file=open,$work/0" "1:file=open,$work/1" "2:file=fopen,$work/2"
}

# Who only reads it is restarted, but not who wrote it.
read_after_writing() {
  killed 1 -- "0:file=open,$work/file" ring "1:file=read,$work/file"
  expect_code 0
  expect_restarts 1 1
  expect_err_like "^causeway: rank 0 can no longer be restarted: it writes to '$work/file', which rank 1 has"
}

# While rank 0 repeats itself, held where it waits for the file hold, rank 1 opens what it wrote.
opened_meanwhile() {
  touch "$work/hold"
  start_job 2 init "0:file=creat,$work/file" "0:await=$work/hold" ring=5 "pid=$work/pid" \
    "await=$work/go" "1:file=read,$work/file" ring finalize
  rank_pid 0 >/dev/null && rank_pid 1 >/dev/null
  rm "$work/hold"
  kill -9 "$(rank_pid 0)"
  await_true "a restart" grep -q 'restarting it' "$tmp/err"
  touch "$work/go"
  finish
  expect_code 1
  expect_err_like "^causeway: rank 0 .*was restarted, and repeats what it must not: it writes to '$work/file'"
}

lib_start
cd "$tmp" || exit 2
for it in mpi open openat creat fopen freopen; do
  t "all ranks write to a file, $it" shared_by "$it"
done
t "all ranks write to a file, in Fortran" shared_in_fortran
t "all ranks write to a file, in a script" shared_by_children
t "a file has two names" shared_by_links
key=$((0x63770000 + $$ % 65536))
for it in 'shm,shared memory' 'semop,semaphores' 'msg,message queue'; do
  t "all ranks have the same ${it#*,} of System V" shared_with "${it%,*}" "$key" "System V ${it#*,} "
done
for it in 'posix,/' 'sem,/sem.' 'mq,/'; do
  t "all ranks have the same object of POSIX, ${it%,*}" shared_with "${it%,*}" "/causeway-$$" "${it#*,}causeway-$$"
done
t "each rank writes to its own file" own_files
t "all ranks read a file" restarted 1 -- "file=read,$work/given"
t "rank 0 writes, then rank 1 reads: rank 0 is killed" refused 0 "writes to '$work/file', which rank 1" \
  "0:file=open,$work/file" ring "1:file=read,$work/file"
t "rank 0 writes, then rank 1 reads: rank 1 is killed" read_after_writing
t "rank 1 reads, then rank 0 writes: rank 1 is killed" refused 1 "has opened '$work/given', to which rank 0 writes" \
  "1:file=read,$work/given" ring "0:file=open,$work/given"
t "one makes a file and renames it, the others read it" restarted 0 -- \
  "0:file=renamed,$work/file" ring "1:file=read,$work/file"
t "one creates what must not be there, the others read it" refused 0 "writes to '$work/file', which rank 1" \
  "0:file=excl,$work/file" ring "1:file=read,$work/file"
t "--trust-files" restarted 1 --trust-files -- "file=mpi,$work/file"
# one that goes on from an image does not write it again
[[ -n ${IMAGES-} ]] || t "a file is opened while the rank that wrote it repeats itself" opened_meanwhile
tap_end
