/*
 * options.c: parses sbeetd's command line. See options.h.
 */
#include "daemon/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/book/suggest.h"
#include "daemon/engine.h"
#include "daemon/notify.h"

#define LINGER_DEFAULT (100 * NSEC_PER_USEC)

/* Longer than kernels take, short enough for others to wait. */
#define DRAIN_DEFAULT (60 * NSEC_PER_SEC)

enum {
	OPTION_DRAIN = 256,
	OPTION_GPUS,
	OPTION_LINGER,
	OPTION_LOG_LEVEL,
	OPTION_POLICY,
	OPTION_PROFILE_DIR,
	OPTION_RUNTIME_DIR,
	OPTION_SHARING,
	OPTION_VERSION,
};

static const struct option long_options[] = {
	{"drain", required_argument, NULL, OPTION_DRAIN},
	{"gpus", required_argument, NULL, OPTION_GPUS},
	{"help", no_argument, NULL, 'h'},
	{"linger", required_argument, NULL, OPTION_LINGER},
	{"log-level", required_argument, NULL, OPTION_LOG_LEVEL},
	{"policy", required_argument, NULL, OPTION_POLICY},
	{"profile-dir", required_argument, NULL, OPTION_PROFILE_DIR},
	{"runtime-dir", required_argument, NULL, OPTION_RUNTIME_DIR},
	{"sharing", required_argument, NULL, OPTION_SHARING},
	{"verbose", no_argument, NULL, 'v'},
	{"version", no_argument, NULL, OPTION_VERSION},
	{NULL, 0, NULL, 0},
};

static void print_help(void) {
	printf("Usage: sbeetd [OPTION]...\n"
	       "Decides which CUDA program runs when, and on which SMs of the GPU.\n"
	       "\n"
	       "      --policy NAME      how jobs are placed (default: even)\n");
	for (size_t i = 0; sched_policies()[i]; i++) {
		const struct sched_policy *policy = sched_policies()[i];

		if (engine_find_policy(policy->name)) {
			printf("                           %s: %s\n", policy->name,
			       policy->summary);
		}
	}
	printf("      --gpus N[,N]...    GPUs of N SMs each instead of those that NVML finds\n"
	       "      --sharing MODE     auto, mps or exclusive, or one for each GPU:\n"
	       "                           0=mps,1=exclusive (default: auto)\n"
	       "      --linger TIME      how long a program must be quiet for its job to end\n"
	       "                           (default: 100us)\n"
	       "      --drain TIME       how long a running program that has hung up keeps its "
	       "SMs\n"
	       "                           (default: 1min)\n"
	       "      --profile-dir DIR  profiles of tasks and GPUs, *.json (default:\n"
	       "                           /etc/sbeet/profiles for root, else\n"
	       "                           $XDG_CONFIG_HOME/sbeet/profiles)\n"
	       "      --runtime-dir DIR  where the sockets are (default: /run/sbeet for root,\n"
	       "                           else $XDG_RUNTIME_DIR/sbeet)\n"
	       "      --log-level LEVEL  error, warning, info or debug (default: info)\n"
	       "  -v, --verbose          same as --log-level debug\n"
	       "  -h, --help             show this help\n"
	       "      --version          show version and features\n"
	       "\n"
	       "See sbeetd(8).\n");
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

static enum options_verdict parse_policy(const char *name, struct options *options) {
	options->policy = engine_find_policy(name);
	if (!options->policy) {
		struct suggest s = suggest_start(name);

		for (size_t i = 0; sched_policies()[i]; i++) {
			suggest_offer(&s, sched_policies()[i]->name);
		}
		return wrong("--policy '%s' is none of those that --help lists%s%s%s", name,
			     s.best ? ". Did you mean '" : "", s.best ? s.best : "",
			     s.best ? "'?" : "");
	}
	return OPTIONS_RUN;
}

static enum options_verdict parse_gpus(const char *text, struct options *options) {
	int n = inventory_sms_parse(text, options->gpu_sms);

	if (n < 0) {
		return wrong(
			"--gpus '%s' is not a list of 1 to %d SM counts from 1 to %d, such as "
			"'80,40'",
			text, SCHED_GPUS_MAX, PROTO_SMS_MAX);
	}
	options->n_gpus = (size_t)n;
	return OPTIONS_RUN;
}

/* @option as typed, with its dashes. */
static enum options_verdict wrong_option(const char *option) {
	struct suggest s = suggest_start(option + strspn(option, "-"));

	for (size_t i = 0; long_options[i].name && strncmp(option, "--", 2) == 0; i++) {
		suggest_offer(&s, long_options[i].name);
	}
	return wrong("%s is not an option of sbeetd%s%s%s", option,
		     s.best ? ". Did you mean '--" : "", s.best ? s.best : "", s.best ? "'?" : "");
}

static enum options_verdict parse_option(int option, const char *value, struct options *options) {
	switch (option) {
	case OPTION_POLICY:
		return parse_policy(value, options);
	case OPTION_GPUS:
		return parse_gpus(value, options);
	case OPTION_SHARING:
		return inventory_sharing_parse(value, &options->sharing) < 0
			       ? wrong("--sharing '%s' is none of auto, mps, exclusive, nor a list "
				       "such as '0=mps,1=exclusive'",
				       value)
			       : OPTIONS_RUN;
	case OPTION_LINGER:
		return units_parse_nsec(value, &options->linger) < 0
			       ? wrong("--linger '%s' is not a time with a unit, such as '100us'",
				       value)
			       : OPTIONS_RUN;
	case OPTION_DRAIN:
		return units_parse_nsec(value, &options->drain) < 0 || options->drain == 0
			       ? wrong("--drain '%s' is not a time above 0 with a unit, such as "
				       "'1min'",
				       value)
			       : OPTIONS_RUN;
	case OPTION_LOG_LEVEL:
		return log_level_parse(value, &options->log_level) < 0
			       ? wrong("--log-level '%s' is none of error, warning, info, debug",
				       value)
			       : OPTIONS_RUN;
	case OPTION_PROFILE_DIR:
		options->profile_dir = value;
		return OPTIONS_RUN;
	case OPTION_RUNTIME_DIR:
		if (*value != '/') {
			return wrong("--runtime-dir '%s' is not an absolute path", value);
		}
		options->runtime_dir = value;
		return OPTIONS_RUN;
	case 'v':
		options->log_level = LOG_LEVEL_DEBUG;
		return OPTIONS_RUN;
	case 'h':
		print_help();
		return OPTIONS_DONE;
	case OPTION_VERSION:
		print_version();
		return OPTIONS_DONE;
	case ':':
		return wrong("%s needs a value", value);
	default:
		return wrong_option(value);
	}
}

enum options_verdict options_parse(int argc, char **argv, struct options *ret) {
	struct options options = {
		.policy = sched_policy_find("even"),
		.linger = LINGER_DEFAULT,
		.drain = DRAIN_DEFAULT,
		.log_level = LOG_LEVEL_INFO,
	};
	int option;

	inventory_sharing_parse("auto", &options.sharing);
	opterr = 0;
	while ((option = getopt_long(argc, argv, ":hv", long_options, NULL)) >= 0) {
		const char *value = option == ':' || option == '?' ? argv[optind - 1] : optarg;
		enum options_verdict verdict = parse_option(option, value, &options);

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
