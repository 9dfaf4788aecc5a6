#!/bin/sh
# test-guarantees.sh SBEETD.8 TESTS BUILD: every test that sbeetd(8) names as the proof of a guarantee
# exists: its program, its cases, and its entry in meson's list.
set -eu

page=$1
tests=$2
list=$3/meson-info
failed=0
n=0

missing() {
	echo "$page names '$1': $2"
	failed=1
}

# exists FOLDER/PROGRAM [CASE...]
exists() {
	folder=${1%%/*}
	program=${1#*/}
	shift
	name=${program#test-}
	[ "$folder" != bench ] || name=${program#bench-}
	grep -q "\"name\": \"$name\"" "$list/intro-tests.json" "$list/intro-benchmarks.json" ||
		missing "$folder/$program" "meson has no test '$name'"
	n=$((n + 1))
	[ $# -gt 0 ] || return 0
	source=$(find "$tests/$folder" -name "$program.c")
	[ -n "$source" ] || { missing "$folder/$program" "no such program"; return 0; }
	for case; do
		# in the list of cases, not only defined
		grep -q "[(]$case[,)]" "$source" || missing "$case" "no such case in $source"
		n=$((n + 1))
	done
}

# One line for each program: "unit/test-sched case case".
named=$(sed -n '/^\.Sh GUARANTEES/,/^\.Sh /p' "$page" | sed ':a;/\\$/{N;s/\\\n//;ba}' |
	sed -n 's/^\.Pq //p' | tr ';' '\n' | sed 's/[:,]/ /g')
while read -r line; do
	# shellcheck disable=SC2086
	exists $line
done <<END
$named
END
[ "$n" -gt 30 ] || { echo "$page: only $n tests were found"; failed=1; }
exit "$failed"
