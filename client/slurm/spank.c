/*
 * spank.c: the plugin of Slurm: --sbeet-* of srun, sbatch and salloc, and libsbeet.so in the tasks
 * of jobs.
 *
 * Options are read as those of `sbeetctl run` and checked where they are typed; on the node they
 * become SBEET_* of the job's tasks. What is enforced does not come from here: sbeetd knows the job
 * by its cgroup (sbeet-slurm(7)).
 *
 * Arguments in plugstack.conf: shim=PATH, another libsbeet.so; prolog=PATH and epilog=PATH, other
 * scripts: the first one makes up for a prolog that Slurm has left out, the second one accounts for
 * what tasks did at their end; preload=asked, only into tasks of jobs with one of the options.
 */
#include <errno.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#pragma GCC visibility push(default)
#include <slurm/spank.h>

SPANK_PLUGIN(sbeet, 1)
#pragma GCC visibility pop

#include "client/preload.h"
#include "proto/task-text.h"
#include "proto/taskvars.h"

#define EXPORT __attribute__((visibility("default")))

/* Most that LD_PRELOAD may be. */
#define PRELOAD_MAX 4096

/* Which of a task's fields, and what the option of it is called. */
static const struct {
	enum task_field field;
	const char *option, *value, *help;
} options[] = {
	{TASK_FIELD_TASK, "sbeet-task", "NAME", "the task that the job's programs belong to"},
	{TASK_FIELD_PERIOD, "sbeet-period", "TIME", "time between two of its GPU jobs, as 33ms"},
	{TASK_FIELD_DEADLINE, "sbeet-deadline", "TIME",
	 "by when each GPU job must be done, as 20ms"},
	{TASK_FIELD_PRIORITY, "sbeet-priority", "N", "higher is more urgent"},
	{TASK_FIELD_MAX_SMS, "sbeet-sms", "N",
	 "the most SMs that each of its programs wants (of those in --gres=sbeet_sms:N)"},
};

#define N_OPTIONS (sizeof(options) / sizeof(options[0]))

static char *given[N_OPTIONS]; /* owned; NULL: not given */

/* As the options were typed; the rest of @ret is empty. */
static void list_sources(struct taskvar_source ret[static _TASK_FIELD_N],
			 char names[static N_OPTIONS][32]) {
	memset(ret, 0, _TASK_FIELD_N * sizeof(*ret));
	for (size_t i = 0; i < N_OPTIONS; i++) {
		snprintf(names[i], 32, "--%s", options[i].option);
		ret[options[i].field] = (struct taskvar_source){.name = names[i], .text = given[i]};
	}
}

static int take_option(int i, const char *text, int remote) {
	struct task_spec spec = TASK_SPEC_NULL;
	char why[512], name[32];
	int r = task_text_read(options[i].field, text, TASK_WRITER_PROGRAM, &spec);

	(void)remote;
	if (r < 0) {
		snprintf(name, sizeof(name), "--%s", options[i].option);
		task_text_complain(options[i].field, TASK_WRITER_PROGRAM, r, name, text, why,
				   sizeof(why));
		slurm_error("sbeet: %s", why);
		return -1;
	}
	free(given[i]);
	given[i] = strdup(text);
	return given[i] ? 0 : -1;
}

EXPORT int slurm_spank_init(spank_t spank, int argc, char **argv) {
	(void)argc;
	(void)argv;
	for (size_t i = 0; i < N_OPTIONS; i++) {
		struct spank_option option = {
			.name = (char *)options[i].option,
			.arginfo = (char *)options[i].value,
			.usage = (char *)options[i].help,
			.has_arg = 1,
			.val = (int)i,
			.cb = take_option,
		};

		if (spank_option_register(spank, &option) != ESPANK_SUCCESS) {
			slurm_error("sbeet: cannot register the option --%s", options[i].option);
			return -1;
		}
	}
	return 0;
}

struct arguments {
	const char *shim; /* NULL: the installed one */
	const char *prolog, *epilog;
	bool only_asked;
};

static int read_arguments(int argc, char **argv, struct arguments *ret) {
	*ret = (struct arguments){.prolog = SBEET_PROLOG, .epilog = SBEET_EPILOG};
	for (int i = 0; i < argc; i++) {
		if (strncmp(argv[i], "shim=", 5) == 0) {
			ret->shim = argv[i] + 5;
		} else if (strncmp(argv[i], "prolog=", 7) == 0) {
			ret->prolog = argv[i] + 7;
		} else if (strncmp(argv[i], "epilog=", 7) == 0) {
			ret->epilog = argv[i] + 7;
		} else if (strcmp(argv[i], "preload=asked") == 0) {
			ret->only_asked = true;
		} else {
			slurm_error(
				"sbeet: argument '%s' in plugstack.conf: expected shim=PATH, "
				"prolog=PATH, epilog=PATH or preload=asked",
				argv[i]);
			return -EINVAL;
		}
	}
	return 0;
}

/* Runs one of sbeet's scripts for Slurm, as root on the node. Return: what waitpid() says of it;
 * -1: it can't be run. */
static int run_script(spank_t spank, const char *script, const char *word) {
	char job[32], user[32], node[300], conf[4096], path[] = "PATH=/usr/bin:/bin";
	char *environment[] = {job, user, node, conf, path, NULL};
	char *command[] = {(char *)script, (char *)word, NULL};
	const char *configuration = getenv("SLURM_CONF"), *name = getenv("SLURMD_NODENAME");
	uint32_t id;
	uid_t uid;
	int status;
	pid_t pid;

	if (spank_get_item(spank, S_JOB_ID, &id) != ESPANK_SUCCESS ||
	    spank_get_item(spank, S_JOB_UID, &uid) != ESPANK_SUCCESS) {
		return -1;
	}
	snprintf(job, sizeof(job), "SLURM_JOB_ID=%u", id);
	snprintf(user, sizeof(user), "SLURM_JOB_UID=%u", uid);
	snprintf(node, sizeof(node), "SLURMD_NODENAME=%s", name ? name : "");
	snprintf(conf, sizeof(conf), "%s%s",
		 configuration ? "SLURM_CONF=" : "_=", configuration ? configuration : "");
	if (posix_spawn(&pid, script, NULL, NULL, command, environment) != 0) {
		return -1;
	}
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR) {
			return -1;
		}
	}
	return status;
}

/* All options are known: whether they go together. On the node, whether the prolog has run for this
 * job: Slurm leaves it out where a job is requeued and starts within a second. */
EXPORT int slurm_spank_init_post_opt(spank_t spank, int argc, char **argv) {
	struct taskvar_source from[_TASK_FIELD_N];
	char names[N_OPTIONS][32], why[512];
	enum task_field wrong;
	struct task_spec spec;
	struct arguments arguments;

	list_sources(from, names);
	if (taskvars_read(&spec, from, &wrong, why, sizeof(why)) < 0) {
		slurm_error("sbeet: %s", why);
		return -1;
	}
	if (spank_context() != S_CTX_REMOTE) {
		return 0;
	}
	if (read_arguments(argc, argv, &arguments) < 0) {
		return -1;
	}
	if (run_script(spank, arguments.prolog, "step") != 0) {
		slurm_error("sbeet: the job can't be held to its SMs: see the system's log");
		return -1;
	}
	return 0;
}

/* Adds libsbeet.so to what the task preloads. */
static int preload(spank_t spank, const struct arguments *arguments) {
	char old[PRELOAD_MAX] = "", error[512], *shim = NULL, *joined = NULL;
	int r = preload_find(arguments->shim, &shim, error, sizeof(error));

	if (r < 0) {
		slurm_error("sbeet: %s", r == -ENOMEM ? strerror(ENOMEM) : error);
		return r;
	}
	if (spank_getenv(spank, "LD_PRELOAD", old, sizeof(old)) == ESPANK_NOSPACE) {
		slurm_error("sbeet: LD_PRELOAD is longer than %d characters", PRELOAD_MAX - 1);
		r = -ENOSPC;
	}
	r = r == 0 ? preload_join(old, NULL, shim, &joined) : r;
	if (r == 0 && spank_setenv(spank, "LD_PRELOAD", joined, 1) != ESPANK_SUCCESS) {
		slurm_error("sbeet: cannot set LD_PRELOAD");
		r = -EINVAL;
	}
	free(joined);
	free(shim);
	return r == -EEXIST ? 0 : r; /* its user has chosen another one */
}

/* In the task, as its user, before it becomes the program. */
EXPORT int slurm_spank_task_init(spank_t spank, int argc, char **argv) {
	struct arguments arguments;
	bool any = false;

	if (read_arguments(argc, argv, &arguments) < 0) {
		return -1;
	}
	for (size_t i = 0; i < N_OPTIONS; i++) {
		if (given[i] && spank_setenv(spank, task_fields[options[i].field].variable,
					     given[i], 1) != ESPANK_SUCCESS) {
			slurm_error("sbeet: cannot set %s", task_fields[options[i].field].variable);
			return -1;
		}
		any |= given[i] != NULL;
	}
	return !any && arguments.only_asked ? 0 : preload(spank, &arguments) < 0 ? -1 : 0;
}

/* As root, before Slurm is told of the task's end: from then on the job can be over, and takes no
 * comment any more. What can't be accounted for here is the epilog's to log. */
EXPORT int slurm_spank_task_exit(spank_t spank, int argc, char **argv) {
	struct arguments arguments;

	if (read_arguments(argc, argv, &arguments) == 0) {
		run_script(spank, arguments.epilog, "account");
	}
	return 0;
}

EXPORT int slurm_spank_exit(spank_t spank, int argc, char **argv) {
	(void)spank;
	(void)argc;
	(void)argv;
	for (size_t i = 0; i < N_OPTIONS; i++) {
		free(given[i]);
		given[i] = NULL;
	}
	return 0;
}
