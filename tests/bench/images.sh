# shellcheck shell=bash
# Images of ranks: what one costs, how fast it is stored and restored, and what jobs keep of their speed. Sections of
# bench.sh, which sources this after recovery.sh and log_disk.sh.
#
# Environment: IMAGE_MB (memory of a rank, 1024), IMAGE_SECONDS (of a run, 8), IMAGE_PERCENT (of its blocks that change
#   between two images, 2.5), FLAT_BUDGET (MiB, --log-memory and --log-disk each, 256), FLAT_TIMES (volume of a job in
#   budgets, 50), FLAT_ROUNDS (1). It writes several times IMAGE_MB below LOG_DISK_DIR.

# shellcheck disable=SC2034 # solver_options is of recovery.sh
# shellcheck disable=SC2154 # bench.sh sets RUNS, causeway, programs and dir; recovery.sh and log_disk.sh the rest
# shellcheck disable=SC2016 # the dollars in single quotes are jq's

IMAGE_MB=${IMAGE_MB:-1024}
IMAGE_SECONDS=${IMAGE_SECONDS:-8}
IMAGE_PERCENT=${IMAGE_PERCENT:-2.5}
IMAGES_A_RUN=4
FLAT_BUDGET=${FLAT_BUDGET:-256}
FLAT_TIMES=${FLAT_TIMES:-50}
FLAT_ROUNDS=${FLAT_ROUNDS:-1}
FLAT_SIZES="65536 1048576"

image_sample() {
  echo "$1 $2" >>"$dir/images"
}

# --- one rank with much memory --------------------------------------------------------------------

# ballast OPTION... [huge]: the events are in $dir/events
ballast() {
  local huge=()
  [ "${!#}" = huge ] && huge=(huge)
  rm -f "$dir/events"
  logged 1 --events "$dir/events" --ckpt-every 1s --ckpt-dir "$image_dir" "${@:1:$#-${#huge[@]}}" \
    "$programs/ballast" "$IMAGE_MB" "$IMAGE_PERCENT" "$IMAGE_SECONDS" "${huge[@]}" >"$dir/out"
}

# Samples of one run: the first image has all memory, later ones what has changed.
ballast_samples() {
  local key=$1 gb=$2
  jq -r --arg key "$key" --argjson gb "$gb" 'select(.event == "image_copied") |
      "stall.\($key) \(1000 * .stall / $gb)", if .image > 1 then "sent.\($key) \(.sent_bytes / 1e6)" else empty end' \
    "$dir/events" >>"$dir/images"
  jq -r --arg key "$key" 'select(.event == "image_stored" and .image == 1) | "first.\($key) \(.bytes / .seconds / 1e6)"' \
    "$dir/events" >>"$dir/images"
}

ballast_once() {
  local pages=$1 gb disk args=()
  gb=$(awk -v mb="$IMAGE_MB" 'BEGIN { print mb * 1048576 / 1e9 }')
  [ "$pages" = huge ] && args=(huge)
  disk=$(disk_dir=$image_dir write_rate) || return 1
  rm -f "$image_dir/probe"
  ballast "${args[@]}" || return 1
  ballast_samples "$pages" "$gb"
  image_sample "disk.$pages" "$disk"
  awk -v key="first.$pages" -v disk="$disk" '$1 == key { last = $2 } END { print "share", last / disk }' "$dir/images" \
    >"$dir/new" && sed "s/^share/share.$pages/" "$dir/new" >>"$dir/images"
}

# How fast a process gets memory that it had not before: the part of a restore that no restorer can do without.
touch_rate() {
  dd_rate if=/dev/zero of=/dev/null bs="${IMAGE_MB}M" count=1
}

# store_once KIND: at a server over its own kind of address, "embedded" or "tcp". The rank is killed when it has filled
# its memory and stored an image. Restored: from when the new process was started until it has connected.
store_once() {
  local kind=$1 options=()
  if [ "$kind" = tcp ]; then
    mkdir -p "$image_dir/tcp"
    "$causeway" ckptsrv --dir "$image_dir/tcp" --listen tcp:127.0.0.1:0 --key-file "$dir/ckptkey" \
      2>"$dir/ckptsrv.err" &
    local server=$! deadline=$((SECONDS + 20))
    until grep -q 'listening on' "$dir/ckptsrv.err" || ((SECONDS > deadline)); do sleep 0.05; done
    options=(--ckpt-server "$(sed -n 's/.*listening on \(tcp:[^ ,]*\).*/\1/p' "$dir/ckptsrv.err" | head -n 1)"
      --ckpt-key-file "$dir/ckptkey")
  fi
  rm -f "$dir/events"
  logged 1 --events "$dir/events" --ckpt-every 1s --fault "kill:0@$((IMAGE_SECONDS + 4))s" \
    "$([ "$kind" = tcp ] && echo --verbose || echo --ckpt-dir="$image_dir")" "${options[@]}" "$programs/ballast" \
    "$IMAGE_MB" "$IMAGE_PERCENT" "$((IMAGE_SECONDS + 6))" >"$dir/out"
  local status=$?
  if [ "$kind" = tcp ]; then
    kill "$server" && wait "$server"
    rm -rf "$image_dir/tcp"
  fi
  ((status == 0)) || return 1
  image_sample "touch.$kind" "$(touch_rate)"
  jq -rs --arg kind "$kind" --argjson mb "$IMAGE_MB" '
    (map(select(.event == "rank_started" and .incarnation == 2) | .t)[0]) as $start
    | (map(select(.event == "rank_up" and .incarnation == 2) | .t)[0]) as $up
    | (map(select(.event == "image_stored" and .image == 1))[0]) as $first
    | (map(select(.event == "image_stored" and .image == 2))[0]) as $second
    | if any(.[]; .event == "rank_restored") then
        "full.\($kind) \($first.seconds)", "changed.\($kind) \($second.seconds)", "back.\($kind) \($up - $start)",
        "restore.\($kind) \($mb * 1.048576 / ($up - $start))"
      else error("no image") end' "$dir/events" >>"$dir/images" 2>>"$dir/stats"
}

images() {
  local pages kind
  title "Images of a rank with $IMAGE_MB MiB, $IMAGE_PERCENT% of its blocks changed between two of them, $RUNS runs"
  image_dir=$(mktemp -d "$LOG_DISK_DIR/causeway-bench.XXXXXX") || return
  : >"$dir/images"
  for pages in small huge; do
    rounds "$RUNS" "images, $pages pages" ballast_once "$pages"
  done
  for kind in embedded tcp; do
    rounds "$RUNS" "images, server $kind" store_once "$kind"
  done
  rm -rf "$image_dir"
  echo "Stall: how long the program stands still for one image. Sent: of an image after the first. Stored: the first"
  echo "image, of all memory, from its moment until it is on disk; the disk: dd past the page cache in the same run."
  table l:pages "stall ms a GB (goal: 25 small, 2 huge, and 1 ms)" "sent MB (goal: at most 60)" "stored MB/s" "disk MB/s" \
    "stored / disk (goal: at least 0.8)"
  for pages in small huge; do
    row "$dir/images" "images, $pages pages" "$pages" "=quartiles stall.$pages 2" "=quartiles sent.$pages 1" \
      "=quartiles first.$pages" "=quartiles disk.$pages" "=quartiles share.$pages 2"
  done
  echo
  echo "After [MPICH-V] figure 9: seconds with the job's own server, and with one over TCP on this machine. New memory: how"
  echo "fast the system gives a process memory that it had not before, by one dd, in the same run."
  table l:server "first image" "next image" "restart" "restored MB/s (goal: at least 1000)" "new memory MB/s"
  for kind in embedded tcp; do
    row "$dir/images" "images, server $kind" "$kind" "=quartiles full.$kind 2" "=quartiles changed.$kind 2" \
      "=quartiles back.$kind 2" "=quartiles restore.$kind" "=quartiles touch.$kind"
  done
}

# --- the solver -----------------------------------------------------------------------------------

images_every() {
  awk -v s="$SOLVER_SECONDS" -v n="$IMAGES_A_RUN" 'BEGIN { printf "%dms\n", 1000 * s / (n + 0.7) }'
}

images_solver_once() {
  local mode=$1 iterations=$2
  if [ "$mode" = images ]; then
    solver_options=(--ckpt-every "$(images_every)")
  else
    solver_options=(--no-ckpt)
  fi
  if ! timed solver "$iterations" || ! solver_same; then
    uncounted "solver, $mode"
    echo "solver -" >>"$dir/images.$mode"
    return
  fi
  echo "solver $took" >>"$dir/images.$mode"
  [ "$mode" = images ] && jq -rs '"taken \(map(select(.event == "image_stored")) | length)"' "$dir/events" >>"$dir/images"
}

images_solver() {
  local iterations
  title "Solver with $SOLVER_RANKS ranks and $IMAGES_A_RUN images a rank: after figure 10 of [MPICH-V], $LOG_ROUNDS rounds"
  solver_options=(--no-ckpt)
  rm -f "$dir"/images "$dir"/images.* "$dir/solver.first"
  iterations=$(count_for "$SOLVER_SECONDS" solver) || {
    missing "solver with images: the solver did not run"
    return
  }
  take_turns "$LOG_ROUNDS" "plain images again" images_solver_once "$iterations"
  ratios "$dir/images.plain" "$dir/images.images" >"$dir/images.kept"
  ratios "$dir/images.plain" "$dir/images.again" >"$dir/images.equal"
  sed 's/^solver/kept/' "$dir/images.kept" >>"$dir/images"
  sed 's/^solver/equal/' "$dir/images.equal" >>"$dir/images"
  table "images stored in a run" "speed kept (goal: at least 0.97)" "equal runs"
  row "$dir/images" "solver with images" "=quartiles taken" "=quartiles kept 3" "=quartiles equal 3"
  solver_options=(--no-ckpt)
}

images_kills() {
  local iterations kills i
  title "Solver with 4 ranks and images, 0 to $KILLS_MAX kills: figure 12 of [MPICH-V] again, medians of $SOLVER_RUNS runs"
  mkdir -p build/bench
  solver_options=(--ckpt-every "$(images_every)")
  rm -f "$dir/solver" "$dir/solver.first"
  if iterations=$(count_for "$SOLVER_SECONDS" solver); then
    for ((i = 0; i < SOLVER_RUNS; i++)); do
      for ((kills = 0; kills <= KILLS_MAX; kills++)); do
        solver_once "$iterations" "$kills" || uncounted "solver with images, $kills kills"
      done
    done
    echo "As above, with an image of each rank every $(images_every). Goal: at most 1.3 times (the paper: 1.8)."
    table kills s "times that without"
    solver_rows images
    sampled "$dir/solver" 0 && plot images && echo && echo "The plot: build/bench/images.svg and .png."
  else
    missing "solver with images under kills: the solver did not run"
  fi
  solver_options=(--no-ckpt)
}

# --- a log that stays small -----------------------------------------------------------------------

flat_job() {
  watch_job "$causeway" run -n 2 --timeout "$LOG_DISK_LIMIT" "$@" && ! grep -q 'can no longer be restarted' "$dir/stats"
}

flat_once() {
  local bytes=$1 trips without with
  trips=$(disk_trips "$bytes" $((FLAT_TIMES * 2 * FLAT_BUDGET)))
  flat_job --no-log "$programs/volume" "$bytes" "$trips" || return 1
  without=$(volume_rate)
  flat_job --log-memory "${FLAT_BUDGET}M" --log-disk "${FLAT_BUDGET}M" --log-dir "$disk_dir" \
    --fault kill:1@3s --fault kill:0@5s "$programs/volume" "$bytes" "$trips" || return 1
  with=$(volume_rate)
  image_sample "flat.without.$bytes" "$without"
  image_sample "flat.with.$bytes" "$with"
  image_sample "flat.ratio.$bytes" "$(ratio "$with" "$without")"
  image_sample "flat.resident.$bytes" "$(resident_mib)"
}

images_flat() {
  local bytes
  title "A job that sends $FLAT_TIMES times what its logs may take in memory and on disk, with images and two kills"
  rm -f "$dir/images"
  disk_dir=$(mktemp -d "$LOG_DISK_DIR/causeway-bench.XXXXXX") || return
  for bytes in $FLAT_SIZES; do
    rounds "$FLAT_ROUNDS" "flat log, $bytes B" flat_once "$bytes"
  done
  rm -rf "$disk_dir"
  echo "--log-memory and --log-disk ${FLAT_BUDGET}M each; images as the dispatcher chooses. Payload both ways, MB/s; a run whose"
  echo "log was given up, or in which a rank did not come back, does not count."
  table bytes "without a log" "with log, images and kills" "ratio (goal: at least 0.85)" "relay resident MiB"
  for bytes in $FLAT_SIZES; do
    row "$dir/images" "flat log, $bytes B" "$bytes" "=quartiles flat.without.$bytes" "=quartiles flat.with.$bytes" \
      "=quartiles flat.ratio.$bytes 2" "=quartiles flat.resident.$bytes 1"
  done
}
