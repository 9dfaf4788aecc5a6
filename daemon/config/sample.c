/*
 * sample.c: prints a sample of sbeetd.conf: every key and its default, as comments. Runs while
 * sbeet is built; see meson.build.
 */
#include <stdio.h>

#include "daemon/config/access.h"
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
	printf("\n# What everybody may have. [group NAME] and [user NAME] say it for some.\n"
	       "[users]\n");
	for (int i = 0; i < _ACCESS_KEY_N; i++) {
		print_key(access_table[i].key, access_table[i].fallback, access_table[i].help);
	}
	return 0;
}
