# shellcheck shell=bash
# Shared by the suites of hosts and of grids themselves: logins, sessions that go on while links are cut, and that nothing
# is left of a set. After tests/lib/system.sh, and tests/hosts.sh or tests/grid.sh.

# shellcheck disable=SC2016,SC2154 # text of scripts; variables of these

# login NAME CMD: without any question
login() {
  run "$hosts_ssh" -n -o BatchMode=yes -o ConnectTimeout=5 "$@"
}

# refused TEXT NAME: cannot be logged in to, for that reason
refused() {
  run "$hosts_ssh" -n -o BatchMode=yes -o ConnectTimeout=1 "$2" true
  expect_code 255
  expect_err_like "$1"
}

reached() {
  login "$1" true
  ((code == 0))
}

# talk I: a session in which host I writes ticks, and puts each line that say sends into its file /tmp/said
talk() {
  mkfifo "$work/lines"
  exec 7<>"$work/lines"
  : >"$work/ticks"
  "$hosts_ssh" -o BatchMode=yes "$(host_name "$1")" '
    rm -f /tmp/said
    while sleep 0.1 && echo tick; do :; done &
    while read -r line; do echo "$line" >>/tmp/said; done' <"$work/lines" >"$work/ticks" 2>"$tmp/err" 7>&- &
  talking=$!
  said=$hosts_dir/$1/tmp/said
  await_true "the first ticks" ticks_after 0
}

say() {
  echo "$1" >&7
}

ticks() {
  wc -l <"$work/ticks"
}

# ticks_after COUNT: whether there are more by now
ticks_after() {
  (($(ticks) > $1))
}

was_said() {
  grep -qsx "$1" "$said"
}

# It still goes both ways, then ends.
end_talk() {
  say last
  await_true "what was said last" was_said last
  await_true "more ticks" ticks_after "$(ticks)"
  kill "$talking"
  { wait "$talking"; } 2>/dev/null
  exec 7>&-
}

# stands_still SECONDS: no more ticks
stands_still() {
  local before
  sleep 0.3 # those on the way
  before=$(ticks)
  sleep "$1"
  ! ticks_after "$before" || wrong "expected no ticks, saw $(($(ticks) - before))"
}

# set_gone NUMBER
set_gone() {
  ip netns list | grep -q "^cw$1-" && wrong "namespaces of set $1 are left"
  ip link show "cw$1" >/dev/null 2>&1 && wrong "the link cw$1 is left"
  [[ ! -e $hosts_place/$1 ]] || wrong "the directory of set $1 is left"
  grep -qsz "$hosts_place/$1\$" /proc/[0-9]*/cmdline && wrong "processes of set $1 are left"
  return 0
}
