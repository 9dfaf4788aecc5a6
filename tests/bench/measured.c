/*
 * measured.c: see measured.h.
 */
#include "tests/bench/measured.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Of the evaluation: as sbeetd sees them, launches of a job and waves of blocks in each. */
static const struct {
	const char *name;
	unsigned launches, waves;
} works[] = {
	{"vecadd", 20, 15},  {"stream", 400, 4},  {"matmul", 3, 4},  {"matmul-small", 6, 1},
	{"hotspot", 101, 4}, {"histogram", 4, 1}, {"compute", 8, 2}, {"compute-long", 24, 2},
};
_Static_assert(sizeof(works) / sizeof(works[0]) == MEASURED_WORKS, "as the header says");

static struct profile_table profiles[MEASURED_WORKS];

const struct plan_gpu measured_gpu = {
	.sms = MEASURED_SMS, .group = 8, .gates = true, .guards = true};

static void die(const char *what) {
	perror(what);
	exit(1);
}

size_t measured_work(const char *name) {
	size_t i = 0;

	while (i < MEASURED_WORKS && strcmp(works[i].name, name) != 0) {
		i++;
	}
	return i;
}

FILE *measured_open(const char *folder, const char *name) {
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "re");
	if (!f) {
		die(path);
	}
	return f;
}

void measured_read(const char *folder) {
	FILE *f = measured_open(folder, "steer-measured.txt");
	uint64_t copy_in, best, worst, copy_out;
	char name[64];
	unsigned sms;

	while (fscanf(f, "%63s %u %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %*f", name, &sms,
		      &copy_in, &best, &worst, &copy_out) == 6) {
		size_t w = measured_work(name);
		struct profile_table *p = &profiles[w];

		if (w == MEASURED_WORKS) {
			continue; /* of the other family */
		}
		if (p->n_sms == 0 && profile_table_init(p, MEASURED_SMS, copy_in, copy_out) < 0) {
			die("profile");
		}
		p->copy_in = copy_in; /* on all SMs at last */
		p->copy_out = copy_out;
		if (profile_table_set(p, sms, best, best, 0) < 0) {
			die("profile");
		}
	}
	fclose(f);
	for (size_t i = 0; i < MEASURED_WORKS; i++) {
		if (profiles[i].n_sms == 0 || profile_table_finish(&profiles[i]) < 0) {
			die(works[i].name);
		}
	}
}

struct plan_task measured_task(size_t work, nsec_t period, nsec_t deadline) {
	const struct profile_table *p = &profiles[work];

	return (struct plan_task){
		.known = true,
		.model =
			{
				.period = period,
				.deadline = deadline,
				.copy_in = p->copy_in,
				.copy_out = p->copy_out,
				.launches = works[work].launches,
				.kernels = p->exec,
				.block = p->exec[MEASURED_SMS] / works[work].launches /
					 works[work].waves,
				.gap = 2500,
			},
	};
}

const struct profile_table *measured_profile(size_t work) {
	return &profiles[work];
}
