#!/bin/bash
# causeway whose jobs have images of their ranks taken as often as IMAGES says, from the first moment on. What the command
# line says of images comes later and counts.
#
# Environment:
#   IMAGES                   time between two images of a rank, as for --ckpt-every
#   CAUSEWAY_WITHOUT_IMAGES  the command (default: build/causeway of this tree)
plain=${CAUSEWAY_WITHOUT_IMAGES:-$(dirname "$0")/../../build/causeway}

# Without a log there are no images; a job that is resumed has its options already.
takes_none() {
  local it
  for it; do
    [[ $it = --no-log || $it = --no-ckpt || $it = --resume ]] && return
  done
  return 1
}

[[ ${1-} != run ]] || takes_none "$@" || set -- run --ckpt-every "${IMAGES:?}" "${@:2}"
exec "$plain" "$@"
