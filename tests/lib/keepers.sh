# shellcheck shell=bash
# Shared by the suites of relays that are started by hand and kept: keepers, their relays, and what they tell.
# Needs system.sh and jobs.sh.

# shellcheck disable=SC2034,SC2154 # some of these are for the suites, some are of system.sh, jobs.sh and the suites

killed="the relay was killed by signal 9 \\(Killed\\)"
again="starting it again on its log"

# keep NAME OPTION...: a relay beside the job of the test. Leaves its keeper in $keeper, its address in $address.
keep() {
  start_named_relay "$@"
  keeper=$helper
}

has_next() {
  local next
  next=$(child_of "$1")
  [[ -n $next && $next != "$2" ]]
}

# kill_relay KEEPER: and waits until there is another
kill_relay() {
  local it
  it=$(child_of "$1")
  kill -9 "$it"
  await_true "another relay" has_next "$1" "$it"
}

# lines_like FILE REGEX: how many
lines_like() {
  grep -Ec -- "$2" "$1"
}

# expect_service OPTION...: a job over the relay at $address runs.
expect_service() {
  timeout 20 "${causeway[@]}" run --relay "$address" "$@" -n 2 "$actor" init ring finalize >"$tmp/ring" 2>&1 ||
    wrong "expected that a job runs, saw $(<"$tmp/ring")"
}

# stands_still PID
stands_still() {
  [[ $(ps -o state= -p "$1") = T* ]]
}

# relays_stop: what is started from now on, being a relay that is kept, stops before it does anything while $tmp/stop is there
relays_stop() {
  "${CC:-gcc}" -shared -fPIC -o "$tmp/stop.so" -x c - <<'END' || wrong "no library that stops relays"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void stop(void)
{
    if (access(getenv("STOP_IF"), F_OK) == 0)
        raise(SIGSTOP);
}
__attribute__((constructor)) static void begin(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[1], "relay") == 0 && strcmp(argv[i], "--state-fd") == 0)
            stop();
}
END
  export STOP_IF=$tmp/stop LD_PRELOAD=$tmp/stop.so
}

relays_start() {
  unset LD_PRELOAD
}
