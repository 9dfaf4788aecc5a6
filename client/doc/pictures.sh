#!/bin/sh
# pictures.sh: makes the README's pictures from what the programs really show; not part of the build.
#
# usage: pictures.sh all BUILD                                     top.svg and timeline.svg beside this
#                                                                  script, and `status` on stdout
#        tmux capture-pane -p -e | pictures.sh top >top.svg        a screen of `sbeetctl top`
#        pictures.sh timeline PAGE.html[#v=FROM,TO] >timeline.svg  the chart of a page, by Chromium
set -eu

# all BUILD: programs side by side on two simulated GPUs, looked at after some seconds.
make_all() {
	here=$(realpath "$(dirname "$0")")
	build=$(realpath "$1")
	ctl=$build/client/sbeetctl
	apps=$build/tests/apps/driver
	scratch=$(mktemp -d)
	pids=
	trap 'tmux -S "$scratch/tmux" kill-server 2>/dev/null; kill $pids 2>/dev/null; wait; rm -rf "$scratch"' EXIT
	export SBEET_RUNTIME_DIR="$scratch" SIMGPU_DIR="$scratch" SIMGPU=h200:mps,rtx3070:exclusive
	export LD_LIBRARY_PATH="$build/tests/simgpu"
	"$build/daemon/sbeetd" 2>"$scratch/log" &
	pids=$!
	until "$ctl" --json >/dev/null 2>&1; do
		kill -0 "$pids" || { cat "$scratch/log"; exit 1; }
		sleep 0.1
	done
	# light enough for the processor that plays the GPUs, so that most jobs are in time
	start camera --period 250ms --deadline 150ms --priority 10 -- \
		"$apps/lanes" --lanes 1 --size 46 --rounds 400 --period 250ms --frames 100000
	start planner --period 500ms --deadline 450ms -- \
		"$apps/hotspot" --size 96 --launches 6 --period 500ms --frames 100000
	start train -- "$apps/lanes" --lanes 1 --size 46 --rounds 900 --frames 100000
	start lanes --scope thread --period 300ms --deadline 300ms -- \
		"$apps/lanes" --gpu 1 --lanes 2 --size 46 --rounds 800 --period 300ms --frames 100000
	tmux -u -S "$scratch/tmux" -f /dev/null new-session -d -x 80 -y 21 \
		"LC_ALL=C.UTF-8 TERM=screen-256color '$ctl' top -i 0.5"
	"$ctl" trace record -d 12s "$scratch/demo.trace"
	"$ctl" trace export --html -o "$scratch/demo.html" "$scratch/demo.trace"
	# a moment when both GPUs are at work
	tries=0
	until "$ctl" status >"$scratch/now" && [ "$(grep -c '\[[^]]*[A-Z][^]]*]$' "$scratch/now")" -eq 2 ] || [ "$tries" -eq 200 ]; do
		tries=$((tries + 1))
		sleep 0.05
	done
	tmux -S "$scratch/status" -f /dev/null new-session -d -x 118 -y 40 "'$ctl' --color=never; read -r rest"
	until tmux -S "$scratch/tmux" capture-pane -p -e >"$scratch/screen" &&
		[ "$(sed 's/\x1b\[[0-9;]*m//g' "$scratch/screen" | grep -c '^ *0 [A-Z]*[A-Z]')" -eq 2 ] || [ "$tries" -eq 400 ]; do
		tries=$((tries + 1))
		sleep 0.05
	done
	until tmux -S "$scratch/status" capture-pane -p >"$scratch/now" && grep -q '^[0-9]* jobs\{0,1\}\.$' "$scratch/now"; do
		sleep 0.05
	done
	sed "/^[0-9]* jobs\{0,1\}\.$/q" "$scratch/now"
	tmux -S "$scratch/status" kill-server
	sh "$0" top <"$scratch/screen" >"$here/top.svg"
	# 0.9 s around the first miss of the second half, so that the picture has one
	origin=$(sed -n '1s/.*"time_ns":\([0-9]*\).*/\1/p' "$scratch/demo.trace")
	view=$("$ctl" trace export -f csv "$scratch/demo.trace" | awk -F, -v origin="$origin" '
		BEGIN { at = 8e9 }
		$(NF - 4) == 1 && $(NF - 6) - origin > 6e9 { at = $(NF - 6) - origin; exit }
		END { printf "%.0f,%.0f", at - 4.5e8, at + 4.5e8 }')
	sh "$0" timeline "$scratch/demo.html#v=$view" >"$here/timeline.svg"
}

start() { # NAME SBEETCTL-RUN-OPTION... -- PROGRAM...
	task=$1
	shift
	"$ctl" run --task "$task" "$@" >"$scratch/$task.out" 2>&1 &
	pids="$pids $!"
}

case ${1:-} in
all) make_all "$2" ;;
top)
	# Text with SGR colours to lines of SVG: runs of equal attributes, each at its column.
	LC_ALL=C awk '
	function width(s) { gsub(/[\200-\277]/, "", s); return length(s) } # of UTF-8
	function esc(s) { gsub(/&/, "\\&amp;", s); gsub(/</, "\\&lt;", s); gsub(/>/, "\\&gt;", s); return s }
	function flush_run(	x, y, f, b) {
		if (run == "") { return }
		x = 12 + start * 8.4; y = 26 + NR * 18
		f = dim ? "#6b7480" : colour; b = ""
		if (reverse) { b = colour; f = "#16191d" }
		if (b != "") { body = body sprintf("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"18\" fill=\"%s\"/>\n", x, y - 13.5, width(run) * 8.4, b) }
		body = body sprintf("<text x=\"%.1f\" y=\"%d\" fill=\"%s\"%s textLength=\"%.1f\" xml:space=\"preserve\">%s</text>\n", x, y, f, bold ? " font-weight=\"bold\"" : "", width(run) * 8.4, esc(run))
		start += width(run); run = ""
	}
	function sgr(codes,	n, c, i) {
		n = split(codes == "" ? "0" : codes, c, ";")
		for (i = 1; i <= n; i++) {
			if (c[i] + 0 == 0) { colour = "#d8dde3"; bold = dim = reverse = 0 }
			else if (c[i] == 1) { bold = 1 } else if (c[i] == 2) { dim = 1 } else if (c[i] == 7) { reverse = 1 }
			else if (c[i] == 27) { reverse = 0 } else if (c[i] == 22) { bold = dim = 0 } else if (c[i] == 39) { colour = "#d8dde3" }
			else if (c[i] in hue) { colour = hue[c[i]] }
		}
	}
	BEGIN {
		hue[31] = "#ff5d6c"; hue[32] = "#4fc98f"; hue[33] = "#e9b44c"; hue[34] = "#6ea8ff"; hue[35] = "#d98be0"; hue[36] = "#56c7d8"; hue[37] = "#eef1f4"
		sgr("0")
	}
	{
		start = 0; run = ""; line = $0
		while (match(line, /\033\[[0-9;]*m|\017|\016|\033\([B0]/)) {
			if (RSTART > 1) { run = run substr(line, 1, RSTART - 1) }
			flush_run()
			code = substr(line, RSTART, RLENGTH)
			if (code ~ /m$/) { sgr(substr(code, 3, length(code) - 3)) }
			line = substr(line, RSTART + RLENGTH)
		}
		run = run line
		# tmux leaves spaces at the end out, also those of a bar across the screen
		if (reverse && colour == "#d8dde3") { run = sprintf("%-" 80 - start "s", run) }
		flush_run()
	}
	END {
		printf "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"696\" height=\"%d\" viewBox=\"0 0 696 %d\">\n<rect width=\"100%%\" height=\"100%%\" rx=\"8\" fill=\"#16191d\"/>\n<g font-family=\"DejaVu Sans Mono, Menlo, Consolas, monospace\" font-size=\"14\">\n%s</g>\n</svg>\n", 44 + NR * 18, 44 + NR * 18, body
	}'
	;;
timeline)
	dom=$(mktemp)
	trap 'rm -f "$dom"' EXIT
	chromium --headless --no-sandbox --disable-gpu --window-size=1120,760 --virtual-time-budget=3000 \
		--dump-dom "file://$(realpath "${2%%#*}")#${2#*#}" >"$dom" 2>/dev/null
	# The chart of the document, with the page's colours written out.
	awk '
	/^	--[a-z]+:/ && !dark { n = split($0, v, ";"); for (i = 1; i < n; i++) { split(v[i], p, ": *"); sub(/^[ \t]*/, "", p[1]); if (!(p[1] in value)) { value[p[1]] = p[2] } } }
	/^:root.dark/ { dark = 1 }
	match($0, /<svg id="chart".*<\/svg><?/) && !seen {
		seen = 1
		s = substr($0, RSTART)
		s = substr(s, 1, index(s, "</svg>") + 5)
		for (name in value) { while (k = index(s, "var(" name ")")) { s = substr(s, 1, k - 1) value[name] substr(s, k + length(name) + 5) } }
		sub(/<svg id="chart"/, "<svg xmlns=\"http://www.w3.org/2000/svg\" font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\" font-size=\"11\" fill=\"" value["--ink"] "\"", s)
		sub(/>/, "><style>.soft{fill:" value["--soft"] "}.name{font-weight:600}.loose{stroke-dasharray:4 2.5}.late{fill:" value["--hot"] "}.due{stroke:" value["--hot"] ";stroke-width:1.4;fill:none}.rel{stroke:" value["--soft"] ";fill:none}.end{stroke:" value["--ink"] ";fill:none}</style><rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>", s)
		print s
	}' "$dom"
	;;
*)
	sed -n 's/^# \{0,1\}//p' "$0" | sed -n '/^usage/,/^ .*Chromium/p' >&2
	exit 2
	;;
esac
