/*
 * machine.c: see machine.h.
 */
#include "tests/func/twin/machine.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/func/twin/sample.h"

#define MACHINE_BASE 0x7F0000000000ull
#define MACHINE_GAP  4096 /* between allocations, so that a stray access hits none */
#define ALLOCS_MAX   160
#define VARS_MAX     64

/* Warp instructions of one grid: far above what the samples need. */
#define INSTRUCTIONS_MAX 200000000ull

struct alloc {
	uint64_t address;
	size_t size;
	uint8_t *bytes; /* owned */
};

struct variable {
	const struct interp_module *module;
	const char *name;
	uint64_t address;
	size_t size;
};

struct machine {
	unsigned n_sms, first_sm;
	uint64_t seed;
	uint64_t now_ns;
	struct alloc allocs[ALLOCS_MAX];
	unsigned n_allocs;
	uint64_t next;
	struct variable vars[VARS_MAX];
	unsigned n_vars;
	struct interp_machine interp;
	uint64_t printed;
	char error[512];
};

/* A block that is on an SM. */
struct resident {
	struct interp_block *block;
	unsigned sm;
};

static uint8_t *resolve(void *userdata, uint64_t addr, size_t size, bool write, uint64_t *ret_start,
			uint64_t *ret_end) {
	struct machine *m = userdata;

	for (unsigned i = 0; i < m->n_allocs; i++) {
		struct alloc *a = &m->allocs[i];

		if (addr >= a->address && addr - a->address < a->size &&
		    size <= a->size - (addr - a->address)) {
			*ret_start = a->address;
			*ret_end = a->address + a->size;
			return a->bytes + (addr - a->address);
		}
	}
	return NULL;
}

static uint64_t clock_ns(void *userdata) {
	struct machine *m = userdata;

	return m->now_ns += 32;
}

/* Texts come in any order, so their hashes (FNV-1a) are added. */
static void add_text(void *userdata, const char *text, size_t n) {
	struct machine *m = userdata;
	uint64_t h = 0xCBF29CE484222325ull;

	for (size_t i = 0; i < n; i++) {
		h = (h ^ (uint8_t)text[i]) * 0x100000001B3ull;
	}
	m->printed += h;
}

uint64_t machine_printed(const struct machine *m) {
	return m->printed;
}

struct machine *machine_new(unsigned n_sms, unsigned first_sm, uint64_t seed) {
	struct machine *m = calloc(1, sizeof(*m));

	if (!m) {
		err(1, "calloc");
	}
	m->n_sms = n_sms;
	m->first_sm = first_sm;
	m->seed = seed;
	m->next = MACHINE_BASE;
	m->interp = (struct interp_machine){
		.memory = {.userdata = m, .resolve = resolve},
		.userdata = m,
		.globaltimer_ns = clock_ns,
		.print = add_text,
	};
	return m;
}

struct machine *machine_free(struct machine *m) {
	if (!m) {
		return NULL;
	}
	for (unsigned i = 0; i < m->n_allocs; i++) {
		free(m->allocs[i].bytes);
	}
	free(m);
	return NULL;
}

uint64_t machine_alloc(struct machine *m, size_t size) {
	struct alloc *a;

	if (m->n_allocs == ALLOCS_MAX) {
		errx(1, "more than %d allocations", ALLOCS_MAX);
	}
	a = &m->allocs[m->n_allocs++];
	a->size = size ? size : 1;
	a->bytes = calloc(1, a->size);
	if (!a->bytes) {
		err(1, "calloc");
	}
	a->address = m->next;
	m->next += (a->size + 2 * MACHINE_GAP) / MACHINE_GAP * MACHINE_GAP;
	return a->address;
}

void *machine_at(struct machine *m, uint64_t address) {
	uint64_t start, end;
	void *p = resolve(m, address, 1, true, &start, &end);

	if (!p) {
		errx(1, "no memory at %#llx", (unsigned long long)address);
	}
	return p;
}

int machine_load(struct machine *m, struct interp_module *module) {
	for (size_t i = 0; i < interp_module_n_vars(module); i++) {
		size_t size, align;
		const char *name = interp_module_var(module, i, &size, &align);

		if (m->n_vars == VARS_MAX) {
			errx(1, "more than %d variables", VARS_MAX);
		}
		m->vars[m->n_vars] = (struct variable){module, name, machine_alloc(m, size), size};
		interp_module_set_var_addr(module, i, m->vars[m->n_vars].address);
		m->n_vars++;
	}
	return interp_module_init_vars(module, &m->interp.memory);
}

uint64_t machine_variable(struct machine *m, const struct interp_module *module, const char *name) {
	for (unsigned i = 0; i < m->n_vars; i++) {
		if (m->vars[i].module == module && !strcmp(m->vars[i].name, name)) {
			return m->vars[i].address;
		}
	}
	return 0;
}

size_t machine_save(struct machine *m, const struct interp_module *module, uint8_t **to) {
	size_t n = 0;

	for (unsigned pass = 0; pass < 2; pass++) {
		n = 0;
		for (unsigned i = 0; i < m->n_vars; i++) {
			if (m->vars[i].module == module) {
				if (pass) {
					memcpy(*to + n, machine_at(m, m->vars[i].address),
					       m->vars[i].size);
				}
				n += m->vars[i].size;
			}
		}
		if (!*to && !(*to = malloc(n ? n : 1))) {
			err(1, "malloc");
		}
	}
	return n;
}

void machine_restore(struct machine *m, const struct interp_module *module, const uint8_t *from) {
	for (unsigned i = 0; i < m->n_vars; i++) {
		if (m->vars[i].module == module) {
			memcpy(machine_at(m, m->vars[i].address), from, m->vars[i].size);
			from += m->vars[i].size;
		}
	}
}

/* A grid on its way. */
struct run {
	struct machine *m;
	const struct machine_grid *g;
	struct interp_launch launch;
	uint64_t n_blocks, next;   /* the next one that goes to an SM */
	struct resident *resident; /* owned, of room */
	size_t n_resident, room;
	unsigned *load; /* owned; blocks on each SM */
	uint64_t instructions;
};

/* Places the next block on an SM with room, if there is one. In order, as the hardware does; on any
 * SM, as the hardware does not. */
static const char *place(struct run *r) {
	unsigned sm = (unsigned)sample_below(&r->m->seed, r->m->n_sms);
	const struct interp_place where = {.smid = r->m->first_sm + sm,
					   .nsmid = r->m->first_sm + r->m->n_sms};
	uint32_t ctaid[3];
	int rc;

	if (r->next == r->n_blocks || r->load[sm] == r->g->occupancy) {
		return NULL;
	}
	ctaid[0] = (uint32_t)(r->next % r->g->grid[0]);
	ctaid[1] = (uint32_t)(r->next / r->g->grid[0] % r->g->grid[1]);
	ctaid[2] = (uint32_t)(r->next / r->g->grid[0] / r->g->grid[1]);
	rc = interp_block_new(&r->resident[r->n_resident].block, &r->launch, ctaid, where,
			      &r->m->interp);
	if (rc < 0) {
		snprintf(r->m->error, sizeof(r->m->error), "no block: %s", strerror(-rc));
		return r->m->error;
	}
	r->resident[r->n_resident++].sm = sm;
	r->load[sm]++;
	r->next++;
	return NULL;
}

/* Runs any resident block for a while. */
static const char *step(struct run *r) {
	size_t i = (size_t)sample_below(&r->m->seed, r->n_resident);
	struct resident *b = &r->resident[i];
	uint64_t instructions = 0, cycles;
	const char *text = NULL;

	switch (interp_block_run(b->block, 1 + sample_below(&r->m->seed, 300), &instructions,
				 &cycles)) {
	case INTERP_MORE:
		break;
	case INTERP_DONE:
		interp_block_free(b->block);
		r->load[b->sm]--;
		*b = r->resident[--r->n_resident];
		break;
	case INTERP_FAULT:
		interp_block_fault(b->block, &text);
		snprintf(r->m->error, sizeof(r->m->error), "fault: %s", text);
		return r->m->error;
	case INTERP_HANG:
		interp_block_fault(b->block, &text);
		snprintf(r->m->error, sizeof(r->m->error), "hangs at a barrier: %s",
			 text ? text : "");
		return r->m->error;
	}
	r->instructions += instructions;
	if (r->instructions > INSTRUCTIONS_MAX) {
		return "it does not end";
	}
	return NULL;
}

static const char *run(struct run *r, machine_event event, void *userdata) {
	const char *wrong = NULL;

	while (!wrong && (r->next < r->n_blocks || r->n_resident)) {
		if (!r->n_resident || !sample_below(&r->m->seed, 2)) {
			wrong = place(r);
		}
		if (!wrong && r->n_resident) {
			wrong = step(r);
		}
		if (event && !sample_below(&r->m->seed, 64)) {
			event(userdata);
		}
	}
	return wrong;
}

const char *machine_run(struct machine *m, const struct machine_grid *g, machine_event event,
			void *userdata) {
	struct run r = {
		.m = m,
		.g = g,
		.launch =
			{
				.kernel = g->kernel,
				.dynamic_shared_bytes = g->shared_bytes,
				.params = g->params,
				.params_size = g->params_size,
				.grid_id = 1,
			},
		.n_blocks = (uint64_t)g->grid[0] * g->grid[1] * g->grid[2],
		.room = (size_t)m->n_sms * g->occupancy,
	};
	const char *wrong;

	memcpy(r.launch.grid, g->grid, sizeof(g->grid));
	memcpy(r.launch.block, g->block, sizeof(g->block));
	r.resident = calloc(r.room, sizeof(*r.resident));
	r.load = calloc(m->n_sms, sizeof(*r.load));
	if (!r.resident || !r.load) {
		err(1, "calloc");
	}
	wrong = run(&r, event, userdata);
	while (r.n_resident) {
		interp_block_free(r.resident[--r.n_resident].block);
	}
	free(r.resident);
	free(r.load);
	return wrong;
}
