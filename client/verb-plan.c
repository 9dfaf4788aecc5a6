/* verb-plan.c: `sbeetctl plan`: see client/sim/plan.h. */
#include "client/options.h"
#include "client/sim/plan.h"
#include "client/sim/scenario-file.h"
#include "client/verb.h"

static const struct option plan_options[] = {
	{"policy", 'p', OPTION_REQUIRED, "NAME", "the policy to plan with (default: sbeet-mg)",
	 select_parse, offsetof(struct plan_options, policies), SELECT_EXPECTED},
	{"param", 0, OPTION_REQUIRED, "NAME=VALUE", "set a parameter; 'sbeetctl policy' lists them",
	 select_parse, offsetof(struct plan_options, params), SELECT_EXPECTED},
	{"duration", 'd', OPTION_REQUIRED, "TIME", "how far to look ahead (default: as needed)",
	 option_duration, offsetof(struct plan_options, duration), "a time, such as 15s"},
	{"table", 0, OPTION_REQUIRED, "FILE",
	 "write the schedule of a hyperperiod, for sbeetd's policy 'table'", option_string,
	 offsetof(struct plan_options, table), NULL},
	{0},
};

static int plan(const struct ctl *ctl) {
	struct scenario s;
	char error[1024];
	int r;

	if (scenario_file_init(&s, ctl->args[0], error, sizeof(error)) < 0) {
		ctl_error("%s", error);
		return CTL_EXIT_FAILED;
	}
	r = plan_scenario(ctl, &s);
	scenario_deinit(&s);
	return r;
}

const struct verb verb_plan = {
	.name = "plan",
	.args = "SCENARIO.json",
	.summary = "distribute tasks over GPUs and show which are always in time",
	.flags = VERB_READS,
	.min_args = 1,
	.max_args = 1,
	.options = plan_options,
	.options_size = sizeof(struct plan_options),
	.help = "Exit code 3: some jobs are late. 7: it is not known whether some are.\n",
	.function = plan,
};
