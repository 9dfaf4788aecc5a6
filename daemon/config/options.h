/*
 * options.h: sbeetd's command line: what was given, by the rows of settings.h.
 */
#pragma once

#include "daemon/config/settings.h"

struct options {
	const char *config_dir;	       /* NULL: the default one */
	const char *texts[_SETTING_N]; /* borrowed from argv; NULL: not given */
};

enum options_verdict {
	OPTIONS_RUN,
	OPTIONS_DONE,  /* --help or --version was printed: exit 0 */
	OPTIONS_WRONG, /* what is wrong was printed: exit 2 */
};

/* Every text in @ret is one that settings_set() takes. */
enum options_verdict options_parse(int argc, char **argv, struct options *ret);
