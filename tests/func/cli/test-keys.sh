#!/bin/sh
# test-keys.sh PAGE...: every key in the JSON on standard input stands in one of the pages.
set -eu

pages=$(sed 's/\\-/-/g' "$@")
n=0
failed=0
for key in $(grep -o '"[a-z][a-z0-9_-]*": *' | tr -d '": ' | sort -u); do
	printf '%s\n' "$pages" | grep -qw -e "$key" || { echo "the pages say nothing of the key \"$key\""; failed=1; }
	n=$((n + 1))
done
[ "$n" -gt 20 ] || { echo "only $n keys"; failed=1; }
exit $failed
