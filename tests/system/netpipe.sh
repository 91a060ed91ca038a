#!/bin/bash
# The comparison of relay engines (netpipe/), with sizes and counts that take seconds: that samples, tables and
# figures come out well-formed, that an interrupt keeps what it has, and that wrong options are refused. Prints
# TAP.
#
#   netpipe.sh [REGEX]    runs the tests whose titles match
# shellcheck disable=SC2016,SC2317 # text of scripts; the tests are called by t
set -u

suite=netpipe
here=$(cd "$(dirname "$0")" && pwd)
LIMIT=${LIMIT:-120}
# shellcheck source=tests/lib/system.sh
. "$here/../lib/system.sh"
only=${1-}
netpipe=$root/netpipe/netpipe.sh
plain=$root/build/causeway
used=$plain
pairs=$root/build/programs/pairs
head=engine,log,clients,relays,repetition,bytes,overall_mbps,sum_mbps,fairness,latency_us

# --- what the tests run -----------------------------------------------------------

# compare OPTION...: a run of some seconds, with its results in $work/results
compare() {
  run env CAUSEWAY="$used" "$netpipe" --quick --engines poll --seconds 0.05 --volume 64M --results "$work/results" "$@"
}

# another_causeway TEXT: a causeway in $work/causeway that does as TEXT says first
another_causeway() {
  printf '#!/bin/bash\n%s\nexec "%s" "$@"\n' "$1" "$plain" >"$work/causeway"
  chmod +x "$work/causeway"
}

# --- what is expected -------------------------------------------------------------

expect_report() {
  local name
  for name in samples.csv medians.csv comparison.md; do
    [[ -s $work/results/$name ]] || wrong "expected the file $name"
  done
  for name in "$@"; do
    grep -q '</svg>' "$work/results/figure-$name.svg" 2>/dev/null || wrong "expected figure-$name.svg to be whole"
  done
}

# Each line has its fields, and they agree: the slowest pair's bandwidth times the pairs is at most the sum, and
# with one pair both are what the time of one way says.
expect_samples() {
  [[ $(head -n 1 "$work/results/samples.csv") = "$head" ]] || wrong "expected the head $head"
  awk -F, '
    NR == 1 { next }
    NF != 10 || $2 !~ /^(on|off)$/ || $5 < 1 || $6 < 1 || $7 <= 0 || $10 <= 0 { bad = bad "\n" $0 }
    $7 > $8 * 1.001 || $9 <= 0 || $9 > 1 { bad = bad "\n" $0 }
    $3 == 2 && ($7 / ($6 * 8 / $10) > 1.01 || $7 / ($6 * 8 / $10) < 0.99) { bad = bad "\n" $0 }
    END { if (bad) { print "not well-formed:" bad; exit 1 } }' "$work/results/samples.csv" >"$tmp/bad" ||
    wrong "$(<"$tmp/bad")"
}

# expect_sample PREFIX: just one line of samples begins with it
expect_sample() {
  local count
  count=$(grep -c "^$1," "$work/results/samples.csv")
  [[ $count = 1 ]] || wrong "expected one sample of $1, saw $count"
}

expect_table_like() {
  grep -Eq -- "$1" "$work/results/comparison.md" || wrong "expected in comparison.md: $1"
}

# --- a whole comparison -----------------------------------------------------------

whole() {
  local log size
  compare --clients 2,4 --sizes 1,64K --log on,off
  expect_code 0
  expect_samples
  for size in 1 65536; do
    for log in on off; do
      expect_sample "poll,$log,2,1,1,$size"
      expect_sample "poll,$log,4,1,1,$size"
    done
    expect_sample "stock,off,2,1,1,$size"
    expect_sample "tcp,off,2,1,1,$size"
  done
  expect_sample poll,off,4,1,1,65533 # a perturbed size
  expect_sample poll,off,2,1,1,65539
  expect_report 2-clients log-on log-off
  expect_table_like '^## 4 clients: overall bandwidth'
  expect_table_like '^\| 65536 \| [0-9.]+ \| [0-9.]+ \|'
  expect_out_like '^## 4 clients: fairness'
  expect_err_like '^netpipe: run 1 of [0-9]+: .* left$'
}

# asked_for COUNT OPTIONS: so many jobs were started with them
asked_for() {
  local count
  count=$(grep -c -- "$2" "$work/asked")
  [[ $count = "$1" ]] || wrong "expected $1 jobs with $2, saw $count"
}

# One engine twice: over sockets, and with rings. A size of a pair is a job, and so are all of two pairs.
rings() {
  local used=$work/causeway
  another_causeway '[[ $* = "run --help" ]] && exit
[[ $1 = run ]] && echo "$*" >>'"$work/asked"
  compare --engines poll,rings --clients 2,4 --sizes 1,64K --log off
  expect_code 0
  expect_samples
  asked_for 3 '--engine poll --rings off '
  asked_for 3 '--engine poll --rings on '
  asked_for 6 '^run '
  expect_sample poll,off,4,1,1,65536
  expect_sample rings,off,2,1,1,65536
  expect_sample rings,off,4,1,1,65536
  expect_report 2-clients log-off
  expect_table_like '^rings: engine poll with memory shared with each rank; the engines: over sockets'
  expect_table_like '^\| bytes \| poll \| rings \| stock MPICH \| raw TCP \|$'
}

# The engines need not be there.
rings_alone() {
  compare --engines rings --clients 2 --sizes 64K --log off
  expect_code 0
  expect_sample rings,off,2,1,1,65536
}

# --- what samples say -------------------------------------------------------------

# sample_rows ENGINE LOG BYTES MBPS...: one repetition each; a way takes what the bandwidth says
sample_rows() {
  local mbps repetition=0
  for mbps in "${@:4}"; do
    awk -v key="$1,$2,2,1,$((++repetition)),$3" -v bytes="$3" -v mbps="$mbps" \
      'BEGIN { print key "," mbps "," mbps ",1," bytes * 8 / mbps }'
  done
}

# All runs are there already, from standard input, but those of several relays, of which this causeway knows
# nothing; so nothing is run: compare_samples OPTION...
compare_samples() {
  local used=$work/causeway
  another_causeway '[[ $* = "run --help" ]] && exit'
  mkdir "$work/results"
  echo "sizes 1 1048576, seconds 0.05, volume 67108864" >"$work/results/settings"
  { echo "$head" && cat; } >"$work/results/samples.csv"
  cp "$work/results/samples.csv" "$work/before"
  compare --resume --clients 2 --sizes 1,1M "$@"
  expect_code 0
  cmp -s "$work/before" "$work/results/samples.csv" || wrong "expected the samples to stay as they were"
}

from_samples() {
  {
    sample_rows poll on 1 0.5 0.8 0.4
    sample_rows poll on 1048576 9000 30000 18000
    sample_rows poll off 1 1 0.1 2
    sample_rows poll off 1048576 20000 10000 90000
    sample_rows stock off 1 0.25 0.5 0.75
    sample_rows stock off 1048576 10000 16000 18000
    sample_rows tcp off 1 1 1 1
  } >"$work/rows"
  compare_samples --repetitions 3 <"$work/rows"
  grep -qx 'poll,on,2,1,1048576,3,18000,18000,1,466.034' "$work/results/medians.csv" || wrong "expected the median"
  expect_report 2-clients log-on log-off
  expect_table_like '^\| 1048576 \| 18000 \| 20000 \| 16000 \| not measured \|$'
}

resume_others() {
  mkdir "$work/results"
  echo "sizes 1, seconds 9, volume 9" >"$work/results/settings"
  echo "$head" >"$work/results/samples.csv"
  compare --resume --clients 2 --sizes 1,1M
  expect_code 2
  expect_message '^netpipe.sh: --resume: .* samples of other settings: sizes 1, seconds 9'
}

# --- what does not work -----------------------------------------------------------

# An engine that this system cannot run is missed in the end; the others are measured.
engine_fails() {
  local used=$work/causeway
  another_causeway '[[ $* = *--list-engines* ]] && printf "%s x\n" poll broken && exit'
  compare --engines poll,broken --clients 2 --sizes 1 --log off
  expect_code 1
  expect_sample poll,off,2,1,1,1
  expect_table_like '^- not measured: broken, log off, 2 clients$'
  expect_table_like '--engine broken: no such engine'
}

# Relays of one job: the option reaches the jobs with the most clients, and those alone.
several_relays() {
  local used=$work/causeway
  another_causeway '[[ $* = "run --help" ]] && echo "  --relays K" && exit
args=()
while (($#)); do
  if [[ $1 = --relays ]]; then echo "$2 $*" >>'"$work/asked"'; shift 2; else args+=("$1"); shift; fi
done
set -- "${args[@]}"'
  compare --engines poll,rings --clients 2,4 --sizes 1,4K --log off --relays 2,4
  expect_code 0
  expect_sample poll,off,4,2,1,4096
  expect_sample poll,off,4,4,1,4096
  expect_sample rings,off,4,4,1,4096
  [[ $(cut -d ' ' -f 1 "$work/asked" | paste -sd ' ') = '2 4 2 4' ]] ||
    wrong "expected jobs with 2 and with 4 relays, of each"
  expect_report relays
  expect_table_like '^## 4 clients, 4 relays: overall bandwidth'
}

volume_bounds() {
  run "$plain" run --no-log -n 4 "$pairs" 0.01 1M 3 1048576
  expect_code 0
  expect_out $'skipped 1048576\nend'
}

# --- interrupts -------------------------------------------------------------------

# await_run ENGINE LOG CLIENTS: until it runs. How long that takes is the machine's affair.
await_run() {
  local i
  for ((i = 0; i < 10 * limit; i++)); do
    grep -q "^netpipe: run [0-9]* of [0-9]*: $1, log $2, $3 clients" "$tmp/err" && return
    gone "$pid" && break
    sleep 0.1
  done
  wrong "waited in vain for a run of $*"
}

# A process of the job, of those that this test has started
a_job_runs() {
  local one
  for one in $(marked); do
    grep -qz '/pairs$' "/proc/$one/cmdline" 2>/dev/null && return
  done
  return 1
}

# interrupted SIGNAL CODE: while stock MPICH runs; then what is missing is measured, and what was there stays.
interrupted() {
  local options=(--quick --engines poll --seconds 0.05 --volume 64M --results "$work/results" --log off
    --clients 4 --sizes "1,4K")
  start "$netpipe" "${options[@]}"
  await_run stock off 4
  await_true "a job of stock MPICH" a_job_runs
  kill "-$1" "$pid"
  finish
  expect_code "$2"
  expect_err_like '^netpipe: interrupted'
  expect_samples
  expect_sample poll,off,4,1,1,4096
  expect_report 4-clients log-off
  expect_table_like 'Interrupted: not all runs were made'
  none_marked || wrong "expected no process to be left"
  cp "$work/results/samples.csv" "$work/before"
  run "$netpipe" "${options[@]}" --resume
  expect_code 0
  head -c "$(stat -c %s "$work/before")" "$work/results/samples.csv" | cmp -s - "$work/before" ||
    wrong "expected the samples that were there to stay"
  expect_sample stock,off,4,1,1,1
}

# A second start without --resume begins anew.
anew() {
  compare --clients 2 --sizes 1 --log off
  compare --clients 2 --sizes 4K --log off
  expect_code 0
  expect_sample poll,off,2,1,1,4096
  ! grep -q '^poll,off,2,1,1,1,' "$work/results/samples.csv" || wrong "expected the first samples to be gone"
}

# --- options ----------------------------------------------------------------------

refused() {
  run_expect 2 "$1" "$netpipe" --results "$work/results" "${@:2}"
  [[ ! -e $work/results ]] || wrong "expected nothing to be made"
}

help_text() {
  run_expect 0 '' "$netpipe" --help
  expect_out_like '^  --engines LIST '
}

option_tests() {
  t "--help" help_text
  t "an engine that there is not" refused '--engines warp: no such engine; there are .*poll' --engines poll,warp
  t "a size that is no number" refused '--sizes 64Q: expected bytes' --sizes 1,64Q
  t "an odd number of clients" refused '--clients 3: expected an even number' --clients 2,3
  t "an unknown option" refused "unrecognized option '--fast'" --fast
}

main() {
  local it
  for it in "$plain" "$pairs"; do
    [[ -x $it ]] || { echo "netpipe.sh: no $it" >&2 && exit 2; }
  done
  lib_start
  cd "$tmp" || exit 2
  option_tests
  t "a whole comparison: samples, medians, tables, figures" whole
  t "rings beside the engine over sockets" rings
  t "rings alone" rings_alone
  t "medians and tables from samples" from_samples
  t "samples of other settings are not gone on with" resume_others
  t "a second start begins anew" anew
  t "an engine that fails" engine_fails
  t "several relays" several_relays
  t "pairs: a size that needs more than its volume" volume_bounds
  t "interrupted by SIGTERM, and gone on with" interrupted TERM 143
  tap_end
}

main
