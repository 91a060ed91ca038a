#!/bin/bash
# causeway whose relays use the engine that ENGINE names, with options of its own where ENGINE has
# more words ("poll --rings off"). What the command line says of an engine comes later and counts.
#
# Environment:
#   ENGINE          the engine
#   CAUSEWAY_PLAIN  the command (default: build/causeway of this tree)
plain=${CAUSEWAY_PLAIN:-$(dirname "$0")/../../build/causeway}
read -r -a engine <<<"--engine ${ENGINE:?}"

# A job that uses a relay that runs already takes no options for one of its own; one that is resumed has them already.
uses_relay() {
  local it
  for it; do
    [[ $it = --relay || $it = --relay=* || $it = --resume ]] && return
  done
  return 1
}

case ${1-} in
  relay) set -- relay "${engine[@]}" "${@:2}" ;;
  run) uses_relay "$@" || set -- run "${engine[@]}" "${@:2}" ;;
esac
exec "$plain" "$@"
