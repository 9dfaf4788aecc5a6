/*
 * verb-list.c: `sbeetctl gpu|task|session|job list|show`: objects.h has all that differs.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/listing.h"
#include "client/live/objects.h"
#include "client/live/watch.h"
#include "client/options.h"
#include "client/verb.h"

struct list_options {
	nsec_t watch; /* 0: once */
};

static const struct option list_options[] = {
	{"watch", 'w', OPTION_OPTIONAL, "SEC", OPTION_WATCH_SUMMARY, option_watch,
	 offsetof(struct list_options, watch), OPTION_WATCH_EXPECTED},
	{0},
};

/* "session list" is about sessions. */
static const struct object *object_of(const struct ctl *ctl) {
	static const struct object *const objects[] = {&object_gpu, &object_task, &object_session,
						       &object_job, &object_allocation};
	const char *name = ctl->verb->name;
	size_t i = 0;

	while (strncmp(objects[i]->noun, name, strcspn(name, " ")) != 0) {
		i++;
	}
	return objects[i];
}

static int out_of_memory(const struct object *o) {
	ctl_error("cannot show the %ss: out of memory", o->noun);
	return CTL_EXIT_FAILED;
}

/* Which one @id is. Return: 0 or CTL_EXIT_NO_OBJECT, after an error on stderr. */
static int find(const struct object *o, const struct snapshot *s, const char *id, size_t *ret) {
	for (size_t i = 0; i < o->count(s); i++) {
		char text[OBJECT_ID_MAX];

		o->id(s, i, text);
		if (strcmp(text, id) == 0 || (o->is && o->is(s, i, id))) {
			*ret = i;
			return 0;
		}
	}
	ctl_error("no %s '%.64s'; 'sbeetctl %s list' lists them", o->noun, id, o->noun);
	return CTL_EXIT_NO_OBJECT;
}

static int fill(const struct object *o, const struct snapshot *s, unsigned width,
		struct table **ret) {
	if (table_new(ret, o->columns, o->n_columns) < 0) {
		return out_of_memory(o);
	}
	for (size_t i = 0; i < o->count(s); i++) {
		o->add(*ret, s, i, width);
	}
	return 0;
}

static void print_footer(const struct ctl *ctl, const struct object *o, size_t n, FILE *out) {
	if (!ctl->common.no_legend) {
		bool shouts = strcmp(o->noun, "gpu") == 0;

		fprintf(out, "%zu %s%s.\n", n, shouts ? "GPU" : o->noun, n == 1 ? "" : "s");
	}
}

static int list_text(const struct ctl *ctl, const struct snapshot *s, unsigned rows,
		     char **ret_text) {
	const struct object *o = object_of(ctl);
	struct table_style style = listing_style(ctl);
	struct table *t;
	char *text = NULL;
	size_t size;
	FILE *out;
	int r = fill(o, s, style.width, &t);

	(void)rows;
	r = r ? r : listing_arrange(ctl, t);
	if (r) {
		table_free(t);
		return r;
	}
	out = open_memstream(&text, &size);
	if (out && o->count(s) > 0) {
		r = table_print(t, &style, out);
		print_footer(ctl, o, o->count(s), out);
	} else if (out && !ctl->common.quiet) {
		fprintf(stderr, "%s\n", o->none);
	}
	table_free(t);
	if (!out || fclose(out) == EOF || r < 0) {
		free(text);
		return out_of_memory(o);
	}
	*ret_text = text;
	return CTL_EXIT_OK;
}

static int list_json(const struct ctl *ctl, const struct snapshot *s, json_t **ret) {
	const struct object *o = object_of(ctl);
	json_t *list = json_array();

	for (size_t i = 0; i < o->count(s); i++) {
		if (json_array_append_new(list, o->json(s, i)) < 0) {
			json_decref(list);
			return out_of_memory(o);
		}
	}
	*ret = list;
	return CTL_EXIT_OK;
}

static int show_text(const struct ctl *ctl, const struct snapshot *s, unsigned rows,
		     char **ret_text) {
	const struct object *o = object_of(ctl);
	struct table *t = NULL;
	char *text = NULL;
	size_t size, i;
	FILE *out;
	int r;

	(void)rows;
	r = find(o, s, ctl->args[0], &i);
	r = r ? r : fill(o, s, 0, &t);
	if (r) {
		return r;
	}
	table_keep_row(t, i);
	out = open_memstream(&text, &size);
	r = out ? table_print_fields(t, out) : -ENOMEM;
	table_free(t);
	if (!out || fclose(out) == EOF || r < 0) {
		free(text);
		return out_of_memory(o);
	}
	*ret_text = text;
	return CTL_EXIT_OK;
}

static int show_json(const struct ctl *ctl, const struct snapshot *s, json_t **ret) {
	const struct object *o = object_of(ctl);
	size_t i;
	int r = find(o, s, ctl->args[0], &i);

	if (r == 0) {
		*ret = o->json(s, i);
	}
	return r;
}

static int list(const struct ctl *ctl) {
	static const struct watch_view view = {.json = list_json, .text = list_text};
	const struct list_options *o = ctl->options;

	return watch_run(ctl, o->watch, &view);
}

static int show(const struct ctl *ctl) {
	static const struct watch_view view = {.json = show_json, .text = show_text};
	const struct list_options *o = ctl->options;

	return watch_run(ctl, o->watch, &view);
}

/* The two verbs of a noun. */
#define VERBS_OF(noun_, list_summary, show_summary, list_help) \
	const struct verb verb_##noun_##_list = {              \
		.name = #noun_ " list",                        \
		.args = "",                                    \
		.summary = list_summary,                       \
		.flags = VERB_READS | VERB_TABLE,              \
		.options = list_options,                       \
		.options_size = sizeof(struct list_options),   \
		.help = list_help,                             \
		.function = list,                              \
	};                                                     \
	const struct verb verb_##noun_##_show = {              \
		.name = #noun_ " show",                        \
		.args = "ID",                                  \
		.summary = show_summary,                       \
		.flags = VERB_READS,                           \
		.min_args = 1,                                 \
		.max_args = 1,                                 \
		.options = list_options,                       \
		.options_size = sizeof(struct list_options),   \
		.function = show,                              \
	}

VERBS_OF(gpu, "list GPUs: SMs, who holds them, power", "show everything about one GPU",
	 "More columns: energy, model, model_error, memory, programs, mps.\n");
VERBS_OF(task, "list tasks, each with all of its sessions", "show everything about one task",
	 "More columns: priority, launches.\n");
VERBS_OF(session, "list sessions: connected programs", "show everything about one session",
	 "More columns: uid, scope, priority, period, deadline, copies, last_response,\n"
	 "max_started_late, max_wait, planned.\n");
VERBS_OF(job, "list running and waiting jobs", "show everything about one job",
	 "More columns: pid, tid.\n");
VERBS_OF(allocation, "list parts of GPUs that programs of a cgroup have",
	 "show everything about one allocation",
	 "A workload manager makes them for its jobs: sbeet-slurm(7).\n"
	 "More columns: abandoned, launches, cgroup.\n");
