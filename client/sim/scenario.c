/* scenario.c: see scenario.h. */
#include "client/sim/scenario.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/book/suggest.h"
#include "daemon/core/sched.h"

/* Watts that no GPU draws: 10 kW. */
#define WATTS_MAX_MW 10000000u

struct loader {
	struct scenario *s;
	struct reader reader;
	struct imports imports;
};

void scenario_deinit(struct scenario *s) {
	for (size_t i = 0; i < s->n_gpus; i++) {
		free(s->gpus[i].name);
		free(s->gpus[i].type);
	}
	for (size_t i = 0; i < s->n_profiles; i++) {
		for (size_t k = 0; k < s->n_gpus; k++) {
			free(s->profiles[i].tables[k]);
		}
	}
	for (size_t i = 0; i < s->n_tasks; i++) {
		free(s->task_names[i]);
	}
	book_deinit(&s->book);
	free(s->gpus);
	free(s->profiles);
	free(s->task_names);
	free(s->task_profiles);
	free(s->task_moves);
	free(s->tasks);
	*s = (struct scenario){0};
}

static int read_model(const struct reader *r, const struct reader_node *at,
		      struct sched_gpu_model *model) {
	int64_t n_sms, limit, step = 1, group = 0;
	struct reader_node node;
	int e;

	if ((e = reader_need(r, at, "sms", &node)) < 0 ||
	    (e = reader_int(r, &node, 1, PROTO_SMS_MAX, &n_sms)) < 0) {
		return e;
	}
	limit = n_sms;
	if ((reader_get(at, "limit", &node) && (e = reader_int(r, &node, 1, n_sms, &limit)) < 0) ||
	    (reader_get(at, "step", &node) && (e = reader_int(r, &node, 1, n_sms, &step)) < 0) ||
	    (reader_get(at, "group", &node) &&
	     (e = reader_int(r, &node, 1, n_sms / 4 ? n_sms / 4 : 1, &group)) < 0)) {
		return e;
	}
	if (group > limit) {
		reader_get(at, "limit", &node);
		return reader_fail(r, &node, "is below the group of %d SMs", (int)group);
	}
	if ((e = reader_need(r, at, "static_w", &node)) < 0 ||
	    (e = reader_milli(r, &node, "watts", WATTS_MAX_MW, &model->power.static_mw)) < 0 ||
	    (e = reader_need(r, at, "idle_w_per_sm", &node)) < 0 ||
	    (e = reader_milli(r, &node, "watts", WATTS_MAX_MW / PROTO_SMS_MAX,
			      &model->power.idle_mw_per_sm)) < 0) {
		return e;
	}
	model->power.n_sms = (unsigned)n_sms;
	model->limit = (unsigned)limit;
	model->step = (unsigned)step;
	if (group > 0) {
		sched_divide(model, (unsigned)group);
	}
	return 0;
}

static const struct scenario_gpu *find_gpu(const struct scenario *s, const char *name) {
	for (size_t k = 0; k < s->n_gpus; k++) {
		if (strcmp(s->gpus[k].name, name) == 0) {
			return &s->gpus[k];
		}
	}
	return NULL;
}

static int read_gpu(const struct loader *l, const struct reader_node *at) {
	static const char *const keys[] = {"name",	    "type", "sms",   "limit", "static_w",
					   "idle_w_per_sm", "step", "group", NULL};
	struct scenario_gpu *gpu = &l->s->gpus[l->s->n_gpus];
	const struct reader *r = &l->reader;
	const char *name, *type;
	struct reader_node node, type_node;
	int e;

	if ((e = reader_object(r, at, keys)) < 0 || (e = reader_need(r, at, "name", &node)) < 0 ||
	    (e = reader_name(r, &node, &name)) < 0) {
		return e;
	}
	if (find_gpu(l->s, name)) {
		return reader_fail(r, &node, "a second GPU '%s'", name);
	}
	type = name;
	if ((reader_get(at, "type", &type_node) && (e = reader_name(r, &type_node, &type)) < 0) ||
	    (e = read_model(r, at, &gpu->model)) < 0) {
		return e;
	}
	gpu->name = strdup(name);
	gpu->type = strdup(type);
	l->s->n_gpus++;
	return gpu->name && gpu->type ? 0 : -ENOMEM;
}

static int read_gpus(const struct loader *l, const struct reader_node *root) {
	const struct reader *r = &l->reader;
	struct reader_node node;
	int e;

	if ((e = reader_need(r, root, "gpus", &node)) < 0 ||
	    (e = reader_array(r, &node, SCHED_GPUS_MAX)) < 0) {
		return e;
	}
	if (json_array_size(node.value) == 0) {
		return reader_fail(r, &node, "expected at least one GPU");
	}
	l->s->gpus = calloc(json_array_size(node.value), sizeof(*l->s->gpus));
	if (!l->s->gpus) {
		return -ENOMEM;
	}
	for (size_t i = 0; e == 0 && i < json_array_size(node.value); i++) {
		struct reader_node gpu = reader_element(&node, i);

		e = read_gpu(l, &gpu);
	}
	return e;
}

static bool has_type(const struct scenario *s, const char *type) {
	for (size_t k = 0; k < s->n_gpus; k++) {
		if (strcmp(s->gpus[k].type, type) == 0) {
			return true;
		}
	}
	return false;
}

/* The file's own profiles name only GPUs of the file; a mistyped one must not go unnoticed. */
static int check_types(const struct loader *l, const struct reader_node *profiles,
		       size_t n_imported) {
	for (size_t i = n_imported; i < l->s->book.n_profiles; i++) {
		const struct book_profile *p = &l->s->book.profiles[i];

		for (size_t k = 0; k < p->n_tables; k++) {
			struct reader_node node = {.up = profiles, .index = i - n_imported};
			struct reader_node on = {.up = &node, .key = "on"};
			struct reader_node table = {.up = &on, .key = p->tables[k].type};
			struct suggest s = suggest_start(p->tables[k].type);

			if (has_type(l->s, p->tables[k].type)) {
				continue;
			}
			for (size_t g = 0; g < l->s->n_gpus; g++) {
				suggest_offer(&s, l->s->gpus[g].type);
			}
			return reader_fail(&l->reader, &table, "no GPU is of this type%s%s%s",
					   s.best ? ". Did you mean '" : "", s.best ? s.best : "",
					   s.best ? "'?" : "");
		}
	}
	return 0;
}

static int read_profiles(const struct loader *l, const struct reader_node *root) {
	size_t n_imported = l->s->book.n_profiles;
	struct reader_node node;
	int e;

	if (!reader_get(root, "profiles", &node)) {
		return 0;
	}
	e = book_read(&l->s->book, &l->reader, &node);
	return e < 0 ? e : check_types(l, &node, n_imported);
}

static int lay_out(const struct loader *l, const struct reader_node *root, size_t index,
		   unsigned gpu) {
	const struct book_profile *p = &l->s->book.profiles[index];
	const struct book_table *t = book_table(p, l->s->gpus[gpu].type);
	const unsigned n_sms = l->s->gpus[gpu].model.power.n_sms;
	struct profile_table *table;
	int e;

	if (!t) {
		return 0;
	}
	table = malloc(sizeof(*table));
	if (!table) {
		return -ENOMEM;
	}
	l->s->profiles[index].tables[gpu] = table;
	e = book_lay_out(t, n_sms, table);
	if (e == 0 && table->least > l->s->gpus[gpu].model.limit) {
		return reader_fail(&l->reader, root,
				   "profile '%s' on '%s' was measured on %u SMs and more, but GPU "
				   "'%s' has a limit of %u",
				   p->name, t->type, table->least, l->s->gpus[gpu].name,
				   l->s->gpus[gpu].model.limit);
	}
	if (e == 0) {
		return 0;
	}
	if (t->linear_work) {
		return reader_fail(&l->reader, root,
				   "profile '%s' on '%s': expected at most %u W on %u SMs", p->name,
				   t->type, PROFILE_POWER_MAX_MW / 1000, n_sms);
	}
	return reader_fail(&l->reader, root,
			   "profile '%s' on '%s' has a point of %u SMs, but GPU '%s' has only %u",
			   p->name, t->type, t->points[t->n_points - 1].n_sms, l->s->gpus[gpu].name,
			   n_sms);
}

static int lay_out_all(const struct loader *l, const struct reader_node *root) {
	struct scenario *s = l->s;
	int e = 0;

	s->profiles = calloc(s->book.n_profiles + 1, sizeof(*s->profiles));
	if (!s->profiles) {
		return -ENOMEM;
	}
	s->n_profiles = s->book.n_profiles;
	for (size_t i = 0; i < s->n_profiles; i++) {
		s->profiles[i].name = s->book.profiles[i].name;
		for (unsigned k = 0; e == 0 && k < s->n_gpus; k++) {
			e = lay_out(l, root, i, k);
		}
	}
	return e;
}

static int find_profile(const struct loader *l, const struct reader_node *at, const char *name,
			struct sched_task *task, size_t *ret) {
	const struct scenario *s = l->s;
	struct suggest near;
	bool anywhere = false;
	size_t i = 0;

	while (i < s->n_profiles && strcmp(s->profiles[i].name, name) != 0) {
		i++;
	}
	if (i < s->n_profiles) {
		for (size_t k = 0; k < s->n_gpus; k++) {
			task->profiles[k] = s->profiles[i].tables[k];
			anywhere |= task->profiles[k] != NULL;
		}
		*ret = i;
		return anywhere ? 0
				: reader_fail(&l->reader, at, "'%s' is known on none of the GPUs",
					      name);
	}
	near = suggest_start(name);
	for (i = 0; i < s->n_profiles; i++) {
		suggest_offer(&near, s->profiles[i].name);
	}
	return reader_fail(&l->reader, at, "no profile '%.64s'%s%s%s", name,
			   near.best ? ". Did you mean '" : "", near.best ? near.best : "",
			   near.best ? "'?" : "");
}

static int read_fixed(const struct loader *l, const struct reader_node *at,
		      struct sched_task *task) {
	static const char *const keys[] = {"gpu", "sms", NULL};
	const struct reader *r = &l->reader;
	const struct scenario_gpu *gpu;
	struct reader_node node;
	struct smset all, sms;
	const char *text;
	int e;

	if ((e = reader_object(r, at, keys)) < 0 || (e = reader_need(r, at, "gpu", &node)) < 0 ||
	    (e = reader_string(r, &node, &text)) < 0) {
		return e;
	}
	gpu = find_gpu(l->s, text);
	if (!gpu) {
		return reader_fail(r, &node, "no GPU '%.64s'", text);
	}
	task->fixed_gpu = (int)(gpu - l->s->gpus);
	if (!task->profiles[task->fixed_gpu]) {
		return reader_fail(r, &node, "the task's profile is not known on '%s'", gpu->name);
	}
	if ((e = reader_need(r, at, "sms", &node)) < 0 ||
	    (e = reader_string(r, &node, &text)) < 0) {
		return e;
	}
	all = smset_range(0, gpu->model.power.n_sms);
	if (smset_parse(text, &sms) < 0 || smset_empty(&sms) || !smset_within(&sms, &all)) {
		return reader_fail(r, &node,
				   "expected SMs such as \"0-3,8\", from 0 to %u, found \"%.40s\"",
				   gpu->model.power.n_sms - 1, text);
	}
	if (smset_count(&sms) > gpu->model.limit) {
		return reader_fail(r, &node, "%u SMs are more than the limit of '%s', %u",
				   smset_count(&sms), gpu->name, gpu->model.limit);
	}
	if (smset_count(&sms) < task->profiles[task->fixed_gpu]->least) {
		return reader_fail(r, &node,
				   "%u SMs are fewer than the profile was measured on, %u",
				   smset_count(&sms), task->profiles[task->fixed_gpu]->least);
	}
	task->fixed_sms = sms;
	return 0;
}

static bool is_none(const struct reader_node *at) {
	const char *text = json_string_value(at->value);

	return text && strcmp(text, "none") == 0;
}

/* Without a period there is one job. The deadline is the period unless it is given. */
static int read_times(const struct reader *r, const struct reader_node *at,
		      struct sched_task *task) {
	nsec_t most = PROTO_PERIOD_MAX_NS;
	struct reader_node node;
	int e = 0;

	if (reader_get(at, "period", &node)) {
		e = reader_time(r, &node, NSEC_PER_USEC, PROTO_PERIOD_MAX_NS, &task->period);
		most = task->deadline = task->period;
	}
	if (e == 0 && reader_get(at, "deadline", &node)) {
		nsec_t deadline = 0;

		e = is_none(&node) ? 0 : reader_time(r, &node, 1, PROTO_PERIOD_MAX_NS, &deadline);
		if (e == 0 && deadline > most) {
			return reader_fail(r, &node, "expected a deadline not beyond the period");
		}
		task->deadline = deadline;
	}
	if (e == 0 && reader_get(at, "offset", &node)) {
		e = reader_time(r, &node, 0, PROTO_PERIOD_MAX_NS, &task->first_release);
	}
	return e;
}

static int read_task(const struct loader *l, const struct reader_node *at) {
	static const char *const keys[] = {"name",     "profile", "period", "deadline", "offset",
					   "priority", "fixed",	  "moves",  NULL};
	struct scenario *s = l->s;
	struct sched_task *task = &s->tasks[s->n_tasks];
	const struct reader *r = &l->reader;
	const char *name, *profile;
	struct reader_node node;
	int64_t priority = 0;
	int e;

	task->fixed_gpu = -1;
	if ((e = reader_object(r, at, keys)) < 0 || (e = reader_need(r, at, "name", &node)) < 0 ||
	    (e = reader_name(r, &node, &name)) < 0) {
		return e;
	}
	for (size_t i = 0; i < s->n_tasks; i++) {
		if (strcmp(s->task_names[i], name) == 0) {
			return reader_fail(r, &node, "a second task '%s'", name);
		}
	}
	if ((e = reader_need(r, at, "profile", &node)) < 0 ||
	    (e = reader_string(r, &node, &profile)) < 0 ||
	    (e = find_profile(l, &node, profile, task, &s->task_profiles[s->n_tasks])) < 0 ||
	    (e = read_times(r, at, task)) < 0) {
		return e;
	}
	if ((reader_get(at, "priority", &node) &&
	     (e = reader_int(r, &node, PROTO_PRIORITY_MIN, PROTO_PRIORITY_MAX, &priority)) < 0) ||
	    (reader_get(at, "fixed", &node) && (e = read_fixed(l, &node, task)) < 0)) {
		return e;
	}
	if (reader_get(at, "moves", &node) && !json_is_boolean(node.value)) {
		return reader_fail(r, &node, "expected true or false");
	}
	s->task_moves[s->n_tasks] = json_is_true(json_object_get(at->value, "moves"));
	task->spec.priority = (int)priority;
	s->task_names[s->n_tasks] = strdup(name);
	return s->task_names[s->n_tasks++] ? 0 : -ENOMEM;
}

static int read_tasks(const struct loader *l, const struct reader_node *root) {
	struct scenario *s = l->s;
	struct reader_node list;
	size_t n;
	int e;

	if (!reader_get(root, "tasks", &list)) {
		return 0;
	}
	e = reader_array(&l->reader, &list, SCENARIO_TASKS_MAX);
	if (e < 0) {
		return e;
	}
	n = json_array_size(list.value);
	s->tasks = calloc(n + 1, sizeof(*s->tasks));
	s->task_names = calloc(n + 1, sizeof(*s->task_names));
	s->task_profiles = calloc(n + 1, sizeof(*s->task_profiles));
	s->task_moves = calloc(n + 1, sizeof(*s->task_moves));
	if (!s->tasks || !s->task_names || !s->task_profiles || !s->task_moves) {
		return -ENOMEM;
	}
	for (size_t i = 0; e == 0 && i < n; i++) {
		struct reader_node node = reader_element(&list, i);

		e = read_task(l, &node);
	}
	return e;
}

static int load(const struct loader *l, const struct reader_node *root) {
	static const char *const keys[] = {"description", "gpus",     "import", "profiles",
					   "tasks",	  "duration", NULL};
	const struct reader *r = &l->reader;
	struct reader_node node;
	const char *ignored;
	int e;

	if ((e = reader_object(r, root, keys)) < 0 ||
	    (reader_get(root, "description", &node) &&
	     (e = reader_string(r, &node, &ignored)) < 0) ||
	    (reader_get(root, "duration", &node) &&
	     (e = reader_time(r, &node, 1, PROTO_PERIOD_MAX_NS, &l->s->duration)) < 0)) {
		return e;
	}
	if ((e = read_gpus(l, root)) < 0 ||
	    (e = imports_read(&l->imports, &l->reader, root, &l->s->book)) < 0 ||
	    (e = read_profiles(l, root)) < 0 || (e = lay_out_all(l, root)) < 0) {
		return e;
	}
	return read_tasks(l, root);
}

int scenario_init(struct scenario *ret, const char *file, const char *text, size_t size,
		  imports_open open, void *userdata, char *error, size_t error_size) {
	struct scenario s = {0};
	struct loader l = {
		.s = &s,
		.reader = {.file = file,
			   .text = text,
			   .size = size,
			   .error = error,
			   .error_size = error_size},
		.imports = {open, userdata},
	};
	struct reader_node root = {0};
	int e;

	e = reader_parse(&l.reader, text, size, &root.value);
	if (e < 0) {
		return e;
	}
	e = load(&l, &root);
	json_decref(root.value);
	if (e < 0) {
		scenario_deinit(&s);
		return e;
	}
	*ret = s;
	return 0;
}
