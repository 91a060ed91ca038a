# Completion of causeway(1) for bash.

# Bash cuts words at ':' and '='; an address or --option=value is one word here. Fills `words` up to
# the cursor; `word` is the last of them, `cur` the part of it that bash will replace.
_causeway_split() {
  local line=${COMP_LINE:0:COMP_POINT}
  read -ra words <<<"$line"
  [[ $line == *[[:space:]] ]] && words+=('')
  word=${words[-1]}
  cur=${word##*[:=]}
}

_causeway_words() {
  mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur")
}

_causeway_files() {
  compopt -o filenames
  mapfile -t COMPREPLY < <(compgen "$1" -- "$cur")
}

_causeway_program() {
  compopt -o filenames
  mapfile -t COMPREPLY < <(
    [[ $cur == */* ]] || compgen -c -- "$cur"
    compgen -f -- "$cur"
  )
}

_causeway_address() {
  if [[ $word == *unix:* ]]; then
    _causeway_files -f
  elif [[ $word != *:* ]]; then
    compopt -o nospace
    _causeway_words 'unix: tcp:'
  fi
}

_causeway_fault() {
  [[ $word == *:* ]] && return
  compopt -o nospace
  _causeway_words 'kill: stop: cut:'
}

# Jobs that run; dispatchers that do not answer are waited for.
_causeway_job() {
  _causeway_words "$("${words[0]}" status --json 2>/dev/null | grep -o '"job":"[0-9a-f]*"' | cut -d '"' -f 4)"
}

# The options of the command, as its --help has them; where $1 is given, those whose name is followed by that.
_causeway_listed() {
  "${words[0]}" "${words[1]}" --help 2>/dev/null |
    sed -nE "s/^  ((-[a-z]+, )?-[a-z-]+) ${1:-}.*/\\1/p" | tr -s ', \n' ' '
}

# Completes the value of option $1; false when it takes none.
_causeway_value() {
  case $1 in
    --relay | --listen | --ckpt-server) _causeway_address ;;
    -f | --file | --key-file | --events | --ckpt-key-file | --hostfile | --rankfile | --agent) _causeway_files -f ;;
    --host) _causeway_words "$(compgen -A hostname)" ;;
    --ckptsrv) _causeway_words "all $(compgen -A hostname)" ;;
    --map-by) _causeway_words 'slot node site' ;;
    --launcher) _causeway_words 'ssh srun' ;;
    --relay-at) [[ " ${words[*]} " == *' -f '* ]] || _causeway_words 'host cluster' ;; # of a grid: a site
    --restart-at) _causeway_words 'site grid' ;;
    --wdir | --output-dir | --log-dir | --ckpt-dir | --job-dir | --resume | --stage-dir | --dir) _causeway_files -d ;;
    --engine) _causeway_words "auto $("${words[0]}" relay --list-engines 2>/dev/null | cut -d ' ' -f 1)" ;;
    -x) _causeway_words "$(compgen -e)" ;;
    --fault) _causeway_fault ;;
    --rings) _causeway_words 'on off' ;;
    --collectives) _causeway_words 'sites flat' ;;
    --log-lost) _causeway_words 'go-on end' ;;
    --check-contents) _causeway_words 'some all none' ;;
    --contents-differ) _causeway_words 'go-on end' ;;
    --log-copies) _causeway_words '0 1 2' ;;
    --log-safety) _causeway_words 'memory file sync' ;;
    --part) _causeway_words 'all failures times bytes suspicions' ;;
    *) [[ " $(_causeway_listed '[^ ]') " == *" $1 "* ]] ;; # any other
  esac
}

# Completes an option's value, be it in a word of its own or after '='; false when none is at hand.
_causeway_option_value() {
  if [[ $word == --*=* ]]; then
    _causeway_value "${word%%=*}"
  else
    _causeway_value "${words[-2]}"
  fi
}

# True when the program of the segment at hand (after the last ':') stands already.
_causeway_has_program() {
  local i found=1 valued
  valued=$(_causeway_listed '[^ ]')
  for ((i = 2; i < ${#words[@]} - 1; i++)); do
    case ${words[i]} in
      :) found=1 ;;
      -*=*) ;;
      -*) ((found)) && [[ " $valued " == *" ${words[i]} "* ]] && ((i++)) ;;
      *) found=0 ;;
    esac
  done
  return "$found"
}

_causeway_run() {
  if [[ ${words[2]} == --resume* && ${#words[@]} -gt 3 ]]; then
    _causeway_option_value || _causeway_words '--timeout --stats --verbose'
  elif _causeway_has_program; then
    _causeway_files -f
  elif _causeway_option_value; then
    return
  elif [[ $word == -* ]]; then
    _causeway_words "$(_causeway_listed)"
  else
    _causeway_program
  fi
}

# Options alone.
_causeway_plain() {
  _causeway_option_value || _causeway_words "$(_causeway_listed)"
}

_causeway_status() {
  if _causeway_option_value; then
    return
  elif [[ $word == -* ]]; then
    _causeway_words "$(_causeway_listed)"
  else
    _causeway_job
  fi
}

_causeway_log() {
  local options='--json --help'
  [[ ${words[2]} == verify ]] && options='--key-file --help'
  if ((${#words[@]} == 3)); then
    _causeway_words 'show verify --help'
  elif _causeway_option_value; then
    return
  elif [[ $word == -* ]]; then
    _causeway_words "$options"
  else
    _causeway_files -d
  fi
}

_causeway_ckpt() {
  if ((${#words[@]} == 3)); then
    _causeway_words 'list show verify rm now --help'
  elif [[ ${words[2]} == now ]]; then
    if [[ $word == -* ]]; then _causeway_words --help; else _causeway_job; fi
  elif ! _causeway_option_value && [[ $word == -* ]]; then
    _causeway_words "$(_causeway_listed)"
  fi
}

_causeway_doctor() {
  if _causeway_option_value; then
    return
  elif [[ $word == -* ]]; then
    _causeway_words "$(_causeway_listed)"
  else
    _causeway_program
  fi
}

_causeway_model() {
  if ((${#words[@]} == 3)); then
    _causeway_words 'detector --help'
  else
    _causeway_plain
  fi
}

_causeway() {
  local words word cur
  _causeway_split
  COMPREPLY=()
  if ((${#words[@]} == 2)); then
    _causeway_words 'run relay ckptsrv up down status log ckpt doctor model tunnel help --help --version'
    return
  fi
  case ${words[1]} in
    run) _causeway_run ;;
    status) _causeway_status ;;
    relay | ckptsrv | up | down) _causeway_plain ;;
    log) _causeway_log ;;
    ckpt) _causeway_ckpt ;;
    doctor) _causeway_doctor ;;
    model) _causeway_model ;;
    tunnel) _causeway_option_value || _causeway_words "--listen $(_causeway_listed)" ;;
  esac
}

complete -F _causeway causeway
