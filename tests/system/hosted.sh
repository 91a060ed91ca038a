#!/bin/bash
# causeway whose jobs have their ranks on hosts: on those of tests/hosts.sh, as HOSTED says.
#
# Environment:
#   HOSTED          options of each job
#   HOSTED_CONFIG   of ssh
#   CAUSEWAY_PLAIN  the command (default: build/causeway of this tree)
plain=${CAUSEWAY_PLAIN:-$(dirname "$0")/../../build/causeway}
read -r -a hosted <<<"${HOSTED:?}"
[[ ${1-} != run ]] || set -- run "${hosted[@]}" --oversubscribe --launcher-args "-F ${HOSTED_CONFIG:?}" "${@:2}"
exec "$plain" "$@"
