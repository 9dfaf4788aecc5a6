/*
 * verb-profile-run.c: `sbeetctl profile run`: a task's times and power on several numbers of SMs.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/measuring.h"
#include "client/verb.h"

/* A table of G_e(m) * m that varies by no more counts as linear. */
#define LINEAR_PERMILLE 50

/* Of --margin, by default. */
#define MARGIN_PERCENT 10

static int parse_watts(const char *text, void *target) {
	char *end;
	double watts = strtod(text, &end);

	if (end == text || *end || !(watts >= 0 && watts <= 100)) {
		return -EINVAL;
	}
	*(double *)target = watts;
	return 0;
}

static int parse_margin(const char *text, void *target) {
	int64_t n;
	int r = units_parse_int(text, 0, 1000, &n);

	if (r == 0) {
		*(unsigned *)target = (unsigned)n + 1;
	}
	return r;
}

static const struct option profile_options[] = {
	{"task", 't', OPTION_REQUIRED, "NAME", "name of the task, and of its profile",
	 option_string, MEASURING_AT(task), NULL},
	MEASURING_OPTIONS,
	{"margin", 0, OPTION_REQUIRED, "PERCENT",
	 "margin of worst cases above the longest times (default: 10)", parse_margin,
	 MEASURING_AT(margin), "per cent, from 0 to 1000"},
	{"beside", 0, OPTION_REQUIRED, "TASK", "measure beside this task, which must be running",
	 option_string, MEASURING_AT(beside), NULL},
	{"idle-w-per-sm", 0, OPTION_REQUIRED, "W",
	 "what an unused SM draws, as 'gpu calibrate' says (default: 0)", parse_watts,
	 MEASURING_AT(idle_w), "watts, from 0 to 100"},
	{0},
};

struct verdict {
	unsigned m_opt, off_permille;
};

static int judge(const struct measuring *w, const struct book *b, struct verdict *ret) {
	struct power_gpu power = {w->rows.gpu_sms, (uint32_t)(w->rows.static_w * 1e3),
				  (uint32_t)(w->o.idle_w * 1e3)};
	struct profile_table *t = malloc(sizeof(*t));
	int r = t ? book_lay_out(&b->profiles[0].tables[0], w->rows.gpu_sms, t) : -ENOMEM;
	uint64_t worst = 0;

	if (r == 0) {
		const struct row *last = &w->rows.list[w->rows.n - 1];
		double work = last->exec.mean * last->n_sms;

		/* Of what was measured alone: gaps are filled as if it were linear below. */
		for (size_t i = 0; i < w->rows.n; i++) {
			double off = w->rows.list[i].exec.mean * w->rows.list[i].n_sms / work - 1;
			uint64_t permille = (uint64_t)((off < 0 ? -off : off) * 1000);

			worst = permille > worst ? permille : worst;
		}
		*ret = (struct verdict){profile_m_opt(t, &power, 0, w->rows.gpu_sms, 1),
					(unsigned)worst};
	}
	free(t);
	return r;
}

static int show_profile(struct measuring *w, const struct book *b) {
	struct verdict v = {0};

	if (judge(w, b, &v) < 0) {
		ctl_error("out of memory");
		return CTL_EXIT_FAILED;
	}
	if (w->ctl->common.json != JSON_OFF) {
		json_t *o = json_pack(
			"{s:s, s:s, s:i, s:o, s:o, s:o, s:b, s:i, s:o}", "task", w->o.task, "gpu",
			w->rows.gpu, "gpu_sms", (int)w->rows.gpu_sms, "static_w",
			w->rows.metered ? json_real(w->rows.static_w) : json_null(), "beside",
			json_text(w->o.beside), "m_opt",
			w->rows.metered ? json_integer(v.m_opt) : json_null(), "linear",
			(int)(v.off_permille <= LINEAR_PERMILLE), "off_permille",
			(int)v.off_permille, "rows", rows_json(&w->rows, w->o.idle_w));

		return json_write(o, w->ctl->common.json, stdout) < 0 ? CTL_EXIT_FAILED
								      : CTL_EXIT_OK;
	}
	if (measuring_print(w) != CTL_EXIT_OK) {
		return CTL_EXIT_FAILED;
	}
	printf("%s: G_e(m) * m varies by %.1f %%.",
	       v.off_permille <= LINEAR_PERMILLE ? "Linear speed-up" : "No linear speed-up",
	       v.off_permille / 10.0);
	if (w->rows.metered) {
		printf(" Least energy on %u SMs (m_opt).", v.m_opt);
	}
	putchar('\n');
	return CTL_EXIT_OK;
}

static int profile_run(const struct ctl *ctl) {
	struct measuring w = {.ctl = ctl, .o = *(const struct measuring_options *)ctl->options};
	struct book b = {0};
	int r = measuring_perform(&w);

	if (r == CTL_EXIT_OK) {
		unsigned margin = w.o.margin ? w.o.margin - 1 : MARGIN_PERCENT, doubt;
		int e = rows_profile(&w.rows, w.o.task, w.o.idle_w, margin, &b);
		char why[512];
		bool power;

		if (e < 0) {
			ctl_error("no profile can be made: %s", strerror(-e));
			r = CTL_EXIT_FAILED;
		} else if ((doubt = rows_doubt(&w.rows, &b, &power, why, sizeof(why))) > 0) {
			r = measuring_doubt(&w, doubt, power, why);
		}
	}
	if (r == CTL_EXIT_OK) {
		r = show_profile(&w, &b);
	}
	if (r == CTL_EXIT_OK && w.o.output) {
		r = measuring_write(&w, book_json(&b));
	}
	book_deinit(&b);
	measuring_deinit(&w);
	return r;
}

const struct verb verb_profile_run = {
	.name = "profile run",
	.args = "PROGRAM [ARGUMENT...]",
	.summary = "measure a program at several numbers of SMs",
	.flags = VERB_READS | VERB_COMMAND,
	.min_args = 1,
	.max_args = SIZE_MAX,
	.options = profile_options,
	.options_size = sizeof(struct measuring_options),
	.help = "The result of --output goes into sbeetd's --profile-dir. Use a policy that gives\n"
		"whole GPUs, such as fcfs.\n"
		"\n"
		"  sbeetctl profile run --task camera --sms 8,16,...,132 -o camera.json -- "
		"./detect\n",
	.function = profile_run,
};
