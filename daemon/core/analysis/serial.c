/* serial.c: see serial.h. */
#include "daemon/core/analysis/serial.h"

/* Jobs of one task in a busy period that are looked at. */
#define JOBS_MAX 100000

/* Steps towards one bound. */
#define STEPS_MAX 100000

struct query {
	const struct serial_task *tasks;
	size_t n, index;
	bool by_period;
	nsec_t blocked; /* by a job that was running already */
};

/* One job has all the time there is. */
static nsec_t period_of(const struct serial_task *task) {
	return task->period ? task->period : UINT64_MAX;
}

/* Whether jobs of tasks[@other] may go before those that the query is about. */
static bool goes_first(const struct query *q, size_t other) {
	return !q->by_period || period_of(&q->tasks[other]) <= period_of(&q->tasks[q->index]);
}

/* What has to run in @length of a busy period: @own jobs of the task itself, and all jobs of those
 * that go first; @closed: also those released at its very end. Above @most the sum may be anything
 * that is above it, too. */
static nsec_t demand(const struct query *q, uint64_t own, nsec_t length, bool closed, nsec_t most) {
	nsec_t sum = q->blocked;

	if (__builtin_mul_overflow(own, q->tasks[q->index].time, &own) ||
	    __builtin_add_overflow(sum, own, &sum)) {
		return UINT64_MAX;
	}
	for (size_t i = 0; i < q->n && sum <= most; i++) {
		const struct serial_task *task = &q->tasks[i];
		uint64_t jobs = 1;
		nsec_t takes;

		if (i == q->index || !goes_first(q, i)) {
			continue;
		}
		if (task->period) {
			jobs = closed ? length / task->period + 1
				      : length / task->period + (length % task->period > 0);
		}
		if (__builtin_mul_overflow(jobs, task->time, &takes) ||
		    __builtin_add_overflow(sum, takes, &sum)) {
			return UINT64_MAX;
		}
	}
	return sum;
}

/* When the job behind @own earlier ones of its task starts in the busy period. */
static nsec_t start_of(const struct query *q, uint64_t own, nsec_t from, nsec_t most) {
	nsec_t start = from;

	for (unsigned step = 0; step < STEPS_MAX && start <= most; step++) {
		nsec_t next = demand(q, own, start, true, most);

		if (next == start) {
			return start;
		}
		start = next;
	}
	return UINT64_MAX;
}

/* Whether the busy period ends by @length, in which @own jobs of the task are released. */
static bool is_over(const struct query *q, uint64_t own, nsec_t length) {
	return demand(q, own, length, false, length) <= length;
}

nsec_t serial_bound(const struct serial_task *tasks, size_t n, size_t index, bool by_period,
		    nsec_t most) {
	const struct serial_task *task = &tasks[index];
	struct query q = {.tasks = tasks, .n = n, .index = index, .by_period = by_period};
	nsec_t longest = 0, start = 0;

	for (size_t i = 0; i < n; i++) {
		if (i != index && !goes_first(&q, i) && tasks[i].time > q.blocked) {
			q.blocked = tasks[i].time;
		}
	}
	for (uint64_t own = 0; own < JOBS_MAX; own++) {
		nsec_t release, latest, response;

		if (__builtin_mul_overflow(own, task->period, &release) ||
		    __builtin_add_overflow(release, most, &latest)) {
			return UINT64_MAX;
		}
		start = start_of(&q, own, start, latest);
		if (start > latest || task->time > latest - start) {
			return UINT64_MAX;
		}
		response = start + task->time - release;
		longest = response > longest ? response : longest;
		if (task->period == 0 || is_over(&q, own + 1, release + task->period)) {
			return longest;
		}
	}
	return UINT64_MAX;
}
