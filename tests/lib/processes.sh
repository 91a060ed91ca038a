# shellcheck shell=bash
# Finds the processes that a test has started, also those that no longer are its children: each inherits a mark in
# its environment. The shell that calls mark_children does not have the mark itself.

# mark_children NAME: all processes started from now on have the variable NAME in their environment.
mark_children() {
  mark=$1
  export "$mark=1"
}

# Prints the process ids of those that run.
marked() {
  local files one
  mapfile -d '' files < <(env -u "$mark" grep -lszZ -- "^$mark=1" /proc/[0-9]*/environ)
  for one in "${files[@]}"; do
    one=${one#/proc/}
    echo "${one%/environ}"
  done
}

none_marked() {
  [[ -z $(marked) ]]
}

# describe_process PID: its id and command line
describe_process() {
  echo "$1 ($(tr '\0' ' ' <"/proc/$1/cmdline" 2>/dev/null))"
}

# has_ended PID: it and all its threads hold nothing any more, though nobody may have waited for it yet.
has_ended() {
  local state
  state=$(sed -nE 's/^(State|Threads):[[:space:]]*([^ ]*).*/\2/p' "/proc/$1/status" 2>/dev/null) || return 0
  [[ $state = Z$'\n'[01] ]]
}
