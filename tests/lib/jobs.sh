# shellcheck shell=bash
# Shared by the suites that run jobs of the actor (programs/actor.c), start relays, or kill ranks.
# Needs system.sh, and the command in the array $causeway. Ends with 0 when it is sourced.

# shellcheck disable=SC2034,SC2154 # some of these are for the suites, some are of system.sh

programs=$root/build/programs # of make programs
actor=$programs/actor
job_options=() # of `causeway run`, for jobs of this suite

# --- jobs of the actor ------------------------------------------------------------

# job RANKS STEP...: a job of the actor, in place of run's COMMAND.
job() {
  run "${causeway[@]}" run -n "$1" "$actor" "${@:2}"
}

# job_expect CODE REGEX RANKS STEP...
job_expect() {
  run_expect "$1" "$2" "${causeway[@]}" run -n "$3" "$actor" "${@:4}"
}

start_job() {
  start "${causeway[@]}" run "${job_options[@]}" -n "$1" "$actor" "${@:2}"
}

# expect_end CODE REGEX: of what start started.
expect_end() {
  finish
  expect_code "$1"
  expect_message "$2"
}

# Of the step pid=$work/pid.
rank_pid() {
  await_file "$work/pid.$1" && cat "$work/pid.$1"
}

now_ms() {
  echo $((${EPOCHREALTIME/[.,]/} / 1000))
}

# --- relays -----------------------------------------------------------------------

# The relay of the job of the dispatcher $pid.
own_relay() {
  unit_below "$pid" relay
}

# start_named_relay NAME OPTION...: leaves its process in $helper, its first address in $address; it writes to
# $tmp/NAME.err.
start_named_relay() {
  helper "$1" "${causeway[@]}" relay "${@:2}"
  await_true "the relay to listen" grep -q 'listening on' "$tmp/$1.err"
  address=$(sed -n '1s/.*listening on \([^ ]*\).*/\1/p' "$tmp/$1.err")
}

start_relay() {
  start_named_relay relay "$@"
}

start_tcp_relay() {
  start_relay --listen tcp:127.0.0.1:0 --key-file "$work/key"
}

# --- relays that are killed, and come back ----------------------------------------

relay_line='^causeway: relay unix:[^ ]* was killed by signal 9 \(Killed\); starting it again on its log$'
kill_relays=0   # whether the relays of $job_options are killed
relay_kills=5   # of a job, while it lasts: at most
relays_killed=0 # what came of it

# draw_relay_kills SEED TITLE: leaves in $job_options that relays are killed. Each time is 20 ms to 2.5 s after the ranks
# were started, with the same chance for 20 to 40 ms, 40 to 80 ms, ...: ranks connect, go on, or repeat themselves.
draw_relay_kills() {
  local i ms
  RANDOM=$(cksum <<<"$*" | cut -d ' ' -f 1)
  job_options=(--log-safety file --events "$tmp/events")
  for ((i = 0; i < relay_kills; i++)); do
    ms=$((20 << RANDOM % 7))
    job_options+=(--fault "kill:relay@$((ms + RANDOM % ms))ms")
  done
}

# To be called when all tests have run with relays that are killed.
test_relays_killed() {
  notes=()
  ((relays_killed)) || wrong "expected that a relay was killed"
  tap_result "relays were killed"
}

# --- images -----------------------------------------------------------------------

images_every=0  # time between two images of a rank, as for --ckpt-every; 0: what the command does by itself
images_stored=0 # what came of it
images_used=0   # restarts from one
images_kills=20 # of so many kills one at least is followed by a restart from an image; others come with a relay's
slowed_line='^causeway: note: an image of rank [0-9]+ took .*\(--ckpt-every\), for they may take half the time$'
# Threads that wait for each other on busy cores: the next image comes.
late_line='^causeway: rank [0-9]+: no image of it: thread [0-9]+ .* does not stop for an image; the job goes on, and keeps its log$'
# What a rank had said of an image was on its way when its relay was killed, and then the rank was: nobody says it again.
unheard_line='^causeway: rank [0-9]+: image [0-9]+ cannot be restored: .* the relay knows of no image there; it starts from '

# To be called when all tests have run with images that are taken all the time. A few short jobs may come to none.
test_images_used() {
  [[ $images_every != 0 ]] && ((delivered >= images_kills)) || return
  notes=()
  ((images_stored)) || wrong "expected that images were stored"
  ((images_used)) || wrong "expected that ranks were restarted from images"
  tap_result "ranks went on from images"
}

# --- ranks that come back ---------------------------------------------------------

restart_line='^causeway: rank [0-9]+ .*restarting it( from image [0-9]+)? \(incarnation [0-9]+\)'
back_line='^causeway: rank [0-9]+ is back: it repeated [0-9]+ events? in [0-9.]+ s and goes on$'
delivered=0   # kills of --fault
lost=0        # processes of ranks that ended before their time, for whatever reason
in_test=0     # kills of ranks in this test, for a suite with relays that are killed
restarts=0    # that `causeway run` told of
lines_wrong=0 # lines of output, too many or missing

# count_faults FILE: of --events, which is then FILE.last. A kill that comes when the process has just ended is none.
count_faults() {
  local fired down
  [[ -e $1 ]] || return
  fired=$(grep '"fault_fired"' "$1" | grep -Evc '"(stop|kill:relay[^"]*)')
  down=$(grep -c '"rank_down"' "$1")
  delivered=$((delivered + fired))
  in_test=$((in_test + (fired < down ? fired : down)))
  lost=$((lost + down))
  relays_killed=$((relays_killed + $(grep -c '"relay_down"' "$1")))
  images_stored=$((images_stored + $(grep -c '"image_stored"' "$1")))
  mv -f "$1" "$1.last"
}

# enough_restarts COUNT LEAST [MOST]: that of a test. A rank that connects or repeats itself when its relay is killed is
# restarted, without the kill that was meant for its incarnation, and one that goes on from an image does not come to events
# before it: then the kills that were delivered count, as far as MOST lets them.
enough_restarts() {
  local least=$2 most=${3:-$1}
  if ((kill_relays)) || [[ $images_every != 0 ]]; then
    least=$in_test
    ((least <= ${3:-least})) || least=$3
  fi
  ((kill_relays)) && most=$1
  restarts=$((restarts + $1))
  (($1 >= least)) || wrong "expected at least $least restarts, saw $1"
  (($1 <= most)) || wrong "expected at most $most restarts, saw $1"
}

# expect_restarts LEAST [MOST]: standard error tells of so many, each rank's incarnations
# being 2, 3, 4, ...
expect_restarts() {
  images_used=$((images_used + $(grep -Ec -- 'restarting it from image' "$tmp/err")))
  enough_restarts "$(grep -Ec -- "$restart_line" "$tmp/err")" "$@"
  grep -E -- "$restart_line" "$tmp/err" | awk '
    match($0, /\(incarnation [0-9]+\)/) {
      number = substr($0, RSTART + 13) + 0
      if (number != (last[$3] ? last[$3] : 1) + 1) exit 1
      last[$3] = number
    }' || wrong "expected the incarnations of a rank to be 2, 3, 4, ..."
}

# Nothing else is on standard error, but for relays that were killed.
expect_only_restarts() {
  local other lines="$restart_line|$back_line"
  ((kill_relays)) && lines+="|$relay_line"
  [[ $images_every = 0 ]] || lines+="|$slowed_line|$late_line"
  [[ $images_every = 0 || $kill_relays = 0 ]] || lines+="|$unheard_line"
  other=$(grep -Ev -- "$lines" "$tmp/err" | head -n 3)
  [[ -z $other ]] || wrong "expected nothing else on standard error than restarts, saw: $other"
}

# expect_lines FILE SEEN: the lines of SEEN are those of FILE, neither more nor fewer.
expect_lines() {
  local differences count
  differences=$(diff "$1" "$2")
  count=$(grep -c '^[<>]' <<<"$differences")
  lines_wrong=$((lines_wrong + count))
  [[ -z $differences ]] || wrong "$count lines are wrong or missing, as: $(head -n 5 <<<"$differences")"
}
