/*
 * verb-policy.c: `sbeetctl policy`: the policies there are, and the parameters that they read.
 */
#include <stdio.h>
#include <unistd.h>

#include "client/ctl.h"
#include "client/options.h"
#include "client/params.h"
#include "client/table.h"
#include "client/verb.h"

static json_t *policies_json(void) {
	json_t *policies = json_array(), *params = json_array(), *defaults;
	struct params p;

	for (const struct sched_policy *const *i = sched_policies(); *i; i++) {
		json_array_append_new(policies, json_pack("{s:s, s:s, s:b}", "policy", (*i)->name,
							  "summary", (*i)->summary, "distributes",
							  (*i)->distribute != NULL));
	}
	params_default(&p);
	defaults = params_json(&p);
	for (const struct param *i = params_table; i->name; i++) {
		json_array_append_new(params,
				      json_pack("{s:s, s:s, s:s, s:O}", "param", i->name, "summary",
						i->summary, "values", i->expected, "default",
						json_object_get(defaults, i->name)));
	}
	json_decref(defaults);
	return json_pack("{s:o, s:o}", "policies", policies, "params", params);
}

/* Two columns: a name and a line about it. */
static int print(const struct ctl *ctl, const struct table_column columns[2], bool params) {
	struct table_style style = {
		.no_legend = ctl->common.no_legend,
		.colour = terminal_colour(ctl->common.colour, STDOUT_FILENO),
	};
	struct table *t;
	int r;

	if (table_new(&t, columns, 2) < 0) {
		ctl_error("cannot list the policies: out of memory");
		return CTL_EXIT_FAILED;
	}
	for (const struct sched_policy *const *i = sched_policies(); *i && !params; i++) {
		table_text(t, (*i)->name);
		table_text(t, (*i)->summary);
	}
	for (const struct param *i = params_table; i->name && params; i++) {
		char text[512];

		snprintf(text, sizeof(text), "%s: %s", i->expected, i->summary);
		table_text(t, i->name);
		table_text(t, text);
	}
	r = table_print(t, &style, stdout);
	table_free(t);
	if (r < 0) {
		ctl_error("cannot list the policies: out of memory");
	}
	return r < 0 ? CTL_EXIT_FAILED : CTL_EXIT_OK;
}

static int policy(const struct ctl *ctl) {
	static const struct table_column policies[] = {{"policy", "POLICY"},
						       {"summary", "WHAT IT DOES"}};
	static const struct table_column params[] = {{"param", "PARAMETER"}, {"summary", "VALUES"}};
	int r;

	if (ctl->common.json != JSON_OFF) {
		return json_write(policies_json(), ctl->common.json, stdout) < 0 ? CTL_EXIT_FAILED
										 : CTL_EXIT_OK;
	}
	r = print(ctl, policies, false);
	if (r == CTL_EXIT_OK) {
		printf("\n");
		r = print(ctl, params, true);
	}
	return r;
}

const struct verb verb_policy = {
	.name = "policy",
	.args = "",
	.summary = "list the scheduling policies and their parameters",
	.flags = VERB_READS,
	.function = policy,
};
