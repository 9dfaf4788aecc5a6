# causes.awk: why jobs of the evaluation were late.
#
# usage: awk -f causes.awk measured.txt late.csv
#
# The cause is the part of a late job that is longest beyond what it takes alone on the whole GPU, if the job
# without that excess would have been in time; "follows" if it would have been but for the job before it;
# "several" if only all excesses together explain it, with the longest of them. Alone: the copies and kernels of
# measured.txt at the largest number of SMs; nothing for the host's parts.
BEGIN {
	split("wake-up,first call,copy in,kernels,copy out,return", names, ",")
}
FNR == NR {
	if ($2 >= most[$1]) {
		most[$1] = $2
		alone[$1, 3] = $3
		alone[$1, 4] = $4
		alone[$1, 5] = $6
	}
	next
}
FNR == 1 {
	FS = ","
	next
}
$15 <= $7 {
	next # CAUSES=all: in time
}
{
	longest = sum = 0
	for (p = 1; p <= 6; p++) {
		beyond = $(8 + p) - alone[$6, p]
		if (beyond <= 0) continue
		sum += beyond
		if (!longest || beyond > excess) {
			longest = p
			excess = beyond
		}
	}
	if ($8 > 0 && $15 - $8 <= $7) cause = "follows"
	else if (longest && $15 - excess <= $7) cause = names[longest]
	else if (longest && $15 - $8 - sum <= $7) cause = "several, most " names[longest]
	else cause = "unexplained"
	where = $1 ", " $2 ", U " $3
	if (!(where in late)) order[++n] = where
	late[where]++
	if (!(cause in seen)) { seen[cause] = 1; causes[++k] = cause }
	count[where, cause]++
}
END {
	for (i = 1; i <= n; i++) {
		printf "%s: %d late:", order[i], late[order[i]]
		separator = " "
		for (c = 1; c <= k; c++) {
			if (count[order[i], causes[c]]) {
				printf "%s%s %d", separator, causes[c], count[order[i], causes[c]]
				separator = ", "
			}
		}
		print ""
	}
}
