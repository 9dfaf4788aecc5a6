/*
 * energy.c: energies out of sbeetctl, for scripts.
 *
 * usage: energy SBEETCTL meter
 *	Time in ns and the energy of all GPUs in mJ since the daemon began, both of a reading of
 *NVML that was taken after this program was started. usage: energy SBEETCTL predicted N What the
 *scheduler expected of all jobs of the sessions 1 to N, in mJ above static power: the sum over its
 *decisions to start.
 *
 * Exit 0; 1 if there is no answer; 2 usage.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The object that @arguments of sbeetctl print; NULL: none. */
static json_t *ask(const char *ctl, const char *arguments) {
	char command[4096];
	json_t *object;
	FILE *pipe;

	snprintf(command, sizeof(command), "'%s' %s --json=short", ctl, arguments);
	pipe = popen(command, "r");
	if (!pipe) {
		return NULL;
	}
	object = json_loadf(pipe, 0, NULL);
	if (pclose(pipe) != 0) {
		json_decref(object);
		return NULL;
	}
	return object;
}

static int64_t number(const json_t *object, const char *key) {
	return json_integer_value(json_object_get(object, key));
}

/* The oldest reading's time, and the sum of all. */
static int64_t read_gpus(const json_t *status, int64_t *ret_mj) {
	int64_t now = number(json_object_get(status, "service"), "now_ns"), oldest = now;
	const json_t *gpu;
	size_t i;

	*ret_mj = 0;
	json_array_foreach(json_object_get(status, "gpus"), i, gpu) {
		int64_t age = number(gpu, "power_age_ns");

		*ret_mj += number(gpu, "energy_mj");
		oldest = now - age < oldest && json_is_integer(json_object_get(gpu, "power_age_ns"))
				 ? now - age
				 : oldest;
	}
	return oldest;
}

static int meter(const char *ctl) {
	int64_t began = 0, time = 0, mj = 0;

	while (time <= began || began == 0) {
		json_t *status = ask(ctl, "status");

		if (!status) {
			return 1;
		}
		time = read_gpus(status, &mj);
		began = began ? began : number(json_object_get(status, "service"), "now_ns");
		json_decref(status);
		usleep(20000);
	}
	printf("%lld %lld\n", (long long)time, (long long)mj);
	return 0;
}

static int predicted(const char *ctl, int n) {
	double joules = 0;

	for (int session = 1; session <= n; session++) {
		char arguments[64];
		json_t *answer;
		size_t i;
		const json_t *decision;

		snprintf(arguments, sizeof(arguments), "job explain %d", session);
		answer = ask(ctl, arguments);
		if (!answer || !json_is_true(json_object_get(answer, "complete"))) {
			json_decref(answer);
			return 1;
		}
		json_array_foreach(json_object_get(answer, "decisions"), i, decision) {
			joules += json_number_value(json_object_get(decision, "energy_j"));
		}
		json_decref(answer);
	}
	printf("%.0f\n", joules * 1000);
	return 0;
}

int main(int argc, char **argv) {
	if (argc == 3 && !strchr(argv[1], '\'') && strcmp(argv[2], "meter") == 0) {
		return meter(argv[1]);
	}
	if (argc == 4 && !strchr(argv[1], '\'') && strcmp(argv[2], "predicted") == 0) {
		return predicted(argv[1], atoi(argv[3]));
	}
	fprintf(stderr, "usage: energy SBEETCTL meter | predicted N\n");
	return 2;
}
