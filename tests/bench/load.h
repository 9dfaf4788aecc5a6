/*
 * load.h: many programs at one sbeetd, played by one process, which sees to it that no grant is
 * lost, given twice or out of order, and that no SM is given to two at once.
 *
 * A job ends as soon as its grant is read. What is wrong with a grant is told on stderr and ends
 * the process with 1: that is no matter of speed. Used by bench-load and bench-hostile.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "bench.h"
#include "proto/smset.h"

/* At a given rate, requests come so often: those that are due since the last time. A timer for each
 * would cost more than a grant does. */
#define LOAD_TICK (250 * NSEC_PER_USEC)

/* Jobs that one program has asked for and that are not yet granted. */
#define LOAD_DEPTH 2

struct load_client {
	int fd;
	uint64_t n_asked, n_granted; /* jobs are numbered from 1 */
	uint64_t last;		     /* sequence number of its last grant; 0: none yet */
	nsec_t asked[LOAD_DEPTH];    /* when, by job modulo the depth */
};

struct load {
	struct bench_daemon daemon;
	struct load_client *clients; /* owned */
	size_t n_clients;
	unsigned gpu;  /* that all ask for */
	int epoll;     /* of the clients' sockets, and of the timer */
	int timer;     /* of load_pace() */
	uint64_t most; /* grants that there will be */
	uint8_t *seen; /* owned; by sequence number, which begin at 1 */
	uint64_t n_seen;
	bool alone;	     /* every grant of this daemon is ours */
	uint64_t passed_max; /* a program that waits has a grant at least every so many; 0: any */
};

/* As many descriptors as we may have, for us and for the daemons that we start. Return: whether
 * those are @n. */
bool load_raise_limit(size_t n);

/* A daemon of its own with @n programs that will ask for GPU @gpu, at most @most times together.
 * @alone: nobody else asks for anything. */
void load_init(struct load *load, const char *const *args, size_t n, unsigned gpu, uint64_t most,
	       bool alone);

/* All that was asked for was granted, or the process ends; all leave. */
void load_deinit(struct load *load);

/* All programs keep LOAD_DEPTH jobs waiting, until @n were asked for, and then are granted all;
 * nobody may be passed over. Times from request to grant go to @times. */
void load_press(struct load *load, size_t n, nsec_t *times);

/* One after the other asks and waits, @n times in all. */
void load_stroll(struct load *load, size_t n, nsec_t *times);

/* A request every @interval, to the next tick, from one after the other, whether or not those
 * before were granted,
 * @n in all. The times count from when a request was due, however late it was made. Return: how
 * long all took. A program that has LOAD_DEPTH jobs waiting is waited for. */
nsec_t load_pace(struct load *load, nsec_t interval, size_t n, nsec_t *times);
