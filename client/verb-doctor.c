/*
 * verb-doctor.c: `sbeetctl doctor`: what a program needs to run under sbeet, what of that is
 * missing, and the command that mends it.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/base/ctl.h"
#include "client/base/listing.h"
#include "client/doctor/findings.h"
#include "client/doctor/gather.h"
#include "client/options.h"
#include "client/preload.h"
#include "client/verb.h"

struct doctor_options {
	const char *shim;
};

static const struct option doctor_options[] = {
	{"shim", 0, OPTION_REQUIRED, "PATH", "look at this libsbeet.so", option_string,
	 offsetof(struct doctor_options, shim), NULL},
	{0},
};

static void gather(const struct ctl *ctl, struct facts *f) {
	const struct doctor_options *o = ctl->options;
	char *library = NULL, why[512] = "";

	if (preload_find(o->shim, &library, why, sizeof(why)) < 0) {
		library = NULL;
	}
	gather_system(&f->system);
	gather_rights(&f->rights);
	gather_daemon(&f->daemon, &f->profiles);
	gather_mps(&f->daemon, &f->mps);
	gather_gpu(f->daemon.mps_directory, &f->gpu);
	gather_preload(library, why, &f->preload);
	gather_environment(&f->preload, &f->environment);
	gather_strays(f->daemon.control.path, library, &f->strays);
	gather_program(ctl->n_args > 0 ? ctl->args[0] : NULL, library, &f->program);
	free(library);
}

static json_t *findings_json(const struct finding *list, size_t n, bool ok) {
	json_t *checks = json_array();

	for (size_t i = 0; i < n; i++) {
		json_array_append_new(
			checks, json_pack("{s:s, s:s, s:o, s:o}", "check", list[i].name, "state",
					  finding_state_name(list[i].state), "text",
					  json_text(list[i].text), "command",
					  json_text(*list[i].command ? list[i].command : NULL)));
	}
	return json_pack("{s:b, s:o}", "ok", ok, "checks", checks);
}

/* A colour for each state; colour never carries meaning alone. */
static const char *colour(enum finding_state state) {
	static const char *const colours[] = {[FINDING_OK] = "\033[32m",
					      [FINDING_NOTE] = "\033[33m",
					      [FINDING_MISSING] = "\033[31m"};

	return colours[state];
}

static void print(const struct ctl *ctl, struct finding *list, size_t n, unsigned missing) {
	bool coloured = listing_style(ctl).colour;

	for (size_t i = 0; i < n; i++) {
		terminal_clean(list[i].text);
		terminal_clean(list[i].command);
		printf("%-12s %s%-7s%s  %s\n", list[i].name, coloured ? colour(list[i].state) : "",
		       finding_state_name(list[i].state), coloured ? "\033[0m" : "", list[i].text);
		if (*list[i].command) {
			printf("%-12s %-7s  $ %s\n", "", "", list[i].command);
		}
	}
	if (ctl->common.no_legend) {
		return;
	}
	if (missing == 0) {
		printf("\nPrograms can be run under sbeet.\n");
	} else {
		printf("\n%u check%s: until that is fixed, programs run without sbeet.\n", missing,
		       missing == 1 ? " failed" : "s failed");
	}
}

static int doctor(const struct ctl *ctl) {
	struct facts *facts = calloc(1, sizeof(*facts));
	struct finding *list = calloc(FINDINGS_MAX, sizeof(*list));
	unsigned missing = 0;
	int r = CTL_EXIT_OK;
	size_t n;

	if (!facts || !list) {
		ctl_error("out of memory");
		free(facts);
		free(list);
		return CTL_EXIT_FAILED;
	}
	gather(ctl, facts);
	n = findings_judge(facts, list);
	for (size_t i = 0; i < n; i++) {
		missing += list[i].state == FINDING_MISSING;
	}
	if (ctl->common.json != JSON_OFF) {
		r = listing_json(ctl, findings_json(list, n, missing == 0));
	} else {
		print(ctl, list, n, missing);
	}
	free(facts);
	free(list);
	return r == CTL_EXIT_OK && missing > 0 ? CTL_EXIT_FAILED : r;
}

const struct verb verb_doctor = {
	.name = "doctor",
	.args = "[PROGRAM]",
	.summary = "check what programs need to run under sbeet, and how to fix it",
	.flags = VERB_READS | VERB_COMMAND,
	.max_args = SIZE_MAX,
	.options = doctor_options,
	.options_size = sizeof(struct doctor_options),
	.help = "It needs neither sbeetd nor rights, and changes nothing. Each check has a state:\n"
		"ok; note: programs can be managed, something could be better; missing: they "
		"can't.\n"
		"The command that helps follows after a $. Exit code 1: something is missing.\n"
		"PROGRAM is examined, not started.\n",
	.function = doctor,
};
