#!/bin/sh
# schedulability.sh SBEETCTL OUT: Figures 4.6 to 4.13 of the dissertation, and what each reading of
# its text changes, behind "Schedulability" in FIGURES.md. OUT: folder for tables (.txt), numbers
# (.csv) and pictures (.svg). Takes about two minutes on two cores.
set -eu

sbeetctl=$(realpath "$1")
mkdir -p "$2"
cd "$2"

sweep() { # NAME PARAMETER OPTION...
	name=$1 parameter=$2
	shift 2
	"$sbeetctl" response-time --sweep "$parameter" --csv "$name.csv" --plot "$name.svg" "$@" >"$name.txt"
	echo "$name"
}

# The corrected bounds stand beside the methods of the figures.
methods="-m kthread-busy+gpu-priorities -m ioctl-busy-tight+gpu-priorities
	-m ioctl-suspend-tight+gpu-priorities -m mpcp-busy -m mpcp-suspend -m fmlp-busy -m fmlp-suspend
	-m safe-busy -m safe-suspend"
# shellcheck disable=SC2086
{
	sweep figure-4.6 tasks $methods --note "Dissertation: in general the ioctl approaches are ahead."
	sweep figure-4.7 cpus $methods --note "Dissertation: in general the ioctl approaches are ahead."
	sweep figure-4.8 utilisation $methods \
		--note "Dissertation: as the utilisation grows, kthread-busy falls below FMLP+."
	sweep figure-4.9 gpu-tasks $methods --note "Dissertation: in general the ioctl approaches are ahead."
	sweep figure-4.10 gpu-to-cpu $methods \
		--note "Dissertation: at 0.1, and only there, ioctl-suspend is below FMLP+."
	sweep figure-4.11 best-effort $methods \
		--note "Dissertation: with best-effort tasks preemption is far ahead."
}

# The same with 2 epsilon a segment in Eq. 4.3.
# shellcheck disable=SC2086
for figure in 4.6:tasks 4.7:cpus 4.8:utilisation 4.9:gpu-tasks 4.10:gpu-to-cpu 4.11:best-effort; do
	sweep "by-segment-${figure%:*}" "${figure#*:}" $methods --reading updates-by-segment
done

# Corrected against corrected.
corrected="-m safe-kthread -m safe-busy -m safe-suspend -m safe-mpcp-busy -m safe-mpcp-suspend
	-m safe-fmlp-busy -m safe-fmlp-suspend"
for parameter in utilisation best-effort; do
	# shellcheck disable=SC2086
	sweep corrected-$parameter $parameter $corrected \
		--note "Corrected bounds, which no simulated schedule exceeds; epsilon 1 ms."
done

gpu="-m kthread-busy -m kthread-busy+gpu-priorities -m ioctl-busy -m ioctl-busy+gpu-priorities
	-m ioctl-suspend -m ioctl-suspend+gpu-priorities"
for parameter in tasks cpus utilisation gpu-tasks gpu-to-cpu best-effort; do
	# shellcheck disable=SC2086
	sweep figure-4.12-$parameter $parameter $gpu
done

tight="-m ioctl-busy -m ioctl-busy-tight -m ioctl-suspend -m ioctl-suspend-tight --generator figure-4.13"
for parameter in tasks=3:10:1 gpu-tasks gpu-to-cpu best-effort; do
	# shellcheck disable=SC2086
	sweep "figure-4.13-${parameter%=*}" "$parameter" $tight
done

# Readings: NAME, then options; the same sets each time.
reading() {
	name=$1
	shift
	echo "$name"
	"$sbeetctl" response-time "$@"
	echo
}
ioctl="-m ioctl-busy-tight+gpu-priorities -m ioctl-suspend-tight+gpu-priorities"
u="--sweep utilisation=0.1:0.7:0.1"
# shellcheck disable=SC2086
{
	reading "x_i: OR" $u -m kthread-busy -m kthread-busy+gpu-priorities
	reading "x_i: AND" $u -m kthread-busy -m kthread-busy+gpu-priorities --reading x-by-formula
	reading "2 epsilon a job" $u $ioctl
	reading "2 epsilon a segment" $u $ioctl --reading updates-by-segment
	reading "updates as GCAPS" $u $ioctl --reading updates-as-gcaps
	reading "Audsley may turn the order of a CPU around" $u $ioctl --swap
	reading "no GPU priorities" $u -m ioctl-busy-tight -m ioctl-suspend-tight
	reading "MPCP" $u -m mpcp-busy -m mpcp-suspend
	reading "MPCP: with a section of each task above" $u -m mpcp-busy -m mpcp-suspend \
		--reading mpcp-boosted-section
	reading "number of tasks: dealt to the CPUs" --sweep tasks=4:20:4
	reading "number of tasks: each its own utilisation" --sweep tasks=4:20:4 \
		--param task-utilisation=0.05:0.3
	for best in 0 0.5:1 1; do
		reading "least times: $best" $u $ioctl --param best=$best
		reading "least times, sets of Figure 4.13: $best" --sweep tasks=3:7:1 $tight --param best=$best
	done
	reading "BX^c, sets of Figure 4.13" --sweep tasks=3:7:1 $tight
	reading "BX^c alone" --sweep tasks=3:7:1 $tight --reading bxc-alone
	reading "BX^c rounded down" --sweep tasks=3:7:1 $tight --reading bxc-floor
	reading "sets of Figure 4.13, short tasks 0.5 to 0.7" --sweep tasks=3:7:1 $tight \
		--param short-utilisation=0.5:0.7
	for epsilon in 1ms 100us 0ms; do
		reading "corrected, epsilon $epsilon" $u $corrected --epsilon $epsilon
	done
	for epsilon in 100us 0ms; do
		reading "printed, epsilon $epsilon" $u -m kthread-busy -m ioctl-busy -m ioctl-suspend \
			--epsilon $epsilon
	done
} >readings.txt
echo readings
