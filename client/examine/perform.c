/*
 * perform.c: see perform.h.
 *
 * A task is a thread; each process has one stream for each of its tasks. All is allocated and each
 * kernel has run once before the processes meet, so that nothing but the launches themselves
 * happens while the experiment runs.
 */
#include "client/examine/perform.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/examine/children.h"
#include "client/examine/clock.h"
#include "client/examine/driver.h"

#define PROBE_BYTES  (4u * 1024 * 1024)
#define PROBE_ROUNDS 64			   /* at first */
#define PROBE_TIME   (100 * NSEC_PER_USEC) /* above the steps of its clock */
#define PROBE_MOST   (1u << 20)

/* Shared by all processes; records and blocks follow it. */
struct shared {
	struct children_gate gate;
	const struct experiment *e; /* the parent's, in the same place after fork */
	const struct experiment_gpu *gpu;
	unsigned n_processes, n_iterations;
	struct experiment_record *records;
	struct experiment_block *blocks;
	size_t size;
};

/* A process. */
struct process {
	struct driver d;
	struct shared *shared;
	struct clock clock;
	unsigned first_task, n_tasks;
	nsec_t start;
	driver_memory copy_data; /* all copies go there; what they carry does not matter */
	void *copy_host;
	driver_memory records; /* of all operations, as they stand in shared->blocks */
	size_t first_block, n_blocks;
	struct driver_event **before, **after; /* of copies, as shared->records */
	pthread_mutex_t lock;
	int error;
};

struct thread {
	struct process *p;
	unsigned task;
	struct driver_stream *stream;
	pthread_t thread;
	bool started;
	char error[256];
};

static size_t slot(const struct shared *s, unsigned iteration, unsigned op) {
	return (size_t)iteration * s->e->n_ops + op;
}

static bool is_copy(const struct experiment_op *op) {
	return op->kind == EXPERIMENT_COPY_IN || op->kind == EXPERIMENT_COPY_OUT;
}

/* ---- one operation ---- */

static int launch_copy(struct process *p, const struct experiment_op *op, size_t at,
		       struct driver_stream *stream) {
	struct driver *d = &p->d;
	int r = driver_check(d, d->event_record(p->before[at], stream), "recording an event");

	if (r == 0) {
		r = driver_check(
			d,
			op->kind == EXPERIMENT_COPY_IN
				? d->copy_in(p->copy_data, p->copy_host, op->bytes, stream)
				: d->copy_out(p->copy_host, p->copy_data, op->bytes, stream),
			"copying");
	}
	return r < 0 ? r
		     : driver_check(d, d->event_record(p->after[at], stream), "recording an event");
}

static int launch(struct process *p, struct thread *t, unsigned index, unsigned iteration) {
	const struct experiment_op *op = &p->shared->e->ops[index];
	size_t at = slot(p->shared, iteration, index);
	struct experiment_record *record = &p->shared->records[at];

	record->launched = clock_gpu(&p->clock, nsec_now());
	if (is_copy(op)) {
		return launch_copy(p, op, at, t->stream);
	}
	return driver_launch(&p->d, op->kind == EXPERIMENT_SPIN ? p->d.spin : p->d.count,
			     op->blocks, op->threads, op->shared_bytes, t->stream,
			     p->records +
				     (size_t)(record->blocks - p->shared->blocks - p->first_block) *
					     sizeof(struct experiment_block),
			     op->work, 0, 0);
}

/* ---- a task ---- */

static int run_task(struct thread *t) {
	struct process *p = t->p;
	const struct experiment_task *task = &p->shared->e->tasks[t->task];
	int r = driver_check(&p->d, p->d.set_current(p->d.context), "cuCtxSetCurrent");

	children_sleep_until(p->start + task->release);
	for (unsigned i = 0; r == 0 && i < task->iterations; i++) {
		if (task->max_time && nsec_now() - p->start > task->max_time) {
			break;
		}
		for (unsigned op = 0; r == 0 && op < task->n_ops; op++) {
			nsec_t delay = p->shared->e->ops[task->first_op + op].delay;

			if (delay > 0) {
				children_sleep_until(nsec_now() + delay);
			}
			r = launch(p, t, task->first_op + op, i);
		}
		if (r == 0 && task->iterations > 1) {
			r = driver_check(&p->d, p->d.stream_wait(t->stream),
					 "waiting for a stream");
		}
	}
	return r;
}

static void *thread_main(void *data) {
	struct thread *t = data;
	int r = run_task(t);

	pthread_mutex_lock(&t->p->lock);
	t->p->error = t->p->error < 0 ? t->p->error : r;
	pthread_mutex_unlock(&t->p->lock);
	return NULL;
}

/* ---- a process ---- */

static int make_stream(struct process *p, const struct experiment_task *task,
		       struct driver_stream **ret) {
	struct driver *d = &p->d;
	int priority = task->priority;

	if (task->null_stream) {
		*ret = NULL;
		return 0;
	}
	if (!task->has_priority) {
		return driver_check(d, d->stream(ret, 0), "making a stream");
	}
	priority = priority > d->gpu.priority_low ? d->gpu.priority_low : priority;
	priority = priority < d->gpu.priority_high ? d->gpu.priority_high : priority;
	return driver_check(d, d->stream_level(ret, 0, priority), "making a stream");
}

static int make_events(struct process *p) {
	struct shared *s = p->shared;
	size_t n = (size_t)s->n_iterations * s->e->n_ops;
	int r = 0;

	p->before = calloc(n, sizeof(struct driver_event *));
	p->after = calloc(n, sizeof(struct driver_event *));
	if (!p->before || !p->after) {
		snprintf(p->d.error, p->d.error_size, "out of memory");
		return -ENOMEM;
	}
	for (unsigned t = p->first_task; t < p->first_task + p->n_tasks; t++) {
		const struct experiment_task *task = &s->e->tasks[t];

		for (unsigned op = task->first_op; op < task->first_op + task->n_ops; op++) {
			for (unsigned i = 0; is_copy(&s->e->ops[op]) && i < task->iterations; i++) {
				struct driver *d = &p->d;

				if ((r = driver_check(d, d->event(&p->before[slot(s, i, op)], 0),
						      "making an event")) < 0 ||
				    (r = driver_check(d, d->event(&p->after[slot(s, i, op)], 0),
						      "making an event")) < 0) {
					return r;
				}
			}
		}
	}
	return 0;
}

/* Blocks of this process' tasks lie side by side. */
static void find_blocks(struct process *p) {
	struct shared *s = p->shared;
	struct experiment_block *first = NULL, *end = NULL;

	for (unsigned t = p->first_task; t < p->first_task + p->n_tasks; t++) {
		const struct experiment_task *task = &s->e->tasks[t];

		for (unsigned op = task->first_op; op < task->first_op + task->n_ops; op++) {
			for (unsigned i = 0; i < task->iterations; i++) {
				const struct experiment_record *r = &s->records[slot(s, i, op)];

				if (r->n_blocks > 0) {
					first = first && first < r->blocks ? first : r->blocks;
					end = end > r->blocks + r->n_blocks
						      ? end
						      : r->blocks + r->n_blocks;
				}
			}
		}
	}
	p->first_block = first ? (size_t)(first - s->blocks) : 0;
	p->n_blocks = (size_t)(end - first);
}

static int allocate(struct process *p) {
	struct driver *d = &p->d;
	uint64_t bytes = 4096;
	int r;

	for (unsigned i = 0; i < p->shared->e->n_ops; i++) {
		bytes = p->shared->e->ops[i].bytes > bytes ? p->shared->e->ops[i].bytes : bytes;
	}
	find_blocks(p);
	if ((r = driver_check(d, d->alloc(&p->copy_data, bytes), "allocating memory")) < 0 ||
	    (r = driver_check(d, d->alloc_host(&p->copy_host, bytes, DRIVER_PORTABLE),
			      "allocating pinned memory")) < 0 ||
	    (r = driver_check(
		     d, d->alloc(&p->records, (p->n_blocks + 1) * sizeof(struct experiment_block)),
		     "allocating memory")) < 0) {
		return r;
	}
	return make_events(p);
}

/* Each kernel, once, with all that it may take of an SM: the driver loads and reserves then. */
static int warm_up(struct process *p) {
	unsigned most = 0;
	int r = 0;

	for (unsigned i = 0; i < p->shared->e->n_ops; i++) {
		const struct experiment_op *op = &p->shared->e->ops[i];

		most = op->shared_bytes > most ? op->shared_bytes : most;
	}
	for (int i = 0; r == 0 && i < 2; i++) {
		r = driver_launch(&p->d, i ? p->d.count : p->d.spin, 1, 32, most, NULL, p->records,
				  1, 0, 0);
	}
	return r < 0 ? r : driver_check(&p->d, p->d.synchronize(), "cuCtxSynchronize");
}

/* @solo: how long the copy takes alone. What comes before its end by more is waiting. */
static int take_copy(struct process *p, size_t at, nsec_t solo) {
	struct experiment_record *record = &p->shared->records[at];
	int r = clock_event(&p->clock, &p->d, p->before[at], &record->start);

	if (r == 0) {
		r = clock_event(&p->clock, &p->d, p->after[at], &record->end);
	}
	if (r == 0 && solo > 0 && record->end - record->start > solo) {
		record->start = record->end - solo;
	}
	return r;
}

static nsec_t solo_time(const struct experiment_op *op, const struct experiment_gpu *gpu) {
	double rate = op->kind == EXPERIMENT_COPY_IN ? gpu->copy_in_bytes_per_s
						     : gpu->copy_out_bytes_per_s;

	return rate > 0 ? (nsec_t)((double)op->bytes / rate * 1e9) : 0;
}

static int take_results(struct process *p) {
	struct shared *s = p->shared;
	int r = driver_check(&p->d, p->d.synchronize(), "waiting for the GPU");

	if (r == 0 && p->n_blocks > 0) {
		r = driver_check(&p->d,
				 p->d.copy_out(s->blocks + p->first_block, p->records,
					       p->n_blocks * sizeof(struct experiment_block), NULL),
				 "copying results");
	}
	r = r < 0 ? r : driver_check(&p->d, p->d.synchronize(), "waiting for the GPU");
	for (unsigned t = p->first_task; r == 0 && t < p->first_task + p->n_tasks; t++) {
		const struct experiment_task *task = &s->e->tasks[t];

		for (unsigned n = 0; r == 0 && n < task->n_ops * task->iterations; n++) {
			unsigned op = task->first_op + n % task->n_ops;
			size_t at = slot(s, n / task->n_ops, op);

			if (s->records[at].launched && is_copy(&s->e->ops[op])) {
				r = take_copy(p, at, solo_time(&s->e->ops[op], s->gpu));
			}
		}
	}
	return r;
}

static int run_threads(struct process *p) {
	struct thread threads[EXPERIMENT_TASKS_MAX] = {{.p = NULL}};
	int r = 0;

	for (unsigned i = 0; r == 0 && i < p->n_tasks; i++) {
		threads[i] = (struct thread){.p = p, .task = p->first_task + i};
		r = make_stream(p, &p->shared->e->tasks[p->first_task + i], &threads[i].stream);
	}
	if (r < 0) {
		return r;
	}
	p->start = children_meet(&p->shared->gate, p->shared->n_processes);
	for (unsigned i = 0; i < p->n_tasks; i++) {
		threads[i].started =
			pthread_create(&threads[i].thread, NULL, thread_main, &threads[i]) == 0;
		if (!threads[i].started) {
			snprintf(p->d.error, p->d.error_size, "cannot start a thread");
			r = -EAGAIN;
		}
	}
	for (unsigned i = 0; i < p->n_tasks; i++) {
		if (threads[i].started) {
			pthread_join(threads[i].thread, NULL);
		}
	}
	return r < 0 ? r : p->error;
}

static int process_main(void *userdata, unsigned index, char *error, size_t error_size) {
	struct shared *s = userdata;
	struct process p = {.shared = s, .n_tasks = s->e->n_tasks};
	int r;

	if (s->e->processes) {
		p.first_task = index;
		p.n_tasks = 1;
	}
	pthread_mutex_init(&p.lock, NULL);
	r = driver_open(&p.d, s->e->gpu, error, error_size);
	if (r < 0 || (r = allocate(&p)) < 0 || (r = warm_up(&p)) < 0 ||
	    (r = clock_compare(&p.clock, &p.d)) < 0 || (r = run_threads(&p)) < 0) {
		return r;
	}
	return take_results(&p);
}

/* ---- all of it ---- */

static unsigned most_iterations(const struct experiment *e) {
	unsigned most = 1;

	for (unsigned i = 0; i < e->n_tasks; i++) {
		most = e->tasks[i].iterations > most ? e->tasks[i].iterations : most;
	}
	return most;
}

/* All records of a task, then those of the next. Return: how many blocks there are. */
static size_t lay_out(struct shared *s) {
	size_t n = 0;

	for (unsigned t = 0; t < s->e->n_tasks; t++) {
		const struct experiment_task *task = &s->e->tasks[t];

		for (unsigned i = 0; i < task->iterations; i++) {
			for (unsigned op = task->first_op; op < task->first_op + task->n_ops;
			     op++) {
				unsigned blocks =
					is_copy(&s->e->ops[op]) ? 0 : s->e->ops[op].blocks;

				if (s->records) {
					struct experiment_record *r = &s->records[slot(s, i, op)];

					r->blocks = s->blocks + n;
					r->n_blocks = blocks;
				}
				n += blocks;
			}
		}
	}
	return n;
}

/* When a kernel began and ended: with its first and its last block. */
static void sum_up(struct experiment_run *run) {
	for (size_t i = 0; i < run->n_records; i++) {
		struct experiment_record *r = &run->records[i];

		for (unsigned b = 0; b < r->n_blocks; b++) {
			const struct experiment_block *block = &r->blocks[b];

			r->start = r->start && r->start < block->start ? r->start : block->start;
			r->end = r->end > block->end ? r->end : block->end;
		}
	}
}

static int take_run(struct experiment_run *ret, const struct shared *s, size_t n_blocks) {
	struct experiment_run run = {.n_iterations = s->n_iterations,
				     .n_records = (size_t)s->n_iterations * s->e->n_ops};

	run.records = calloc(run.n_records, sizeof(*run.records));
	run.blocks = calloc(n_blocks + 1, sizeof(*run.blocks));
	if (!run.records || !run.blocks) {
		experiment_run_deinit(&run);
		return -ENOMEM;
	}
	memcpy(run.records, s->records, run.n_records * sizeof(*run.records));
	memcpy(run.blocks, s->blocks, n_blocks * sizeof(*run.blocks));
	for (size_t i = 0; i < run.n_records; i++) {
		if (run.records[i].blocks) {
			run.records[i].blocks = run.blocks + (run.records[i].blocks - s->blocks);
		}
		if (!run.records[i].launched) {
			run.records[i].n_blocks = 0;
		}
	}
	sum_up(&run);
	*ret = run;
	return 0;
}

int perform(struct experiment_run *ret, const struct experiment *e,
	    const struct experiment_gpu *gpu, nsec_t limit, char *error, size_t error_size) {
	struct shared layout = {.e = e, .n_iterations = most_iterations(e)};
	size_t n_blocks = lay_out(&layout), n_records = (size_t)layout.n_iterations * e->n_ops;
	size_t size = sizeof(struct shared) + n_records * sizeof(struct experiment_record) +
		      (n_blocks + 1) * sizeof(struct experiment_block);
	struct shared *s = children_memory(size);
	int r;

	if (!s) {
		snprintf(error, error_size, "out of memory");
		return -ENOMEM;
	}
	*s = layout;
	s->gpu = gpu;
	s->size = size;
	s->n_processes = e->processes ? e->n_tasks : 1;
	s->records = (struct experiment_record *)(s + 1);
	s->blocks = (struct experiment_block *)(s->records + n_records);
	lay_out(s);
	r = children_run(s->n_processes, process_main, s, limit, error, error_size);
	if (r == 0) {
		r = take_run(ret, s, n_blocks);
		if (r < 0) {
			snprintf(error, error_size, "out of memory");
		}
	}
	children_memory_free(s, size);
	return r;
}

/* ---- what there is ---- */

struct probe {
	struct experiment_gpu gpu;
	unsigned index;
};

static int measure_copies(struct driver *d, struct experiment_gpu *gpu) {
	driver_memory data;
	void *host;
	int r;

	if ((r = driver_check(d, d->alloc(&data, PROBE_BYTES), "allocating memory")) < 0 ||
	    (r = driver_check(d, d->alloc_host(&host, PROBE_BYTES, DRIVER_PORTABLE),
			      "allocating pinned memory")) < 0) {
		return r;
	}
	for (int i = 0; r == 0 && i < 6; i++) { /* the first of each direction warms up */
		nsec_t began = nsec_now();
		double rate;

		r = driver_check(d,
				 i % 2 ? d->copy_out(host, data, PROBE_BYTES, NULL)
				       : d->copy_in(data, host, PROBE_BYTES, NULL),
				 "copying");
		r = r < 0 ? r : driver_check(d, d->synchronize(), "cuCtxSynchronize");
		rate = PROBE_BYTES / ((double)(nsec_now() - began) / 1e9);
		if (i >= 2 && i % 2 && rate > gpu->copy_out_bytes_per_s) {
			gpu->copy_out_bytes_per_s = rate;
		} else if (i >= 2 && i % 2 == 0 && rate > gpu->copy_in_bytes_per_s) {
			gpu->copy_in_bytes_per_s = rate;
		}
	}
	return r;
}

static int measure_rounds(struct driver *d, struct experiment_gpu *gpu) {
	unsigned threads = gpu->sm_threads / 2 / 32 * 32, blocks;
	struct experiment_block block = {0};
	driver_memory records;
	int r;

	threads = threads > 1024 ? 1024 : threads;
	blocks = gpu->sms * (gpu->sm_threads / threads);
	r = driver_check(d, d->alloc(&records, blocks * sizeof(block)), "allocating memory");
	for (uint64_t rounds = PROBE_ROUNDS; r == 0 && rounds <= PROBE_MOST; rounds *= 2) {
		r = driver_launch(d, d->count, blocks, threads, 0, NULL, records, rounds, 0, 0);
		r = r < 0 ? r : driver_check(d, d->synchronize(), "cuCtxSynchronize");
		r = r < 0 ? r
			  : driver_check(d, d->copy_out(&block, records, sizeof(block), NULL),
					 "copying");
		r = r < 0 ? r : driver_check(d, d->synchronize(), "cuCtxSynchronize");
		if (r == 0 && block.end > block.start + PROBE_TIME) {
			gpu->rounds_per_s =
				(double)rounds / ((double)(block.end - block.start) / 1e9);
			return 0;
		}
	}
	if (r == 0) {
		snprintf(d->error, d->error_size, "the GPU's clock (%%globaltimer) stands still");
		r = -EIO;
	}
	return r;
}

static int probe_main(void *userdata, unsigned index, char *error, size_t error_size) {
	struct probe *p = userdata;
	struct driver d;
	int r = driver_open(&d, p->index, error, error_size);

	(void)index;
	if (r < 0 || (r = measure_copies(&d, &d.gpu)) < 0 || (r = measure_rounds(&d, &d.gpu)) < 0) {
		return r;
	}
	p->gpu = d.gpu;
	return 0;
}

int perform_probe(struct experiment_gpu *ret, unsigned gpu, nsec_t limit, char *error,
		  size_t error_size) {
	struct probe *p = children_memory(sizeof(*p));
	int r;

	if (!p) {
		snprintf(error, error_size, "out of memory");
		return -ENOMEM;
	}
	p->index = gpu;
	r = children_run(1, probe_main, p, limit, error, error_size);
	if (r == 0) {
		*ret = p->gpu;
	}
	children_memory_free(p, sizeof(*p));
	return r;
}
