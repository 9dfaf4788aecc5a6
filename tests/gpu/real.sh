#!/bin/sh
# Runs on a machine with a GPU, MPS and PyTorch, CuPy and JAX (or on the simulated one, with STAND_INS=yes), in the
# folder that bundle.sh made: real programs with deadlines beside others, under each way of sharing the GPU.
# real/list.txt has the programs, their periods and deadlines, and the cells; it is not changed after results
# were seen. The programs are in real/; they know nothing of sbeet.
#
# usage: real.sh FOLDER     has real.csv; what is there is not measured again
#
# Columns: alone            without MPS, one program at a time
#          none             without MPS: time slices
#          mps, mps-N       MPS; with CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=N for each program
#          client-priority  MPS; CUDA_MPS_CLIENT_PRIORITY=1 for those without a deadline
#          own-priority     MPS; programs with a deadline make streams of the highest priority, where they can
#          static           MPS with static SM partitions, half of the SMs each, where its control daemon has them
#          preempt          without MPS, under policy steer, which preempts the others
#          steer ...        that policy of sbeetd, under MPS, without profiles; steer+dependent=on: with that parameter
#          nvshare, hami    that way, where it is found on the machine, as its own documents say
#
# The programs of a column start at the same time and stay up for all its cells. BUDGET_S (540): begin no column
# that would not be done after so many seconds; run it again to go on. COLUMNS, CELLS (several, such as
# classifier+products), LIST (real/list.txt), OPTIONS (of sbeetd), SECONDS_MIN (6), LEAD_S (1), ROUNDS (1; 2: each
# cell twice, so that what was learnt the first time shows).
# Exit 1 if a program failed or a result differs from that alone.
set -u

here=$(cd "$(dirname "$0")" && pwd)
. "$here/manage.sh"
mkdir -p "$1" || exit 2
folder=$(cd "$1" && pwd)
list=${LIST:-$here/real/list.txt}
began=$(date +%s)
until=$((began + ${BUDGET_S:-540}))
seconds_min=${SECONDS_MIN:-6}
failed=0
export SECONDS_MIN="$seconds_min" LEAD_S="${LEAD_S:-1}" ROUNDS="${ROUNDS:-1}"

say() {
	echo "$(($(date +%s) - began)) s: $*"
}


# The cells that the column still lacks.
cells_of() { # COLUMN
	python3 "$here/real/real.py" cells "$list" "$folder" "$1" | while read -r cell; do
		case " ${CELLS:-$cell} " in
		*" $cell "*) echo "$cell" ;;
		*) [ "$1" != alone ] || case "+$(echo "${CELLS:-}" | tr ' ' +)+" in *"+$cell+"*) echo "$cell" ;; esac ;;
		esac
	done
}

# COMMAND...: of the list. The short form has the same C program everywhere.
start_of() {
	if [ "${STAND_INS:-no}" = yes ]; then
		echo "$here/bin/khz $here/ptx/vecadd.ptx 4"
		return
	fi
	case $1 in
	khz) echo "$here/bin/khz $here/ptx/vecadd.ptx" ;;
	*) echo "python3 $here/real/$*" ;;
	esac
}

# COLUMN NAME KIND COMMAND...: how it is started in this column.
command_of() {
	column=$1
	name=$2
	kind=$3
	shift 3
	plain="env LD_LIBRARY_PATH='$libraries'"
	command=$(start_of "$@")
	case $column:$kind in
	mps-*) echo "$name $plain CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=${column#mps-} $command" ;;
	client-priority:other) echo "$name $plain CUDA_MPS_CLIENT_PRIORITY=1 $command" ;;
	own-priority:urgent) echo "$name $plain OWN_PRIORITY=1 $command" ;;
	static:urgent) echo "$name $plain CUDA_MPS_SM_PARTITION=$partition_1 $command" ;;
	static:other) echo "$name $plain CUDA_MPS_SM_PARTITION=$partition_2 $command" ;;
	nvshare:* | hami:*) echo "$name $plain LD_PRELOAD=$peer $peer_variables $command" ;;
	alone:* | none:* | mps:* | client-priority:* | own-priority:*) echo "$name $plain $command" ;;
	*)
		echo "$name env LD_LIBRARY_PATH='$tools_path' $ctl run --task $name --" \
			"$plain LD_PRELOAD=$SBEET_SHIM${PRELOAD:+:$PRELOAD} $command"
		;;
	esac
}

# COLUMN: makes ready what it needs. Return: whether it can be had here.
prepare() {
	unset REAL_CTL
	peer=
	peer_variables=
	case $1 in
	nvshare)
		peer=$(find_library libnvshare.so) && command -v nvshare-scheduler >/dev/null || return 1
		nvshare-scheduler >"$scratch/nvshare.log" 2>&1 &
		peer_pid=$!
		;;
	hami)
		peer=$(find_library libvgpu.so) || return 1
		peer_variables="CUDA_DEVICE_SM_LIMIT=50"
		;;
	esac
	case $1 in
	alone | none | preempt | nvshare | hami) stop_mps ;;
	static)
		stop_mps
		start_mps -S 2>/dev/null || return 1
		;;
	*) [ "$mps" = true ] || start_mps ;;
	esac
	case $1 in
	alone | none | mps | mps-* | client-priority | own-priority | nvshare | hami) return 0 ;;
	static)
		partition_1=$(static_partition) && partition_2=$(static_partition)
		return
		;;
	esac
	# shellcheck disable=SC2086 # several words
	if [ "$1" = preempt ]; then
		start_daemon --policy steer ${OPTIONS:-}
	else
		start_policy "$1" ${OPTIONS:-} || failed=1
	fi
	export REAL_CTL="env LD_LIBRARY_PATH='$tools_path' $ctl"
}

find_library() { # NAME
	ldconfig -p | awk -v name="$1" '$1 == name { print $NF; found = 1; exit } END { exit !found }'
}

# A control daemon that was started with -S makes partitions of whole chunks of SMs. Not tried yet: no machine had one.
static_partition() {
	chunks=$(echo lspart | nvidia-cuda-mps-control 2>/dev/null | awk 'NR == 2 { print int($2 / 2) }')
	[ "${chunks:-0}" -gt 0 ] || return 1
	echo "sm_partition add $(nvidia-smi --query-gpu=uuid --format=csv,noheader) $chunks" |
		nvidia-cuda-mps-control 2>/dev/null | awk '/^GPU-/ { print; found = 1 } END { exit !found }'
}

# COLUMN CELLS
run_column() {
	# shellcheck disable=SC2086 # several cells
	python3 "$here/real/real.py" programs "$list" $2 | while read -r name kind _ _ command; do
		# shellcheck disable=SC2086 # several words
		command_of "$1" "$name" "$kind" $command
	done >"$scratch/programs"
	# shellcheck disable=SC2086
	timeout -k 20 560 python3 "$here/real/real.py" drive "$list" "$folder" "$1" $2 <"$scratch/programs" || failed=1
	if [ -n "$daemon" ]; then
		stop_daemon
		cp "$scratch/sbeetd.log" "$folder/sbeetd-$1.log"
	fi
	if [ "$1" = nvshare ]; then
		kill "$peer_pid"
		wait "$peer_pid"
	fi
}

# CELLS: about how long they take.
seconds_of() {
	# shellcheck disable=SC2086 # several cells
	for cell in $1; do
		awk -v name="${cell%%+*}" -v least="$seconds_min" -v lead="$LEAD_S" -v rounds="$ROUNDS" '
		$1 == "urgent" && $2 == name { s = $3 * $5 / 1e3 }
		END { print rounds * ((s > least ? s : least) + lead + 0.5) }' "$list"
	done | awk '{ sum += $1 } END { printf "%d", sum + 30 }'
}

for column in ${COLUMNS:-alone none mps mps-25 mps-50 mps-75 client-priority own-priority static steer preempt \
	steer+dependent=on lookahead even nvshare hami}; do
	cells=$(cells_of "$column")
	[ -n "$cells" ] || continue
	takes=$(seconds_of "$cells")
	if [ $(($(date +%s) + takes)) -gt $until ]; then
		say "$column: no time left for its $(echo "$cells" | wc -l) cells ($takes s)"
		continue
	fi
	if ! prepare "$column"; then
		say "$column: not on this machine"
		continue
	fi
	say "$column: $(echo "$cells" | wc -l) cells, about $takes s"
	run_column "$column" "$cells"
done
python3 "$here/real/real.py" summary "$list" "$folder" >"$folder/real.md"
cat "$folder/real.md"
! awk -F, 'NR > 1 && $13 != "equal" { print "DIFFERENT: " $1 " " $2 ": " $13; bad = 1 } END { exit !bad }' "$folder/real.csv" ||
	failed=1
[ $failed -eq 0 ]
