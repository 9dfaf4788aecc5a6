/*
 * bench.h: what the daemon's benchmarks share: an sbeetd of their own, a session, quantiles.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "proto/units.h"
#include "sbeet.pb-c.h"

#define BENCH_MASK                                     \
	(1u << SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE | \
	 1u << SBEET__ENFORCEMENT__ENFORCEMENT_SMID | 1u << SBEET__ENFORCEMENT__ENFORCEMENT_COUNT)

struct bench_daemon {
	char directory[64];
	pid_t pid;
};

/* Prints what failed, with errno, and exits 1. */
__attribute__((noreturn)) void bench_die(const char *what);

/* A fresh sbeetd in a directory of its own, which dies with us. */
void bench_daemon_start(struct bench_daemon *daemon, const char *const *args);
void bench_daemon_stop(struct bench_daemon *daemon);

/* Processor time of a process so far; 0: our own. */
nsec_t bench_cpu(pid_t pid);

/* A session that has said hello and was welcomed. @task: NULL: none of its own. Returns its socket.
 */
int bench_session_open_as(Sbeet__TaskSpec *task);
int bench_session_open(void);

/* Until the other side has taken what was sent. */
void bench_wait_until_read(int fd);

/* Sorts @times. */
nsec_t bench_quantile(nsec_t *times, size_t n, unsigned percent);
