#!/bin/sh
# test-verbs.sh SBEETCTL SBEETD SCENARIO TRACE PTX SBEETCTL.1 IS-JSON: what holds for every verb that
# 'sbeetctl help' names, whatever it does: help, wrong options, wrong arguments, a daemon that is not
# there or may not be reached, and for those that read, JSON; and that the man page has an example of it.
set -eu
. "$(dirname "$0")/../../lib.sh"

here=$(dirname "$(realpath "$0")")
sbeetctl=$1
sbeetd=$2
scenario=$3
trace=$4
ptx=$5
page=$6
is_json=$7
scratch=$(mktemp -d)
logs=$scratch/log
daemon=
clean_up() {
	[ -z "$daemon" ] || kill "$daemon" 2>/dev/null || true
	wait
	rm -rf "$scratch"
}
trap clean_up EXIT
cd "$scratch"
mkdir -m 700 run
export SBEET_RUNTIME_DIR="$scratch/run" SBEET_TIMEOUT=20s
failed=0
wrong() {
	echo "$*"
	[ ! -s err ] || sed 's/^/    /' err
	failed=1
}

# ends CODE ARGUMENT...: what it says is in out and err.
ends() {
	want=$1
	shift
	code=0
	"$sbeetctl" "$@" >out 2>err </dev/null || code=$?
	[ "$code" -eq "$want" ] || wrong "sbeetctl $*: exit code $code, expected $want"
}

# says TEXT: on stderr, in one line, and nothing on stdout.
says() {
	[ ! -s out ] || wrong "$verb: writes to stdout although it failed"
	[ "$(wc -l <err)" -eq 1 ] || wrong "$verb: expected one line"
	grep -q -e "^sbeetctl: .*$1" err || wrong "$verb: does not say '$1'"
}

# 'plan' ends with 3 where something is late, and with 7 where that is not known: with these deadlines
# nothing is late under fcfs.
sed 's/"deadline": *"[^"]*"/"deadline": "20ms"/' "$scenario" >timely.json
scenario=$scratch/timely.json

"$sbeetctl" help | sed -n '/^Verbs:/,/^$/s/^  \([a-z][a-z -]*[a-z]\)  .*/\1/p' >verbs
[ "$(wc -l <verbs)" -ge 30 ] || { echo "where are the verbs?"; exit 1; }

# Arguments with which a verb has all it needs; a daemon is asked about its GPU 0.
arguments() {
	case $1 in
	'gpu show' | 'gpu drain' | 'gpu resume') echo 0 ;;
	'task show' | 'task explain') echo nobody ;;
	'task set') echo nobody --priority 1 ;;
	'session show' | 'session kill' | 'job explain') echo 7 ;;
	'job show') echo 7.7 ;;
	'allocation add') echo a --cgroup /a --sms 4 ;;
	'allocation show') echo nobody ;;
	'allocation remove') echo nobody ;;
	'trace record') echo -d 100ms recorded ;;
	'trace export') echo "$trace" ;;
	run) echo --require true ;;
	'gpu calibrate') echo --runs 1 true ;;
	'gpu examine') echo -c config.json ;;
	'profile run') echo --task nobody true ;;
	ptx) echo "$ptx" ;;
	simulate) echo "$scenario" ;;
	plan) echo "$scenario" -p fcfs ;;
	response-time) echo segments.json ;;
	'profile list') echo profiles.json ;;
	'profile show') echo profiles.json first ;;
	'profile import') echo wcet.csv apps.csv ;;
	'profile export') echo profiles.json wcet ;;
	monitor) echo -d 100ms ;;
	esac
}
cat >profiles.json <<'END'
{"profiles": [{"name": "first", "on": {"gpu": {"points": [{"sms": 4, "worst": "2ms", "watts": 3}]}}}]}
END
cat >segments.json <<'END'
{"cpus": 1, "epsilon": "1ms", "tasks": [{"name": "a", "cpu": 0, "priority": 1, "period": "20ms",
 "segments": [{"cpu": "1ms"}, {"misc": "1ms", "exec": "2ms"}]}]}
END
printf 'gpu,app,sm,min_ms,max_ms\ngpu,first,4,1,2\n' >wcet.csv
printf 'app,gpu,power_dynamic_w_per_sm,ghd_ms,gdh_ms\nfirst,gpu,1,0,0\n' >apps.csv

# Verbs that ask the daemon, and what they then end with: 0, 4 where there is no such object, 1 where
# the screen is missing.
asks() {
	case $1 in
	status | 'gpu list' | 'gpu show' | 'task list' | 'task history' | 'session list' | 'job list' | kernel | monitor | config | \
		reload | 'gpu drain' | 'gpu resume' | 'trace record' | 'allocation list' | 'allocation add') echo 0 ;;
	'task show' | 'task explain' | 'session show' | 'job show' | 'task set' | 'session kill' | 'job explain' | 'allocation show' | \
		'allocation remove') echo 4 ;;
	esac
}
# Those that change or measure something with the daemon, with all they need.
changes='policy fcfs
gpu calibrate --runs 1 true
profile run --task nobody true'
# Verbs that run a program: its words are no arguments of theirs.
runs() {
	"$sbeetctl" help "$@" | head -n 1 | grep -q ' \[--\] '
}
# Verbs that give JSON.
reads() {
	"$sbeetctl" help "$@" | grep -q '^  -j, --json'
}

while read -r verb; do
	# a verb may be two words, arguments are
	# shellcheck disable=SC2046,SC2086
	{
		ends 0 $verb --help
		[ ! -s err ] || wrong "$verb --help: writes to stderr"
		head -n 1 out | grep -q -e "^Usage: sbeetctl $verb \[OPTION" || wrong "$verb --help: no usage"
		cp out help
		ends 0 help $verb
		cmp -s out help || wrong "help $verb: is not what $verb --help is"
		ends 0 --help $verb
		cmp -s out help || wrong "--help $verb: is not what $verb --help is"
		awk 'length > 100 { exit 1 }' help || wrong "$verb --help: a line is longer than 100"

		ends 2 $verb --no-such-option $(arguments "$verb")
		says "sbeetctl $verb --help'\|Did you mean '--"
		ends 2 $verb --hepl $(arguments "$verb")
		says "Did you mean '--help'"
		ends 2 $verb --color=maybe $(arguments "$verb")
		says 'auto, always or never'
		if ! runs $verb; then
			ends 2 $verb a b c d e f g h
			says "'"
		fi
		if head -n 1 help | grep -q '\] [A-Z]' && [ -n "$(arguments "$verb")" ]; then
			ends 2 $verb
			says "$verb --help'\|needs"
		fi
		if [ -n "$(asks "$verb")" ]; then
			ends 3 $verb $(arguments "$verb")
			says 'sbeetd'
		fi
		if reads $verb; then
			ends 2 $verb --json=nonsense $(arguments "$verb")
			says 'short, pretty or off'
		fi
	}
done <verbs

# A noun alone: what there is of it; and the second word alone.
for noun in gpu task session job allocation trace profile; do
	verb=$noun
	ends 0 "$noun" --help
	cp out help
	ends 0 help "$noun"
	cmp -s out help || wrong "help $noun: is not what $noun --help is"
	ends 0 --help "$noun"
	cmp -s out help || wrong "--help $noun: is not what $noun --help is"
	[ "$(grep -c "^  $noun [a-z]* " help)" = "$(grep -c "^$noun " verbs)" ] || wrong "$noun --help: verbs are missing"
	ends 2 "$noun"
	says "'$noun' needs one of: "
done
verb=kill
ends 2 kill 3
says "Did you mean 'session kill'?"
verb=list
ends 2 list
says "Did you mean 'gpu list', 'task list', 'session list', 'job list', 'allocation list', 'profile list'?"

echo "$changes" >changes
while read -r verb; do
	# shellcheck disable=SC2086
	ends 3 $verb
	says 'sbeetd'
done <changes

# A file that is not there is a failure, whoever reads it.
for verb in ptx simulate plan 'trace export' 'profile list' response-time; do
	# shellcheck disable=SC2086
	ends 1 $verb /nowhere
	says "cannot read '/nowhere': No such file"
done

# A daemon whose sockets this user may not reach; root may reach all, so it becomes nobody.
if [ "$(id -u)" = 0 ]; then
	as="setpriv --reuid=65534 --regid=65534 --clear-groups"
else
	as="env"
fi
mkdir -m 755 open
cp "$sbeetctl" open/sbeetctl
chmod 711 .
mkdir -m 000 closed
# shellcheck disable=SC2086
if $as open/sbeetctl version >out 2>err; then
	cat verbs changes >both
	while read -r verb; do
		[ -n "$(asks "$verb")" ] || grep -qxF "$verb" changes || continue
		code=0
		# shellcheck disable=SC2046,SC2086
		$as env SBEET_RUNTIME_DIR="$scratch/closed" open/sbeetctl $verb $(arguments "$verb") >out 2>err </dev/null || code=$?
		[ "$code" -eq 5 ] || wrong "$verb: exit code $code where permission is denied, expected 5"
		says "$scratch/closed/control.sock: .*ermission denied"
	done <both
else
	echo "nobody can't run sbeetctl here: denied permission is not tried"
fi
chmod 700 . closed

"$sbeetd" --policy even --gpus 46,6 2>log &
daemon=$!
until_true "sbeetd answers" "$sbeetctl" --json

# json FILE: all of it is JSON; monitor has an object a line.
json() {
	"$is_json" <"$1" 2>why
}
n_read=0
while read -r verb; do
	want=$(asks "$verb")
	# shellcheck disable=SC2046,SC2086
	if [ -n "$want" ]; then
		ends "$want" $verb $(arguments "$verb")
		[ "$want" -eq 0 ] || says '[0-9a-z]'
	fi
	# shellcheck disable=SC2046,SC2086
	if reads $verb && ! runs $verb && [ "$verb" != "gpu examine" ]; then # that needs a GPU: test-examine.sh
		n_read=$((n_read + 1))
		ends "${want:-0}" $verb --json=short $(arguments "$verb")
		[ "${want:-0}" -ne 0 ] || json out || wrong "$verb --json=short: this is no JSON: $(cat why): $(head -c 200 out)"
		cat out >>all.json
		[ "${want:-0}" -ne 0 ] || ! grep -q -v '^[[{].*[]}]$' out || wrong "$verb --json=short: a value is not on one line"
		ends "${want:-0}" $verb --json=pretty $(arguments "$verb")
		[ "${want:-0}" -ne 0 ] || json out || wrong "$verb --json=pretty: this is no JSON: $(cat why)"
		ends "${want:-0}" $verb --json=off $(arguments "$verb")
		! json out || wrong "$verb --json=off: this is JSON"
	fi
done <verbs
[ "$n_read" -ge 15 ] || wrong "only $n_read verbs give JSON"
# A GPU by its UUID, in any case; one that is not there.
verb='gpu show'
ends 0 gpu show GPU-02000000-0000-0000-0000-000000000000
grep -q '^ *SMS  6$' out || wrong "$verb: not the GPU of this UUID"
grep -q '^ *UUID  GPU-02000000-0000-0000-0000-000000000000$' out || wrong "$verb: it does not show the UUID"
ends 0 gpu show gpu-02000000-0000-0000-0000-000000000000
ends 4 gpu show GPU-03000000-0000-0000-0000-000000000000
says "no gpu 'GPU-03000000"
verb=monitor
ends 0 monitor -g 1 -d 100ms
ends 4 monitor -g 9 -d 100ms
says "no gpu '9'; 'sbeetctl gpu list' lists them"

# Which policy is in force; that one has no profiles to plan with.
verb=policy
ends 0 policy fcfs
[ ! -s err ] || wrong "policy fcfs: it warns"
ends 0 policy
[ "$(grep -c '(in force)' out)" = 1 ] && grep -q '^fcfs  *(in force) ' out || wrong "policy: the one in force is not marked"
ends 0 policy --json=short
[ "$(grep -o '"active":true' out | wc -l)" = 1 ] || wrong "policy --json: not one is active"
cat out >>all.json
ends 0 config
grep -q '^sbeetd *policy *fcfs *request ' out || wrong "config: it does not show the policy that was set"
ends 0 policy lookahead
says "policy 'lookahead' plans by profiles, and sbeetd has none"
ends 0 policy --quiet lookahead
[ ! -s err ] || wrong "policy --quiet warns"
ends 0 policy even

verb=response-time
ends 7 response-time --epsilon measured segments.json
says 'sbeetd has not measured how long it takes to preempt a GPU: give --epsilon=TIME'
ends 0 response-time --sweep cpus=1 --tasksets 1 --json
cat out >>all.json
# What sessions and jobs have is looked at in test-top.sh, where there are some.
sh "$here/test-keys.sh" "$page" "$(dirname "$page")"/sbeet-*.5 <all.json || failed=1

# That they work is tested in tests/apps/examples.sh.
sed -nE '/^\.Sh EXAMPLES/,/^\.Sh SEE/s/^(\.Dl )?\$ sbeetctl *//p' "$page" >examples
while read -r verb; do
	grep -q -e "^$verb\( \|\$\)" examples || wrong "$verb: no example in the man page"
done <verbs
exit $failed
