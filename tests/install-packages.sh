#!/bin/bash
# Installs the Debian packages named that are missing. Several may run at once: they wait for each
# other, and for another package manager.
set -u
LOCK_S=300 # how long for the latter
missing=()
find_missing() {
  missing=()
  for package in "$@"; do
    dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -q '^installed$' ||
      missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ]
}
find_missing "$@" || exit 0

if ! command -v apt-get >/dev/null; then
  echo "These are needed, and there is no apt-get to install them: ${missing[*]}" >&2
  exit 1
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || {
    echo "As root, please: apt-get install ${missing[*]}" >&2
    exit 1
  }
  as_root=(sudo)
fi
# dpkg's own lock does not cover the package lists
exec {lock}<"$0"
flock "$lock"
find_missing "$@" || exit 0
echo "installing: ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends -o DPkg::Lock::Timeout="$LOCK_S" "${missing[@]}" \
    >"$log" 2>&1
}
# What is a server to others is for tests alone: it neither starts now nor when this machine does.
servers() {
  [[ " ${missing[*]} " = *" openssh-server "* ]]
}
policy=/usr/sbin/policy-rc.d
if servers && [ ! -e "$policy" ]; then
  trap 'rm -f "$log"; "${as_root[@]}" rm -f "$policy"' EXIT
  printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
  "${as_root[@]}" chmod 755 "$policy"
fi
# the package lists may be missing or old
install || { "${as_root[@]}" apt-get update >"$log" 2>&1 && install; } || {
  tail -n 20 "$log" >&2
  echo "could not install: ${missing[*]}" >&2
  exit 1
}
! servers || "${as_root[@]}" update-rc.d ssh disable
