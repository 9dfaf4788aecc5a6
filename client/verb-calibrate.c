/*
 * verb-calibrate.c: `sbeetctl gpu calibrate`: the model of a GPU's power, from a program that
 * computes.
 */
#include <stdio.h>

#include "client/measuring.h"
#include "client/verb.h"

/* Power further from a straight line than this is no sum of equal SMs. */
#define STRAIGHT 0.03

static const struct option calibrate_options[] = {MEASURING_OPTIONS, {0}};

static int show_model(struct measuring *w, double idle_w, double per_sm_w, double off) {
	w->o.idle_w = idle_w;
	if (w->ctl->common.json != JSON_OFF) {
		json_t *o = json_pack("{s:s, s:i, s:f, s:f, s:f, s:f, s:o}", "gpu", w->rows.gpu,
				      "gpu_sms", (int)w->rows.gpu_sms, "static_w", w->rows.static_w,
				      "idle_w_per_sm", idle_w, "load_w_per_sm", per_sm_w, "off",
				      off, "rows", rows_json(&w->rows, idle_w));

		return json_write(o, w->ctl->common.json, stdout) < 0 ? CTL_EXIT_FAILED
								      : CTL_EXIT_OK;
	}
	if (measuring_print(w) != CTL_EXIT_OK) {
		return CTL_EXIT_FAILED;
	}
	printf("%s: P_s %.3f W, P_idle %.4f W/SM; this load: P_d %.4f W/SM, within %.1f %% of a "
	       "straight line.\n",
	       w->rows.gpu, w->rows.static_w, idle_w, per_sm_w, off * 100);
	return CTL_EXIT_OK;
}

static int gpu_calibrate(const struct ctl *ctl) {
	struct measuring w = {.ctl = ctl, .o = *(const struct measuring_options *)ctl->options};
	double idle_w = 0, per_sm_w = 0, off = 0;
	int r;

	w.o.task = "sbeet-calibrate";
	r = measuring_perform(&w);
	if (r == CTL_EXIT_OK && rows_fit(&w.rows, &idle_w, &per_sm_w, &off) < 0) {
		ctl_error("power is known of fewer than two numbers of SMs: nothing can be fitted");
		r = CTL_EXIT_FAILED;
	}
	if (r == CTL_EXIT_OK && off > STRAIGHT) {
		ctl_warn(ctl,
			 "power is up to %.1f %% from a straight line over the SMs, so what an "
			 "unused one draws can't be told and is taken as 0: use a program that "
			 "computes more and moves less memory",
			 off * 100);
		idle_w = 0;
	}
	if (r == CTL_EXIT_OK) {
		r = show_model(&w, idle_w, per_sm_w, off);
	}
	if (r == CTL_EXIT_OK && w.o.output) {
		r = measuring_write(&w, json_pack("{s:[{s:s, s:f, s:f}]}", "gpus", "name",
						  w.rows.gpu, "static_w", w.rows.static_w,
						  "idle_w_per_sm", idle_w));
	}
	measuring_deinit(&w);
	return r;
}

const struct verb verb_gpu_calibrate = {
	.name = "gpu calibrate",
	.args = "PROGRAM [ARGUMENT...]",
	.summary = "measure a GPU's power with a program that computes",
	.flags = VERB_READS | VERB_COMMAND,
	.min_args = 1,
	.max_args = SIZE_MAX,
	.options = calibrate_options,
	.options_size = sizeof(struct measuring_options),
	.help = "Static power from the counter while nothing runs, power of an unused SM from the\n"
		"straight line through the power at several numbers of SMs.\n"
		"\n"
		"  sbeetctl gpu calibrate -o gpu.json -- ./matmul --frames 100\n",
	.function = gpu_calibrate,
};
