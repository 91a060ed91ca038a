#!/bin/bash
# Whether the files of a folder call each other in circles, or the folders of the dispatcher do: tests/layers.sh DIR...
#
# DIR holds object files, like build/obj/relay/core. Each object is a node; an edge goes to each
# object of the same folder that defines a symbol which it uses; likewise for folders below
# dispatcher/. Prints each circle with the symbols that make it; exit code 1 if there is one. To be
# run at the root of the tree.
set -u

# Those whose source is still there.
objects()
{
	for object in "$1"/*.o; do
		source=${object#*obj/}
		[ -e "${source%.o}.c" ] && echo "$object"
	done
}

# edges WHAT DIR...: "user definer symbol" for each use of a symbol of another object (WHAT is file) or of another folder
edges()
{
	local what=$1
	shift
	for dir in "$@"; do
		objects "$dir"
	done | xargs -r nm -A --no-sort | awk -v what="$what" '
		{
			object = $1
			sub(/\.o:.*$/, "", object)
			if (what == "folder")
				sub(/\/[^\/]*$/, "", object)
			sub(/^.*\//, "", object)
			kind = $(NF - 1)
			symbol = $NF
		}
		kind ~ /^[TDBRVWGSC]$/ { definer[symbol] = object }
		kind == "U" { used[object " " symbol] = 1 }
		END {
			for (use in used) {
				split(use, part, " ")
				if (part[2] in definer && definer[part[2]] != part[1])
					print part[1], definer[part[2]], part[2]
			}
		}'
}

# The edges that lie on a circle: those whose end reaches their beginning.
on_circles()
{
	awk '
		{
			from[NR] = $1
			to[NR] = $2
			symbol[NR] = $3
			node[$1]
			node[$2]
			reaches[$1, $2]
		}
		END {
			for (by in node)
				for (a in node)
					if ((a, by) in reaches)
						for (b in node)
							if ((by, b) in reaches)
								reaches[a, b]
			for (i = 1; i <= NR; i++)
				if ((to[i], from[i]) in reaches)
					print from[i], to[i], symbol[i]
		}'
}

# look WHAT NAME DIR...
look()
{
	local circles
	circles=$(edges "$1" "${@:3}" | sort | on_circles)
	[ -z "$circles" ] && return
	echo "$2: ${1}s that call each other in a circle:"
	awk '{ printf "  %s -> %s by %s\n", $1, $2, $3 }' <<<"$circles"
	bad=1
}

bad=0
of_dispatcher=()
for dir in "$@"; do
	look file "$dir" "$dir"
	[[ $dir != */dispatcher/* ]] || of_dispatcher+=("$dir")
done
look folder dispatcher "${of_dispatcher[@]}"
exit $bad
