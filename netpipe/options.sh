# shellcheck shell=bash
# The options of netpipe.sh, which sources this: checked, and turned into arrays and numbers.
#
# Sets engines, sizes, counts, relays, logs (arrays), most (the largest of counts), shown (those of counts that
# have a figure of their own), repetitions, seconds, volume, results, resume, several_relays.

# shellcheck disable=SC2034,SC2154 # these are for the other files; causeway and called_in are netpipe.sh's

CLIENTS_MAX=256
RELAYS_MAX=16
REPETITIONS_MAX=100
RINGS=rings # engine poll with memory shared with each rank; it stands among the engines
SECONDS_MAX=60
SIZE_MAX=$((1 << 30))
VOLUME_MIN=$((1 << 20))
VOLUME_MAX=$((1 << 40))

bad() {
  echo "netpipe.sh: $*" >&2
  exit 2
}

usage() {
  sed -n '2,25s/^# \{0,1\}//p' netpipe/netpipe.sh
}

# Prints the number that TEXT is, with K, M or G: take_bytes OPTION TEXT LEAST MOST
take_bytes() {
  local option=$1 text=$2 number shift=0
  [[ $text =~ ^([0-9]{1,12})([KMG]?)$ ]] || bad "$option $text: expected bytes, like 1, 64K or 1M"
  case ${BASH_REMATCH[2]} in
    K) shift=10 ;;
    M) shift=20 ;;
    G) shift=30 ;;
  esac
  number=$((10#${BASH_REMATCH[1]} << shift))
  ((number >= $3 && number <= $4)) || bad "$option $text: expected $3 to $4 bytes"
  echo "$number"
}

# take_number OPTION TEXT LEAST MOST
take_number() {
  if ! [[ $2 =~ ^[0-9]{1,6}$ ]] || ((10#$2 < $3 || 10#$2 > $4)); then
    bad "$1 $2: expected a number from $3 to $4"
  fi
  echo $((10#$2))
}

take_even() {
  local number
  number=$(take_number "$@") || exit 2
  ((number % 2 == 0)) || bad "$1 $2: expected an even number, for ranks speak in pairs"
  echo "$number"
}

take_seconds() {
  if ! [[ $1 =~ ^[0-9]{0,3}(\.[0-9]{1,6})?$ ]] ||
    ! awk -v s="$1" -v most="$SECONDS_MAX" 'BEGIN { exit !(s + 0 >= 0.01 && s + 0 <= most) }'; then
    bad "--seconds $1: expected seconds from 0.01 to $SECONDS_MAX"
  fi
}

take_engine() {
  grep -qxF -- "$2" <<<"$known" || bad "$1 $2: no such engine; there are $(paste -sd ' ' <<<"$known")"
  echo "$2"
}

take_log() {
  [[ $2 =~ ^(on|off)$ ]] || bad "$1 $2: expected on, off or on,off"
  echo "$2"
}

# Fills the array NAME with what a command makes of each part of LIST:
# take_list NAME OPTION LIST COMMAND LIMIT..., which is run as COMMAND OPTION PART LIMIT...
take_list() {
  local -n array=$1
  local parts part one
  IFS=, read -r -a parts <<<"$3"
  ((${#parts[@]})) || bad "$2: expected a list with commas between"
  array=()
  for part in "${parts[@]}"; do
    one=$("$4" "$2" "$part" "${@:5}") || exit 2
    [[ " ${array[*]} " = *" $one "* ]] || array+=("$one")
  done
}

# The options as they were given; those that were not are empty.
read_options() {
  local parsed
  parsed=$(getopt -n netpipe.sh -o '' -l engines:,sizes:,clients:,relays:,log:,repetitions:,seconds: \
    -l volume:,quick,results:,resume,help -- "$@") || exit 2
  eval "set -- $parsed"
  while [ "$1" != -- ]; do
    case $1 in
      --quick) quick=1 ;;
      --resume) resume=1 ;;
      --help) usage && exit 0 ;;
      *) given[${1#--}]=$2 && shift ;;
    esac
    shift
  done
  shift
  (($# == 0)) || bad "unexpected argument '$1'; see netpipe.sh --help"
}

take_options() {
  local -A given=()
  local quick=0 known
  resume=0
  read_options "$@"
  known=$("$causeway" relay --list-engines 2>/dev/null | awk '{ print $1 }')
  if [ -z "$known" ] || [ ! -x "$pairs" ]; then
    echo "netpipe.sh: what it runs is not built; make netpipe builds it" >&2
    exit 1
  fi
  known+=$'\n'$RINGS
  local sizes_default=1,1K,16K,64K,256K,1M counts_default=2,4,8,16,32,64 relays_default=2,4 runs_default=3
  ((quick)) && sizes_default=1,64K,1M counts_default=2,16,64 relays_default=2 runs_default=1
  take_list engines --engines "${given[engines]-${known//$'\n'/,}}" take_engine
  take_list sizes --sizes "${given[sizes]-$sizes_default}" take_bytes 1 "$SIZE_MAX"
  take_list counts --clients "${given[clients]-$counts_default}" take_even 2 "$CLIENTS_MAX"
  take_list relays --relays "${given[relays]-$relays_default}" take_number 2 "$RELAYS_MAX"
  take_list logs --log "${given[log]-on,off}" take_log
  repetitions=$(take_number --repetitions "${given[repetitions]-$runs_default}" 1 "$REPETITIONS_MAX") || exit 2
  seconds=${given[seconds]-0.3}
  take_seconds "$seconds"
  volume=$(take_bytes --volume "${given[volume]-768M}" "$VOLUME_MIN" "$VOLUME_MAX") || exit 2
  results=${given[results]-$PWD/netpipe/results}
  [[ $results = /* ]] || results=$called_in/$results
  several_relays=0
  "$causeway" run --help | grep -q -- '--relays' && several_relays=1
  sort_lists
}

sort_lists() {
  mapfile -t sizes < <(printf '%s\n' "${sizes[@]}" | sort -n)
  mapfile -t counts < <(printf '%s\n' "${counts[@]}" | sort -n)
  mapfile -t logs < <(printf '%s\n' "${logs[@]}" | sort -r) # on, off
  most=${counts[-1]}
  mapfile -t shown < <(printf '%s\n' "${counts[@]}" | grep -xE '2|16|64')
  ((${#shown[@]})) || shown=("$most")
}
