/* examiner.c: see examiner.h. */
#include "client/examine/examiner.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/input.h"
#include "daemon/book/reader.h"

#define TIME_MAX_S     3600
#define ITERATIONS_MAX 10000
#define SPIN_DEFAULT   (10 * NSEC_PER_MSEC)
#define PRIORITY_MAX   1000

struct state {
	const struct reader *reader;
	struct experiment e;
	int64_t iterations; /* of all tasks; 0: until max_time */
	nsec_t max_time;
	size_t n_records;
};

/* A number of seconds, "0.2"; text of a number is one, too. */
static int read_seconds(const struct reader *r, const struct reader_node *at, nsec_t *ret) {
	double s = json_number_value(at->value);

	if (!json_is_number(at->value) || !(s >= 0 && s <= TIME_MAX_S)) {
		return reader_fail(r, at, "expected a number of seconds from 0 to %d", TIME_MAX_S);
	}
	*ret = (nsec_t)(s * 1e9);
	return 0;
}

/* What need not be there leaves *ret as it is. */
static int optional_seconds(const struct reader *r, const struct reader_node *at, const char *key,
			    nsec_t *ret) {
	struct reader_node node;

	return reader_get(at, key, &node) ? read_seconds(r, &node, ret) : 0;
}

static int optional_int(const struct reader *r, const struct reader_node *at, const char *key,
			int64_t min, int64_t max, int64_t *ret) {
	struct reader_node node;

	return reader_get(at, key, &node) ? reader_int(r, &node, min, max, ret) : 0;
}

static int optional_bool(const struct reader *r, const struct reader_node *at, const char *key,
			 bool *ret) {
	struct reader_node node;

	if (!reader_get(at, key, &node)) {
		return 0;
	}
	if (!json_is_boolean(node.value)) {
		return reader_fail(r, &node, "expected true or false");
	}
	*ret = json_is_true(node.value);
	return 0;
}

static int optional_label(const struct reader *r, const struct reader_node *at, const char *key,
			  char *ret) {
	struct reader_node node;
	const char *text;
	int e;

	if (!reader_get(at, key, &node)) {
		return 0;
	}
	e = reader_name(r, &node, &text);
	if (e == 0) {
		snprintf(ret, EXPERIMENT_NAME_MAX, "%.*s", EXPERIMENT_NAME_MAX - 1, text);
	}
	return e;
}

/* ---- kernels ---- */

static int add_op(struct state *s, const struct reader_node *at, struct experiment_task *task,
		  const struct experiment_op *op) {
	struct experiment_op *to = &s->e.ops[s->e.n_ops];

	if (s->e.n_ops == EXPERIMENT_OPS_MAX) {
		return reader_fail(s->reader, at, "expected at most %d kernels and copies",
				   EXPERIMENT_OPS_MAX);
	}
	*to = *op;
	s->e.n_ops++;
	task->n_ops++;
	s->n_records += (size_t)op->blocks * task->iterations;
	if (s->n_records > EXPERIMENT_RECORDS_MAX) {
		return reader_fail(s->reader, at, "expected at most %u blocks in all iterations",
				   EXPERIMENT_RECORDS_MAX);
	}
	return 0;
}

static int read_grid(const struct reader *r, const struct reader_node *at,
		     struct experiment_op *op) {
	struct reader_node node;
	int64_t blocks, threads;
	int e = reader_need(r, at, "block_count", &node);

	e = e < 0 ? e : reader_int(r, &node, 1, EXPERIMENT_BLOCKS_MAX, &blocks);
	e = e < 0 ? e : reader_need(r, at, "thread_count", &node);
	e = e < 0 ? e : reader_int(r, &node, 1, 1024, &threads);
	if (e == 0) {
		op->blocks = (unsigned)blocks;
		op->threads = (unsigned)(threads + 31) / 32 * 32;
	}
	return e;
}

/* Copies are counted in 32-bit integers. */
static int add_copy(struct state *s, const struct reader_node *at, struct experiment_task *task,
		    const char *key, const struct experiment_op *kernel,
		    enum experiment_kind kind) {
	struct experiment_op op = {.kind = kind};
	int64_t count = 0;
	int e = optional_int(s->reader, at, key, 0, EXPERIMENT_COPY_MAX / 4, &count);

	if (e < 0 || count == 0) {
		return e;
	}
	op.bytes = (uint64_t)count * 4;
	snprintf(op.name, sizeof(op.name), "%.50s %s", kernel->name,
		 kind == EXPERIMENT_COPY_IN ? "in" : "out");
	return add_op(s, at, task, &op);
}

static int read_kernel(struct state *s, const struct reader_node *at,
		       struct experiment_task *task) {
	static const char *const keys[] = {
		"kernel_label",	      "duration",      "block_count",	 "thread_count", "delay",
		"shared_memory_size", "copy_in_count", "copy_out_count", "comment",	 NULL};
	struct experiment_op op = {.kind = EXPERIMENT_SPIN};
	struct reader_node node;
	int64_t duration, shared = 0;
	nsec_t delay = 0;
	int e;

	if ((e = reader_object(s->reader, at, keys)) < 0 ||
	    (e = reader_need(s->reader, at, "kernel_label", &node)) < 0 ||
	    (e = optional_label(s->reader, at, "kernel_label", op.name)) < 0 ||
	    (e = reader_need(s->reader, at, "duration", &node)) < 0 ||
	    (e = reader_int(s->reader, &node, 0, TIME_MAX_S * (int64_t)NSEC_PER_SEC, &duration)) <
		    0 ||
	    (e = read_grid(s->reader, at, &op)) < 0 ||
	    (e = optional_int(s->reader, at, "shared_memory_size", 0, 48 * 1024 / 4, &shared)) <
		    0 ||
	    (e = optional_seconds(s->reader, at, "delay", &delay)) < 0) {
		return e;
	}
	op.work = (uint64_t)duration;
	op.shared_bytes = (unsigned)shared * 4;
	e = add_copy(s, at, task, "copy_in_count", &op, EXPERIMENT_COPY_IN);
	if (e == 0) {
		/* What is first in the list waits. */
		if (s->e.n_ops > task->first_op &&
		    s->e.ops[s->e.n_ops - 1].kind == EXPERIMENT_COPY_IN) {
			s->e.ops[s->e.n_ops - 1].delay = delay;
		} else {
			op.delay = delay;
		}
		e = add_op(s, at, task, &op);
	}
	return e < 0 ? e : add_copy(s, at, task, "copy_out_count", &op, EXPERIMENT_COPY_OUT);
}

static int read_kernels(struct state *s, const struct reader_node *at,
			struct experiment_task *task) {
	struct reader_node node, element;
	int e = reader_need(s->reader, at, "additional_info", &node);

	e = e < 0 ? e : reader_array(s->reader, &node, EXPERIMENT_OPS_MAX);
	if (e == 0 && json_array_size(node.value) == 0) {
		return reader_fail(s->reader, &node, "expected a list of kernels");
	}
	for (size_t i = 0; e == 0 && i < json_array_size(node.value); i++) {
		element = reader_element(&node, i);
		e = read_kernel(s, &element, task);
	}
	return e;
}

/* A number of nanoseconds, or the text of one. */
static int read_spin(struct state *s, const struct reader_node *at, struct experiment_task *task) {
	struct experiment_op op = {.kind = EXPERIMENT_SPIN, .work = SPIN_DEFAULT};
	struct reader_node node;
	int64_t duration;
	int e = read_grid(s->reader, at, &op);

	if (e == 0 && reader_get(at, "additional_info", &node)) {
		if (json_is_string(node.value)) {
			if (units_parse_int(json_string_value(node.value), 0,
					    TIME_MAX_S * (int64_t)NSEC_PER_SEC, &duration) < 0) {
				return reader_fail(s->reader, &node,
						   "expected a number of nanoseconds");
			}
		} else {
			e = reader_int(s->reader, &node, 0, TIME_MAX_S * (int64_t)NSEC_PER_SEC,
				       &duration);
		}
		op.work = e == 0 ? (uint64_t)duration : op.work;
	}
	snprintf(op.name, sizeof(op.name), "%s", task->label);
	return e < 0 ? e : add_op(s, at, task, &op);
}

/* ---- benchmarks ---- */

/* "./bin/timer_spin.so": the name without folder and end. */
static int read_program(const struct reader *r, const struct reader_node *at, char *ret,
			size_t size) {
	struct reader_node node;
	const char *path, *base;
	int e = reader_need(r, at, "filename", &node);

	e = e < 0 ? e : reader_string(r, &node, &path);
	if (e < 0) {
		return e;
	}
	base = strrchr(path, '/');
	base = base ? base + 1 : path;
	snprintf(ret, size, "%.*s", (int)strcspn(base, "."), base);
	if (strcmp(ret, "timer_spin") != 0 && strcmp(ret, "timer_spin_default_stream") != 0 &&
	    strcmp(ret, "multikernel") != 0) {
		return reader_fail(r, &node,
				   "expected timer_spin.so, timer_spin_default_stream.so or "
				   "multikernel.so, found '%s'",
				   path);
	}
	return 0;
}

static int read_task(struct state *s, const struct reader_node *at) {
	static const char *const keys[] = {
		"filename",	"log_name",  "label",		"label:",	  "thread_count",
		"block_count",	"data_size", "additional_info", "max_iterations", "max_time",
		"release_time", "cpu_core",  "stream_priority", "comment",	  NULL};
	struct experiment_task *task = &s->e.tasks[s->e.n_tasks];
	int64_t iterations = s->iterations, priority = 0;
	struct reader_node node;
	char program[64];
	int e;

	*task = (struct experiment_task){.max_time = s->max_time, .first_op = s->e.n_ops};
	snprintf(task->label, sizeof(task->label), "Kernel %u", s->e.n_tasks + 1);
	if ((e = reader_object(s->reader, at, keys)) < 0 ||
	    (e = read_program(s->reader, at, program, sizeof(program))) < 0 ||
	    (e = optional_label(s->reader, at, "label", task->label)) < 0 ||
	    (e = optional_seconds(s->reader, at, "release_time", &task->release)) < 0 ||
	    (e = optional_seconds(s->reader, at, "max_time", &task->max_time)) < 0 ||
	    (e = optional_int(s->reader, at, "max_iterations", 0, ITERATIONS_MAX, &iterations)) <
		    0 ||
	    (e = optional_int(s->reader, at, "stream_priority", -PRIORITY_MAX, PRIORITY_MAX,
			      &priority)) < 0) {
		return e;
	}
	if (iterations == 0 && task->max_time == 0) {
		return reader_fail(s->reader, at,
				   "max_iterations and max_time are both 0: it would "
				   "never end");
	}
	task->iterations = iterations ? (unsigned)iterations : ITERATIONS_MAX;
	task->null_stream = strcmp(program, "timer_spin_default_stream") == 0;
	task->has_priority = reader_get(at, "stream_priority", &node);
	task->priority = (int)priority;
	s->e.n_tasks++;
	return strcmp(program, "multikernel") == 0 ? read_kernels(s, at, task)
						   : read_spin(s, at, task);
}

static int read_document(struct state *s, const struct reader_node *at) {
	static const char *const keys[] = {"name",
					   "max_iterations",
					   "max_time",
					   "use_processes",
					   "cuda_device",
					   "pin_cpus",
					   "benchmarks",
					   "comment",
					   "base_result_directory",
					   "sync_every_iteration",
					   NULL};
	struct reader_node node, element;
	int64_t gpu = 0;
	int e;

	snprintf(s->e.name, sizeof(s->e.name), "no name");
	if ((e = reader_object(s->reader, at, keys)) < 0 ||
	    (e = optional_label(s->reader, at, "name", s->e.name)) < 0 ||
	    (e = reader_need(s->reader, at, "max_iterations", &node)) < 0 ||
	    (e = reader_int(s->reader, &node, 0, ITERATIONS_MAX, &s->iterations)) < 0 ||
	    (e = reader_need(s->reader, at, "max_time", &node)) < 0 ||
	    (e = read_seconds(s->reader, &node, &s->max_time)) < 0 ||
	    (e = optional_bool(s->reader, at, "use_processes", &s->e.processes)) < 0 ||
	    (e = optional_int(s->reader, at, "cuda_device", 0, 15, &gpu)) < 0 ||
	    (e = reader_need(s->reader, at, "benchmarks", &node)) < 0 ||
	    (e = reader_array(s->reader, &node, EXPERIMENT_TASKS_MAX)) < 0) {
		return e;
	}
	s->e.gpu = (unsigned)gpu;
	if (json_array_size(node.value) == 0) {
		return reader_fail(s->reader, &node, "expected a list of benchmarks");
	}
	for (size_t i = 0; e == 0 && i < json_array_size(node.value); i++) {
		element = reader_element(&node, i);
		e = read_task(s, &element);
	}
	return e;
}

int examiner_parse(struct experiment *ret, const char *name, const char *text, size_t size,
		   char *error, size_t error_size) {
	struct reader r = {
		.file = name, .text = text, .size = size, .error = error, .error_size = error_size};
	struct reader_node root = {.up = NULL};
	struct state s = {.reader = &r};
	int e = reader_parse(&r, text, size, &root.value);

	e = e < 0 ? e : read_document(&s, &root);
	if (e == 0) {
		*ret = s.e;
	}
	json_decref(root.value);
	return e;
}

int examiner_read(struct experiment *ret, const char *path, char *error, size_t error_size) {
	struct input in;
	int e = input_init(&in, path);

	if (e < 0) {
		snprintf(error, error_size, "cannot read '%s': %s", path,
			 e == -ENODATA ? "it is empty" : strerror(-e));
		return e == -ENOMEM ? e : -EIO;
	}
	if (in.size > READER_SIZE_MAX) {
		snprintf(error, error_size, "'%s' is too large", path);
		e = -EINVAL;
	} else {
		e = examiner_parse(ret, path, (const char *)in.bytes, in.size, error, error_size);
	}
	input_deinit(&in);
	return e;
}
