/*
 * sbeet.h: a program tells sbeet where its jobs begin and end. C and C++; nothing to link with but
 * -ldl on a C library older than glibc 2.34 (pkg-config --libs sbeet).
 *
 *	for (;;) {
 *		wait_for_frame();
 *		sbeet_job_begin(0);
 *		launch_and_copy();
 *		sbeet_job_end();
 *	}
 *
 * Without libsbeet.so in the process (see `sbeetctl run`) every function does nothing. sbeetctl(1)
 * says under MARKS what they mean. Any thread may call them at any time; they keep errno, and but
 *for sbeet_job_gpu() never fail.
 */
#pragma once

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What to say to the function sbeet_mark() of libsbeet.so, which ignores any other @mark. */
enum {
	SBEET_MARK_JOB_BEGIN = 1,
	SBEET_MARK_JOB_END = 2,
	SBEET_MARK_SEGMENT_BEGIN = 3,
	SBEET_MARK_SEGMENT_END = 4
};
typedef void (*sbeet_mark_fn)(unsigned mark, uint64_t release_ns, uint64_t deadline_ns);

/* NULL: libsbeet.so is not there. */
static inline sbeet_mark_fn sbeet_find(void) {
	static int looked;
	static sbeet_mark_fn found;
	sbeet_mark_fn f;

	if (!__atomic_load_n(&looked, __ATOMIC_ACQUIRE)) {
		/* RTLD_DEFAULT is NULL; dlfcn.h names it with _GNU_SOURCE only. */
		void *p = dlsym(NULL, "sbeet_mark");

		__builtin_memcpy(&f, &p, sizeof(f));
		__atomic_store_n(&found, f, __ATOMIC_RELAXED);
		__atomic_store_n(&looked, 1, __ATOMIC_RELEASE);
	}
	return __atomic_load_n(&found, __ATOMIC_RELAXED);
}

static inline void sbeet_say(unsigned mark, uint64_t release_ns, uint64_t deadline_ns) {
	sbeet_mark_fn f = sbeet_find();

	if (f) {
		f(mark, release_ns, deadline_ns);
	}
}

/*
 * A job begins. @release_ns: when it was released, in nanoseconds of CLOCK_MONOTONIC: when the
 * frame arrived, for example. 0, or a time to come: now. One that lies more than a second before
 * the job's first operation counts as that second.
 */
static inline void sbeet_job_begin(uint64_t release_ns) {
	sbeet_say(SBEET_MARK_JOB_BEGIN, release_ns, 0);
}

/* The same with a deadline of this job's own. @deadline_ns: from its release, in nanoseconds, at
 * most the period of its task; 0: that of its task. */
static inline void sbeet_job_begin_within(uint64_t release_ns, uint64_t deadline_ns) {
	sbeet_say(SBEET_MARK_JOB_BEGIN, release_ns, deadline_ns);
}

/* It has handed all its work to the GPU. It is over when that is complete; nobody waits here. */
static inline void sbeet_job_end(void) {
	sbeet_say(SBEET_MARK_JOB_END, 0, 0);
}

/* A part of the job that needs the GPU. Once a job has had one, it keeps its SMs only within such
 * parts, unless sbeetd's policy gives the GPU to whole jobs (gpu-kthread). Outside of a job it does
 * nothing. */
static inline void sbeet_segment_begin(void) {
	sbeet_say(SBEET_MARK_SEGMENT_BEGIN, 0, 0);
}

static inline void sbeet_segment_end(void) {
	sbeet_say(SBEET_MARK_SEGMENT_END, 0, 0);
}

typedef int (*sbeet_choose_gpu_fn)(const int *gpus, unsigned n);

/*
 * Where the job runs, of a program that can run it on several GPUs. To be called behind
 * sbeet_job_begin(), before the job's first operation; waits until the job may start. Then make
 * that GPU the current one (cudaSetDevice()) and launch there.
 *
 * @gpus: @n different numbers of CUDA devices, 1 to 16, the preferred one first. On each the
 * program has what the job needs: its memory above all, for nothing is moved. Jobs of this thread
 * (or, with SBEET_SCOPE=process, of this process) that are not over on these GPUs are waited for.
 * The job ends at sbeet_job_end(), whatever SBEET_JOB is.
 *
 * Return: one of @gpus; the first one where libsbeet.so is not in the process, sbeetd does not run,
 * or lets the program's jobs run without being asked (policy steer, with MPS or preemption). Called again in the
 * same job: the same. -1, with the reason on standard error: one of them is no GPU that the program
 * sees, or that it may use, or no job has begun; the job's operations are then treated as without
 * this call.
 */
static inline int sbeet_job_gpu(const int *gpus, unsigned n) {
	static int looked;
	static sbeet_choose_gpu_fn found;
	sbeet_choose_gpu_fn f;

	if (!__atomic_load_n(&looked, __ATOMIC_ACQUIRE)) {
		void *p = dlsym(NULL, "sbeet_choose_gpu");

		__builtin_memcpy(&f, &p, sizeof(f));
		__atomic_store_n(&found, f, __ATOMIC_RELAXED);
		__atomic_store_n(&looked, 1, __ATOMIC_RELEASE);
	}
	f = __atomic_load_n(&found, __ATOMIC_RELAXED);
	return f ? f(gpus, n) : gpus && n > 0 ? gpus[0] : -1;
}

#ifdef __cplusplus
}
#endif
