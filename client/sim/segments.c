/* segments.c: see segments.h. */
#include "client/sim/segments.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/book/reader.h"
#include "daemon/book/suggest.h"
#include "proto/limits.h"

/* A task while its place in the order is not known. */
struct entry {
	struct rta_task task;
	char *name;   /* owned */
	size_t index; /* in the file */
};

struct loader {
	struct reader reader;
	struct book book;      /* of profiles */
	const char *gpu;       /* the type whose profiles hold; NULL: not given; borrowed */
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

/* The times of profile @name on the file's GPU. */
static int find_table(const struct loader *l, const struct reader_node *at, const char *name,
		      const struct book_table **ret) {
	const struct book_profile *p = book_find(&l->book, name);
	struct suggest s = suggest_start(p && l->gpu ? l->gpu : name);

	for (size_t i = 0; !p && i < l->book.n_profiles; i++) {
		suggest_offer(&s, l->book.profiles[i].name);
	}
	if (!p) {
		return reader_fail(&l->reader, at, "no profile '%.64s'%s%s%s", name,
				   s.best ? ". Did you mean '" : "", s.best ? s.best : "",
				   s.best ? "'?" : "");
	}
	if (!l->gpu && p->n_tables != 1) {
		return reader_fail(&l->reader, at,
				   "profile '%s' is of %zu types of GPU: say which with 'gpu'",
				   name, p->n_tables);
	}
	*ret = l->gpu ? book_table(p, l->gpu) : &p->tables[0];
	for (size_t k = 0; !*ret && k < p->n_tables; k++) {
		suggest_offer(&s, p->tables[k].type);
	}
	return *ret ? 0
		    : reader_fail(&l->reader, at, "profile '%s' is not of a '%s'%s%s%s", name,
				  l->gpu, s.best ? ". Did you mean '" : "", s.best ? s.best : "",
				  s.best ? "'?" : "");
}

/* G^e from a profile: copies and kernels on "sms" SMs, which were measured, or lie between two
 * counts that were. The least time there, without the copies, is known only if they were measured.
 */
static int read_profile(const struct loader *l, const struct reader_node *at,
			const struct reader_node *profile, struct rta_segment *ret) {
	const struct book_table *t;
	struct profile_table table;
	struct reader_node node;
	int64_t low = 1, high = PROTO_SMS_MAX, sms;
	const char *name;
	int e;

	if ((e = reader_string(&l->reader, profile, &name)) < 0 ||
	    (e = find_table(l, profile, name, &t)) < 0) {
		return e;
	}
	if (!t->linear_work) {
		low = t->points[0].n_sms;
		high = t->points[t->n_points - 1].n_sms;
	}
	if ((e = reader_need(&l->reader, at, "sms", &node)) < 0 ||
	    (e = reader_int(&l->reader, &node, low, high, &sms)) < 0) {
		return e;
	}
	e = book_lay_out(t, (unsigned)(t->linear_work ? sms : high), &table);
	if (e < 0) { /* a linear one of too much power */
		return e != -ERANGE
			       ? e
			       : reader_fail(&l->reader, &node, "profile '%s' ends below %u SMs",
					     name, (unsigned)sms);
	}
	ret->exec = profile_total(&table, (unsigned)sms);
	ret->best_exec = table.measured[sms] ? table.exec_best[sms] : 0;
	return 0;
}

static bool is_forever(const struct reader_node *at) {
	const char *text = json_string_value(at->value);

	return text && strcmp(text, "forever") == 0;
}

/* G^e, as "exec" or of a profile. */
static int read_exec(const struct loader *l, const struct reader_node *at, bool best_effort,
		     struct rta_segment *ret) {
	const struct reader *r = &l->reader;
	struct reader_node node, profile;
	int e;

	if (reader_get(at, "profile", &profile)) {
		return reader_get(at, "exec", &node)
			       ? reader_fail(r, &node, "'profile' says how long it takes already")
			       : read_profile(l, at, &profile, ret);
	}
	if (reader_get(at, "sms", &node)) {
		return reader_fail(r, &node, "SMs are those of a 'profile', and there is none");
	}
	if ((e = reader_need(r, at, "exec", &node)) < 0) {
		return e;
	}
	if (!is_forever(&node)) {
		return reader_time(r, &node, 1, PROTO_PERIOD_MAX_NS, &ret->exec);
	}
	ret->exec = RTA_FOREVER;
	return best_effort ? 0
			   : reader_fail(r, &node,
					 "only a task of best effort, without 'priority', may run "
					 "forever");
}

static int read_gpu_segment(const struct loader *l, const struct reader_node *at, bool best_effort,
			    struct rta_segment *ret) {
	static const char *const keys[] = {"misc", "exec", "profile", "sms", "total", "best", NULL};
	const struct reader *r = &l->reader;
	struct reader_node node;
	nsec_t low;
	int e;

	ret->gpu = true;
	if ((e = reader_object(r, at, keys)) < 0 || (e = reader_need(r, at, "misc", &node)) < 0 ||
	    (e = reader_time(r, &node, 0, PROTO_PERIOD_MAX_NS, &ret->misc)) < 0 ||
	    (e = read_exec(l, at, best_effort, ret)) < 0) {
		return e;
	}
	ret->total = rta_add(ret->misc, ret->exec);
	if (ret->exec == RTA_FOREVER) {
		return 0;
	}
	low = ret->misc > ret->exec ? ret->misc : ret->exec;
	if ((reader_get(at, "total", &node) &&
	     (e = reader_time(r, &node, low, ret->total, &ret->total)) < 0) ||
	    (reader_get(at, "best", &node) &&
	     (e = reader_time(r, &node, 0, ret->exec, &ret->best_exec)) < 0)) {
		return e;
	}
	return 0;
}

static int read_segments(const struct loader *l, const struct reader_node *at,
			 struct rta_task *task) {
	const struct reader *r = &l->reader;
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
			e = read_gpu_segment(l, &node, task->priority == 0, s);
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
	return read_segments(l, at, &entry->task);
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

static int read_epsilon(const struct loader *l, const struct reader_node *root, nsec_t given,
			nsec_t *ret) {
	struct reader_node node;
	nsec_t own;
	int e;

	*ret = given;
	if (!reader_get(root, "epsilon", &node)) {
		return given != RTA_FOREVER
			       ? 0
			       : reader_fail(&l->reader, root,
					     "'epsilon' is missing, the longest time that it takes "
					     "to preempt the GPU; or give --epsilon");
	}
	e = reader_time(&l->reader, &node, 0, PROTO_PERIOD_MAX_NS, &own);
	if (e == 0 && given == RTA_FOREVER) {
		*ret = own;
	}
	return e;
}

static int read_profiles(struct loader *l, const struct imports *from,
			 const struct reader_node *root) {
	struct reader_node node;
	int e;

	if ((reader_get(root, "gpu", &node) && (e = reader_name(&l->reader, &node, &l->gpu)) < 0) ||
	    (e = imports_read(from, &l->reader, root, &l->book)) < 0) {
		return e;
	}
	return reader_get(root, "profiles", &node) ? book_read(&l->book, &l->reader, &node) : 0;
}

static int read_set(struct loader *l, const struct imports *from, const struct reader_node *root,
		    nsec_t epsilon, struct rta_set *ret) {
	static const char *const keys[] = {"description",	"cpus",	 "epsilon",
					   "kernel_thread_cpu", "gpu",	 "import",
					   "profiles",		"tasks", NULL};
	const struct reader *r = &l->reader;
	int64_t n_cpus, kthread = 0;
	struct reader_node node;
	int e;

	if ((e = reader_object(r, root, keys)) < 0 ||
	    (e = reader_need(r, root, "cpus", &node)) < 0 ||
	    (e = reader_int(r, &node, 1, RTA_CPUS_MAX, &n_cpus)) < 0 ||
	    (reader_get(root, "kernel_thread_cpu", &node) &&
	     (e = reader_int(r, &node, 0, n_cpus - 1, &kthread)) < 0) ||
	    (e = read_epsilon(l, root, epsilon, &ret->epsilon)) < 0 ||
	    (e = read_profiles(l, from, root)) < 0) {
		return e;
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
		  nsec_t epsilon, const struct imports *from, char *error, size_t error_size) {
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
	e = read_set(&l, from, &root, epsilon, &set);
	json_decref(root.value);
	book_deinit(&l.book);
	if (e < 0) {
		free_entries(l.entries, l.n_entries);
		return e;
	}
	return put_in_order(l.entries, l.n_entries, set, ret);
}
