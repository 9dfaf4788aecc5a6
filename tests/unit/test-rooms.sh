#!/bin/sh
# Which folder may include which: each line names a folder, then those that its files may include
# beside their own. An include that is missing here turns an arrow around, or makes a circle. And how
# many files of a folder may include each other in a circle.
# Usage: test-rooms.sh SOURCE-ROOT
cd "$1" || exit 1

rooms='proto
proto/messages
daemon/core proto
daemon/core/policy daemon/core proto
daemon/core/steer daemon/core proto
daemon/core/analysis proto
daemon/sim daemon/core daemon/core/analysis daemon/core/steer proto
daemon/book daemon/core proto
daemon/base proto
daemon/mps daemon/base proto
daemon/preempt daemon/base proto
daemon/gpu daemon/base daemon/book daemon/core proto
daemon/config daemon/base daemon/book daemon/core daemon/gpu daemon/mps proto
daemon/engine daemon/base daemon/core daemon/gpu proto
daemon/session daemon/base daemon/config daemon/core daemon/core/steer daemon/engine daemon/gpu daemon/mps daemon/preempt proto
daemon/watch daemon/base daemon/core daemon/engine daemon/gpu daemon/session proto
daemon/control daemon/base daemon/config daemon/core daemon/engine daemon/gpu daemon/mps daemon/preempt daemon/session daemon/watch proto
daemon daemon/base daemon/config daemon/control daemon/core daemon/engine daemon/gpu daemon/mps daemon/preempt daemon/session daemon/watch proto
client/base daemon/book proto
client/sim client/base daemon/book daemon/core daemon/core/analysis daemon/sim proto
client/ptx client/base proto shim/ptx
client/live client/base daemon/book proto
client/doctor client client/base client/live daemon/core daemon/gpu daemon/mps proto
client/examine client/base client/sim daemon/book proto
client client/base client/doctor client/examine client/live client/ptx client/sim daemon/book daemon/core daemon/core/analysis proto
client/slurm client proto
shim/base proto
shim/ptx proto
shim/enforce proto shim shim/base shim/ptx
shim proto shim/base shim/enforce'

# Folders of the daemon may include only what is listed above them, so they form no circle.
echo "$rooms" | awk '
	/^daemon/ {
		for (i = 2; i <= NF; i++) {
			if (!($i in above)) {
				print $1 "/ may include " $i "/, which is not above it in the list"
				failed = 1
			}
		}
	}
	{ above[$1] = 1 }
	END { exit failed }' || exit 1

# Files (a .c with its .h) that include each other in a circle can only be read together. No folder
# may have a larger circle than is listed here, or any if it is not listed.
circles='daemon/session 8
daemon/sim 4
shim/ptx 2'

grep -E '^#include "[a-z].*/' -r client daemon proto shim --include='*.c' --include='*.h' |
	sed -nE 's#^(.*)\.[ch]:\#include "(.*)\.h"#\1 \2#p' | sort -u | awk -v circles="$circles" '
	function folder(file) {
		sub("/[^/]*$", "", file)
		return file
	}
	folder($1) == folder($2) && $1 != $2 {
		reaches[$1, $2] = 1
		files[$1] = files[$2] = 1
	}
	END {
		n = split(circles, lines, "\n")
		for (i = 1; i <= n; i++) {
			split(lines[i], words, " ")
			allowed[words[1]] = words[2]
		}
		for (via in files) {
			for (a in files) {
				if ((a, via) in reaches) {
					for (b in files) {
						if ((via, b) in reaches) {
							reaches[a, b] = 1
						}
					}
				}
			}
		}
		for (a in files) {
			circle = ""
			size = 0
			for (b in files) {
				if ((a, b) in reaches && (b, a) in reaches) {
					circle = circle " " b
					size++
				}
			}
			if (size > allowed[folder(a)]) {
				print size " files include each other in a circle:" circle
				failed = 1
				exit failed
			}
		}
		exit failed
	}' || exit 1

found=$(grep -E '^#include "[a-z].*/' -r client daemon proto shim --include='*.c' --include='*.h' |
	sed -E 's#^(.*)/[^/]*:\#include "(.*)/[^/]*"#\1 \2#' | sort -u)
[ -n "$found" ] || { echo "no include found in '$1'"; exit 1; }
echo "$found" | {
	status=0
	while read -r from to; do
		allowed=$(echo "$rooms" | grep "^$from\( \|\$\)") ||
			{ echo "$from/ is not listed in test-rooms.sh" && status=1; }
		case " $from $allowed " in
		*" $to "*) ;;
		*) echo "a file of $from/ includes one of $to/, which it must not know" && status=1 ;;
		esac
	done
	exit $status
}
