#!/bin/bash
# Images of processes: taken of programs without MPI, and restored. Prints TAP.
#
#   images.sh [REGEX]    runs the tests whose titles match
#
# Environment:
#   BUILD  where the programs and the restorer were built (default: build of this tree)
# shellcheck disable=SC2016,SC2317 # text for bash -c; t calls the tests
set -u

suite=images
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/lib/system.sh
. "$here/../lib/system.sh"
only=${1-}
build=${BUILD:-$root/build}
programs=$build/image
restorer=$build/causeway-restore

# --- running ----------------------------------------------------------------------

# Only the standard descriptors, as a launcher's child has; outputs are a pipe, which a process that goes on is given anew.
alone=(bash -c 'set -o pipefail
  for fd in /proc/self/fd/*; do fd=${fd##*/}; ((fd > 2)) && eval "exec $fd>&-"; done 2>/dev/null
  "$@" 2>&1 | cat' alone)

before_test() {
  cd "$work" || exit 2
}

# take WRAPPER... PROGRAM: its image is $work/image.N
take() {
  run "${alone[@]}" env IMAGE="$work/image" "$@"
}

# restore N WRAPPER...: from $work/image.N
restore() {
  run "${alone[@]}" bash -c 'exec "$@" 3<"$0"' "$work/image.$1" "${@:2}" "$restorer" 3 -1 -1 -1 -1
}

expect_output() {
  grep -Eq -- "$1" "$tmp/out" || wrong "expected: $1; got: $(head -c 1000 "$tmp/out")"
}

make_files() {
  seq -f 'line %g' 100 >in
}

# --- programs ---------------------------------------------------------------------

# everything TAKEN_WITH RESTORED_WITH: words of commands
everything() {
  make_files
  # shellcheck disable=SC2086 # words
  take $1 "$programs/everything"
  expect_code 0
  expect_output '^went on, 0 failures'
  for _ in 1 2 3; do
    # shellcheck disable=SC2086 # words
    restore 1 $2
    expect_code 0
    expect_output '^restored, 0 failures'
    [[ $(cat out) == $'one\ntwo\nthree, restored' ]] || wrong "out is: $(<out)"
    [[ $(cat append) == AAAABBBB ]] || wrong "append is: $(<append)"
  done
}

# Written to a slow reader, an image is compressed, if that makes it smaller.
slow() {
  everything "env SLOW=1" env
  take env SLOW=1 "$programs/stall" 16 text
  expect_code 0
  (($(stat -c %s image.1) < 8000000)) || wrong "the image that compresses has $(stat -c %s image.1) bytes"
  take env SLOW=1 "$programs/stall" 16 small
  (($(stat -c %s image.1) > 16000000)) || wrong "the image that does not compress has $(stat -c %s image.1) bytes"
}

# Blocks that are in the image before are not sent.
increments() {
  take env BASE=1 "$programs/stall" 64 small
  expect_code 0
  (($(stat -c %s image.1) > 67000000)) || wrong "the first image has $(stat -c %s image.1) bytes"
  (($(stat -c %s image.2) < 2000000)) || wrong "the second image has $(stat -c %s image.2) bytes"
  (($(stat -c %s image.3) < 2000000)) || wrong "the third image has $(stat -c %s image.3) bytes"
}

# As a user who may nothing.
nobody() {
  ((UID == 0)) || { skip "not root" && return; }
  chmod 777 . "$tmp"
  everything "setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs" \
    "setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs"
}

# language PROGRAM
language() {
  take "$programs/$1"
  expect_code 0
  expect_output '^went on'
  restore 1
  expect_code 0
  expect_output '^restored'
}

generations() {
  local i
  take "$programs/chain" 10
  expect_code 0
  for ((i = 1; i <= 10; i++)); do
    restore "$i" env IMAGE="$work/image"
    expect_code 0
  done
  expect_output '^10 generations'
  [[ $(wc -l <chain) == 10 ]] || wrong "the file has $(wc -l <chain) lines"
}

# threads GENERATIONS
threads() {
  local i
  take "$programs/threads" "$1"
  expect_code 0
  expect_output '^went on, 0 generations, 0 failures'
  for ((i = 1; i <= $1; i++)); do
    restore "$i" env IMAGE="$work/image"
    expect_code 0
    expect_output ', 0 failures'
  done
  expect_output "^restored, $1 generations, 0 failures"
}

# copies [refused]: of descriptors
copies() {
  take "$programs/copies" "$@"
  expect_code 0
  expect_output '^went on, 0 failures'
  restore 1
  expect_code 0
  expect_output '^restored, 0 failures'
  [[ $(grep -c 'of a copy' "$tmp/out") == 1 ]] || wrong "the copy of the output is lost"
}

# Fewer descriptors than the program has.
fewer_descriptors() {
  take "$programs/copies"
  restore 1 prlimit --nofile=20:1024
  expect_code 0
  expect_output '^restored, 0 failures'
  restore 1 prlimit --nofile=20:90
  expect_code 113
  expect_output "descriptors up to number 100, .* 'ulimit -Hn' is 90 here, and has to be 1[0-9]+"
}

# pool POLICY: of OpenMP, whose threads spin or sleep
pool() {
  take env OMP_NUM_THREADS=4 OMP_WAIT_POLICY="$1" "$programs/pool"
  expect_code 0
  expect_output '^went on, 0 failures'
  restore 1
  expect_code 0
  expect_output '^restored, 0 failures'
}

# What the kernel keeps of a process: state [NAME]
state() {
  take "$programs/state" "$@"
  expect_code 0
  restore 1
  expect_code 0
  expect_output '^kept '
  ! grep -E '^(lost|remark)' "$tmp/out" || wrong "$(grep -E '^(lost|remark)' "$tmp/out")"
}

# What a program that root has started gives up does not come back: given_up_rights GROUPS OPTION...
given_up_rights() {
  ((UID == 0)) || { skip "not root" && return; }
  chmod 777 . "$tmp"
  take setpriv "${@:2}" "$programs/state" name
  expect_code 0
  restore 1
  expect_code 0
  expect_output "^ids 65534 65534 65534, groups $1"
}

more_rights() {
  ((UID == 0)) || { skip "not root" && return; }
  chmod 777 . "$tmp"
  take "$programs/state" name
  restore 1 setpriv --reuid=65534 --regid=65534 --clear-groups
  expect_code 113
  expect_output 'the program ran as user 0 and group 0, which this process cannot become'
}

state_tests() {
  t "what the kernel keeps of a process" state
  t "the processor's time stamps forbidden" state timestamps
  t "user and groups that root gave up" given_up_rights 0 --reuid=65534 --regid=65534 --clear-groups
  t "... but for some groups" given_up_rights 2 --reuid=65534 --regid=65534 --groups=4,5 --no-new-privs
  t "the table of what the kernel keeps" table
  t "a user who is not the program's" more_rights
}

rows() {
  sed -n '/^## What the kernel keeps/,/^## How/s/^| //p' "$root/docs/image-format.md" | tail -n +3
}

# All that can be set of this system is in the table; each row of it has what shows it.
table() {
  local what fate shown name
  take "$programs/state"
  restore 1
  cp "$tmp/out" states
  while IFS='|' read -r what _ fate shown _; do
    shown=$(sed -nE 's/^ `([^`]+)`.*/\1/p; t; s/^ (.+) $/reason/p' <<<"$shown")
    case ${fate// /} in
      kept)
        case $shown in
          "state dumpable" | "state timestamps") ;; # of their own
          state\ *) grep -Eq "^(kept|not here) ${shown#* }$" states || wrong "$what: $(grep " ${shown#* }$" states)" ;;
          *) [[ -x $programs/${shown%% *} ]] || wrong "$what: no program ${shown:-at all}" ;;
        esac ;;
      refused)
        grep -Eq "(^| )\"${shown#* }\"" "$root/tests/image/refused.c" || grep -q "\"${shown#* }\"" "$root/tests/image/refused.c" ||
          wrong "$what: no test '$shown'" ;;
      harmless) [[ $shown ]] || wrong "$what: it is not said why it is harmless" ;;
      lost) ;;
      *) wrong "$what: neither kept, refused, harmless nor lost: $fate" ;;
    esac
  done < <(rows)
  for name in $(grep -oE '^# *define PR_SET_[A-Z0-9_]+' /usr/include/linux/prctl.h | awk '{ print $NF }' | grep -Ev 'PR_SET_(MM|VMA|PTRACER)_') \
    $(find /proc/self/ -maxdepth 1 -type f -perm -u+w -printf '%f '; find /proc/self/attr -type f -printf '%f '); do
    rows | grep -qw -- "$name" || wrong "$name is not in the table"
  done
}

# What is refused: WHAT REGEX; of root alone, on some kernels
refused_here() {
  take "$programs/refused" "$1"
  ((code == 2)) && skip "this user or kernel has none" && return
  expect_code 3
  expect_output "$2"
}

program_tests() {
  local plain="env -u NOTHING" fixed="setarch -R"
  t "all that a program has" everything "$plain" "$plain"
  t "taken at fixed addresses" everything "$fixed" "$plain"
  t "restored at fixed addresses" everything "$plain" "$fixed"
  t "taken and restored at fixed addresses" everything "$fixed" "$fixed"
  t "restored in the old layout of memory" everything "$plain" "setarch -L"
  t "restored in an empty environment" everything "$plain" "env -i"
  t "to a slow reader" slow
  t "increments" increments
  t "as a user without privileges" nobody
  t "C++ with exceptions in flight" language exceptions
  t "Fortran with open units" language units
  t "8 GB that nobody touched" untouched
  t "16 TB that are reserved" reserved
  t "ten generations" generations
  t "threads" threads 1
  t "ten generations of threads" threads 10
  t "copies of descriptors" copies
  t "... where kcmp() is refused" copies refused
  t "restored with other limits of descriptors" fewer_descriptors
  t "OpenMP: threads that sleep" pool passive
  t "OpenMP: threads that spin" pool active
}

untouched() {
  take "$programs/simple"
  expect_code 0
  (($(stat -c %s image.1) < 4000000)) || wrong "the image has $(stat -c %s image.1) bytes"
  restore 1
  expect_output '^restored'
}

# Before Linux 6.7 each page of them is looked at.
reserved() {
  if [[ $(printf '%s\n' 6.7 "$(uname -r)" | sort -V | head -n 1) != 6.7 ]]; then
    skip "the kernel does not tell where memory was touched"
    return
  fi
  take "$programs/reserved"
  expect_code 0
  (($(stat -c %s image.1) < 4000000)) || wrong "the image has $(stat -c %s image.1) bytes"
  restore 1
  expect_output '^restored'
}

# --- files that change ------------------------------------------------------------

# The program hears of it where it uses the file.
replaced() {
  make_files
  take "$programs/everything"
  cp in other && mv other in
  restore 1
  expect_output 'remark: .*/in, descriptor [0-9]+ of the program, cannot be had again: another file has its name; using it fails'
  expect_output '^restored, [1-9][0-9]* failures'
}

# held WHAT [REMARK]: a file that it holds
held() {
  take "$programs/held" "$1"
  expect_code 0
  expect_output '^done, 0 failures'
  restore 1
  expect_code 0
  expect_output '^done, 0 failures'
  if [[ ${2-} ]]; then
    expect_output "remark: $2"
  else
    ! grep remark "$tmp/out" || wrong "$(grep remark "$tmp/out")"
  fi
}

renamed() {
  held renamed '.*/out.tmp was renamed to out since, and has its name again'
  [[ $(cat out) == $'one\ntwo' && ! -e out.tmp ]] || wrong "out is: $(<out)"
  held rotated '.*/log was renamed to log.1 since'
  [[ $(cat log.1) == $'one\ntwo' && $(cat log) == three ]] || wrong "log is: $(<log); log.1: $(<log.1)"
  held moved
  [[ ! -e out && -e moved ]] || wrong "what is only read was renamed"
}

# Found before the image is safe.
renamed_early() {
  take env SLOW=1 "$programs/held" early
  expect_code 3
  expect_output 'out.tmp, which the program has open as descriptor 3, could not be opened again: No such file'
}

all_descriptors() {
  take "$programs/held" all
  expect_code 3
  expect_output 'the program has all descriptors that it may have'
}

removed_program() {
  cp "$programs/simple" "$programs/libtaker.so" .
  take ./simple
  expect_code 0
  rm simple
  restore 1
  expect_code 113
  expect_output 'simple, which the program has mapped, cannot be opened'
}

changed_program() {
  cp "$programs/simple" "$programs/libtaker.so" .
  take ./simple
  cp "$programs/chain" simple
  restore 1
  expect_code 113
  expect_output 'simple is not the file that it was'
}

# Of the same size and with the same beginning: a page of what it had mapped is another one.
rebuilt_program() {
  cp "$programs/simple" "$programs/libtaker.so" .
  take ./simple
  printf x | dd of=simple bs=1 seek=5000 conv=notrunc 2>/dev/null
  restore 1
  expect_code 113
  expect_output 'simple was changed or installed anew since'
}

# A shell's own, which the program knows nothing of.
inherited() {
  run "${alone[@]}" bash -c 'IMAGE=$0/image exec "$1" 7< <(:)' "$work" "$programs/simple"
  expect_code 0
  restore 1
  expect_code 0
  expect_output 'remark: descriptor 7, which the program was started with'
  expect_output '^restored'
}

change_tests() {
  t "a pipe that the program was started with" inherited
  t "a file that was replaced" replaced
  t "files that are renamed once they are whole" renamed
  t "a file that is renamed while the image is taken" renamed_early
  t "a file that is removed" held gone '.*/scratch, descriptor 3 of the program, cannot be had again: No such file'
  t "files of /proc/self" held proc
  t "descriptors up to the hard limit" held high
  t "all descriptors up to the hard limit" all_descriptors
  t "two thousand descriptors" held many
  t "a program that was removed" removed_program
  t "a program that was replaced" changed_program
  t "a program that was built again" rebuilt_program
}

# --- images that are refused ------------------------------------------------------

# refused WHAT REGEX
refused() {
  take "$programs/refused" "$1"
  expect_code 3
  expect_output "$2"
  [[ ! -e image.1 ]] || wrong "there is an image"
}

# The copy is not left behind: t sees to that.
orphan() {
  run "${alone[@]}" "$programs/given_up" orphan
  expect_code 0
}

# given_up WHAT REGEX: the copy does not come to its end; the next image does
given_up() {
  take "$programs/given_up" "$1"
  expect_code 0
  expect_output "$2"
  expect_output '^the next one: went on'
  restore 1
  expect_output '^the next one: restored'
}

refusal_tests() {
  t "the copy is killed" given_up killed 'was ended by signal 9'
  t "the copy is given up" given_up cancelled '^state 0'
  t "no place for the image" given_up failed 'nowhere to go'
  t "nobody takes the image" given_up stalled 'nothing more of it was taken in time'
  t "not taken to its end" given_up unfinished 'not safe'
  t "while one is on its way" given_up busy 'image 1 is still on its way'
  t "the program ends during its copy" orphan
  t "a thread that blocks all signals" refused blocked 'thread [0-9]+ \(refused\) of the program blocks the signal'
  t "a thread inside the loader" refused loader 'thread [0-9]+ of the program loads or looks for a library'
  t "a thread with a directory of its own" refused apart 'thread [0-9]+ of the program has descriptors or a directory'
  t "257 further threads" refused many 'more than 257 threads'
  t "a socket" refused socket 'is a socket'
  t "a pipe to another process" refused pipe 'a pipe to another process'
  t "inotify" refused inotify 'inotify'
  t "signalfd" refused signalfd 'signalfd'
  t "a timer of timer_create()" refused timer 'timer_create'
  t "a working directory that was removed" refused directory 'working directory was removed'
  t "contexts of io_setup()" refused_here aio 'memory of /\[aio\]'
  t "a child that shares memory" refused child 'has a child, or one that has ended'
  t "a namespace of its own" refused_here space 'a namespace of its own'
  t "a root directory of its own" refused_here root 'a root directory of its own|images need /proc'
  t "a filter of system calls" refused filter 'a filter of system calls'
  t "a keyring of its own" refused_here keyring 'a keyring of its own'
  t "segments of its own" refused_here segments 'segments of its own'
  t "a lease of a file" refused_here lease 'has a LEASE'
  t "input signalled to another process" refused owner 'signals input to process or thread'
  t "memory with keys" refused_here keys 'by keys|with keys'
  t "a memory file that is open twice" refused twice 'a file without a name that is open a second time \(/memfd:twice'
  t "a memory file that is mapped and open" refused memory 'keeps a descriptor of it open'
}

# --- streams ----------------------------------------------------------------------

# hurt REGEX ARGUMENT...: of hurt.c
hurt() {
  take "$programs/simple"
  run "${alone[@]}" "$programs/hurt" "$restorer" image.1 "${@:2}"
  expect_code 0
  expect_output "$1"
}

# Its functions are called through those of the image.
other_kernel() {
  make_files
  take "$programs/everything"
  run "${alone[@]}" "$programs/hurt" "$restorer" image.1 vdso
  expect_output '^restored, 0 failures'
  expect_output '^code 0: $'
}

# From one kernel to another, and to a third.
generations_of_kernels() {
  local i
  take "$programs/chain" 5
  for ((i = 1; i <= 5; i++)); do
    run "${alone[@]}" "$programs/hurt" "$restorer" "image.$i" vdso
    expect_output '^code 0: $'
  done
  expect_output '^5 generations'
}

# The control socket has the number of then, not that of the restorer.
control() {
  make_files
  take env CONTROL=1 "$programs/everything"
  expect_code 0
  run "${alone[@]}" "$programs/hurt" "$restorer" image.1 whole
  expect_output '^restored, 0 failures'
  expect_output '^code 0: hello$'
}

stream_tests() {
  t "the control socket" control
  t "generations, each of another kernel" generations_of_kernels
  t "all that a program has, of another kernel" other_kernel
  t "a whole image" hurt '^code 0: $' whole
  t "of another kernel" hurt '^code 0: $' vdso
  t "of another version" hurt '^code 113: .*version 77' version
  t "of another processor" hurt '^code 113: .*processor lacks' features
  t "blocks in another order" hurt '^code 113: .*image is damaged: a block that makes no sense' swap
  t "a block that refers to another image" hurt '^code 113: .*refers to another image' same
  t "no end" hurt '^code 113: .*ends too early' end
  t "nothing" hurt '^code 113: .*ends too early' empty
  t "something else" hurt '^code 113: .*(not an image|ends too early)' foreign
  t "a bit anywhere" hurt '^150 refused$' flip 150 "$RANDOM"
  t "an end anywhere" hurt '^60 refused' cut 60 "$RANDOM"
}

main() {
  local it
  for it in "$restorer" "$programs"/{everything,chain,copies,simple,threads,pool,stall,exceptions,units,refused,given_up,hurt,state,held}; do
    [[ -x $it ]] || { echo "images.sh: no $it" >&2 && exit 2; }
  done
  lib_start
  cd "$tmp" || exit 2
  program_tests
  state_tests
  change_tests
  refusal_tests
  stream_tests
  tap_end
}

main
