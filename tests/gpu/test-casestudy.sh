#!/bin/sh
# casestudy.sh on the simulated GPU, with small kernels: all tables have all their rows, jobs ended in all
# columns and are in the logs, and each policy has its bounds; above.awk says where the time went. What the numbers
# are that were measured is not looked at.
#
# usage: test-casestudy.sh SOURCE; $SBEET_BUILD is the build folder.
. "$1/test-bundle.sh"
export SIMGPU=1 COST_S="${COST_S:-1.2}" KERNEL_US=10000 ROUNDS=10 COPY=0 RANKS=no EPSILON_US=1000

look() {
	sh "$folder/casestudy.sh" "$OUT" >"$folder/log" 2>&1 || fail "exit code"
	for policy in gpu-kthread gpu-ioctl steer; do
		[ "$(grep -c "^$policy .*|" "$OUT/casestudy.txt")" -eq 1 ] || fail "costs of $policy"
	done
	[ "$(grep -c "^gpu-.*|.*|" "$OUT/casestudy.txt")" -eq 2 ] || fail "costs beside several"
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
		[ "$(wc -l <"$OUT/$column/histogram.log")" -eq "$(awk '$1 == "histogram" { print $8 }' "$OUT/$column.numbers")" ] ||
			fail "$column: not all jobs are in the log"
	done
}

# A job of 5 + 14 ms whose bound is 20: it began 1 ms late, waited 2 ms for its grant and 3 ms for its CPU, and lost
# 1.5 ms more, while another task had the GPU for two kernels.
mkdir "$folder/logs"
echo "a 5 99 14000 a 20000 0 1 0" >"$folder/numbers"
echo "b 0 0 0 - 0 0 1 0" >>"$folder/numbers"
printf '%s\n' "1000 6000 6100 20000 0 10000" "101000 107000 109000 127500 3000 120000" >"$folder/logs/a.log"
echo "0 0 0 200000 0 106000 108000 127000 130000" >"$folder/logs/b.log"
awk -v us=1000 -f "$gpu/above.awk" "$folder/numbers" "$folder/logs/a.log" "$folder/logs/b.log" >"$folder/above"
[ "$(cat "$folder/above")" = "+6.5 a job 2, 26.5: CPU 1.0, first call 2.0, CPU in segment 3.0, longer 1.5 | a 1.0 b 2.0" ] ||
	fail "above.awk says: $(cat "$folder/above")"

# On a busy machine some task may end no job in its window, or be too slow alone to have a bound.
for WINDOW_S in 1 4 16; do
	export WINDOW_S
	look
	[ -n "$wrong" ] || break
done
[ -z "$wrong" ] || fail "$wrong"
