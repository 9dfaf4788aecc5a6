# list.awk: the examples in the source of a man page, one on a line: NUMBER KIND MARK. KIND is command (.Dl, or
# in a display whose first line begins with "$ " or "# "), or display (.Bd -literal). MARK is what a comment in
# front says of it, or "none". The text goes to the file FOLDER/NUMBER.
#
# usage: awk -v folder=FOLDER -f list.awk PAGE

function add(kind, text) {
	n++
	print n, kind, (mark != "" ? mark : region != "" ? region : "none")
	print text >(folder "/" n)
	close(folder "/" n)
}

function plain(line) {
	sub(/^\\&/, "", line)
	gsub(/\\e/, "\\", line)
	gsub(/\\-/, "-", line)
	return line
}

# Commands with a prompt, each with the lines up to the next one.
function add_display(display,    i, k, line, text) {
	if (display !~ /^[$#] /) {
		add("display", display)
		return
	}
	k = split(display, line, "\n")
	for (i = 1; i <= k; i++) {
		text = text (text == "" ? "" : "\n") line[i]
		if (i == k || line[i + 1] ~ /^[$#] /) {
			add("command", text)
			text = ""
		}
	}
}

inside && /^\.Ed/ { inside = 0; add_display(display); mark = ""; next }
inside { display = display (display == "" ? "" : "\n") plain($0); next }
/^\.\\" examples are run by .*: begin$/ { region = "run by " $6; sub(/:$/, "", region); next }
/^\.\\" examples are run by .*: end$/ { region = ""; next }
/^\.\\" example: / { mark = $0; sub(/^[^:]*: /, "", mark); next }
/^\.\\" recipe / { mark = "run by tests/apps/recipes.sh"; next }
/^\.(Dl|D1) / { add("command", plain(substr($0, 5))); mark = ""; next }
/^\.Bd -literal/ { inside = 1; display = ""; next }
mark != "" && !/^\.Pp/ { print n + 1, "nothing", mark; mark = "" }
