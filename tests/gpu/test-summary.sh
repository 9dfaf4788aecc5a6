#!/bin/sh
# What the evaluation says of its lines: `evaluate summary` of tasks, causes.awk of late jobs, and how `evaluate
# cell` takes programs that fail.
#
# usage: test-summary.sh SOURCE; $SBEET_BUILD is the build folder.
set -eu

gpu=$(cd "$1" && pwd)
evaluate=$SBEET_BUILD/tests/gpu/evaluate
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

expect() { # FILE LINE: the file has this very line
	grep -qxF -- "$2" "$1" || {
		echo "no line '$2' in:"
		cat "$1"
		exit 1
	}
}

# Two tasks in three sets; the fourth set did not run under all columns. Misses of 100 jobs of task 1 (the
# longer deadline): steer 10, 20, 30 more than mps. Of task 2: as many.
{
	echo "family,column,u,set,task,work,period,deadline,released,completed,missed,mean,p50,p99,max"
	for column in mps mps-50 steer; do
		for set in 1 2 3; do
			case $column in
			mps) missed=5 ;;
			mps-50) missed=4 ;;
			steer) missed=$((5 + 10 * set)) ;;
			esac
			echo "mixed,$column,0.8,$set,1,hotspot,2000,1000,100,100,$missed,1,1,1,1"
			echo "mixed,$column,0.8,$set,2,vecadd,1000,500,10,10,1,1,1,1,1"
		done
	done
	echo "mixed,mps,0.8,4,1,hotspot,2000,1000,100,100,70,1,1,1,1"
	echo "mixed,mps,1.2,1,1,hotspot,2000,1000,100,100,2,1,1,1,1"
	echo "mixed,mps-50,1.2,1,1,hotspot,2000,1000,100,100,9,1,1,1,1"
	echo "mixed,steer,1.2,1,1,hotspot,2000,1000,100,100,2,1,1,1,1"
} >"$folder/tasks.csv"
"$evaluate" summary "$folder/tasks.csv" >"$folder/summary"
expect "$folder/summary" "| misses | sets | jobs | mps | mps-50 | steer | best MPS |"
expect "$folder/summary" "| mixed, U 0.8 | 3 | 330 | 18 | 15 | 78 | mps-50 15 |"
expect "$folder/summary" "| mixed, U 1.2 | 1 | 100 | 2 | 9 | 2 | mps 2 |"
expect "$folder/summary" "| mixed, all | 4 | 430 | 20 | 24 | 80 | 17, the best of each U |"
# Mean 20, standard deviation 10, t 2.920 for two degrees of freedom.
expect "$folder/summary" "  U 0.8, deadline 2 of its set: +20.00, at least +3.14, 3 pairs  MORE THAN MPS"
expect "$folder/summary" "  U 0.8, deadline 1 of its set: +0.00, at least +0.00, 3 pairs"
expect "$folder/summary" "  U 1.2, deadline 1 of its set: +0.00 in one pair"
expect "$folder/summary" "  vecadd: +0.00, at least +0.00, 3 pairs"
"$evaluate" summary "$folder/tasks.csv" mps-50 >"$folder/summary"
expect "$folder/summary" "  U 0.8, deadline 2 of its set: -1.00, at least -1.00, 3 pairs"
! "$evaluate" summary /dev/null 2>"$folder/errors" || exit 1

# Alone: copies of 100 and 50, kernels of 1000 on all SMs. Deadline 2000.
printf 'w 16 200 4000 4100 60 1\nw 132 100 1000 1100 50 1\n' >"$folder/measured"
{
	echo "family,column,u,set,task,work,deadline,before,wake_up,first_call,copy_in,kernels,copy_out,return,response"
	echo "mixed,steer,0.8,1,1,w,2000,0,60,10,100,2000,50,20,2240" # kernels
	echo "mixed,steer,0.8,1,1,w,2000,0,60,10,1000,1000,50,20,2140" # copy in
	echo "mixed,steer,0.8,1,1,w,2000,900,60,10,100,1000,50,20,2140" # the job before
	echo "mixed,steer,0.8,1,1,w,2000,0,60,700,800,1800,50,20,3430" # several: kernels 800, first call, copy in
	echo "mixed,mps,0.8,1,1,w,2000,0,1500,10,100,1000,50,20,2680" # wake-up
	echo "mixed,mps,0.8,1,1,w,200,0,0,0,100,1000,50,0,1150" # longer than its deadline alone
} >"$folder/late.csv"
awk -f "$gpu/causes.awk" "$folder/measured" "$folder/late.csv" >"$folder/causes"
expect "$folder/causes" "mixed, steer, U 0.8: 4 late: kernels 1, copy in 1, follows 1, several, most kernels 1"
expect "$folder/causes" "mixed, mps, U 0.8: 2 late: wake-up 1, unexplained 1"

# Programs of a cell: one start for all; one that fails or is not there ends the others.
speaker='exec sh -c "echo ready; read start && echo \$start 2 3"'
printf '%s\n%s\n' "$speaker" "$speaker" | "$evaluate" cell 0 0 >"$folder/cell"
[ "$(awk '$1 == "task" && $4 == 2 { print $3 }' "$folder/cell" | sort | uniq -c | awk '{ print $1 }')" -eq 2 ] || {
	cat "$folder/cell"
	exit 1
}
! printf '%s\nexec false\n' "$speaker" | "$evaluate" cell 0 0 >"$folder/cell" 2>"$folder/errors" || exit 1
expect "$folder/errors" "evaluate: task 2 is not ready"
! printf '%s\n' 'exec sh -c "echo ready; read start; exit 3"' | "$evaluate" cell 0 0 >"$folder/cell" 2>"$folder/errors" || exit 1
expect "$folder/errors" "evaluate: task 1 failed"
