# shellcheck shell=bash
# Jobs whose log does not fit in its memory, beside the same jobs without a log and beside what the disk itself does: a
# section of bench.sh, which sources this after lib.sh.
#
# Environment: LOG_DISK_DIR (where the log goes; default /var/tmp), LOG_DISK_BUDGET (--log-memory in MiB, 256),
#   LOG_DISK_MB (of a job's log, in MiB, 8 LOG_DISK_BUDGET), LOG_DISK_REPLAY_MB (what a rank repeats, 1024),
#   LOG_DISK_SECONDS (of a job by default options, 20), LOG_DISK_ROUNDS (of those, 1). At the defaults it writes about
#   LOG_DISK_MB + 1024 MiB in a run and size, and reads and writes as much again for replays.

# shellcheck disable=SC2154 # bench.sh sets RUNS, causeway, programs and dir

LOG_DISK_DIR=${LOG_DISK_DIR:-/var/tmp}
LOG_DISK_BUDGET=${LOG_DISK_BUDGET:-256}
LOG_DISK_MB=${LOG_DISK_MB:-$((8 * LOG_DISK_BUDGET))}
LOG_DISK_REPLAY_MB=${LOG_DISK_REPLAY_MB:-1024}
LOG_DISK_REPLAY_BUDGET=64 # MiB
LOG_DISK_SECONDS=${LOG_DISK_SECONDS:-20}
LOG_DISK_ROUNDS=${LOG_DISK_ROUNDS:-1}
LOG_DISK_LIMIT=180 # seconds, of one job
LOG_DISK_SIZES="65536 1048576"
PROBE_MB=1024 # of the files that tell how fast the disk is
PARTS=10      # of tests/bench/volume.c

# --- the disk itself ------------------------------------------------------------------------------

# dd_rate OPERAND...: MB/s
dd_rate() {
  LC_ALL=C dd bs=1M "$@" 2>&1 | awk '/copied/ { printf "%.1f\n", $1 / $(NF - 3) / 1e6; found = 1 } END { exit !found }'
}

write_rate() {
  dd_rate if=/dev/zero of="$disk_dir/probe" oflag=direct conv=fsync count="$PROBE_MB"
}

# of the file that write_rate has left
read_rate() {
  dd_rate if="$disk_dir/probe" of=/dev/null iflag=direct
}

# the page cache, MiB
cached() {
  awk '$1 == "Cached:" { print $2 / 1024 }' /proc/meminfo
}

# --- jobs -----------------------------------------------------------------------------------------

# disk_job OPTION... COMMAND...: its output is in $dir/watched; false when it ended badly, or its log was given up.
disk_job() {
  watch_job "$causeway" run -n 2 --no-ckpt --timeout "$LOG_DISK_LIMIT" "$@" && ! grep -q 'can no longer be restarted' "$dir/stats"
}

# the round trips of so many bytes whose log has so many MiB
disk_trips() {
  echo $(($2 * 1024 * 1024 / $1 / 2))
}

volume_rate() {
  awk '$1 == "volume" { print $2; found = 1 } END { exit !found }' "$dir/watched"
}

# resident memory of the relay, MiB
resident_mib() {
  awk -v bytes="$(relay_resident)" 'BEGIN { printf "%.1f\n", bytes / 1048576 }'
}

# sample KEY NUMBER
sample() {
  echo "$1 $2" >>"$dir/disk"
}

# With: "with / the smaller of the two others", of the same round. $1: with, $2 and $3: the others
share_of_smaller() {
  awk -v a="$1" -v b="$2" -v c="$3" 'BEGIN { print a / (b < c ? b : c) }'
}

parts_of() {
  awk -v key="$1" '$1 == "part" { print key "." $2, $3 }' "$dir/watched" >>"$dir/disk"
}

# --- throughput -----------------------------------------------------------------------------------

throughput_once() {
  local bytes=$1 trips without with disk bare resident before
  trips=$(disk_trips "$bytes" "$LOG_DISK_MB")
  disk_job --no-log "$programs/volume" "$bytes" "$trips" || return 1
  without=$(volume_rate)
  bare=$(resident_mib)
  parts_of "without.$bytes"
  disk=$(write_rate) || return 1
  rm -f "$disk_dir/probe"
  before=$(cached)
  disk_job --log-memory "${LOG_DISK_BUDGET}M" --log-dir "$disk_dir" "$programs/volume" "$bytes" "$trips" || return 1
  with=$(volume_rate)
  resident=$(resident_mib)
  parts_of "with.$bytes"
  sample "cached.$bytes" "$(awk -v a="$before" -v b="$(cached)" 'BEGIN { print b - a }')"
  sample "without.$bytes" "$without"
  sample "disk.$bytes" "$disk"
  sample "with.$bytes" "$with"
  sample "share.$bytes" "$(share_of_smaller "$with" "$without" "$disk")"
  sample "bare.$bytes" "$bare"
  sample "resident.$bytes" "$resident"
  sample "budget.$bytes" "$(awk -v a="$resident" -v b="$bare" -v c="$LOG_DISK_BUDGET" 'BEGIN { print (a - b) / c }')"
}

throughput() {
  local bytes
  for bytes in $LOG_DISK_SIZES; do
    rounds "$RUNS" "log on disk, $bytes B" throughput_once "$bytes"
  done
  echo "Throughput: payload both ways, MB/s; a job's log has $LOG_DISK_MB MiB, its memory $LOG_DISK_BUDGET MiB. Disk: dd"
  echo "past the page cache in the same run. What is left in memory at the end is never written, so a job can be faster"
  echo "than the disk."
  table bytes "without a log" "disk writes" "with the log" "with / the smaller one (goal: at least 0.9)"
  for bytes in $LOG_DISK_SIZES; do
    row "$dir/disk" "log on disk, $bytes B" "$bytes" "=quartiles without.$bytes" "=quartiles disk.$bytes" \
      "=quartiles with.$bytes" "=quartiles share.$bytes 2"
  done
  echo
  echo "Memory, MiB: the most that was resident of the relay, and how much the page cache of the machine grew."
  table bytes "without a log" "with the log" "difference / --log-memory (goal: at most 1.2)" "page cache"
  for bytes in $LOG_DISK_SIZES; do
    row "$dir/disk" "memory of a log on disk, $bytes B" "$bytes" "=quartiles bare.$bytes 1" \
      "=quartiles resident.$bytes 1" "=quartiles budget.$bytes 2" "=quartiles cached.$bytes 0"
  done
}

# Of the jobs above. In [Relay] figures 7 and 8 bandwidth collapses where memory ends.
over_time() {
  local bytes part cells columns=()
  echo
  echo "The same over time: MB/s of each tenth of a job."
  for bytes in $LOG_DISK_SIZES; do
    columns+=("$bytes B without" "$bytes B with")
  done
  table "tenth" "${columns[@]}"
  for ((part = 1; part <= PARTS; part++)); do
    cells=()
    for bytes in $LOG_DISK_SIZES; do
      cells+=("=quartiles without.$bytes.$part" "=quartiles with.$bytes.$part")
    done
    row "$dir/disk" "tenth $part of a job" "$part" "${cells[@]}"
  done
}

# --- replay ---------------------------------------------------------------------------------------

# What rank 1 has received until it is killed it receives again.
replay_disk_once() {
  local bytes=$1 trips event events seconds disk again
  trips=$(disk_trips "$bytes" $((2 * LOG_DISK_REPLAY_MB)))
  event=$((trips * 95 / 100))
  disk_job --log-memory "${LOG_DISK_REPLAY_BUDGET}M" --log-dir "$disk_dir" --events "$dir/events" \
    --fault "kill:1@event:$event" "$programs/volume" "$bytes" "$trips" || return 1
  read -r events seconds < <(sed -n 's/.* is back: it repeated \([0-9]*\) events in \([0-9.]*\) s .*/\1 \2/p' "$dir/stats")
  [ -n "$seconds" ] || return 1
  again=$(awk -v n="$events" -v b="$bytes" -v s="$seconds" 'BEGIN { if (s <= 0) exit 1; print n * b / s / 1e6 }') || return 1
  write_rate >/dev/null && disk=$(read_rate) || return 1
  rm -f "$disk_dir/probe"
  sample "again.$bytes" "$again"
  sample "reads.$bytes" "$disk"
  sample "seconds.$bytes" "$seconds"
  sample "replayed.$bytes" "$(ratio "$again" "$disk")"
}

replay_from_disk() {
  local bytes
  for bytes in $LOG_DISK_SIZES; do
    rounds "$RUNS" "replay from disk, $bytes B" replay_disk_once "$bytes"
  done
  echo
  echo "Replay: a rank that has received $((LOG_DISK_REPLAY_MB * 95 / 100)) MiB is killed and receives them again;"
  echo "--log-memory ${LOG_DISK_REPLAY_BUDGET}M for the logs of both ranks. From when it is connected until it goes on."
  table bytes "s" "replay MB/s" "disk reads MB/s" "replay / disk (goal: at least 0.8)"
  for bytes in $LOG_DISK_SIZES; do
    row "$dir/disk" "replay from disk, $bytes B" "$bytes" "=quartiles seconds.$bytes 2" "=quartiles again.$bytes" \
      "=quartiles reads.$bytes" "=quartiles replayed.$bytes 2"
  done
}

# --- default options ------------------------------------------------------------------------------

default_once() {
  local bytes=$1 without with disk
  disk_job --no-log "$programs/volume" "$bytes" 0 "$LOG_DISK_SECONDS" || return 1
  without=$(volume_rate)
  disk=$(write_rate) || return 1
  rm -f "$disk_dir/probe"
  disk_job --log-dir "$disk_dir" "$programs/volume" "$bytes" 0 "$LOG_DISK_SECONDS" || return 1
  with=$(volume_rate)
  sample "default.without.$bytes" "$without"
  sample "default.disk.$bytes" "$disk"
  sample "default.with.$bytes" "$with"
  sample "default.ratio.$bytes" "$(ratio "$with" "$without")"
  sample "default.share.$bytes" "$(share_of_smaller "$with" "$without" "$disk")"
  sample "default.volume.$bytes" "$(awk '$1 == "volume" { print $3 / 1000 }' "$dir/watched")"
}

default_options() {
  local bytes
  for bytes in $LOG_DISK_SIZES; do
    rounds "$LOG_DISK_ROUNDS" "log with default options, $bytes B" default_once "$bytes"
  done
  echo
  echo "Default options: messages as fast as they go, for $LOG_DISK_SECONDS s; MB/s."
  table bytes "without a log" "disk writes" "with the log" "with / without (goal: at least 0.85)" \
    "with / the smaller one" "logged GB"
  for bytes in $LOG_DISK_SIZES; do
    row "$dir/disk" "log with default options, $bytes B" "$bytes" "=quartiles default.without.$bytes" \
      "=quartiles default.disk.$bytes" "=quartiles default.with.$bytes" "=quartiles default.ratio.$bytes 2" \
      "=quartiles default.share.$bytes 2" "=quartiles default.volume.$bytes 1"
  done
}

log_disk() {
  local disk_dir
  title "Logs on disk: 2 ranks, medians of $RUNS rounds"
  disk_dir=$(mktemp -d "$LOG_DISK_DIR/cwbench.XXXXXX") || {
    missing "logs on disk: no directory in $LOG_DISK_DIR"
    return
  }
  if write_rate >"$dir/stats" && rm -f "$disk_dir/probe"; then
    throughput
    over_time
    replay_from_disk
    default_options
  else
    missing "logs on disk: dd could not write to $LOG_DISK_DIR past the page cache"
  fi
  rm -rf "$disk_dir"
}
