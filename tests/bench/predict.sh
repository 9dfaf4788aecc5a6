#!/bin/sh
# predict.sh SBEETCTL [POLICY...]: how many jobs the simulator has late in the task sets of
# tests/gpu/evaluation/terms.txt, beside what was measured there on an H200: a table in Markdown.
# Policies: mps, mps-50 and steer if none is named; others have nothing to be compared with.
# DRAWS (default 3): with so many different first releases, of which the mean counts.
# SETS=steer: those of evaluation/steer-tasks.csv instead, which sbeetd planned when they were measured.
set -eu

sbeetctl=$(realpath "$1")
shift
[ $# -gt 0 ] || set -- mps mps-50 steer
data=$(realpath "$(dirname "$0")/../gpu/evaluation")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

# COLUMN U:SET WORK PERIOD DEADLINE ... MISSED, a line a task; profiles; the time that was measured.
if [ "${SETS:-}" = steer ]; then
	awk -F, '$1 == "mixed" { print $2, $3 ":" $4, $6, $7, $8, $11 }' "$data/steer-tasks.csv" >terms
	grep -v -e ^block -e ^network "$data/steer-measured.txt" >profiles # the other family
	: >capped
	time=3s
else
	# The last terms that a plan was measured with stand for steer.
	sed 's/^planh-held /steer /' "$data/terms.txt" >terms
	cp "$data/measured.txt" profiles
	grep -v '^#' "$data/capped.txt" >capped
	time=2s
fi

# Launches of a job, and waves of blocks in each of them.
cat >works <<'END'
vecadd 20 15
stream 400 4
matmul 3 4
matmul-small 6 1
hotspot 101 4
histogram 4 1
compute 8 2
compute-long 24 2
END

# scenario SET DRAW: the measured profiles, and the set's tasks, as a scenario.
scenario() {
	awk -v set="$1" -v draw="$2" '
		FILENAME == "works" { launches[$1] = $2; waves[$1] = $3; next }
		/^#/ { next }
		FILENAME == "profiles" {
			work[$1]; copies[$1] = "\"copy_in\": \"" $3 "ns\", \"copy_out\": \"" $6 "ns\""
			points[$1] = points[$1] (points[$1] ? ", " : "") "{\"sms\": " $2 ", \"worst\": \"" \
				$4 "ns\", \"watts\": " $7 "}"
			if ($2 == 132)
				whole[$1] = $4
			next
		}
		$1 == "mps" && $2 == set {
			tasks = tasks (tasks ? ",\n" : "") sprintf("{\"name\": \"%d\", \"profile\": \"%s\", " \
				"\"period\": \"%dns\", \"deadline\": \"%dns\", \"offset\": \"%dns\"}",
				++n, $3, $4, $5, rand() * $4)
		}
		BEGIN { srand(draw) }
		END {
			print "{\"gpus\": [{\"name\": \"h200\", \"sms\": 132, \"group\": 8, \"static_w\": 0,"
			print "\"idle_w_per_sm\": 0}], \"profiles\": ["
			for (w in work) {
				printf "%s{\"name\": \"%s\", \"on\": {\"h200\": {%s, \"launches\": %d, " \
					"\"block\": \"%dns\", \"points\": [%s]}}}", between, w, copies[w],
					launches[w], whole[w] / launches[w] / waves[w], points[w]
				between = ",\n"
			}
			print "], \"tasks\": [" tasks "]}"
		}' works profiles terms
}

# What was measured: COLUMN SET MISSED.
awk '!/^#/ { n[$1 " " $2] += $NF } END { for (i in n) print i, n[i] }' terms >measured
cat capped >>measured

for set in $(awk '$1 == "mps" { print $2 }' terms | sort -u); do
	draw=0
	while [ $((draw += 1)) -le "${DRAWS:-3}" ]; do
		scenario "$set" "$draw" >set.json
		for policy; do
			yields=
			[ "$policy" != steer ] || yields="--param yield=off" # as these were measured
			# shellcheck disable=SC2086 # several words
			missed=$("$sbeetctl" simulate -p "$policy" -d "$time" --param overhead=125us \
				--param sequential=on $yields --no-legend --columns=missed set.json)
			echo "$policy $set $missed"
		done
	done
done >predicted

awk -v draws="${DRAWS:-3}" '
	function row(name, p, m) {
		printf "| %s | %d | %s | %s |\n", name, p / draws + 0.5, m == "" ? "-" : m,
			m ? sprintf("%+d %%", (p / draws / m - 1) * 100) : "-"
	}
	FILENAME == "measured" { measured[$1, $2] = $3; next }
	{
		split($2, u, ":")
		if (!(($1, $2) in seen)) {
			seen[$1, $2]
			if (($1, $2) in measured) {
				of[$1, "all"] += measured[$1, $2]
				of[$1, u[1]] += measured[$1, $2]
			}
		}
		sum[$1, "all"] += $3
		sum[$1, u[1]] += $3
		if (!($1 in policies)) {
			policies[$1]
			order[++n] = $1
		}
	}
	END {
		print "| | predicted | measured | |\n|---|---|---|---|"
		split("all 1.2 1.6 2.0", parts)
		for (i = 1; i <= n; i++)
			for (k = 1; k <= 4; k++)
				row(order[i] (k == 1 ? "" : ", U " parts[k]), sum[order[i], parts[k]],
					of[order[i], parts[k]])
	}' measured predicted
