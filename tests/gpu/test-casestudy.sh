#!/bin/sh
# casestudy.sh on the simulated GPU, with small kernels: all tables have all their rows, jobs ended in all
# columns, and each policy has its bounds. What the numbers are is not looked at.
#
# usage: test-casestudy.sh SOURCE; $SBEET_BUILD is the build folder.
. "$1/test-bundle.sh"
export SIMGPU=1 COST_S="${COST_S:-1.2}" KERNEL_US=10000 ROUNDS=10 COPY=0 RANKS=no EPSILON_US=1000

look() {
	sh "$folder/casestudy.sh" "$OUT" >"$folder/log" 2>&1 || fail "exit code"
	for policy in gpu-kthread gpu-ioctl steer; do
		[ "$(grep -c "^$policy .*|" "$OUT/casestudy.txt")" -eq 1 ] || fail "costs of $policy"
	done
	[ "$(grep -c "^histogram " "$OUT/casestudy.txt")" -eq 4 ] || fail "the tables"
	wrong=
	grep -q "^one ioctl *[1-9].* of [1-9][0-9]* preemptions" "$OUT/casestudy.txt" || wrong="nobody was preempted"
	for column in unmanaged-busy gpu-kthread-busy gpu-ioctl-busy gpu-ioctl-suspend; do
		[ "$(awk '$8 > 0 && $11 > 0' "$OUT/$column.numbers" | wc -l)" -eq 8 ] || wrong=$column
		case $column in
		unmanaged*)
			! grep -q "^histogram .*histogram " "$OUT/$column.numbers" || fail "$column has bounds"
			continue
			;;
		esac
		grep -q "^histogram .*histogram [1-9]" "$OUT/$column.numbers" || wrong="$column: no bounds"
	done
}

# On a busy machine some task may end no job in its window, or be too slow alone to have a bound.
for WINDOW_S in 1 4 16; do
	export WINDOW_S
	look
	[ -n "$wrong" ] || break
done
[ -z "$wrong" ] || fail "$wrong"
