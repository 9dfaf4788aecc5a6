#!/bin/sh
# guests.sh on the simulated GPU: guests are compared in each column, and one that ends otherwise under sbeet is told.
#
# usage: test-guests.sh SOURCE; $SBEET_BUILD is the build folder.
. "$1/test-bundle.sh"
export SIMGPU=h200:mps
mkdir "$folder/guests"
ln -s "$SBEET_BUILD"/tests/apps/guests/guest-* "$folder/guests/"
cp "$1/../apps/guests/compare.sh" "$folder/guests/"

SUBJECTS="pdl linked" sh "$folder/guests.sh" steer-mps even >"$folder/log" 2>&1 || fail "exit code"
for column in steer-mps even; do
	grep -q "^$column: [1-9][0-9]* compared, 0 differ$" "$OUT/guests.txt" || fail "$column"
done
grep -q "^pdl programmatic-event: the driver has no" "$folder/log" || fail "no word of what is skipped"

cat >"$folder/guests/guest-liar" <<'END'
#!/bin/sh
case $1 in
--list) echo honest; echo liar; echo broken ;;
broken) exit 1 ;;
liar) case $LD_PRELOAD in *libsbeet*) echo other; exit 3 ;; esac ;;
esac
END
chmod +x "$folder/guests/guest-liar"
! SUBJECTS=liar sh "$folder/guests.sh" fcfs >"$folder/log" 2>&1 || fail "exit code of a liar"
grep -q "^plain, exclusive: 2 to compare, 1 broken" "$OUT/guests.txt" || fail "plain runs"
grep -q "^fcfs: 2 compared, 1 differ$" "$OUT/guests.txt" || fail "a liar is not counted"
grep -q "^DIFFERENT: liar liar under fcfs: ends with 3, without sbeet it ends with 0$" "$folder/log" || fail "a liar is not told"
grep -q "^BROKEN: liar broken" "$folder/log" || fail "a broken guest is not told"
