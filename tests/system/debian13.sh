#!/bin/bash
# Causeway on Debian 13, in a tree made by tests/debian13.sh: the two commands of README, and the core of the system
# suites there. Prints TAP: also the lines of those suites. Needs root, and Debian's packages.
#
#   debian13.sh          a slice of the suites
#   debian13.sh --all    all of them
#
# Environment: DRAW (of tests/lib/system.sh: what runs of each suite)
set -u
here=$(cd "$(dirname "$0")" && pwd)
suite="Debian 13"
# shellcheck source=tests/lib/tap.sh
. "$here/../lib/tap.sh"
debian13="$here/../debian13.sh"
place=$(mktemp -d /var/tmp/causeway-debian13.XXXXXX) || exit 2
tree=$place/tree
trap 'rm -rf --one-file-system "$place"' EXIT
trap 'exit 130' INT TERM

inside() {
  "$debian13" exec "$tree" "$@" </dev/null
}

# step TITLE COMMAND...: one test; nothing that follows can be true without it
step() {
  if "${@:2}" >"$place/log" 2>&1; then
    tap_ok "$1"
    return
  fi
  mapfile -t notes < <(tail -n 30 "$place/log")
  tap_not_ok "$1"
  tap_end
}

# further SUITE...: the lines of a suite there, with our numbers; a suite that names no test that failed has failed
further() {
  local line bad=0 status
  inside "$@" >"$place/log" 2>&1
  status=$?
  while IFS= read -r line; do
    case $line in
    'ok '*) tap_ok "${line#ok [0-9]* - }" ;;
    'not ok '*)
      bad=1
      tap_not_ok "${line#not ok [0-9]* - }"
      ;;
    '#'*) echo "$line" ;;
    esac
  done <"$place/log"
  ((status == 0 || bad)) || { wrong "it ended with code $status" && tap_result "$*"; }
}

if ! why=$("$debian13" possible); then
  tap_skip "all of it" "$why"
  tap_end
fi
step "a tree of Debian 13" "$debian13" make "$tree"
"$debian13" copy "$tree"
step "make deps && make" inside sh -c 'make deps && make'
step "causeway doctor" inside build/causeway doctor
# shellcheck disable=SC2016 # the inner shell's
step "the tests' programs" inside sh -c 'tests/install-packages.sh g++ gfortran &&
  make -j"$(nproc)" WERROR=-Werror all programs image-programs'
slice=(--slice)
if [[ ${1-} = --all ]]; then
  unset DRAW
  slice=()
  step "unit tests" inside sh -c 'tests/install-packages.sh libcunit1-dev && make build/unit && build/unit --quick'
fi
further tests/system/libc.sh
further tests/system/programs.sh "${slice[@]}"
further tests/system/kills.sh "${slice[@]}"
further tests/system/kills.sh --images "${slice[@]}"
further tests/system/images.sh
further tests/system/scalapack.sh --causeway --slice "${SCALAPACK_SLICE:-2}"
tap_end
