/*
 * verb-policy.c: `sbeetctl policy`: the policies there are, and the parameters that they read; with
 * a name, sets the one that sbeetd follows from now on.
 */
#include <stdio.h>

#include "client/base/ctl.h"
#include "client/base/listing.h"
#include "client/base/table.h"
#include "client/live/control.h"
#include "client/options.h"
#include "client/sim/params.h"
#include "client/sim/select.h"
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
	struct table *t;

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
	return listing_print(ctl, t, "the policies");
}

static int set(char *name) {
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;
	Sbeet__Control__PolicyRequest wanted = SBEET__CONTROL__POLICY_REQUEST__INIT;

	if (!select_policy(name)) {
		return CTL_EXIT_NO_OBJECT;
	}
	wanted.name = name;
	request.body_case = SBEET__CONTROL__REQUEST__BODY_POLICY;
	request.policy = &wanted;
	return control_change(&request);
}

static int policy(const struct ctl *ctl) {
	static const struct table_column policies[] = {{"policy", "POLICY"},
						       {"summary", "WHAT IT DOES"}};
	static const struct table_column params[] = {{"param", "PARAMETER"}, {"summary", "VALUES"}};
	int r;

	if (ctl->n_args > 0) {
		return set(ctl->args[0]);
	}
	if (ctl->common.json != JSON_OFF) {
		return listing_json(ctl, policies_json());
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
	.args = "[NAME]",
	.summary = "list the scheduling policies and their parameters, or set sbeetd's",
	.max_args = 1,
	.flags = VERB_READS,
	.function = policy,
};
