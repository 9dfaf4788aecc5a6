/*
 * verb-policy.c: `sbeetctl policy`: the policies there are, and the parameters that they read; with
 * a name, sets the one that sbeetd follows from now on.
 */
#include <stdio.h>
#include <string.h>

#include "client/base/ctl.h"
#include "client/base/listing.h"
#include "client/base/table.h"
#include "client/live/control.h"
#include "client/live/snapshot.h"
#include "client/options.h"
#include "client/sim/params.h"
#include "client/sim/select.h"
#include "client/verb.h"

/* The policy in force, and how many profiles sbeetd has. Return: whether it could be asked. */
static bool ask(char *ret_policy, size_t size, unsigned *ret_profiles) {
	struct control *control;
	struct snapshot s;
	char error[2048];
	bool told;

	if (control_open(&control, error, sizeof(error)) != CTL_EXIT_OK) {
		return false;
	}
	told = snapshot_init(&s, control, error, sizeof(error)) == CTL_EXIT_OK;
	if (told) {
		snprintf(ret_policy, size, "%s", s.service->policy);
		*ret_profiles = s.service->profiles;
		snapshot_deinit(&s);
	}
	control_close(control);
	return told;
}

static void warn_without_profiles(const struct ctl *ctl, const char *name) {
	char active[64];
	unsigned n;

	if (ask(active, sizeof(active), &n) && n == 0) {
		ctl_warn(ctl,
			 "policy '%s' plans by profiles, and sbeetd has none: jobs start in order "
			 "of arrival; 'sbeetctl profile run' measures profiles, sbeetd reads them "
			 "when it starts",
			 name);
	}
}

static json_t *policies_json(const char *active) {
	json_t *policies = json_array(), *params = json_array(), *defaults;
	struct params p;

	for (const struct sched_policy *const *i = sched_policies(); *i; i++) {
		json_array_append_new(
			policies,
			json_pack("{s:s, s:s, s:b, s:b, s:o}", "policy", (*i)->name, "summary",
				  (*i)->summary, "distributes", (*i)->distribute != NULL, "plans",
				  (*i)->plans, "active",
				  *active ? json_boolean(strcmp(active, (*i)->name) == 0)
					  : json_null()));
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

/* Two columns: a name and a line about it. @active: the policy that is marked. */
static int print(const struct ctl *ctl, const struct table_column columns[2], bool params,
		 const char *active) {
	struct table *t;

	if (table_new(&t, columns, 2) < 0) {
		ctl_error("cannot list the policies: out of memory");
		return CTL_EXIT_FAILED;
	}
	for (const struct sched_policy *const *i = sched_policies(); *i && !params; i++) {
		bool is_active = strcmp(active, (*i)->name) == 0;
		char text[512];

		snprintf(text, sizeof(text), "%s%s", is_active ? "(in force) " : "", (*i)->summary);
		table_text(t, (*i)->name);
		table_text(t, text);
	}
	for (const struct param *i = params_table; i->name && params; i++) {
		char text[512];

		snprintf(text, sizeof(text), "%s: %s", i->expected, i->summary);
		table_text(t, i->name);
		table_text(t, text);
	}
	return listing_print(ctl, t, "the policies");
}

static int set(const struct ctl *ctl, char *name) {
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;
	Sbeet__Control__PolicyRequest wanted = SBEET__CONTROL__POLICY_REQUEST__INIT;
	const struct sched_policy *policy = select_policy(name);
	int r;

	if (!policy) {
		return CTL_EXIT_NO_OBJECT;
	}
	wanted.name = name;
	request.body_case = SBEET__CONTROL__REQUEST__BODY_POLICY;
	request.policy = &wanted;
	r = control_change(&request);
	if (r == CTL_EXIT_OK && policy->plans) {
		warn_without_profiles(ctl, name);
	}
	return r;
}

static int policy(const struct ctl *ctl) {
	static const struct table_column policies[] = {{"policy", "POLICY"},
						       {"summary", "WHAT IT DOES"}};
	static const struct table_column params[] = {{"param", "PARAMETER"}, {"summary", "VALUES"}};
	char active[64] = "";
	unsigned n;
	int r;

	if (ctl->n_args > 0) {
		return set(ctl, ctl->args[0]);
	}
	ask(active, sizeof(active), &n);
	if (ctl->common.json != JSON_OFF) {
		return listing_json(ctl, policies_json(active));
	}
	r = print(ctl, policies, false, active);
	if (r == CTL_EXIT_OK) {
		printf("\n");
		r = print(ctl, params, true, active);
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
