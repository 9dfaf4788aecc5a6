#!/bin/sh
# load-rows.sh: makes the rows of LOAD.md from what bench-load and bench-hostile print.
#
# Usage: bench-load | load-rows.sh
exec awk -F '[,:{}"]+' '
{
	split("", v)
	for (i = 2; i < NF; i += 2) {
		v[$i] = $(i + 1)
	}
}
v["bench"] == "load" {
	printf "| %d | %.1f us | %.2f | %d | %.2f | %.1f us | %.1f us |\n", v["sessions"],
		v["quiet_p50_us"], v["p50_ratio"], v["full_grants_per_s"], v["full_time_ratio"],
		v["daemon_cpu_us"], v["programs_cpu_us"]
}
v["bench"] == "rate" {
	printf "| %d asked | %d | %.2f ms | %.1f ms | %.1f us, %.1f us |\n", v["asked_per_s"],
		v["granted_per_s"], v["p50_us"] / 1000, v["p99_us"] / 1000, v["daemon_cpu_us"],
		v["programs_cpu_us"]
}
v["bench"] == "hostile" {
	printf "| %s | %.2f | %.2f | %.1f / %.1f / %.1f | %.0f / %.0f / %.0f |\n", v["kind"],
		v["p99_ratio"], v["p99_ratio_to_alone"], v["p50_us"], v["p50_calm_us"],
		v["p50_alone_us"], v["p99_us"], v["p99_calm_us"], v["p99_alone_us"]
}'
