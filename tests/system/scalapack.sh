#!/bin/bash
# Runs Debian's ScaLAPACK test programs (scalapack-mpi-test) under causeway and
# compares their verdicts with those of stock MPICH, kept in scalapack.list.
#
#   scalapack.sh [--causeway] [OPTION...] [NAME...]   run the programs, print TAP
#   scalapack.sh --stock [NAME...]                    make their list lines anew
#
#   --slice N      N quick programs
#   --images       images of the ranks are taken all the time, a random rank is killed again
#                  and again, and ranks go on from images
#   --fault-seed N of these kills (default 1)
#
# Environment:
#   CAUSEWAY  the launcher (default: build/causeway of this tree)
#   LIMIT     seconds a program may take (default 120)
#   EXPLAIN   0: after a wrong verdict, do not run stock to show the difference
#   YIELD     0: run stock without the yielding epoll_wait (see build_yield)
set -u

suite=scalapack
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/lib/tap.sh
. "$here/../lib/tap.sh"
CAUSEWAY=${CAUSEWAY:-$here/../../build/causeway}
LIMIT=${LIMIT:-120}
EXPLAIN=${EXPLAIN:-1}
YIELD=${YIELD:-1}
list=$here/scalapack.list
tests=/usr/lib/$(uname -m)-linux-gnu/scalapack/mpich-tests
data=/usr/share/scalapack
ranks=4 # the process grids of the data files need 4
quick=5 # a program of a slice takes at most this many seconds under stock
images=0
seed=1
kills=0 images_stored=0 images_used=0 # what came of it
tries=2 # stock runs of a program that must pass with the same verdict
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

fail() {
  echo "scalapack.sh: $*" >&2
  exit 2
}

usage() {
  sed -n '2,18s/^# \{0,1\}//p' "$0"
  exit "$1"
}

entries() {
  grep -v '^#' "$list"
}

entry() {
  entries | awk -v name="$1" '$1 == name'
}

program() {
  find "$tests" -type f -name "$1" | head -n 1
}

class() {
  case $1 in
    x[CF]btest) echo blacs ;;
    ?pb[123]tst) echo pblas ;;
    ?pb[123]tim) echo timing ;;
    *) echo solver ;;
  esac
}

data_dir() {
  case $(class "$1") in
    blacs) echo "$data/BLACS" ;;
    pblas) echo "$data/PBLAS" ;;
    timing) echo "$data/PBLAS/TIMING" ;;
    solver) echo "$data" ;;
  esac
}

# Every program: the names of the files in the package's directory.
programs() {
  find "$tests" -type f ! -name '*.cmake' -printf '%f\n' | sort
}

# What was tested and how it ended, without times, rates and residuals (every
# number that has a point), sorted because ranks may interleave. The BLACS test
# of repeatable sums is passed or skipped as messages happen to arrive.
verdicts() {
  awk '
    / REPEATABLE SUM TEST/ && !/FAILED/ { $1 = "PASSED|SKIPPED" }
    / REPEATABLE SUM TEST/ { keep = 1 }
    /PASSED|FAILED|SKIPPED|BYPASS|Passed|Failed/ { keep = 1 }
    /[Tt]est number|Tested Subroutine|TESTS?:? |tests (completed|skipped)/ { keep = 1 }
    /^END OF TESTS|End of [Tt]ests|^ *Finished +[0-9]/ { keep = 1 }
    /^ *[0-9]/ || /^ *\| / || /^ *[A-Za-z]+ *: +[0-9]/ { keep = 1 }
    !keep { next }
    {
      keep = 0
      line = ""
      for (i = 1; i <= NF; i++)
        if ($i !~ /[0-9]\.|\.[0-9]|^\*+$|^[-+]?(NaN|Inf)/)
          line = line " " $i
      if (line != "")
        print substr(line, 2)
    }' "$1" | LC_ALL=C sort
}

# "passed failed skipped" of a verdict: the sums of its summary lines or, where
# there are none, its rows. A timing program passes with each routine it timed.
counts() {
  awk '
    /tests? completed and passed/ { p += $1; sum = 1; next }
    /tests? completed and failed/ { f += $1; sum = 1; next }
    /tests? (skipped|completed without)/ { s += $1; sum = 1; next }
    / TESTS; / {
      for (i = 2; i <= NF; i++) {
        if ($i ~ /^PASSED/) p += $(i - 1)
        if ($i ~ /^SKIPPED/) s += $(i - 1)
        if ($i ~ /^FAILED/) f += $(i - 1)
      }
      sum = 1
    }
    /^\| [A-Z0-9]+ [0-9]+ [0-9]+ [0-9]+ [0-9]+$/ { p += $4; f += $5; s += $6; sum = 1 }
    /^\| [A-Z0-9]+$/ { rows++ }
    /^Passed|PASSED$/ && !/flagged/ { rows++ }
    /^Failed|FAILED$|^FAILED|FAILED \*/ { bad++ }
    END {
      if (!sum) p = rows
      if (bad > f) f = bad
      print p + 0, f + 0, s + 0
    }' "$1"
}

sum() {
  sha256sum <"$1" | cut -c1-16
}

# Does the output go to the program's end?
complete() {
  grep -Eq 'END OF TESTS|End of [Tt]ests|test is for BLACS_ABORT|^ +500 +50 .*(PASSED|FAILED)' "$1"
}

# MPICH's ranks spin, which with more ranks than cores makes stock up to a
# hundred times slower; here they give way when epoll_wait has nothing.
build_yield() {
  [[ $YIELD = 1 ]] && command -v cc >/dev/null || return
  cc -O2 -shared -fPIC -o "$tmp/yield.so" -x c - -ldl <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <sys/epoll.h>
typedef int (*wait_fn)(int, struct epoll_event *, int, int);
int epoll_wait(int fd, struct epoll_event *events, int max, int timeout)
{
    static wait_fn next;
    if (!next)
        next = (wait_fn)dlsym(RTLD_NEXT, "epoll_wait");
    int n = next(fd, events, max, timeout);
    if (n == 0 && timeout == 0)
        sched_yield();
    return n;
}
C
}

# Fills a fresh $tmp/run with the data files of program $1.
prepare() {
  rm -rf "$tmp/run"
  mkdir "$tmp/run"
  cp "$(data_dir "$1")"/*.dat "$tmp/run"
}

# launch OUT COMMAND...: becomes the command, in $tmp/run and under the limit.
launch() {
  local out=$1
  shift
  cd "$tmp/run" || exit
  exec timeout -k 10 "$LIMIT" "$@" >"$out" 2>"$out.err" </dev/null
}

# kill_options SECONDS: leaves in $options that images are taken, and that ranks are killed a few times in so long.
kill_options() {
  local ms
  ms=$(awk -v seconds="$1" 'BEGIN { print seconds < 0.5 ? 100 : seconds * 200 }')
  options=(--ckpt-every 30ms --fault "kill:random@${ms}ms" --fault-seed "$seed" --events "$tmp/events")
}

# count_kills STATUS: of the events; returns STATUS.
count_kills() {
  kills=$((kills + $(grep -c '"fault_fired"' "$tmp/events")))
  images_stored=$((images_stored + $(grep -c '"image_stored"' "$tmp/events")))
  images_used=$((images_used + $(grep -c '"rank_restored"' "$tmp/events")))
  return "$1"
}

# run_causeway NAME OUT SECONDS
run_causeway() {
  local options=()
  prepare "$1"
  ((images)) && kill_options "$3"
  (launch "$2" "$CAUSEWAY" run "${options[@]}" -n "$ranks" "$(program "$1")")
  local status=$?
  ((images)) || return "$status"
  count_kills "$status"
}

stock() {
  local options=(-n "$ranks")
  [[ -f $tmp/yield.so ]] && options+=(-genv LD_PRELOAD "$tmp/yield.so")
  export UCX_TLS=tcp,self UCX_NET_DEVICES=lo MPIR_CVAR_NOLOCAL=1
  launch "$2" mpirun.mpich "${options[@]}" "$(program "$1")"
}

# Stock MPICH now and then hangs in MPI_Finalize, when the output is all there:
# after 5 more seconds the run is then ended and counts as well done. Leaves the
# seconds that it took to the end of the output in $seconds, and in $late how
# many fifths of a second it went on after that.
run_stock() {
  local pid start status
  late=0
  prepare "$1"
  start=${EPOCHREALTIME/./}
  : >"$2"
  stock "$1" "$2" &
  pid=$!
  while kill -0 "$pid" 2>/dev/null && ((late < 25)); do
    sleep 0.2
    complete "$2" && ((++late))
  done
  seconds=$(((${EPOCHREALTIME/./} - start) / 100000 - 2 * late))
  seconds=$((seconds / 10)).$((seconds % 10))
  ((late < 25)) || kill "$pid" 2>/dev/null
  wait "$pid"
  status=$?
  ((late >= 25)) || return "$status"
}

# judge NAME OUT STATUS: leaves the verdict in OUT.verdict, its counts in $got,
# and says what is wrong with the run, if anything.
judge() {
  verdicts "$2" >"$2.verdict"
  got=$(counts "$2.verdict")
  wrong=
  case $3 in
    0) ;;
    124 | 137) wrong="time limit of $LIMIT s" ;;
    *) [[ $(class "$1") = blacs ]] || wrong="exit status $3" ;; # ends by BLACS_ABORT
  esac
  complete "$2" || wrong="${wrong:+$wrong, }output incomplete"
}

comment() {
  head -n 40 | sed 's/^/# /'
}

# Shows how the verdict in $1 differs from one of stock.
explain() {
  tail -n 5 "$1.err" | comment
  grep -E 'FAILED|Failed' "$1.verdict" | grep -v ' 0 FAILED' | comment
  [[ $EXPLAIN = 1 ]] || return
  [[ -f $tmp/yield.so ]] || build_yield
  run_stock "$2" "$tmp/stock"
  verdicts "$tmp/stock" >"$tmp/stock.verdict"
  diff -U 1 --label stock --label causeway "$tmp/stock.verdict" "$1.verdict" | comment
}

# check NAME: one TAP line
check() {
  local out=$tmp/out title expected seconds
  read -r _ ranks seconds _ expected <<<"$(entry "$1")"
  title="$1 ($ranks ranks)"
  run_causeway "$1" "$out" "$seconds"
  judge "$1" "$out" "$?"
  got="$got $(sum "$out.verdict")"
  if [[ -z $wrong && $got = "$expected" ]]; then
    tap_ok "$title"
    return
  fi
  wrong "${wrong:-wrong verdict}; passed, failed, skipped, sum: $got, expected $expected"
  tap_not_ok "$title"
  notes=()
  explain "$out" "$1"
}

# The names of $1 quick programs, spread evenly over the classes and in each.
slice() {
  entries | awk -v wanted="$1" -v quick="$quick" '
    { if (!($4 in best) || $3 < time[best[$4]]) best[$4] = $1 }
    { time[$1] = $3; class[$1] = $4; order[NR] = $1 }
    function eligible(name) { return time[name] <= quick || best[class[name]] == name }
    END {
      for (i = 1; i <= NR; i++)
        if (eligible(order[i])) {
          c = class[order[i]]
          if (!(c in size)) classes[++k] = c
          member[c, ++size[c]] = order[i]
        }
      for (left = 1; wanted > 0 && left > 0;) {
        left = 0
        for (i = 1; i <= k; i++)
          if (wanted > 0 && quota[classes[i]] < size[classes[i]]) {
            quota[classes[i]]++
            wanted--
            left++
          }
      }
      for (i = 1; i <= k; i++)
        for (j = 0; j < quota[classes[i]]; j++)
          print member[classes[i], int((j + 0.5) * size[classes[i]] / quota[classes[i]]) + 1]
    }'
}

causeway_mode() {
  local name
  [[ -x $CAUSEWAY ]] || fail "no launcher $CAUSEWAY"
  CAUSEWAY=$(realpath "$CAUSEWAY") # the programs run in another directory
  for name in "$@"; do
    check "$name"
  done
  ((images)) && check_images
  tap_end
}

# When all have run with images.
check_images() {
  echo "# kills: $kills, images stored: $images_stored, used: $images_used"
  ((images_used)) || wrong "expected that ranks were restarted from images"
  tap_result "ranks went on from images"
}

# measure NAME: prints the list line of a program if all its stock runs pass with
# the same verdict, and is false otherwise.
measure() {
  local out=$tmp/out i line before=''
  for ((i = 1; i <= tries; i++)); do
    run_stock "$1" "$out"
    judge "$1" "$out" "$?"
    line="$got $(sum "$out.verdict")"
    ((late < 25)) || echo "# $1, stock run $i: hung in MPI_Finalize" >&2
    [[ $got = [1-9]*' 0 '* ]] || wrong=${wrong:-failed}
    [[ ${before:-$line} = "$line" ]] || wrong=${wrong:-another verdict}
    if [[ -n $wrong ]]; then
      echo "# $1, stock run $i: $wrong ($line)" >&2
      return 1
    fi
    before=$line
  done
  echo "$1 $ranks $seconds $(class "$1") $line"
}

header() {
  cat <<'H'
# Made by scalapack.sh --stock: the programs of Debian's scalapack-mpi-test
# (2.2.1) that pass under stock MPICH 4.0.2 over UCX tcp, in each of two runs and
# with the same verdict. A run that hung in MPI_Finalize, its output being
# complete, counts as passed. The seconds are of runs whose ranks yield when idle
# (see build_yield); ranks that spin take up to a hundred times as long on two
# cores. The sum is of the sorted verdict, see verdicts.
# name ranks seconds class passed failed skipped sum
H
}

# Replaces the list lines of the programs named.
stock_mode() {
  local name
  build_yield
  touch "$list"
  entries | sort >"$tmp/list"
  for name in "$@"; do
    sed -i "/^$name /d" "$tmp/list"
    measure "$name" >>"$tmp/list" || wrong "see above"
    tap_result "$name ($ranks ranks, stock)"
    { header; sort -k4,4 -k1,1 "$tmp/list"; } >"$list"
  done
  tap_end
}

main() {
  local mode=causeway wanted='' names name
  while [[ ${1-} = -* ]]; do
    case $1 in
      --stock | --causeway) mode=${1#--} ;;
      --slice) wanted=${2-} && shift ;;
      --images) images=1 suite+=", with images" ;;
      --fault-seed) seed=${2-} && shift ;;
      -h | --help) usage 0 ;;
      *) usage 2 >&2 ;;
    esac
    shift
  done
  if [[ ! -d $tests ]]; then
    echo "1..0 # SKIP scalapack-mpi-test is not installed"
    return 0
  fi
  names=("$@")
  if [[ -n $wanted ]]; then
    [[ $wanted = [1-9]* && $wanted != *[!0-9]* && $# = 0 ]] || usage 2 >&2
    mapfile -t names < <(slice "$wanted")
  elif [[ $# = 0 && $mode = stock ]]; then
    mapfile -t names < <(programs)
  elif [[ $# = 0 ]]; then
    mapfile -t names < <(entries | cut -d ' ' -f 1)
  fi
  [[ ${#names[@]} -gt 0 ]] || fail "nothing to run"
  for name in "${names[@]}"; do
    [[ -n $(program "$name") ]] || fail "no program $name"
    [[ $mode = stock || -n $(entry "$name") ]] || fail "$name is not in $list"
  done
  "${mode}_mode" "${names[@]}"
}

tmp=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM
main "$@"
