#!/bin/bash
# A tree of Debian 13, made by mmdebstrap, in which commands run on a copy of this one. Needs root. All that runs in it
# ends with the command, and nothing is left outside of the directory.
#
#   tests/debian13.sh make DIR           makes the tree in DIR, which must not exist: Debian's minimum and make
#   tests/debian13.sh copy DIR           copies the files that git tracks here to DIR/src/causeway, as they are
#   tests/debian13.sh exec DIR CMD...    runs a command there, in /src/causeway
#   tests/debian13.sh remove DIR
#
# Environment: MIRROR (of Debian's packages; default: mmdebstrap's own)
set -u
here=$(cd "$(dirname "$0")/.." && pwd)
release=trixie
source=src/causeway

fail() {
  echo "debian13.sh: $*" >&2
  exit 1
}

# Says why there can be no such tree here, and is false then.
possible() {
  [[ $(id -u) = 0 ]] || { echo "only root can make a tree of Debian 13" && return 1; }
  type -P mmdebstrap >/dev/null || { echo "there is no mmdebstrap: 'make deps-check' installs it" && return 1; }
  unshare --mount --pid --fork true 2>/dev/null || { echo "no namespaces can be made here" && return 1; }
}

# Documents are left out, and files are not synced one by one: the tree does not outlive a loss of power.
make_tree() {
  [[ ! -e $1 ]] || fail "$1 is there already"
  mmdebstrap --variant=minbase --include=make,procps,python3-minimal --dpkgopt=force-unsafe-io \
    --dpkgopt=path-exclude='/usr/share/doc/*' --dpkgopt=path-exclude='/usr/share/man/*' \
    "$release" "$1" ${MIRROR:+"$MIRROR"} >"$1.log" 2>&1 || { tail -n 20 "$1.log" >&2; fail "cannot make $1"; }
  rm "$1.log"
  echo '127.0.0.1 localhost' >"$1/etc/hosts"
}

copy_here() {
  mkdir -p "$1/$source" || exit
  (cd "$here" && git ls-files -z | tar --create --null --files-from=- --ignore-failed-read) |
    tar --extract --directory="$1/$source" || fail "cannot copy $here"
}

# shellcheck disable=SC2016 # the inner shell's
exec_in() {
  exec unshare --mount --pid --fork --kill-child bash -c '
    cp -f /etc/resolv.conf "$0/etc/" 2>/dev/null
    mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && mount --rbind /sys "$0/sys" &&
      exec chroot "$0" env -i PATH=/usr/sbin:/usr/bin HOME=/root TERM=dumb DRAW="${DRAW-}" MAKEFLAGS="${MAKEFLAGS-}" \
        bash -c '\''cd /src/causeway && exec "$@"'\'' bash "$@"' "$@"
}

command=${1-}
tree=${2-}
case $command in
possible) possible ;;
make) make_tree "$tree" ;;
copy) copy_here "$tree" ;;
exec) exec_in "$tree" "${@:3}" ;;
remove) rm -rf --one-file-system "$tree" ;;
*) fail "unknown command '$command': make, copy, exec or remove" ;;
esac
