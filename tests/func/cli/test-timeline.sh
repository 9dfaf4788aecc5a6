#!/bin/sh
# test-timeline.sh SBEETCTL TRACE: the page of 'trace export --html' in a real browser draws exactly
# the segments that the trace has: at first, where its address says, and after keys and wheel were
# used; and where they are too many, columns of just the height that they add up to.
set -eu

sbeetctl=$1
trace=$2
browser=
for name in chromium chromium-browser google-chrome; do
	browser=${browser:-$(command -v $name || true)}
done
[ -n "$browser" ] || { echo "no Chromium here"; exit 77; }

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

# dump FILE[#VIEW]: the document after its scripts have run. A browser that a busy machine keeps from
# starting is started again; how long its scripts take is not the machine's time.
dump() {
	for attempt in 1 2 3; do
		browse "$1" >document && grep -q '</html>' document && break
		echo "attempt $attempt to open $1 failed" >&2
	done
	cat document
}
browse() {
	HOME=$scratch timeout 200 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage \
		--no-first-run --disable-extensions --user-data-dir="$scratch/profile" --window-size=1280,800 \
		--virtual-time-budget=4000 --dump-dom "file://$scratch/$1" 2>"$scratch/browser.err"
}
echo '<!DOCTYPE html><p>it works' >empty.html
dump empty.html | grep -q 'it works' || { cat browser.err; echo "Chromium does not run here"; exit 77; }

"$sbeetctl" trace export --format=csv --output=jobs.csv "$trace"
"$sbeetctl" trace export --html --output=page.html "$trace"
grep -Eq '(src|href)="?(https?:)?//' page.html && { echo "the page needs the network"; exit 1; }

# A line for each segment, the chart, and what a task has of a GPU's columns: the area of its shape.
cat >segments.awk <<'END'
function area(path,	n, step, start, k, x, y, px, sum) {
	n = split(path, step, /[MVHz]/)
	split(step[2], start, " ")
	px = start[1]
	y = start[2]
	for (k = 3; k < n; k++) { # V and H take turns
		if (k % 2 == 1) {
			y = step[k]
		} else {
			x = step[k]
			sum -= (x - px) * y # upwards is less
			px = x
		}
	}
	return sum
}
function attribute(tag, name) {
	return match(tag, " " name "=\"[^\"]*\"") ? substr(tag, RSTART + length(name) + 3, RLENGTH - length(name) - 4) : ""
}
{
	gsub(/</, "\n<")
	n = split($0, tags, "\n")
	for (i = 1; i <= n; i++) {
		t = tags[i]
		if (t ~ /^<svg id="chart"/) {
			printf "view %s %s %s %s %s %s\n", attribute(t, "data-from"), attribute(t, "data-to"),
				attribute(t, "data-left"), attribute(t, "data-right"), attribute(t, "data-origin"),
				attribute(t, "data-merged")
		} else if (t ~ /^<path class="columns[ "]/) {
			printf "columns %s %s %.3f\n", attribute(t, "data-gpu"), attribute(t, "data-task"), area(attribute(t, "d"))
		} else if (t ~ /^<rect class="average"/) {
			printf "panel %s %s\n", attribute(t, "data-gpu"), attribute(t, "height")
		} else if (t ~ /^<rect class="seg[^>]* data-job="[0-9]/) {
			printf "seg %s %s %s %s %s %s %s %s\n", attribute(t, "data-job"), attribute(t, "data-gpu"),
				attribute(t, "data-sm"), attribute(t, "data-n"), attribute(t, "data-from"),
				attribute(t, "data-to"), attribute(t, "x"), attribute(t, "width")
		}
	}
}
END

# Against the table: the same segments in the view, and each where its times belong.
cat >check.awk <<'END'
function fail(text) {
	print "wrong: " text
	bad = 1
}
FILENAME == "drawn" && $1 == "view" { from = $2; to = $3; left = $4; right = $5; origin = $6; merged = $7 }
FILENAME == "drawn" && $1 == "panel" { height[$2] = $3 }
FILENAME == "drawn" && $1 == "columns" { area[$2 " " $3] = $4 }
FILENAME == "drawn" && $1 == "seg" {
	key = $2 " " $3 " " $4 " " $5 " " $6 " " $7
	if (seen[key]++) {
		fail("drawn twice: " key)
	}
	n_drawn++
	a = left + ($6 - from) / (to - from) * (right - left)
	b = left + ($7 - from) / (to - from) * (right - left)
	a = a < left ? left : a
	b = b > right ? right : b
	w = b - a < 0.8 ? 0.8 : b - a
	if ($8 - a > 0.02 || a - $8 > 0.02 || $9 - w > 0.02 || w - $9 > 0.02) {
		fail("job " $2 " is drawn at " $8 " with width " $9 ", expected " a " with " w)
	}
}
FILENAME != "drawn" && FNR > 1 {
	# session,job,"task",state,gpu,slot,"sms",n_sms,enforcement,exact,release,granted,finished,...
	line = $0
	gsub(/"[^"]*"/, "&", line)
	match(line, /,"[0-9,-]*",/)
	sms = substr(line, RSTART + 2, RLENGTH - 4)
	head = substr(line, 1, RSTART)
	tail = substr(line, RSTART + RLENGTH)
	split(head, h, ",")
	split(tail, t, ",")
	# tail: n_sms,enforcement,exact,release,granted,finished,...
	if (t[5] == "" || t[6] == "") {
		next
	}
	begin = t[5] - origin
	end = t[6] - origin
	if (end < from || begin > to) {
		next
	}
	if (h[5] in height) {
		a = begin < from ? from : begin
		b = end > to ? to : end
		gsub(/"/, "", h[3])
		held[h[5] " " h[3]] += (b - a) * t[1]
	}
	n = split(sms, parts, ",")
	for (i = 1; i <= n; i++) {
		m = split(parts[i], p, "-")
		n_expected++
		key = sprintf("%s.%s %s %d %d %.0f %.0f", h[1], h[2], h[5], p[1], m > 1 ? p[2] - p[1] + 1 : 1,
			begin, end)
		if (!seen[key]) {
			n_missing++
			missing = n_missing > 20 ? missing : missing "\n" key
		}
	}
}
END {
	for (key in held) {
		split(key, of, " ")
		drawn = area[key] / ((right - left) * height[of[1]]) * (to - from) * n_sms
		n_columns++
		if (drawn < held[key] * 0.99 || drawn > held[key] * 1.01) {
			fail("columns of " key ": " drawn " SM ns, expected " held[key])
		}
	}
	if (n_drawn + n_columns == 0 || n_drawn > n_expected) {
		fail(n_drawn + 0 " segments are drawn, the trace has " n_expected " there")
	}
	# Of those narrower than a pixel one may stand for several; the page says for how many.
	if (n_missing + 0 != merged + 0) {
		fail(n_missing + 0 " are missing, " merged " are said to be merged:" missing)
	}
	printf "%s to %s: %d segments drawn, %d merged, %d tasks in columns\n", from, to, n_drawn, merged, n_columns
	exit bad
}
END
failed=0
check() { # PAGE: and nothing else may be wrong with it
	look "$1"
	awk -v n_sms="${2:-0}" -f check.awk drawn jobs.csv || { echo "in $1"; failed=1; }
}
look() { # PAGE: what it draws is in "drawn"
	dump "$1" >dom
	grep '<svg id="chart"' dom | awk -f segments.awk >drawn
	grep -q '^view [-0-9.]* [-0-9.]* ' drawn || { echo "$1: there is no chart"; cat browser.err; exit 1; }
}
# with SCRIPT PAGE: the page of the trace, and what a user does with it.
with() {
	sed 's|</body>||; s|</html>||' page.html >"$2"
	printf '<script>\n%s\n</script>\n' "$1" >>"$2"
}

check page.html
cp drawn whole
span() {
	awk '$1 == "view" { printf "%.0f\n", $3 - $2 }' "$1"
}

# In the dark it draws the same.
look 'page.html#dark'
cmp -s drawn whole || { echo "in the dark something else is drawn"; failed=1; }
grep -q '<html[^>]* class="dark"' dom || { echo "it is not dark"; failed=1; }

check 'page.html#v=200000000,420000000'
[ "$(awk '$1 == "view" { print $2, $3 }' drawn)" = "200000000 420000000" ] || { echo "the address is not followed"; failed=1; }
awk '$1 == "view" && $7 != 0 { exit 1 }' drawn || { echo "segments are merged that are wide"; failed=1; }

# Every miss in the view has its mark, at the deadline and not where the job ended.
cat >misses.awk <<'END'
FILENAME == "drawn" && $1 == "view" { from = $2; to = $3; left = $4; right = $5; origin = $6 }
FILENAME == "marks" { drawn[NR_marks++] = $1 }
FILENAME == "jobs.csv" && FNR > 1 {
	line = $0
	match(line, /,"[0-9,-]*",/)
	split(substr(line, RSTART + RLENGTH), t, ",")
	n = split(substr(line, RSTART + 2, RLENGTH - 4), parts, ",")
	deadline = t[7] - origin
	if (t[6] != "" && t[7] != "" && t[6] > t[7] && deadline >= from && deadline <= to) {
		for (i = 0; i < n; i++) {
			n_expected++
			expected = left + (deadline - from) / (to - from) * (right - left)
			found = 0
			for (k = 0; k < NR_marks; k++) {
				found += drawn[k] - expected < 0.1 && expected - drawn[k] < 0.1
			}
			if (!found) {
				print "no mark at " expected " for: " line
				bad = 1
			}
		}
	}
}
END {
	if (NR_marks + 0 != n_expected || !n_expected) {
		print NR_marks + 0 " misses are marked, the trace has " n_expected + 0 " there"
		bad = 1
	}
	exit bad
}
END
tr '<' '\n' <dom | sed -n 's/^path class="due" d="\([^"]*\)"><*$/\1/p' | head -n 1 | tr M '\n' |
	sed -n 's/^\([0-9.]*\) .*/\1/p' >marks
awk -f misses.awk drawn marks jobs.csv || failed=1

# A GPU without jobs leaves the room to the others.
sed "1s/\(.*\"time_ns\":\([0-9]*\).*\)/\1\n{\"event\":\"gpu\",\"time_ns\":\2,\"before\":true,\"gpu\":9,\"name\":\"idle\",\"n_sms\":132,\"sharing\":\"mps\"}/" \
	"$trace" >idle.trace
"$sbeetctl" trace export --html --output=idle.html idle.trace
dump idle.html | tr '<' '\n' | sed -n 's/^rect x=.* height="\([0-9.]*\)" fill="var(--idle)".*/\1/p' >heights
awk '{ if (NR == 1 || $1 + 0 > most) most = $1 + 0; last = $1 + 0 } END { exit !(NR > 1 && last < 60 && most >= 90) }' heights ||
	{ echo "heights of the GPUs, the last one idle: $(tr '\n' ' ' <heights)"; failed=1; }

# A recording of nothing says so.
echo '{"event":"start","sbeet_trace":1,"time_ns":1000000000,"wall_offset_ns":0,"version":"0","policy":"even"}' |
	"$sbeetctl" trace export --html --output=nothing.html -
look nothing.html
grep -q 'No job asked for SMs' dom || { echo "it does not say that there are no jobs"; failed=1; }

# Keys, as a user presses them: two steps closer, one to the right.
with 'for (const key of ["+", "+", "ArrowRight"]) {
	window.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
}' keys.html
check keys.html
[ $(($(span drawn) * 100 / $(span whole))) -eq 36 ] || [ $(($(span drawn) * 100 / $(span whole))) -eq 35 ] ||
	{ echo "zoomed to $(span drawn) of $(span whole), expected 36 %"; failed=1; }

# The wheel zooms, and what is below the pointer stays there.
with 'const chart = document.getElementById("chart"), box = chart.getBoundingClientRect();
chart.dispatchEvent(new WheelEvent("wheel", {deltaY: -50, clientX: box.left + 500, clientY: box.top + 100, bubbles: true, cancelable: true}));' wheel.html
check wheel.html
cat whole drawn | awk '
$1 == "view" { at[++n] = $2 + (500 - $4) / ($5 - $4) * ($3 - $2); span[n] = $3 - $2 }
END { exit !(n == 2 && span[2] < span[1] * 0.8 && at[1] - at[2] < span[1] / 1e4 && at[2] - at[1] < span[1] / 1e4) }' ||
	{ echo "the wheel does not zoom to where the pointer is"; failed=1; }

# What is looked for stands out, and Enter goes to one of its jobs.
with 'const field = document.getElementById("find");
field.value = "CAM";
field.dispatchEvent(new Event("input"));
field.dispatchEvent(new KeyboardEvent("keydown", {key: "Enter"}));' find.html
look find.html
tr '<' '\n' <dom | sed -n 's/^rect class="seg\([^"]*\)".*fill="url(#t\([0-9]*\))".*/\2\1/p' >dim
grep -q '^[0-9]*\( loose\)\?$' dim && grep -q ' dim$' dim || { echo "nothing stands out"; failed=1; }
[ "$(grep -v ' dim$' dim | sort -u | wc -l)" -eq 1 ] || { echo "more than one task stands out"; failed=1; }
tr -d '\n' <dom | grep -q '<div id="tip"[^>]*><h2>camera ' || { echo "Enter shows no job of camera"; failed=1; }

# Hiding a task takes its segments away, and only these.
with 'document.querySelector(".chip").click();' hide.html
look hide.html
task=$(sed -n '2s/.*,"\([a-z]*\)",.*/\1/p' jobs.csv)
[ "$(grep -c ^seg drawn)" -lt "$(grep -c ^seg whole)" ] || { echo "task $task is not hidden"; failed=1; }

# 100,000 segments: all are counted, but drawn as columns until a screen can show each of them.
awk '
function whole(v) { return sprintf("%.0f", v) }
function event(kind, time, rest) { printf "{\"event\":\"%s\",\"time_ns\":%s,%s}\n", kind, whole(time), rest }
BEGIN {
	t = 1000000000000
	print "{\"event\":\"start\",\"sbeet_trace\":1,\"time_ns\":" whole(t) ",\"wall_offset_ns\":0,\"version\":\"0\",\"policy\":\"even\"}"
	event("gpu", t, "\"before\":true,\"gpu\":0,\"name\":\"GPU\",\"n_sms\":132,\"sharing\":\"mps\"")
	for (n = 1; n <= 50000; n++) {
		for (k = 0; k < 2; k++) {
			job[k] = "\"session\":" k + 1 ",\"job\":" n ",\"task\":\"task" (n + k) % 5 "\",\"pid\":1,\"gpu\":0,\"release_ns\":" \
				whole(t) ",\"deadline_ns\":" whole(t + 700000)
			event("job-request", t, job[k])
		}
		for (k = 0; k < 2; k++) {
			job[k] = job[k] ",\"slot\":" k ",\"sms\":\"" (k ? "66-131" : "0-65") "\",\"enforcement\":\"smid\",\"granted_ns\":" \
				whole(t + n % 7 * 10000)
			event("job-grant", t + 100000, job[k])
		}
		for (k = 0; k < 2; k++) {
			event("job-done", t + 900000, job[k] ",\"finished_ns\":" whole(t + 300000 + n * 37 % 500000))
		}
		t += 1000000
	}
}' >many.trace
"$sbeetctl" trace export --format=csv --output=jobs.csv many.trace
[ "$(wc -l <jobs.csv)" -eq 100001 ]
"$sbeetctl" trace export --html --output=many.html many.trace
check many.html 132
tr '<' '\n' <dom | grep -q 'zoom in for releases and deadlines' || { echo "nothing says where the arrows are"; failed=1; }
grep -q ^seg drawn && { echo "single segments are drawn where there are 100,000"; failed=1; }
[ "$(awk '$1 == "view" { print $7 }' drawn)" -eq 100000 ] || { echo "not all segments are counted"; failed=1; }
[ "$(wc -c <dom)" -lt $(($(wc -c <many.html) + 500000)) ] || { echo "the drawing is too large"; failed=1; }
# A mark for each column with a miss, and for no other.
tr '<' '\n' <dom | sed -n 's/^path class="late close" data-gpu="[0-9]*" d="\([^"]*\)"><*$/\1/p' | tr -cd M | wc -c >marked
awk -F '[ ,]' '
FILENAME == "drawn" && $1 == "view" { from = $2; to = $3; n = int(($5 - $4) / 2); span = (to - from) / n; origin = $6 }
FILENAME == "jobs.csv" && FNR > 1 && $(NF - 4) == 1 {
	k = int(($(NF - 6) - origin - from) / span)
	n_missed += !seen[k]++
}
END { print n_missed }' drawn jobs.csv >expected
[ "$(cat marked)" -eq "$(cat expected)" ] || { echo "$(cat marked) columns are marked, $(cat expected) have misses"; failed=1; }
check 'many.html#v=10000000000,20000000000' 132
check 'many.html#v=20000000000,20400000000'
check 'many.html#v=20000000000,20020000000'
[ "$(grep -c ^seg drawn)" -eq 40 ] || { echo "$(grep -c ^seg drawn) of 40 segments are drawn"; failed=1; }

# Kernels and copies: a row for each by name, a mark for each on its own pixel, none outside the view.
"$sbeetctl" trace export --html --output=operations.html "$(dirname "$trace")/operations.trace"
dump operations.html >dom
rows=$(tr '<' '\n' <dom | sed -n 's/^title>\(.*\) (stubborn)$/\1/p' | tr '\n' ' ')
[ "$rows" = 'copy-dtoh copy-htod _Z8stubbornPjj launch ' ] || { echo "rows of kernels and copies: $rows"; failed=1; }
marks() {
	tr '<' '\n' <dom | sed -n 's/^svg id="chart".* data-ops="\([0-9]*\)".*/\1/p'
}
[ "$(marks)" = 4 ] || { echo "$(marks) of 4 kernels and copies are marked"; failed=1; }
dump 'operations.html#v=5000000,9000000' >dom
[ "$(marks)" = 3 ] || { echo "$(marks) of 3 kernels and copies in the view are marked"; failed=1; }
exit $failed
