/*
 * sample.c: prints a sample of sbeetd.conf: every key and its default, as comments. Runs while
 * sbeet is built; see meson.build.
 */
#include <stdio.h>

#include "daemon/config/access.h"
#include "daemon/config/policies.h"
#include "daemon/config/settings.h"

static void print_key(const char *key, const char *fallback, const char *help) {
	printf("\n# ");
	for (; *help; help++) {
		putchar(*help);
		if (*help == '\n') {
			printf("# ");
		}
	}
	printf("\n#%s = %s\n", key, fallback);
}

/* What a policy can be told. */
static void print_params(const char *policy) {
	struct policies policies;
	const struct policy_values *values;

	policies_init(&policies);
	values = policies_find(&policies, policy);
	printf("\n# What a policy is told; each has a section of its own. 'sbeetctl policy' lists "
	       "all.\n"
	       "[policy %s]\n",
	       policy);
	for (int i = 0; i < _SCHED_PARAM_N; i++) {
		char text[SCHED_PARAM_TEXT_MAX];

		if (sched_param_is_live(values->policy, (enum sched_param_id)i)) {
			sched_param_print(&values->params, (enum sched_param_id)i, text);
			print_key(sched_param_rows[i].name, text, sched_param_rows[i].summary);
		}
	}
}

int main(void) {
	printf("# A sample of /etc/sbeet/sbeetd.conf, with the defaults. All of it is explained "
	       "in\n"
	       "# sbeetd.conf(5); 'sbeetctl config' shows what is in force, and 'sbeetctl reload' "
	       "makes sbeetd\n"
	       "# read it again.\n"
	       "\n"
	       "[sbeetd]\n");
	for (int i = 0; i < _SETTING_N; i++) {
		const struct setting *row = &settings_table[i];

		print_key(row->key, row->fallback, row->help);
	}
	print_params(settings_table[SETTING_POLICY].fallback);
	printf("\n# What everybody may have. [group NAME] and [user NAME] say it for some.\n"
	       "[users]\n");
	for (int i = 0; i < _ACCESS_KEY_N; i++) {
		print_key(access_table[i].key, access_table[i].fallback, access_table[i].help);
	}
	return 0;
}
