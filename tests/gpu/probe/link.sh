#!/bin/sh
# What held copies cost the link: four programs that copy 16 MB to the GPU again and again, more than it can
# take, under MPS. How long one copy takes, all together, in us.
#
# usage: link.sh BUNDLE ROUNDS COLUMN...     columns: mps (without sbeet), steer (held copies)
#
# Jobs that come too late queue, so all that were released before and all that were done in the window count.
# A fifth program without a deadline, which has a job each 50 ms, makes steer hold copies.
set -eu

here=$(cd "$1" && pwd)
rounds=$2
shift 2
. "$here/manage.sh"
period=700000
window=1500000000

periodic() { # WORK PERIOD OFFSET
	echo "env LD_LIBRARY_PATH='$scratch/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}' $here/bin/periodic $1 100 $2 $2 $3 $window $window"
}

managed_command() { # NAME OPTIONS COMMAND
	echo "env LD_LIBRARY_PATH='$tools_path' $ctl run --task $1 $2 -- $3"
}

commands() { # COLUMN
	for i in 1 2 3 4; do
		command=$(periodic histogram $period $((i * 150000)))
		[ "$1" = mps ] ||
			command=$(managed_command "copies-$i" "--class realtime --period ${period}ns" "$command")
		echo "exec $command"
	done
	[ "$1" = mps ] || echo "exec $(managed_command other "" "$(periodic matmul-small 50000000 0)")"
}

start_mps
for column in "$@"; do
	[ "$column" = mps ] || start_daemon --policy "$column" --sharing mps
	round=0
	while [ $round -lt "$rounds" ]; do
		round=$((round + 1))
		commands "$column" | tool "$here/bin/evaluate" cell $window $window |
			awk -v column="$column" -v lead="$window" -v period=$period '
				$1 == "task" && $2 <= 4 { done += $4 + lead / period; n++ }
				END {
					if (n < 4) exit 1
					printf "%s: %.1f us a copy\n", column, 2 * lead / 1e3 / done
				}'
	done
	[ "$column" = mps ] || stop_daemon
done
