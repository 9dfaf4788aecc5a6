/*
 * preempt-loop.c: what does it take to keep less urgent owners off the GPU by preemption?
 *
 * usage: preempt-loop INTERVAL_US THREADS
 *	While an owner on the page has a job open, preempts the groups of all working owners of a
 *	lower level, and again INTERVAL_US after it began; one thread for all (1) or one for each
 *	owner (0). Ends when the page's loops is 0. Prints ioctls, their p50 and p99, the CPU that
 *	ioctls take of the time in which a job is open, refusals.
 *
 * It is another process than the owners: their descriptors come by pidfd_getfd. While no job is
 * open it spins, so that a wake-up of this process is not part of what is measured.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "preempt.h"
#include "probe.h"

#define CALLS_MAX 400000

struct loop {
	pthread_t thread;
	int first, last; /* owners */
	double *took;
	size_t calls;
	size_t refused;
	double open_us, cpu_us;
	long sleeps;
};

static struct preempt_page *page;
static double interval_us, pause_us; /* PROBE_PAUSE_US: after each ioctl */
static int descriptor[OWNERS_MAX];

static int get_descriptor(const struct owner *o) {
	int pidfd = (int)syscall(SYS_pidfd_open, (pid_t)o->pid, 0);
	int fd = (int)syscall(SYS_pidfd_getfd, pidfd, (int)o->fd, 0);

	if (fd < 0) {
		perror("pidfd_getfd");
		exit(1);
	}
	close(pidfd);
	return fd;
}

/* Level of the most urgent open job; 0 if none is open. */
static uint32_t open_level(void) {
	uint32_t level = 0;

	for (int i = 0; i < OWNERS_MAX; i++) {
		if (page->owner[i].open && page->owner[i].level > level) {
			level = page->owner[i].level;
		}
	}
	return level;
}

static double thread_cpu_us(void) {
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static void preempt_below(struct loop *l, uint32_t level) {
	for (int i = l->first; i <= l->last && l->calls < CALLS_MAX; i++) {
		const struct owner *o = &page->owner[i];
		double begin;

		if (!o->ready || !o->active || o->level >= level || open_level() != level) {
			continue;
		}
		begin = now_us();
		l->refused += group_preempt(descriptor[i], o, 0) != 0;
		l->took[l->calls++] = now_us() - begin;
		for (begin = now_us(); now_us() < begin + pause_us;) {
		}
	}
}

static void *run_loop(void *userdata) {
	struct loop *l = (struct loop *)userdata;
	struct rusage usage;

	while (page->loops && !page->stop) {
		uint32_t level = open_level();
		double begin, cpu;

		if (level == 0) {
			continue;
		}
		begin = now_us(), cpu = thread_cpu_us();
		preempt_below(l, level);
		l->cpu_us += thread_cpu_us() - cpu;
		while (now_us() < begin + interval_us && open_level() == level && page->loops) {
		}
		l->open_us += now_us() - begin;
	}
	getrusage(RUSAGE_THREAD, &usage);
	l->sleeps = usage.ru_nvcsw;
	return NULL;
}

int main(int argc, char **argv) {
	static struct loop loops[OWNERS_MAX];
	struct loop sum = {.took = calloc(CALLS_MAX, sizeof(double))};
	int threads;

	if (argc < 3 || !sum.took) {
		return 2;
	}
	page = shared_page(sizeof(*page));
	interval_us = atof(argv[1]);
	pause_us = getenv("PROBE_PAUSE_US") ? atof(getenv("PROBE_PAUSE_US")) : 0;
	threads = atoi(argv[2]) == 1 ? 1 : OWNERS_MAX;
	for (int i = 0; i < OWNERS_MAX; i++) {
		if (page->owner[i].ready) {
			descriptor[i] = get_descriptor(&page->owner[i]);
		}
	}
	for (int i = 0; i < threads; i++) {
		if (threads > 1 && !page->owner[i].ready) {
			continue;
		}
		loops[i].first = i;
		loops[i].last = threads == 1 ? OWNERS_MAX - 1 : i;
		loops[i].took = calloc(CALLS_MAX, sizeof(double));
		CHECK(pthread_create(&loops[i].thread, NULL, run_loop, &loops[i]));
	}
	for (int i = 0; i < threads; i++) {
		if (!loops[i].took) {
			continue;
		}
		pthread_join(loops[i].thread, NULL);
		for (size_t k = 0; k < loops[i].calls && sum.calls < CALLS_MAX; k++) {
			sum.took[sum.calls++] = loops[i].took[k];
		}
		sum.refused += loops[i].refused;
		sum.cpu_us += loops[i].cpu_us;
		sum.sleeps += loops[i].sleeps;
		sum.open_us = loops[i].open_us > sum.open_us ? loops[i].open_us : sum.open_us;
	}
	printf("   loop: %zu ioctls, p50 %.0f p99 %.0f us, CPU %.0f %% of %.0f ms open, "
	       "%zu refused, slept %ld times\n",
	       sum.calls, percentile(sum.took, sum.calls, 500),
	       percentile(sum.took, sum.calls, 990),
	       sum.open_us > 0 ? 100 * sum.cpu_us / sum.open_us : 0, sum.open_us / 1e3, sum.refused,
	       sum.sleeps);
	return 0;
}
