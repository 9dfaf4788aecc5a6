#!/bin/sh
# figures.sh SBEETCTL DATA OUT: the sweeps behind FIGURES.md.
#
# DATA: folder with the measured profiles, wcet_profiles.csv and app_params.csv. OUT: folder for
# tables (.txt), numbers (.csv) and pictures (.svg). Takes some minutes.
set -eu

sbeetctl=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
figures=$here/figures
data=$(cd "$2" && pwd)
mkdir -p "$3"
cd "$3"

small='{"name": "t400", "sms": 6, "static_w": 8, "idle_w_per_sm": 0.652}'
import="\"import\": [{\"wcet\": \"$data/wcet_profiles.csv\", \"apps\": \"$data/app_params.csv\"}]"

big() { # NAME LIMIT
	printf '{"name": "%s", "type": "rtx3070", "sms": 46, "limit": %s, ' "$1" "$2"
	printf '"static_w": 46, "idle_w_per_sm": 0.445}'
}
for limit in 24 12 6; do
	echo "{\"gpus\": [$(big a $limit), $small], $import}" >system-$limit.json
done
echo "{\"gpus\": [$(big a 12), $(big b 12), $small], $import}" >system-two.json
echo "{\"gpus\": [$(big a 8)], $import}" >system-one.json

# What is drawn: the six benchmarks of the design's table, Table 3.2's six, and all eight.
six="--without hist --without hist2"
table_3_2="--without hist --without mmul2"
draw=$six

# The same task sets for all systems: utilisations are means over 24 SMs.
sweep() { # NAME SYSTEM RANGE OPTION...
	name=$1 system=$2 range=$3
	shift 3
	"$sbeetctl" simulate "system-$system.json" --sweep "$range" --tasksets 100 -d 15s \
		$draw --csv "$name.csv" --plot "$name.svg" "$@" >"$name.txt"
	echo "$name"
}

all=0.2:2.0:0.2
mean="--reference-sms 24"
fig37="-p load-dist -p bcf -p lcf -p sbeet-mg -p sbeet-mg-offline -p lookahead"
as_printed="-p sbeet-mg --param window=own --param line_16=on --param skip_hopeless=off"

sweep all-24 24 $all $mean -p all
# What the dissertation gives in numbers: its text, in notes, and Table 3.6, one task set a point
# measured for 300 s (here a twentieth of that, as one run is 15 s).
reduction="Dissertation: sbeet-mg has up to 23 % fewer misses than load-dist and 18 % fewer than bcf."
sweep figure-3.7-3.8-24 24 $all $mean $fig37 --reference "$figures/paper-3.6.csv" \
	--note "$reduction" --note "Large markers: Table 3.6, one task set a point on hardware." \
	--note "Dissertation: up to U 1.0 bcf takes marginally less energy than sbeet-mg."
sweep figure-3.7-3.8-12 12 $all $mean $fig37 --note "$reduction" \
	--note "Dissertation: from U 1.2 on sbeet-mg-offline takes least energy."
sweep figure-3.7-3.8-6 6 $all $mean $fig37 --note "$reduction" \
	--note "Dissertation: from U 1.2 on sbeet-mg-offline takes least energy."
sweep figure-3.10 24 $all $mean -p bfd-sbeet -p ffd-sbeet -p wfd-sbeet -p sbeet-mg \
	-p sbeet-mg-offline --reference "$figures/paper-3.6.csv" \
	--note "Dissertation: sbeet-mg has the fewest misses; bfd-sbeet and ffd-sbeet are the same." \
	--note "Large markers: Table 3.6, one task set a point on hardware."
sweep figure-3.13 two $all $mean $fig37 \
	--note "Dissertation: sbeet-mg has the fewest misses; from U 1.6 on it takes more energy than sbeet-mg-offline."
one="--deadlines 100 -p fcfs -p rm -p stgm -p sbeet -p lookahead"
sweep figure-2.8 one 0.2:1.4:0.2 $one \
	--note "Dissertation: sbeet has the fewest misses; stgm the most up to U 0.7, fcfs from 0.8 on." \
	--note "stgm takes most energy up to U 0.7; above it falls back to rm."
sweep figure-2.9 one 0:1:0.1 $one --heavy mmul --heavy stereodisparity --heavy dxtc \
	--note "Dissertation: sbeet has the fewest misses of light tasks at every share of heavy ones."
for reading in literal authors fit; do
	sweep reading-$reading-24 24 $all $mean $as_printed --param reading=$reading
	sweep reading-$reading-12 12 1.4 $mean $as_printed --param reading=$reading
	sweep reading-$reading-6 6 1.0 $mean $as_printed --param reading=$reading
	sweep reading-$reading-two two 2.0 $mean $as_printed --param reading=$reading
done
# What the design counted otherwise: one job of a task at a time, and all jobs of all sets together.
sweep load-dist 24 $all $mean -p load-dist --param sequential=on
sweep fit-copies 24 $all $mean -p sbeet-mg --param reading=fit --param window=own --param skip_hopeless=off \
	--param line_16=copies
for which in table-3.2 eight; do
	draw=
	[ $which = eight ] || draw=$table_3_2
	sweep $which-24 24 $all $mean $fig37
	for reading in literal authors fit; do
		sweep $which-$reading-24 24 $all $mean $as_printed --param reading=$reading
	done
done
draw=$six
two="-p sbeet-mg -p lookahead"
sweep one-job 24 $all $mean $two --param jobs_per_gpu=1
sweep free 24 $all $mean $two --param free_at_kernel_end=on
sweep drop 24 $all $mean $two --param late=drop
sweep drop-6 6 $all $mean $two -p load-dist --param late=drop
sweep exec-60 24 $all $mean $two --param exec=60%
# Energies with copies, which are what the design has.
sweep held 24 $all $mean $fig37 -p bfd-sbeet --param power=held
for reading in literal authors fit; do
	sweep held-$reading 24 $all $mean $as_printed --param reading=$reading --param power=held
done
python3 "$here/figure-2.10.py" "$sbeetctl" "$data" >figure-2.10.txt
