/*
 * verb-kernel.c: `sbeetctl kernel`: the kernels that programs launch, and which of them can be kept
 * to a part of a GPU.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/ctl.h"
#include "client/base/listing.h"
#include "client/live/snapshot.h"
#include "client/verb.h"
#include "proto/enforcement.h"
#include "proto/units.h"

/* A kernel and the program that has it; both borrowed from answers. */
struct row {
	const Sbeet__Control__Kernel *kernel;
	const Sbeet__Control__Session *session;
};

struct rows {
	struct row *list; /* owned */
	size_t n;
	uint64_t n_left_out, n_hidden;
};

/* Whether @s is what was asked for: a program, a process or a task. */
static bool is_meant(const Sbeet__Control__Session *s, const char *what) {
	int64_t pid;

	return !what || strcmp(s->program, what) == 0 || strcmp(s->task, what) == 0 ||
	       (units_parse_int(what, 1, UINT32_MAX, &pid) == 0 && s->pid == (uint32_t)pid);
}

static const Sbeet__Control__Session *find_session(const struct snapshot *s, uint64_t id) {
	for (size_t i = 0; i < s->n_sessions; i++) {
		if (s->sessions[i]->id == id) {
			return s->sessions[i];
		}
	}
	return NULL; /* it came after the snapshot */
}

/* By session; those that are launched most come first. */
static int compare(const void *a, const void *b) {
	const struct row *x = a, *y = b;

	if (x->session->id != y->session->id) {
		return x->session->id < y->session->id ? -1 : 1;
	}
	if (x->kernel->launches != y->kernel->launches) {
		return x->kernel->launches > y->kernel->launches ? -1 : 1;
	}
	return (x->kernel->id > y->kernel->id) - (x->kernel->id < y->kernel->id);
}

static int add_row(struct rows *rows, const struct snapshot *s,
		   const Sbeet__Control__Kernel *kernel, const char *what) {
	const Sbeet__Control__Session *session = find_session(s, kernel->session);
	struct row *list;

	if (!session || !is_meant(session, what)) {
		return 0;
	}
	list = reallocarray(rows->list, rows->n + 1, sizeof(*list));
	if (!list) {
		return -1;
	}
	rows->list = list;
	list[rows->n++] = (struct row){kernel, session};
	return 0;
}

/* Return: an enum ctl_exit, after an error on stderr. */
static int make_rows(const struct ctl *ctl, const struct snapshot *s,
		     const struct control_answer *a, struct rows *ret) {
	for (size_t i = 0; i < a->n_replies; i++) {
		const Sbeet__Control__Kernels *m = a->replies[i]->kernels;

		if (a->replies[i]->body_case != SBEET__CONTROL__REPLY__BODY_KERNELS) {
			continue;
		}
		for (size_t k = 0; k < m->n_kernels; k++) {
			if (add_row(ret, s, m->kernels[k], ctl->args[0]) < 0) {
				ctl_error("cannot list the kernels: out of memory");
				return CTL_EXIT_FAILED;
			}
		}
		ret->n_left_out += m->left_out;
		ret->n_hidden += m->hidden;
	}
	if (ret->n > 0) {
		qsort(ret->list, ret->n, sizeof(*ret->list), compare);
	}
	return CTL_EXIT_OK;
}

static bool is_confinable(const Sbeet__Control__Kernel *k) {
	return k->enforcement_mask & ENFORCEMENT_WITH(ENFORCEMENT_CONFINES);
}

/* Blocks of a launch, on average. */
static double mean_grid(const Sbeet__Control__Kernel *k) {
	return k->launches ? (double)k->blocks / (double)k->launches : 0;
}

/* Why it can't be confined, or not by all means; empty if it can. */
static const char *why_not(const Sbeet__Control__Kernel *k) {
	if (is_confinable(k) || *k->refusal) {
		return k->refusal;
	}
	return "nothing is known of its code, and there are no green contexts";
}

static json_t *row_json(const struct row *row) {
	const Sbeet__Control__Kernel *k = row->kernel;
	json_t *held_by = json_array();

	for (unsigned e = 1; e < ENFORCEMENT_N; e++) {
		if (k->enforcement_mask & 1u << e) {
			json_array_append_new(held_by,
					      json_string(enforcement_name((Sbeet__Enforcement)e)));
		}
	}
	return json_pack(
		"{s:o, s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:b}", "session",
		json_u64(k->session), "task", json_text(row->session->task), "program",
		json_text(row->session->program), "pid", json_u64(row->session->pid), "id",
		(json_int_t)k->id, "name", json_text(k->name), "launches", json_u64(k->launches),
		"mean_blocks", k->launches ? json_real(mean_grid(k)) : json_null(), "block_threads",
		json_u64_known(k->block_threads), "confinable", (int)is_confinable(k), "held_by",
		held_by, "why_not", *why_not(k) ? json_text(why_not(k)) : json_null(), "dependent",
		k->dependent);
}

static int show_json(const struct ctl *ctl, const struct rows *rows) {
	json_t *list = json_array();

	for (size_t i = 0; i < rows->n; i++) {
		if (json_array_append_new(list, row_json(&rows->list[i])) < 0) {
			json_decref(list);
			return listing_json(ctl, NULL);
		}
	}
	return listing_json(ctl, json_pack("{s:o, s:o, s:o}", "kernels", list, "left_out",
					   json_u64(rows->n_left_out), "hidden_sessions",
					   json_u64(rows->n_hidden)));
}

static const struct table_column columns[] = {
	{"session", "SESSION", .right = true},
	{"task", "TASK", .elastic = true, .drop = 4},
	{"program", "PROGRAM", .hidden = true},
	{"pid", "PID", .right = true, .hidden = true},
	{"id", "ID", .right = true, .hidden = true},
	{"name", "KERNEL", .elastic = true},
	{"launches", "LAUNCHES", .right = true},
	{"mean_blocks", "MEAN GRID blocks", .right = true, .drop = 2},
	{"block_threads", "BLOCK threads", .right = true, .drop = 3},
	{"confinable", "CONFINABLE", .drop = 5},
	{"held_by", "HELD BY", .hidden = true},
	{"why_not", "WHY NOT", .elastic = true, .drop = 1},
	{"dependent", "DEPENDENT", .hidden = true},
};

static void add_to_table(struct table *t, const struct row *row) {
	const Sbeet__Control__Kernel *k = row->kernel;
	char held_by[64] = "";

	for (unsigned e = 1; e < ENFORCEMENT_N; e++) {
		if (k->enforcement_mask & 1u << e) {
			size_t n = strlen(held_by);

			snprintf(held_by + n, sizeof(held_by) - n, "%s%s", n ? "," : "",
				 enforcement_name((Sbeet__Enforcement)e));
		}
	}
	table_number(t, (int64_t)k->session);
	table_text(t, row->session->task);
	table_text(t, row->session->program);
	table_number(t, row->session->pid);
	table_number(t, k->id);
	table_text(t, k->name);
	table_number(t, (int64_t)k->launches);
	if (k->launches) {
		table_value(t, (int64_t)(mean_grid(k) * 1000), "%.1f", mean_grid(k));
		table_number(t, k->block_threads);
	} else {
		table_text(t, NULL);
		table_text(t, NULL);
	}
	table_text(t, is_confinable(k) ? "yes" : "no");
	table_text(t, held_by);
	table_text(t, why_not(k));
	table_text(t, k->dependent ? "yes" : "no");
}

static int show_table(const struct ctl *ctl, const struct rows *rows) {
	struct table *t;
	int r;

	if (table_new(&t, columns, sizeof(columns) / sizeof(columns[0])) < 0) {
		ctl_error("cannot list the kernels: out of memory");
		return CTL_EXIT_FAILED;
	}
	for (size_t i = 0; i < rows->n; i++) {
		add_to_table(t, &rows->list[i]);
	}
	if (rows->n == 0) {
		table_free(t);
		if (!ctl->common.quiet) {
			fprintf(stderr, "No kernel has been launched in a job yet.\n");
		}
		return CTL_EXIT_OK;
	}
	r = listing_show(ctl, t, "the kernels");
	if (r == CTL_EXIT_OK && !ctl->common.no_legend) {
		printf("%zu kernel%s.\n", rows->n, rows->n == 1 ? "" : "s");
	}
	return r;
}

static void print_notes(const struct ctl *ctl, const struct rows *rows) {
	if (rows->n_left_out > 0) {
		ctl_warn(ctl, "%llu more kernels are not listed: sbeetd keeps 1024 of a session",
			 (unsigned long long)rows->n_left_out);
	}
	if (rows->n_hidden > 0) {
		ctl_warn(ctl,
			 "kernels of %llu sessions of other users are hidden: only they and admins "
			 "may see them",
			 (unsigned long long)rows->n_hidden);
	}
}

/* Return: an enum ctl_exit, after an error on stderr. */
static int show(const struct ctl *ctl, const struct snapshot *s, const struct control_answer *a) {
	struct rows rows = {.n = 0};
	bool meant = !ctl->args[0];
	int r;

	for (size_t i = 0; i < s->n_sessions; i++) {
		meant |= is_meant(s->sessions[i], ctl->args[0]);
	}
	if (!meant) {
		ctl_error(
			"no program, process or task '%.64s'; 'sbeetctl session list' shows "
			"which there are",
			ctl->args[0]);
		return CTL_EXIT_NO_OBJECT;
	}
	r = make_rows(ctl, s, a, &rows);
	if (r == CTL_EXIT_OK) {
		r = ctl->common.json == JSON_OFF ? show_table(ctl, &rows) : show_json(ctl, &rows);
	}
	if (r == CTL_EXIT_OK) {
		print_notes(ctl, &rows);
	}
	free(rows.list);
	return r;
}

static int kernel(const struct ctl *ctl) {
	Sbeet__Control__KernelsRequest body = SBEET__CONTROL__KERNELS_REQUEST__INIT;
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;
	struct control_answer answer;
	struct control *control;
	struct snapshot s;
	char error[512];
	int r = control_open(&control, error, sizeof(error));

	if (r != 0) {
		ctl_error("%s", error);
		return r;
	}
	r = snapshot_init(&s, control, error, sizeof(error));
	if (r == 0) {
		request.body_case = SBEET__CONTROL__REQUEST__BODY_KERNELS;
		request.kernels = &body;
		r = control_call(control, &request, &answer, error, sizeof(error));
		if (r == 0) {
			r = show(ctl, &s, &answer);
			control_answer_deinit(&answer);
		} else {
			ctl_error("%s", error);
		}
		snapshot_deinit(&s);
	} else {
		ctl_error("%s", error);
	}
	control_close(control);
	return r;
}

const struct verb verb_kernel = {
	.name = "kernel",
	.args = "[PROGRAM|PID|TASK]",
	.summary = "list the kernels that programs launch, and which can be confined to SMs",
	.flags = VERB_READS | VERB_TABLE,
	.max_args = 1,
	.help = "Shows your own programs; admins see those of all users. Counts are at most 0.1 s "
		"old.\n"
		"More columns: program, pid, id, held_by.\n",
	.function = kernel,
};
