/*
 * bench-daemon-memory.c: sbeetd's resident memory with no session and with 1,000, and how often it
 * wakes up when nobody asks it anything. Prints lines of JSON.
 *
 * Usage: bench-daemon-memory [SESSIONS [IDLE_SECONDS [SBEETD_OPTION...]]]
 *
 * SBEETD_OPTIONs stand in for "--gpus 80"; with "--" alone, NVML is asked.
 */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench.h"
#include "proto/units.h"

/* The number behind "@field:" in a status file of /proc; 0 if the thread is gone. */
static unsigned long long read_field(const char *path, const char *field) {
	unsigned long long value = 0;
	size_t n = strlen(field);
	char line[256];
	FILE *f = fopen(path, "re");

	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, field, n) == 0 && line[n] == ':') {
			value = strtoull(line + n + 1, NULL, 10);
		}
	}
	if (f) {
		fclose(f);
	}
	return value;
}

static unsigned long long read_rss_kib(pid_t pid) {
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	return read_field(path, "VmRSS");
}

/* Of all threads. */
static unsigned long long read_switches(pid_t pid) {
	unsigned long long n = 0;
	glob_t threads;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/*/status", pid);
	if (glob(path, 0, NULL, &threads) != 0) {
		bench_die(path);
	}
	for (size_t i = 0; i < threads.gl_pathc; i++) {
		n += read_field(threads.gl_pathv[i], "voluntary_ctxt_switches");
		n += read_field(threads.gl_pathv[i], "nonvoluntary_ctxt_switches");
	}
	globfree(&threads);
	return n;
}

static void raise_descriptor_limit(void) {
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

int main(int argc, char **argv) {
	static const char *const fixed[] = {"--gpus", "80", "--log-level", "error", NULL};
	const char *const *args = argc > 3 ? (const char *const *)argv + 3 : fixed;
	int n_sessions = argc > 1 ? atoi(argv[1]) : 1000, seconds = argc > 2 ? atoi(argv[2]) : 3;
	unsigned long long rss_none, rss_all, switches_none, switches_all;
	struct bench_daemon daemon;

	raise_descriptor_limit();
	bench_daemon_start(&daemon, args);
	close(bench_session_open()); /* the first one touches what all of them share */
	usleep(200000);
	rss_none = read_rss_kib(daemon.pid);
	switches_none = read_switches(daemon.pid);
	sleep((unsigned)seconds);
	switches_none = read_switches(daemon.pid) - switches_none;

	for (int i = 0; i < n_sessions; i++) {
		bench_session_open();
	}
	usleep(200000);
	rss_all = read_rss_kib(daemon.pid);
	switches_all = read_switches(daemon.pid);
	sleep((unsigned)seconds);
	switches_all = read_switches(daemon.pid) - switches_all;
	bench_daemon_stop(&daemon);

	printf("{\"bench\":\"daemon-memory\",\"sessions\":0,\"rss_kib\":%llu,\"limit_kib\":8192}\n",
	       rss_none);
	printf("{\"bench\":\"daemon-memory\",\"sessions\":%d,\"rss_kib\":%llu,\"limit_kib\":%d,"
	       "\"per_session_bytes\":%lld}\n",
	       n_sessions, rss_all, 8192 + 16 * n_sessions,
	       ((long long)rss_all - (long long)rss_none) * 1024 / n_sessions);
	printf("{\"bench\":\"daemon-idle\",\"seconds\":%d,\"sessions\":0,\"context_switches\":%llu}"
	       "\n",
	       seconds, switches_none);
	printf("{\"bench\":\"daemon-idle\",\"seconds\":%d,\"sessions\":%d,\"context_switches\":%"
	       "llu}\n",
	       seconds, n_sessions, switches_all);
	return 0;
}
