#!/bin/bash
# The functions of the installed libc, beside tests/libc.list: each is judged there, and those that are recorded are in
# librdevice.so. That they repeat themselves is for programs/readings.c and programs/names.c to prove. Prints TAP.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
suite=libc
# shellcheck source=tests/lib/tap.sh
. "$here/../lib/tap.sh"
list=$here/../libc.list
device=$root/build/librdevice.so

# exported FILE: names that programs may use, with their versions cut off
exported() {
  nm -D --defined-only "$1" | awk '$2 ~ /[TWi]/ && $3 !~ /GLIBC_PRIVATE/ { sub(/@.*/, "", $3); print $3 }' | sort -u
}

judged() {
  awk -v verdict="$1" '!/^#/ && (verdict == "" || $2 == verdict) { print $1 }' "$list" | sort -u
}

each() {
  while read -r name; do
    wrong "$name: $1"
  done
}

libc=$(gcc -print-file-name=libc.so.6)
each "not in tests/libc.list: judge whether a re-execution may get another result" < \
  <(comm -23 <(exported "$libc") <(judged ''))
tap_result "each function of $libc is judged"
each "recorded, says tests/libc.list, but librdevice.so does not have it" < \
  <(comm -23 <(judged recorded | comm -12 - <(exported "$libc")) <(exported "$device"))
tap_result "each that is recorded is in librdevice.so"
each "it stands twice" < <(awk '!/^#/ { print $1 }' "$list" | sort | uniq -d)
tap_result "none is judged twice"
tap_end
