#!/bin/bash
# Compares docs/bounds.md with the sources. Prints TAP: one test for each constant.
#
# - A row of a table names a constant, `NAME`, or an option, `--name`. Its second cell begins with the value: a number,
#   and a unit where there is one. Each #define of that name in common/, relay/, rdevice/, ckptsrv/, dispatcher/ and tunnels/ must have that
#   value. `NAME` (file.c) is the one of that file, where files have different values.
#
# - Each #define there whose name ends as those of bounds do (see $endings) must have a row, or stand in the last
#   section, of constants that are no bounds; and what stands in that section must be in the sources.
set -u
cd "$(dirname "$0")/.." || exit 1
suite=bounds
# shellcheck source=tests/lib/tap.sh
. tests/lib/tap.sh
doc=docs/bounds.md
endings='_(MAX|BYTES|NS|MS|US|S|KEPT|EVERY|TRIES|ROUNDS|PERIODS|BACKLOG)$'
declare -A where=() body=() listed=() no_bound=()

# Lines "FILE NAME VALUE" of all macros without arguments, without comments, each on one line; numbers without suffixes
# shellcheck disable=SC2016 # awk's
defines() {
  find common relay rdevice ckptsrv dispatcher tunnels -name '*.[ch]' | sort | xargs awk '
    { whole = whole $0 }
    sub(/\\$/, " ", whole) { next }
    whole ~ /^#define [A-Z][A-Z0-9_]* / {
      sub(/^#define /, "", whole)
      sub(/\/\*.*/, "", whole)
      print FILENAME, whole
    }
    { whole = "" }' | sed -E 's/\b(0x[0-9a-fA-F]+|[0-9]+)(ull|ul|u|l)\b/\1/g; s/\((int|unsigned|size_t|uint32_t|uint64_t)\)//g; s/ +$//'
}

read_sources() {
  local file name value
  while read -r file name value; do
    where[$name]+="$file "
    body[$file $name]=$value
    body[$name]=$value
  done < <(defines)
}

# Prints what VALUE comes to, or nothing when it is no number: constant VALUE
constant() {
  local text=$1 name i
  for ((i = 0; i < 20; i++)); do
    [[ $text =~ [A-Z][A-Z0-9_]+ ]] || break
    name=${BASH_REMATCH[0]}
    text=${text//$name/(${body[$name]-?})}
  done
  [[ $text =~ ^[-0-9a-fx()+*/\<\>\ ]+$ ]] && echo $((text))
}

# The value of a cell in bytes, nanoseconds or pieces: "64 KiB of ..."
written() {
  local number unit
  read -r number unit _ <<<"$1"
  [[ $number =~ ^[0-9]+$ ]] || return
  case $unit in
    KiB) number=$((number << 10)) ;;
    MiB) number=$((number << 20)) ;;
    GiB) number=$((number << 30)) ;;
    TiB) number=$((number << 40)) ;;
    us) number=$((number * 1000)) ;;
    ms) number=$((number * 1000000)) ;;
    s) number=$((number * 1000000000)) ;;
    h) number=$((number * 3600000000000)) ;;
  esac
  echo "$number"
}

# What a constant of that name counts, in nanoseconds
unit_of() {
  case ${1%_M[AI][XN]} in
    *_NS) echo 1 ;;
    *_US) echo 1000 ;;
    *_MS) echo 1000000 ;;
    *_S) echo 1000000000 ;;
    *) echo 1 ;;
  esac
}

# row_agrees NAME FILE CELL
row_agrees() {
  local file value expected found=0
  expected=$(written "$3")
  [[ -n $expected ]] || wrong "$doc: the row of $1 begins with no number: '$3'. Write its value first, like 64 KiB."
  for file in ${where[$1]-}; do
    [[ -z $2 || ${file##*/} = "$2" ]] || continue
    found=1
    value=$(constant "${body[$file $1]}")
    if [[ -z $value ]]; then
      wrong "$file: $1 is '${body[$file $1]}', which is no number; write it as one, or take its row out of $doc"
    elif ((value * $(unit_of "$1") != ${expected:-0})); then
      wrong "$file: $1 is ${body[$file $1]}, but $doc says '$3': change the row, or the source"
    fi
  done
  ((found)) || wrong "$doc has a row of $1${2:+ ($2)}, which no source defines: rename the row, or take it out"
}

# option_exists OPTION
option_exists() {
  grep -rqE "\"${1#--}\"" relay ckptsrv dispatcher --include='*.c' ||
    wrong "$doc has a row of $1, which is no option of causeway: rename the row, or take it out"
}

rows() {
  local name file cell
  while IFS='|' read -r _ name cell _; do
    [[ $name =~ ^\ \`([^\`]+)\`(\ \(([a-z_]+\.[ch])\))?\ $ ]] || continue
    name=${BASH_REMATCH[1]}
    file=${BASH_REMATCH[3]}
    listed[$name]=1
    if [[ $name = --* ]]; then
      option_exists "$name"
    else
      row_agrees "$name" "$file" "$cell"
    fi
    tap_result "$name${file:+ ($file)}"
  done <"$doc"
}

# Those of the last section
no_bounds() {
  local name
  while read -r name; do
    no_bound[$name]=1
    [[ -n ${where[$name]-} ]] || wrong "$doc says that $name is no bound, but no source defines it: take it out there"
    [[ -z ${listed[$name]-} ]] || wrong "$doc has a row of $name, and says that it is no bound: take one of them out"
    tap_result "$name, no bound"
  done < <(sed '1,/^## Constants that are no bounds/d; s/[^A-Z0-9_]/ /g' "$doc" | grep -Eo '[A-Z][A-Z0-9_]{3,}')
}

# Each constant that is called like a bound has its row.
all_listed() {
  local name
  while read -r name; do
    [[ $name =~ $endings ]] || continue
    [[ -n ${listed[$name]-} || -n ${no_bound[$name]-} ]] && continue
    wrong "${where[$name]% }: $name = ${body[$name]} is not in $doc: add a row that says what happens when it is reached," \
      "or add its name to the last section"
    tap_result "$name"
  done < <(printf '%s\n' "${!where[@]}" | sort)
}

read_sources
rows
no_bounds
all_listed
((tap_count > 100)) || wrong "only $tap_count constants were found: has the form of $doc or of the sources changed?"
tap_result "the table was read"
tap_end
