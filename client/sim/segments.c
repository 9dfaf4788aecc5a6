/* segments.c: see segments.h. */
#include "client/sim/segments.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/book/reader.h"
#include "proto/limits.h"

/* A task while its place in the order is not known. */
struct entry {
	struct rta_task task;
	char *name;   /* owned */
	size_t index; /* in the file */
};

struct loader {
	struct reader reader;
	struct entry *entries; /* owned */
	size_t n_entries, n_cpus;
};

static void free_entries(struct entry *entries, size_t n) {
	for (size_t i = 0; i < n; i++) {
		free(entries[i].task.segments);
		free(entries[i].name);
	}
	free(entries);
}

void segments_deinit(struct segments *s) {
	for (size_t i = 0; i < s->set.n_tasks; i++) {
		free(s->set.tasks[i].segments);
		free(s->names[i]);
	}
	free(s->set.tasks);
	free(s->names);
	*s = (struct segments){0};
}

static int read_cpu_segment(const struct reader *r, const struct reader_node *at,
			    struct rta_segment *ret) {
	static const char *const keys[] = {"cpu", "best", NULL};
	struct reader_node node;
	int e;

	if ((e = reader_object(r, at, keys)) < 0 || (e = reader_need(r, at, "cpu", &node)) < 0 ||
	    (e = reader_time(r, &node, 1, PROTO_PERIOD_MAX_NS, &ret->cpu)) < 0) {
		return e;
	}
	return reader_get(at, "best", &node) ? reader_time(r, &node, 0, ret->cpu, &ret->best) : 0;
}

static bool is_forever(const struct reader_node *at) {
	const char *text = json_string_value(at->value);

	return text && strcmp(text, "forever") == 0;
}

static int read_gpu_segment(const struct reader *r, const struct reader_node *at, bool best_effort,
			    struct rta_segment *ret) {
	static const char *const keys[] = {"misc", "exec", "total", "best", NULL};
	struct reader_node node;
	nsec_t low, high;
	int e;

	ret->gpu = true;
	if ((e = reader_object(r, at, keys)) < 0 || (e = reader_need(r, at, "misc", &node)) < 0 ||
	    (e = reader_time(r, &node, 0, PROTO_PERIOD_MAX_NS, &ret->misc)) < 0 ||
	    (e = reader_need(r, at, "exec", &node)) < 0) {
		return e;
	}
	if (is_forever(&node)) {
		ret->exec = ret->total = RTA_FOREVER;
		return best_effort ? 0
				   : reader_fail(r, &node,
						 "only a task of best effort, without "
						 "'priority', may run forever");
	}
	if ((e = reader_time(r, &node, 1, PROTO_PERIOD_MAX_NS, &ret->exec)) < 0) {
		return e;
	}
	low = ret->misc > ret->exec ? ret->misc : ret->exec;
	high = ret->misc + ret->exec;
	ret->total = high;
	if ((reader_get(at, "total", &node) &&
	     (e = reader_time(r, &node, low, high, &ret->total)) < 0) ||
	    (reader_get(at, "best", &node) &&
	     (e = reader_time(r, &node, 0, ret->exec, &ret->best_exec)) < 0)) {
		return e;
	}
	return 0;
}

static int read_segments(const struct reader *r, const struct reader_node *at,
			 struct rta_task *task) {
	struct reader_node list;
	size_t n;
	int e;

	if ((e = reader_need(r, at, "segments", &list)) < 0 ||
	    (e = reader_array(r, &list, RTA_SEGMENTS_MAX)) < 0) {
		return e;
	}
	n = json_array_size(list.value);
	if (n == 0) {
		return reader_fail(r, &list, "expected at least one segment");
	}
	task->segments = calloc(n, sizeof(*task->segments));
	if (!task->segments) {
		return -ENOMEM;
	}
	for (; e == 0 && task->n_segments < n; task->n_segments++) {
		struct reader_node node = reader_element(&list, task->n_segments);
		struct rta_segment *s = &task->segments[task->n_segments];

		if (json_object_get(node.value, "cpu")) {
			e = read_cpu_segment(r, &node, s);
			if (e == 0 && task->n_segments > 0 && !s[-1].gpu) {
				e = reader_fail(r, &node,
						"two CPU segments in a row: add their times");
			}
		} else {
			e = read_gpu_segment(r, &node, task->priority == 0, s);
		}
	}
	return e;
}

static int read_waiting(const struct reader *r, const struct reader_node *at, bool *ret_busy) {
	struct reader_node node;
	const char *text;
	int e;

	if (!reader_get(at, "waiting", &node)) {
		return 0;
	}
	if ((e = reader_string(r, &node, &text)) < 0) {
		return e;
	}
	*ret_busy = strcmp(text, "busy") == 0;
	return *ret_busy || strcmp(text, "suspend") == 0
		       ? 0
		       : reader_fail(r, &node, "expected \"busy\" or \"suspend\", found \"%.40s\"",
				     text);
}

/* Names are told apart, and priorities order the tasks. */
static int check_unique(const struct loader *l, const struct reader_node *at, const char *name,
			int priority) {
	for (size_t i = 0; i < l->n_entries; i++) {
		const struct entry *other = &l->entries[i];

		if (strcmp(other->name, name) == 0) {
			return reader_fail(&l->reader, at, "a second task '%s'", name);
		}
		if (priority != 0 && other->task.priority == priority) {
			return reader_fail(&l->reader, at,
					   "priority %d is that of task '%s': each task needs its "
					   "own",
					   priority, other->name);
		}
	}
	return 0;
}

static int read_task(struct loader *l, const struct reader_node *at) {
	static const char *const keys[] = {"name",     "cpu",	  "priority", "period",
					   "deadline", "waiting", "segments", NULL};
	struct entry *entry = &l->entries[l->n_entries];
	const struct reader *r = &l->reader;
	int64_t cpu, priority = 0;
	struct reader_node node;
	const char *name;
	int e;

	if ((e = reader_object(r, at, keys)) < 0 || (e = reader_need(r, at, "name", &node)) < 0 ||
	    (e = reader_name(r, &node, &name)) < 0 || (e = reader_need(r, at, "cpu", &node)) < 0 ||
	    (e = reader_int(r, &node, 0, (int64_t)l->n_cpus - 1, &cpu)) < 0 ||
	    (reader_get(at, "priority", &node) &&
	     (e = reader_int(r, &node, 0, PROTO_PRIORITY_MAX, &priority)) < 0) ||
	    (e = check_unique(l, at, name, (int)priority)) < 0 ||
	    (e = reader_need(r, at, "period", &node)) < 0 ||
	    (e = reader_time(r, &node, 1, PROTO_PERIOD_MAX_NS, &entry->task.period)) < 0) {
		return e;
	}
	entry->task.deadline = entry->task.period;
	entry->task.cpu = (unsigned)cpu;
	entry->task.priority = (int)priority;
	if ((reader_get(at, "deadline", &node) &&
	     (e = reader_time(r, &node, 1, entry->task.period, &entry->task.deadline)) < 0) ||
	    (e = read_waiting(r, at, &entry->task.busy)) < 0) {
		return e;
	}
	entry->index = l->n_entries;
	entry->name = strdup(name);
	if (!entry->name) {
		return -ENOMEM;
	}
	l->n_entries++;
	return read_segments(r, at, &entry->task);
}

static int read_tasks(struct loader *l, const struct reader_node *root) {
	struct reader_node list;
	size_t n;
	int e;

	if ((e = reader_need(&l->reader, root, "tasks", &list)) < 0 ||
	    (e = reader_array(&l->reader, &list, RTA_TASKS_MAX)) < 0) {
		return e;
	}
	n = json_array_size(list.value);
	l->entries = calloc(n + 1, sizeof(*l->entries));
	if (!l->entries) {
		return -ENOMEM;
	}
	for (size_t i = 0; e == 0 && i < n; i++) {
		struct reader_node task = reader_element(&list, i);

		e = read_task(l, &task);
	}
	for (size_t i = 0; e == 0 && i < n; i++) {
		if (l->entries[i].task.priority != 0) {
			return 0;
		}
	}
	return e < 0 ? e
		     : reader_fail(&l->reader, &list,
				   "expected at least one task with a 'priority'");
}

static int read_set(struct loader *l, const struct reader_node *root, nsec_t epsilon,
		    struct rta_set *ret) {
	static const char *const keys[] = {"description",	"cpus",	 "epsilon",
					   "kernel_thread_cpu", "tasks", NULL};
	const struct reader *r = &l->reader;
	int64_t n_cpus, kthread = 0;
	struct reader_node node;
	int e;

	ret->epsilon = epsilon;
	if ((e = reader_object(r, root, keys)) < 0 ||
	    (e = reader_need(r, root, "cpus", &node)) < 0 ||
	    (e = reader_int(r, &node, 1, RTA_CPUS_MAX, &n_cpus)) < 0 ||
	    (reader_get(root, "kernel_thread_cpu", &node) &&
	     (e = reader_int(r, &node, 0, n_cpus - 1, &kthread)) < 0)) {
		return e;
	}
	if (reader_get(root, "epsilon", &node)) {
		nsec_t own;

		if ((e = reader_time(r, &node, 0, PROTO_PERIOD_MAX_NS, &own)) < 0) {
			return e;
		}
		ret->epsilon = epsilon == RTA_FOREVER ? own : epsilon;
	} else if (epsilon == RTA_FOREVER) {
		return reader_fail(r, root,
				   "'epsilon' is missing, the longest time that it takes to "
				   "preempt the GPU; or give --epsilon");
	}
	ret->kthread_cpu = (unsigned)kthread;
	l->n_cpus = (size_t)n_cpus;
	return read_tasks(l, root);
}

/* Highest priority first; those of best effort last, in the order of the file. */
static int compare(const void *a, const void *b) {
	const struct entry *x = a, *y = b;

	if (x->task.priority != y->task.priority) {
		return x->task.priority > y->task.priority ? -1 : 1;
	}
	return x->index < y->index ? -1 : 1;
}

/* Takes over the entries, also on failure. */
static int put_in_order(struct entry *entries, size_t n, struct rta_set set, struct segments *ret) {
	struct rta_task *tasks = calloc(n, sizeof(*tasks));
	char **names = calloc(n, sizeof(*names));

	if (!tasks || !names) {
		free(tasks);
		free(names);
		free_entries(entries, n);
		return -ENOMEM;
	}
	qsort(entries, n, sizeof(*entries), compare);
	for (size_t i = 0; i < n; i++) {
		tasks[i] = entries[i].task;
		names[i] = entries[i].name;
	}
	free(entries);
	set.tasks = tasks;
	set.n_tasks = n;
	rta_sum(&set);
	*ret = (struct segments){.set = set, .names = names};
	return 0;
}

int segments_init(struct segments *ret, const char *file, const char *text, size_t size,
		  nsec_t epsilon, char *error, size_t error_size) {
	struct loader l = {.reader = {.file = file,
				      .text = text,
				      .size = size,
				      .error = error,
				      .error_size = error_size}};
	struct reader_node root = {0};
	struct rta_set set = {0};
	int e;

	e = reader_parse(&l.reader, text, size, &root.value);
	if (e < 0) {
		return e;
	}
	e = read_set(&l, &root, epsilon, &set);
	json_decref(root.value);
	if (e < 0) {
		free_entries(l.entries, l.n_entries);
		return e;
	}
	return put_in_order(l.entries, l.n_entries, set, ret);
}
