#!/bin/sh
# response.sh SBEET-SCENARIO.5: the worked example of response-time in the man page: each of its commands
# runs, and those of response-time say what the page shows.
#
# What is measured here is another program on another GPU than the page's: that its profile can be used
# is checked, then the page's own takes its place.
. "$(dirname "$0")/lib.sh"

here=$(cd "$(dirname "$0")" && pwd)
page=$1
cd "$scratch" || fail "no folder"
# its groups of SMs give 4 and 8; so slow that times are the model's
export SIMGPU=rtx3070@500khz:mps
printf '#!/bin/sh\nexec %s/matmul --size 96 --frames 30\n' "$apps" >detect
chmod +x detect
mkdir bin
ln -s "$ctl" bin/sbeetctl
PATH=$scratch/bin:$PATH

sed -n '/examples are run by .*: begin/,/examples are run by .*: end/p' "$page" >example
mkdir list
awk -v folder=list -f "$here/examples/list.awk" example >numbers
[ "$(grep -c ' display ' numbers)" -eq 5 ] || fail "expected 5 blocks in the example: $(cat numbers)"
# KIND NUMBER: the file with the text.
nth() {
	awk -v kind="$1" -v want="$2" '$2 == kind && ++n == want { print "list/" $1 }' numbers
}
block() { # NUMBER
	cat "$(nth display "$1")"
}
command_of() { # NUMBER
	file=$(nth command "$1")
	[ -z "$file" ] || sed '1s/^\$ //' "$file"
}
# NUMBER BLOCK EXIT-CODE: the command prints the block.
shows() {
	code=0
	eval "$(command_of "$1")" >got.out 2>got.err || code=$?
	block "$2" >expected.out
	[ "$code" -eq "$3" ] || fail "'$(command_of "$1")': exit code $code, expected $3"
	diff expected.out got.out || fail "'$(command_of "$1")' says something else than the page"
}

start_daemon --policy fcfs
# Again where a busy machine has held up so many jobs that it can't be true.
measured=$(command_of 1 | sed 's/ -- / --runs 3 --power-time 100ms -- /')
until eval "$measured" >measured.out 2>measured.err; do
	grep -q "call again .* to measure anew" measured.err || fail "'$measured'"
done
eval "$(command_of 2)" >show.out || fail "'$(command_of 2)'"
block 2 >tasks.json
code=0
sbeetctl response-time tasks.json >verdict.out 2>verdict.err || code=$?
[ "$code" -eq 0 ] || [ "$code" -eq 3 ] || fail "what was measured can't be used"
stop_daemon

# No daemon is asked from here on.
block 1 >detect.json
eval "$(command_of 2)" >show.out || fail "'$(command_of 2)', of the page's profile"
shows 3 3 0
eval "$(command_of 4)" || fail "'$(command_of 4)'"
shows 5 4 3
shows 6 5 3
[ -z "$(command_of 7)" ] || fail "there is a command that nobody runs: $(command_of 7)"
say "ok"
