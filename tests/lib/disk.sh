# shellcheck shell=bash
# Shared by the suites whose relays write logs to disk: directories on a disk, in memory, and on a disk that is small.
# Needs system.sh.

# shellcheck disable=SC2034,SC2154 # some of these are for the suites, some are of system.sh
# shellcheck disable=SC2016 # text for sh -c

in_memory() {
  [[ $(stat -f -c %T "$1") =~ ^(tmpfs|ramfs)$ ]]
}

# Leaves in $logs a directory of its own where files are on a disk; false: there is none.
find_disk() {
  local dir
  for dir in "$tmp" /var/tmp "$root/build"; do
    in_memory "$dir" && continue
    logs=$(mktemp -d "$dir/cwlogs.XXXXXX") && return
  done
  return 1
}

# In place of lib_end.
disk_end() {
  [[ -z ${logs-} ]] || rm -rf "$logs"
  lib_end
}

# small_disk SIZE: a file system that is only mounted in name spaces of their own, so that nothing stays mounted.
# $work/disk is a file system of SIZE for what on_small_disk starts.
small_disk() {
  mkdir "$work/disk"
  truncate -s "$1" "$work/image"
  if ! PATH=$PATH:/usr/sbin:/sbin mkfs.ext4 -q "$work/image" 2>/dev/null ||
    ! unshare -m mount -o loop "$work/image" "$work/disk" 2>/dev/null; then
    skip "no file system can be mounted here"
    return 1
  fi
}

# Leaves in the array $on_small_disk what stands before a command that is to see that file system.
see_small_disk() {
  on_small_disk=(unshare -m sh -c 'mount -o loop "$1" "$2" && shift 2 && exec "$@"' _ "$work/image" "$work/disk")
}

# Leaves in the array $where_read_only what stands before a command for which DIR cannot be written to; false: that
# cannot be had here.
see_read_only() {
  where_read_only=()
  if ((UID)); then
    chmod a-w "$1"
  elif unshare -m mount -o bind,ro "$1" "$1" 2>/dev/null; then
    where_read_only=(unshare -m sh -c 'mount -o bind,ro "$0" "$0" && exec "$@"' "$1")
  else
    skip "root may write everywhere, and nothing can be mounted here"
    return 1
  fi
}
