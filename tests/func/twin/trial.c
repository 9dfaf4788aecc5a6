/*
 * trial.c: see trial.h.
 */
#include "tests/func/twin/trial.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/smset.h"
#include "shim/enforce/plan.h"
#include "shim/ptx/twin.h"
#include "tests/func/twin/machine.h"

#define SMS_MAX	       24
#define OCCUPANCY_MAX  4
#define RELAUNCHES_MAX 100000
#define PARAMS_BYTES   4096

/* One kernel, both ways, on one machine. */
struct trial {
	const struct sample *sample;
	const struct twin_kernel *info;
	struct machine *machine;
	struct interp_module *module[2]; /* original, twin */
	uint64_t buffers[2][SAMPLE_BUFFERS_MAX];
	uint8_t *vars[3]; /* owned: the module's variables after each way, and before */
	size_t vars_size;
	uint64_t printed[2]; /* a sum over the text that each way printed */
	uint64_t seed;
	unsigned n_sms, first_sm, occupancy;
	uint64_t ctl, set;
	bool unkind; /* stops, and changes the set, in the middle */
	char error[1024];
};

__attribute__((format(printf, 2, 3))) static const char *wrong(struct trial *t, const char *format,
							       ...) {
	char text[sizeof(t->error)]; /* an argument may be t->error */
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	memcpy(t->error, text, sizeof(text));
	return t->error;
}

/* The launch's parameters as kernels read them. Return: bytes. */
static size_t pack(const struct trial *t, unsigned way, const struct twin_arg *arg,
		   uint8_t *buffer) {
	for (unsigned i = 0; i < t->sample->n_params; i++) {
		const struct sample_param *p = &t->sample->params[i];
		const void *from =
			p->buffer < 0 ? (const void *)p->bytes : &t->buffers[way][p->buffer];

		memcpy(buffer + t->info->param_offsets[i], from, p->size);
	}
	if (!arg) {
		return t->info->params_size;
	}
	memcpy(buffer + t->info->arg_offset, arg, sizeof(*arg));
	return t->info->arg_offset + sizeof(*arg);
}

static const char *run_original(struct trial *t) {
	uint8_t params[PARAMS_BYTES] = {0};
	struct machine_grid g = {
		.kernel = interp_module_find(t->module[0], t->sample->kernel),
		.shared_bytes = t->sample->shared_bytes,
		.params = params,
		.occupancy = t->occupancy,
	};

	if (!g.kernel) {
		return wrong(t, "the original is not in its module");
	}
	memcpy(g.grid, t->sample->grid, sizeof(g.grid));
	memcpy(g.block, t->sample->block, sizeof(g.block));
	g.params_size = pack(t, 0, NULL, params);
	return machine_run(t->machine, &g, NULL, NULL);
}

static void random_set(struct trial *t, struct twin_set *set) {
	bool all = sample_below(&t->seed, 4) == 0, any = false;

	memset(set->sms, 0, sizeof(set->sms));
	do {
		for (unsigned sm = t->first_sm; sm < t->first_sm + t->n_sms; sm++) {
			if (all || sample_below(&t->seed, 2)) {
				set->sms[sm / 64] |= 1ull << sm % 64;
				any = true;
			}
		}
	} while (!any);
}

/* The host's hand in a running kernel. */
static void meddle(void *userdata) {
	struct trial *t = userdata;
	struct twin_set *set = machine_at(t->machine, t->set);

	switch (sample_below(&t->seed, 6)) {
	case 0:
		set->stop = 1;
		break;
	case 1:
		random_set(t, set);
		break;
	default:
		break;
	}
}

/* Wherever a worker is, it may work. */
static bool set_is_whole(const struct trial *t, const struct twin_set *set) {
	struct smset sms;

	memcpy(sms.words, set->sms, sizeof(sms.words));
	return smset_count(&sms) == t->n_sms;
}

static const char *control_is_clean(struct trial *t, const struct twin_ctl *ctl) {
	return ctl->next ? wrong(t, "the control block was not put back: next %#llx",
				 (unsigned long long)ctl->next)
			 : NULL;
}

static const char *run_twin(struct trial *t) {
	struct twin_ctl *ctl = machine_at(t->machine, t->ctl);
	struct twin_set *set = machine_at(t->machine, t->set);
	uint64_t launches = ctl->launches, outside = ctl->outside;
	uint8_t params[PARAMS_BYTES] = {0};
	char name[256];
	struct machine_grid g = {
		.shared_bytes = t->sample->shared_bytes,
		.params = params,
		.occupancy = t->occupancy,
	};
	struct smset sms;
	struct plan plan;
	const char *error;

	snprintf(name, sizeof(name), TWIN_PREFIX "%s", t->sample->kernel);
	g.kernel = interp_module_find(t->module[1], name);
	if (!g.kernel) {
		return wrong(t, "the twin is not in its module");
	}
	random_set(t, set);
	memcpy(sms.words, set->sms, sizeof(sms.words));
	if (plan_make(&plan, t->sample->grid, smset_count(&sms), t->n_sms, t->occupancy,
		      plan_workers_max(t->n_sms, OCCUPANCY_MAX)) < 0) {
		return wrong(t, "there is no plan for it");
	}
	if (sample_below(&t->seed, 2)) {
		/* Any number of workers has to do, also where none of a few is in the set. */
		uint32_t most = sample_below(&t->seed, 2) ? plan.n_workers : 2;

		plan.n_workers = 1 + (uint32_t)sample_below(&t->seed, most);
	}
	const struct twin_arg arg = {
		.ctl = t->ctl,
		.set = t->set,
		.n_blocks = plan.n_blocks,
		.grid_x = t->sample->grid[0],
		.grid_y = t->sample->grid[1],
		.grid_z = t->sample->grid[2],
		.n_workers = plan.n_workers,
	};
	g.params_size = pack(t, 1, &arg, params);
	memcpy(g.block, t->sample->block, sizeof(g.block));
	g.grid[0] = plan.n_workers;
	g.grid[1] = g.grid[2] = 1;
	for (unsigned i = 0; ctl->launches == launches; i++) {
		if (i == RELAUNCHES_MAX || (i && !t->unkind)) {
			return wrong(t, "the grid does not get done: block %llu of %llu",
				     (unsigned long long)ctl->next,
				     (unsigned long long)plan.n_blocks);
		}
		set->stop = 0;
		error = machine_run(t->machine, &g, t->unkind ? meddle : NULL, t);
		if (error) {
			return wrong(t, "%s", error);
		}
	}
	if (!t->unkind && set_is_whole(t, set) && ctl->outside != outside) {
		return wrong(t, "blocks ran outside a set of all SMs");
	}
	return control_is_clean(t, ctl);
}

static const char *compare(struct trial *t) {
	const struct sample *s = t->sample;

	for (unsigned i = 0; i < s->n_buffers; i++) {
		const uint8_t *a = machine_at(t->machine, t->buffers[0][i]);
		const uint8_t *b = machine_at(t->machine, t->buffers[1][i]);

		for (size_t k = 0; !s->buffers[i].varies && k < s->buffers[i].size; k++) {
			if (a[k] != b[k]) {
				return wrong(t, "buffer %u differs at byte %zu of %zu", i, k,
					     s->buffers[i].size);
			}
		}
	}
	if (t->vars_size && memcmp(t->vars[0], t->vars[1], t->vars_size)) {
		return wrong(t, "a variable of the module differs");
	}
	if (t->printed[0] != t->printed[1]) {
		return wrong(t, "what it prints differs");
	}
	return NULL;
}

/* For kernels that count their blocks themselves. */
static const char *count_blocks(struct trial *t) {
	const struct sample *s = t->sample;
	const struct twin_ctl *ctl = machine_at(t->machine, t->ctl);
	const struct twin_set *set = machine_at(t->machine, t->set);
	uint64_t n_blocks = (uint64_t)s->grid[0] * s->grid[1] * s->grid[2], sum = 0, outside = 0;
	const uint32_t *n;

	if (s->marks >= 0) {
		n = machine_at(t->machine, t->buffers[1][s->marks]);
		for (uint64_t i = 0; i < n_blocks; i++) {
			if (n[i] != 1) {
				return wrong(t, "block %llu ran %u times", (unsigned long long)i,
					     n[i]);
			}
		}
	}
	if (s->sm_hits < 0) {
		return NULL;
	}
	n = machine_at(t->machine, t->buffers[1][s->sm_hits]);
	for (unsigned sm = 0; sm < PROTO_SMS_MAX; sm++) {
		sum += n[sm];
		outside += set->sms[sm / 64] >> sm % 64 & 1 ? 0 : n[sm];
	}
	if (!t->unkind && outside != ctl->outside) {
		return wrong(t, "%llu blocks ran outside the set, and %llu were reported",
			     (unsigned long long)outside, (unsigned long long)ctl->outside);
	}
	return sum == n_blocks ? NULL
			       : wrong(t, "%llu blocks ran, not %llu", (unsigned long long)sum,
				       (unsigned long long)n_blocks);
}

/* Before the first launch: what the program itself would have written, and a copy of everything. */
static void variables_begin(struct trial *t) {
	const struct sample_var *v = &t->sample->var;

	if (v->name) {
		memcpy(machine_at(t->machine, machine_variable(t->machine, t->module[0], v->name)),
		       v->init, v->size);
	}
	t->vars_size = machine_save(t->machine, t->module[0], &t->vars[2]);
}

static const char *load(struct trial *t, const char *ptx, const struct transform *tr) {
	char error[256] = "";
	uint64_t list;
	int r;

	r = interp_module_new(&t->module[0], ptx, strlen(ptx), error, sizeof(error));
	if (r < 0) {
		return wrong(t, "the original is not understood: %s", error);
	}
	r = interp_module_new(&t->module[1], tr->ptx, tr->ptx_size, error, sizeof(error));
	if (r < 0) {
		return wrong(t, "the twins are not understood: %s", error);
	}
	if (machine_load(t->machine, t->module[0]) || machine_load(t->machine, t->module[1])) {
		return wrong(t, "variables can't be initialised");
	}
	for (size_t i = 0; i < tr->n_vars; i++) {
		uint64_t address = machine_variable(t->machine, t->module[0], tr->vars[i]);

		list = machine_variable(t->machine, t->module[1], TWIN_VARS_NAME);
		if (!address || !list) {
			return wrong(t, "variable %s is not found", tr->vars[i]);
		}
		memcpy(machine_at(t->machine, list + 8 * i), &address, 8);
	}
	return NULL;
}

static const char *trial(struct trial *t, const char *ptx, const struct transform *tr) {
	const struct sample *s = t->sample;
	const char *error = load(t, ptx, tr);

	if (error) {
		return error;
	}
	if (t->info->n_params != s->n_params) {
		return wrong(t, "%zu parameters were found, not %u", t->info->n_params,
			     s->n_params);
	}
	for (unsigned way = 0; way < 2; way++) {
		for (unsigned i = 0; i < s->n_buffers; i++) {
			t->buffers[way][i] = machine_alloc(t->machine, s->buffers[i].size);
			memcpy(machine_at(t->machine, t->buffers[way][i]), s->buffers[i].init,
			       s->buffers[i].size);
		}
	}
	t->set = machine_alloc(t->machine, sizeof(struct twin_set));
	t->ctl =
		machine_alloc(t->machine, twin_ctl_size(plan_workers_max(t->n_sms, OCCUPANCY_MAX)));
	variables_begin(t);
	error = run_original(t);
	if (error && t->sample->undefined && strstr(error, "undefined by the PTX ISA")) {
		return NULL;
	}
	if (error) {
		return wrong(t, "the original: %s", error);
	}
	machine_save(t->machine, t->module[0], &t->vars[0]);
	machine_restore(t->machine, t->module[0], t->vars[2]);
	t->printed[0] = machine_printed(t->machine);
	error = run_twin(t);
	if (error) {
		return error;
	}
	machine_save(t->machine, t->module[0], &t->vars[1]);
	t->printed[1] = machine_printed(t->machine) - t->printed[0];
	error = compare(t);
	return error ? error : count_blocks(t);
}

const struct twin_kernel *trial_find(const struct transform *tr, const char *name) {
	for (size_t i = 0; i < tr->n_kernels; i++) {
		if (!strcmp(tr->kernels[i].name, name)) {
			return &tr->kernels[i];
		}
	}
	return NULL;
}

bool trial_run(const struct sample *s, const char *ptx, const struct transform *tr, uint64_t seed,
	       uint64_t first) {
	struct trial t = {.sample = s, .seed = seed, .info = trial_find(tr, s->kernel)};
	const char *error;

	t.n_sms = 1 + (unsigned)sample_below(&t.seed, SMS_MAX);
	t.occupancy = 1 + (unsigned)sample_below(&t.seed, OCCUPANCY_MAX);
	t.unkind = sample_below(&t.seed, 2);
	t.first_sm = (unsigned)sample_below(&t.seed, PROTO_SMS_MAX - t.n_sms + 1);
	t.machine = machine_new(t.n_sms, t.first_sm, sample_random(&t.seed));
	error = trial(&t, ptx, tr);
	if (error) {
		printf("%s of %s, seed %#llx, %u x %u x %u blocks of %u x %u x %u, %u SMs of %u "
		       "from %u on%s: %s\n",
		       s->kernel, s->file, (unsigned long long)first, s->grid[0], s->grid[1],
		       s->grid[2], s->block[0], s->block[1], s->block[2], t.n_sms, t.occupancy,
		       t.first_sm, t.unkind ? ", meddled with" : "", error);
	}
	for (unsigned i = 0; i < 3; i++) {
		free(t.vars[i]);
	}
	interp_module_free(t.module[1]);
	interp_module_free(t.module[0]);
	machine_free(t.machine);
	return !error;
}
