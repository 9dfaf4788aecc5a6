#!/bin/sh
# examples.sh SOURCE SYSTEMD PYTHON PAGE...: every example of the man pages does what its page says. It is taken
# out of the page, which has it as a command (.Dl $ COMMAND) or as a display (.Bd -literal), and is run on the
# simulated GPU, in a folder with the files that the pages name. A display may have several commands, each after
# "$ " or "# ".
# A comment in front says what is special:
#
#	.\" example: file NAME			the display is this file, for the commands after it
#	.\" example: output			the command before prints exactly this
#	.\" example: python			the display is Python
#	.\" example: exit code N		the command ends with this code, not 0
#	.\" example: runs until it is interrupted
#	.\" example: full screen		the command needs a terminal, and leaves it with q
#	.\" example: run by FILE		by another test
#	.\" example: not run, REASON
#
# A display without such a comment fails, and so does a command that the reader would see in another form.
# SYSTEMD: the folder of the units. docker, logger and systemctl are replaced by scripts that check what they are
# given.
. "$(dirname "$0")/lib.sh"
here=$(cd "$(dirname "$0")" && pwd)
source=$1
units=$2
python=$3
shift 3
command -v jq >/dev/null || { say "no jq here"; exit 77; }

bin=$scratch/bin
mkdir "$bin" "$scratch/list" "$scratch/pages" "$scratch/units"
ln -s "$ctl" "$bin/sbeetctl"
ln -s "$SBEET_BUILD/daemon/sbeetd" "$bin/sbeetd"
ln -s "$python" "$bin/python3"
export SIMGPU=16:mps,16:mps SBEET_SHIM="$SBEET_BUILD/shim/libsbeet.so" SBEET_LOG=warn SBEET_TIMEOUT=1min \
	HOME="$scratch" PYTHONPATH="$source/shim/python" PYTHONDONTWRITEBYTECODE=1
PATH=$bin:$PATH
cp "$units"/* "$source"/systemd/system/*.socket "$scratch/units"

# Runs the program in the variables that a container would be given. IMAGE is ./detect.
cat >"$bin/docker" <<'END'
#!/bin/sh
[ "$1" = run ] || exit 1
shift
while [ $# -gt 1 ]; do
	case $1 in
	--env | -e) export "$2" && shift 2 ;;
	--volume) [ -e "${2%%:*}" ] && shift 2 || exit 1 ;;
	--device) grep -q "\"kind\": \"${2%%/*}/" etc/sbeet.json && export SBEET_CDI=1 && shift 2 || exit 1 ;;
	--gpus | --ipc) shift 2 ;;
	*) echo "docker: $1" >&2 && exit 1 ;;
	esac
done
[ "$1" = IMAGE ] && [ -n "$SBEET_TASK" ] && [ -n "${LD_PRELOAD:-}${SBEET_CDI:-}" ] || exit 1
# the paths of there are mounted paths of here
exec env SBEET_RUNTIME_DIR="$EXAMPLES_RUN" LD_PRELOAD="$SBEET_SHIM" ./detect
END
# What systemd would do is done by tests/systemd; here it is enough that there is such a unit.
cat >"$bin/systemctl" <<'END'
#!/bin/sh
case $1 in
enable | restart) ;;
*) exit 1 ;;
esac
for word; do :; done
[ -e "$EXAMPLES_UNITS/$word" ] || [ -e "$EXAMPLES_UNITS/system-$word.service" ]
END
cat >"$bin/logger" <<'END'
#!/bin/sh
[ "$1 $2" = "-t sbeet" ] && [ $# -eq 3 ] && echo "$3" >>logged
END
chmod +x "$bin/docker" "$bin/systemctl" "$bin/logger"
export EXAMPLES_RUN="$SBEET_RUNTIME_DIR" EXAMPLES_UNITS="$scratch/units"

# The files that pages name and do not show.
mkdir "$scratch/work" "$scratch/work/tasks.d" "$scratch/work/etc"
cd "$scratch/work" || fail "no folder"
cp "$apps/vecadd" detect
cp "$apps/vecadd" camera
cp "$here/ptx/vecadd.ptx" kernel.ptx
printf 'import os\nos.execv("./detect", ["./detect"])\n' >train.py

wrong() {
	fail "$page: '$text': $*"
}

# A task that is always late, and as session 3 one whose 17th job waits. Seldom, for sbeetd keeps 256 decisions only.
start_programs() {
	cat >third.py <<-'END'
		import os, runpy, sys, time
		sys.argv = ["marked.py", sys.argv[2], "16", sys.argv[1]]
		runpy.run_path(sys.argv[3])
		while not os.path.exists("go"):
		    time.sleep(0.02)
		sys.argv[2] = "1"
		runpy.run_path(sys.argv[3])
	END
	start train "$apps/vecadd" --frames 1000000 --period 1s
	until_true "session 1" status_is sessions train -eq 1
	"$ctl" run --task hurried --period 1s --deadline 1us -- "$apps/vecadd" --frames 1000000 --period 1s \
		>"$scratch/hurried.out" 2>"$scratch/hurried.err" &
	started="$started $!"
	until_true "session 2" status_is sessions hurried -eq 1
	CUDA_VISIBLE_DEVICES=1 "$ctl" run --task camera --period 33ms --job marks -- \
		"$python" third.py "$here/marked.py" kernel.ptx >"$scratch/camera.out" 2>"$scratch/camera.err" &
	started="$started $!"
	until_true "16 jobs of camera" status_is jobs camera -eq 16
	"$ctl" gpu drain 1
	: >go
	until_true "job 3.17 waits" "$ctl" job show 3.17
}

stop_programs() {
	end_started
	started=
	"$ctl" gpu resume 1
	until_true "nobody is left" status_is sessions "" -eq 0
}

# As the page has it, but measured with fewer jobs, and in a shorter time; smaller sweeps; no file of this machine.
faster() { # COMMAND
	case $1 in
	"sbeetctl profile run "* | "sbeetctl gpu calibrate "*)
		printf '%s\n' "$1" | sed 's/ -- / --sms 4,8,16 --runs 3 --power-time 100ms -- /' ;;
	"sbeetctl simulate "*" --sweep "*) printf '%s\n' "$1 --tasksets 1 --duration 1s" ;;
	*/etc/cdi/*) printf '%s\n' "$1" | sed 's,/etc/cdi/,etc/,' ;;
	*) printf '%s\n' "$1" ;;
	esac
}

daemons=
run_command() { # CODE
	case $text in
	"sbeetctl profile run "* | "sbeetctl gpu calibrate "*) [ -z "$started" ] || stop_programs ;;
	esac
	code=0
	case $text in
	*"&") # goes on, and may say something later
		eval "$text" >../sbeetd.log 2>&1 </dev/null
		daemons="$daemons $!"
		until_true "sbeetd answers" sbeetctl status
		cp ../sbeetd.log ../said.err
		: >../said
		;;
	*) eval "$(faster "$text")" >../said 2>../said.err </dev/null || code=$? ;;
	esac
	case $text in
	*"profile run"* | *calibrate*)
		# a busy machine has held up so many jobs that it can't be true
		while [ $code -eq 1 ] && grep -q "call again .* to measure anew" ../said.err; do
			code=0
			eval "$(faster "$text")" >../said 2>../said.err </dev/null || code=$?
		done
		;;
	"sbeetctl doctor"*) # there is no driver of the kernel, and often no group
		[ $code -eq 1 ] && grep -q '^sbeetd  *ok ' ../said && code=0
		;;
	esac
	[ $code -eq "$1" ] || wrong "exit code $code: $(cat ../said ../said.err)"
	case $text in
	*"profile run"* | *calibrate*) return ;; # times and power of a busy machine
	esac
	# users of the pages are not there, nor are profiles at the start
	! grep "warning" ../said.err | grep -qv -e "unknown user or group" -e "plans by profiles" || wrong "$(cat ../said.err)"
}

# What it prints is seen before it is interrupted; with -q it prints nothing, and calls logger.
run_until_interrupted() {
	rm -f logged
	: >../said
	# a shell's background processes ignore that signal
	env --default-signal=INT sh -c "exec $text" >../said 2>../said.err </dev/null &
	pid=$!
	started="$started $pid"
	until_true "'$text' says something" eval "[ -s ../said ] || [ -s logged ]"
	kill -INT $pid
	code=0
	wait $pid || code=$?
	started=${started% *}
	[ $code -eq 0 ] || [ $code -eq 130 ] || wrong "exit code $code: $(cat ../said.err)"
}

run_full_screen() {
	command -v script >/dev/null || return 0
	mkfifo keys
	TERM=xterm script -qec "$text" /dev/null <keys >../said 2>../said.err &
	pid=$!
	started="$started $pid"
	exec 9>keys
	until_true "'$text' draws" grep -q hurried ../said
	printf q >&9
	wait $pid || wrong "exit code $?: $(cat ../said)"
	started=${started% *}
	exec 9>&-
	rm keys
}

run_display() { # MARK
	case $1 in
	"file "*) cp "$file" "${1#file }" ;;
	output) diff "$file" ../said || wrong "the command before it prints something else" ;;
	python)
		printf 'def launch():\n    print("launched")\n' | cat - "$file" >display.py
		[ "$(python3 display.py)" = launched ] || wrong "it does not do its job"
		;;
	*) wrong "the display is neither run, nor marked with a reason why not" ;;
	esac
}

run_example() { # KIND MARK
	say "$title: $(printf '%s\n' "$text" | head -n 1)"
	case $1,$2 in
	*,"run by "*)
		# service.sh calls example(), others name the page at their top
		grep -qi "example $title \|^# .*${title%.*}[.(]${title##*.}" "$source/${2#run by }" || wrong "nobody runs it" ;;
	*,"not run, "?*) ;;
	command,none) run_command 0 ;;
	command,"exit code "*) run_command "${2#exit code }" ;;
	command,"runs until it is interrupted") run_until_interrupted ;;
	command,"full screen") run_full_screen ;;
	display,*) run_display "$2" ;;
	*) wrong "what is '.\\\" example: $2'?" ;;
	esac
}

n_run=0
for page; do
	title=$(basename "$page")
	SBEET_RUNTIME_DIR=$EXAMPLES_RUN
	rm -rf "$scratch/list"
	mkdir "$scratch/list"
	awk -v folder="$scratch/list" -f "$here/examples/list.awk" "$page" >"$scratch/examples" || fail "$page"
	# The reader's form: a quote that a macro takes away is missing there.
	if command -v mandoc >/dev/null; then
		mandoc -Tascii "$page" | sed "s/.$(printf '\b')//g; s/^ *//" >"$scratch/pages/$title"
	else
		groff -mandoc -Tascii -P-cbou "$page" | sed 's/^ *//' >"$scratch/pages/$title"
	fi
	case $title in
	sbeetctl.1)
		start_daemon --policy fcfs --config-dir "$PWD"
		start_programs
		;;
	sbeet-recipes.7) start_daemon ;;
	esac
	while read -r number kind mark <&4; do
		file=$scratch/list/$number
		text=$(cat "$file")
		while IFS= read -r line; do
			printf '%s\n' "$line" | sed 's/^ *//; /^$/d' >../line
			[ ! -s ../line ] || grep -qxFf ../line "$scratch/pages/$title" || wrong "the reader sees no line '$line'"
		done <"$file"
		if [ "$kind" = command ]; then
			case $text in
			'$ '?* | '# '?*) text=${text#??} ;;
			*) wrong "a command begins with '\$ ' or '# '" ;;
			esac
		fi
		run_example "$kind" "$mark"
		n_run=$((n_run + 1))
	done 4<"$scratch/examples"
	[ -z "$started" ] || stop_programs
	[ -z "$daemon" ] || stop_daemon
	for process in $daemons; do
		kill "$process" && wait "$process" || fail "$page: sbeetd: exit code $?"
	done
	daemons=
done
say "$n_run examples"
[ $n_run -gt 80 ] || fail "only $n_run examples"
