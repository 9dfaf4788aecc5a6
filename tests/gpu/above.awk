# above.awk: where the time went of jobs of the case study that took longer than their bounds.
#
# usage: awk -v us=KERNEL_US -f above.awk NUMBERS LOG...	of a column, see casestudy.sh; LOG: its name is .../NAME.log
#
# A line of each of them, times in ms, first by how much it was above. "CPU": a late start, and what the CPU segment took beyond its CPU time.
# "first call": the first operation of the GPU segment, which waits for the grant. "CPU in segment": the thread was
# ready and did not run. "longer": the rest of what the segment took beyond its time alone. Behind it, the GPU time
# of all tasks in that segment, by the kernels that they saw complete; a sleeping task may see them late.
FNR == 1 {
	file++
	name = FILENAME
	sub(/.*\//, "", name)
	sub(/\.log$/, "", name)
}
file == 1 {
	names[++n] = $1
	compute[$1] = $2 * 1000
	alone[$1] = $4
	bound[$1] = $6
	next
}
{
	if (bound[name] > 0 && $4 - $1 > bound[name]) {
		job[++jobs] = name " " FNR " " $1 " " $2 " " $3 " " $4 " " $5
	}
	for (i = 6; i <= NF; i++) {
		seen[name, ++kernels[name]] = $i
	}
}
END {
	for (j = 1; j <= jobs; j++) {
		split(job[j], a, " ")
		name = a[1]
		cpu = a[4] - a[3] - compute[name]
		longer = a[6] - a[4] - alone[name] - (a[5] - a[4]) - a[7]
		printf "+%.1f %s job %d, %.1f: CPU %.1f, first call %.1f, CPU in segment %.1f, longer %.1f |", \
			(a[6] - a[3] - bound[name]) / 1000, name, a[2], (a[6] - a[3]) / 1000, (cpu > 0 ? cpu : 0) / 1000, (a[5] - a[4]) / 1000, \
			a[7] / 1000, (longer > 0 ? longer : 0) / 1000
		for (t = 1; t <= n; t++) {
			count = 0
			for (k = 1; k <= kernels[names[t]]; k++) {
				at = seen[names[t], k]
				count += at > a[4] && at <= a[6]
			}
			if (count > 0) printf " %s %.1f", names[t], count * us / 1000
		}
		print ""
	}
}
