/*
 * options.c: parses sbeetd's command line. See options.h.
 */
#include "daemon/config/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/notify.h"
#include "daemon/book/suggest.h"

/* Where the texts of --help begin. */
#define HELP_COLUMN 25

enum {
	OPTION_SETTING = 256, /* this one and those that follow: by enum setting_id */
	OPTION_CONFIG_DIR = OPTION_SETTING + _SETTING_N,
	OPTION_VERSION,
};

/* Beside those of the settings. */
static const struct option other_options[] = {
	{"config-dir", required_argument, NULL, OPTION_CONFIG_DIR},
	{"help", no_argument, NULL, 'h'},
	{"verbose", no_argument, NULL, 'v'},
	{"version", no_argument, NULL, OPTION_VERSION},
};

#define N_OTHER (sizeof(other_options) / sizeof(other_options[0]))

/* For getopt_long(): the settings that have an option, the others, the end. */
static void fill_options(struct option ret[static _SETTING_N + N_OTHER + 1]) {
	size_t n = 0;

	for (int i = 0; i < _SETTING_N; i++) {
		if (settings_table[i].value_name) {
			ret[n++] = (struct option){settings_table[i].key, required_argument, NULL,
						   OPTION_SETTING + i};
		}
	}
	memcpy(ret + n, other_options, sizeof(other_options));
	ret[n + N_OTHER] = (struct option){0};
}

static void print_setting(const struct setting *row) {
	char left[64];
	const char *line = row->help;
	int n = snprintf(left, sizeof(left), "      --%s %s", row->key, row->value_name);

	printf("%-*s", HELP_COLUMN, left);
	if (n + 1 > HELP_COLUMN) {
		printf("\n%*s", HELP_COLUMN, "");
	}
	while (*line) {
		size_t length = strcspn(line, "\n");

		printf("%.*s", (int)length, line);
		line += length;
		if (*line == '\n') {
			printf("\n%*s", HELP_COLUMN + 2, "");
			line++;
		}
	}
	printf(*row->fallback ? " (default: %s)\n" : "\n", row->fallback);
}

static void print_policies(void) {
	for (size_t i = 0; sched_policies()[i]; i++) {
		const struct sched_policy *policy = sched_policies()[i];

		if (!policy->simulated) {
			printf("%*s%s: %s\n", HELP_COLUMN + 2, "", policy->name, policy->summary);
		}
	}
}

static void print_help(void) {
	printf("Usage: sbeetd [OPTION]...\n"
	       "Decides which CUDA program runs when, and on which SMs of the GPU.\n"
	       "\n");
	for (int i = 0; i < _SETTING_N; i++) {
		if (settings_table[i].value_name) {
			print_setting(&settings_table[i]);
		}
		if (i == SETTING_POLICY) {
			print_policies();
		}
	}
	printf("      --config-dir DIR   where sbeetd.conf and tasks.d/ are (default: /etc/sbeet\n"
	       "                           for root, else $XDG_CONFIG_HOME/sbeet)\n"
	       "  -v, --verbose          same as --log-level debug\n"
	       "  -h, --help             show this help\n"
	       "      --version          show version and features\n"
	       "\n"
	       "See sbeetd(8) and sbeetd.conf(5).\n");
}

static void print_version(void) {
	printf("sbeetd %s\nprotocol %d\n%s\n", SBEET_VERSION, PROTO_VERSION, notify_feature);
}

__attribute__((format(printf, 1, 2))) static enum options_verdict wrong(const char *format, ...) {
	va_list args;

	va_start(args, format);
	fputs("sbeetd: ", stderr);
	vfprintf(stderr, format, args);
	fputs(" (see 'sbeetd --help')\n", stderr);
	va_end(args);
	return OPTIONS_WRONG;
}

/* @option as typed, with its dashes. */
static enum options_verdict wrong_option(const char *option, const struct option *known) {
	struct suggest s = suggest_start(option + strspn(option, "-"));

	for (; known->name && strncmp(option, "--", 2) == 0; known++) {
		suggest_offer(&s, known->name);
	}
	return wrong("%s is not an option of sbeetd%s%s%s", option,
		     s.best ? ". Did you mean '--" : "", s.best ? s.best : "", s.best ? "'?" : "");
}

static enum options_verdict take_setting(enum setting_id id, const char *text,
					 struct options *options) {
	struct settings scratch;
	char why[512];

	settings_init(&scratch);
	if (settings_set(&scratch, id, text, SETTING_COMMAND_LINE, 0) < 0) {
		settings_complain(id, text, why, sizeof(why));
		return wrong("--%s", why);
	}
	options->texts[id] = text;
	return OPTIONS_RUN;
}

static enum options_verdict take_option(int option, const char *value, const struct option *known,
					struct options *options) {
	switch (option) {
	case OPTION_CONFIG_DIR:
		options->config_dir = value;
		return OPTIONS_RUN;
	case 'v':
		options->texts[SETTING_LOG_LEVEL] = "debug";
		return OPTIONS_RUN;
	case 'h':
		print_help();
		return OPTIONS_DONE;
	case OPTION_VERSION:
		print_version();
		return OPTIONS_DONE;
	case ':':
		return wrong("%s needs a value", value);
	case '?':
		return wrong_option(value, known);
	default:
		return take_setting((enum setting_id)(option - OPTION_SETTING), value, options);
	}
}

enum options_verdict options_parse(int argc, char **argv, struct options *ret) {
	struct option known[_SETTING_N + N_OTHER + 1];
	struct options options = {0};
	int option;

	fill_options(known);
	opterr = 0;
	while ((option = getopt_long(argc, argv, ":hv", known, NULL)) >= 0) {
		const char *value = option == ':' || option == '?' ? argv[optind - 1] : optarg;
		enum options_verdict verdict = take_option(option, value, known, &options);

		if (verdict != OPTIONS_RUN) {
			return verdict;
		}
	}
	if (optind < argc) {
		return wrong("'%s' is not expected: sbeetd takes options only", argv[optind]);
	}
	*ret = options;
	return OPTIONS_RUN;
}
