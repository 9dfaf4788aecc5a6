#!/bin/sh
# test-keys.sh SBEETCTL.1: every key in the JSON on standard input stands in the page.
set -eu

page=$(sed 's/\\-/-/g' "$1")
n=0
failed=0
for key in $(grep -o '"[a-z][a-z0-9_-]*": *' | tr -d '": ' | sort -u); do
	printf '%s\n' "$page" | grep -qw -e "$key" || { echo "the page says nothing of the key \"$key\""; failed=1; }
	n=$((n + 1))
done
[ "$n" -gt 20 ] || { echo "only $n keys"; failed=1; }
exit $failed
