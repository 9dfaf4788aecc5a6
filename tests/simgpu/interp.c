/*
 * interp.c: the interface: modules' variables and kernels, and blocks that run for a while.
 *
 * Nothing global: blocks of one module may run in different host threads at once.
 */
#include "tests/simgpu/interp-internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* A warp's turn, in instructions, before the next of its block: blocks whose warps wait for each
 * other through shared memory must go on, and changing is cheap. */
#define BLOCK_TURN 512u

int interp_module_new(struct interp_module **ret, const char *text, size_t size, char *error,
		      size_t error_size) {
	struct interp_module *m;
	int r;

	m = calloc(1, sizeof(*m));
	if (!m) {
		return -ENOMEM;
	}
	m->text = malloc(size + 1);
	if (!m->text) {
		interp_module_free(m);
		return -ENOMEM;
	}
	memcpy(m->text, text, size);
	m->text[size] = '\0';
	r = ptx_module_new(&m->ptx, m->text, strnlen(m->text, size), error, error_size);
	if (r == 0) {
		r = decode_module(m, error, error_size);
	}
	if (r < 0) {
		interp_module_free(m);
		return r;
	}
	*ret = m;
	return 0;
}

struct interp_module *interp_module_free(struct interp_module *m) {
	if (!m) {
		return NULL;
	}
	for (size_t i = 0; i < m->n_funcs; i++) {
		free(m->funcs[i].name);
		free(m->funcs[i].formals);
		free(m->funcs[i].param_offsets);
		free(m->funcs[i].param_sizes);
		free(m->funcs[i].unsupported);
	}
	for (size_t i = 0; i < m->n_vars; i++) {
		free(m->vars[i].name);
	}
	free(m->funcs);
	free(m->entries);
	free(m->vars);
	free(m->insns);
	free(m->constants);
	free(m->fixups);
	free(m->calls);
	free(m->call_args);
	free(m->targets);
	ptx_module_free(m->ptx);
	free(m->text);
	free(m);
	return NULL;
}

size_t interp_module_n_vars(const struct interp_module *m) {
	return m->n_vars;
}

const char *interp_module_var(const struct interp_module *m, size_t i, size_t *ret_size,
			      size_t *ret_align) {
	*ret_size = m->vars[i].size;
	*ret_align = m->vars[i].align;
	return m->vars[i].name;
}

void interp_module_set_var_addr(struct interp_module *m, size_t i, uint64_t addr) {
	m->vars[i].addr = addr;
	for (size_t f = 0; f < m->n_fixups; f++) {
		if (m->fixups[f].var == i) {
			for (unsigned l = 0; l < WARP_LANES; l++) {
				m->constants[m->fixups[f].constant].lane[l] =
					addr + (uint64_t)m->fixups[f].addend;
			}
		}
	}
}

size_t interp_module_n_kernels(const struct interp_module *m) {
	return m->n_entries;
}

const struct interp_kernel *interp_module_kernel(const struct interp_module *m, size_t i) {
	return &m->funcs[m->entries[i]];
}

const struct interp_kernel *interp_module_find(const struct interp_module *m, const char *name) {
	for (size_t i = 0; i < m->n_entries; i++) {
		if (strcmp(m->funcs[m->entries[i]].name, name) == 0) {
			return &m->funcs[m->entries[i]];
		}
	}
	return NULL;
}

static unsigned kernel_max_threads(const struct ptx_func *f) {
	const uint32_t *n = f->reqntid[0] ? f->reqntid : f->maxntid;
	uint64_t product = 1;

	if (!n[0]) {
		return 1024;
	}
	for (unsigned i = 0; i < 3; i++) {
		product *= n[i] ? n[i] : 1;
	}
	return product > 1024 ? 1024 : (unsigned)product;
}

void interp_kernel_get_info(const struct interp_kernel *k, struct interp_kernel_info *ret) {
	*ret = (struct interp_kernel_info){
		.name = k->name,
		.n_params = k->n_params,
		.param_offsets = k->param_offsets,
		.param_sizes = k->param_sizes,
		.params_size = k->params_size,
		.static_shared_bytes = k->static_shared,
		.local_bytes = k->local_bytes,
		.regs_per_thread = k->max_live,
		.max_threads = kernel_max_threads(k->ptx),
		.unsupported = k->unsupported,
		.independent = !k->dependent,
	};
}

static int block_check(const struct interp_launch *l) {
	uint64_t threads = 1;

	for (unsigned i = 0; i < 3; i++) {
		if (l->grid[i] == 0 || l->block[i] == 0 || l->block[i] > 1024) {
			return -EINVAL;
		}
		threads *= l->block[i];
	}
	if (threads > 1024 || l->params_size < l->kernel->params_size ||
	    l->dynamic_shared_bytes > INTERP_WINDOW_SIZE / 2) {
		return -EINVAL;
	}
	return l->kernel->unsupported ? -ENOTSUP : 0;
}

static int block_init(struct interp_block *b) {
	size_t n = b->launch.params_size;
	int r;

	if ((uintptr_t)b->launch.params & 15) {
		b->params = malloc(n);
		if (!b->params) {
			return -ENOMEM;
		}
		b->launch.params = memcpy(b->params, b->launch.params, n);
	}
	b->warps = calloc(b->n_warps, sizeof(*b->warps));
	b->barrier_arrived = calloc((size_t)b->n_warps * BLOCK_BARRIERS, sizeof(uint32_t));
	b->shared = calloc(1, b->shared_size + 16u);
	b->shared_written = calloc(1, b->shared_size + 16u);
	if (!b->warps || !b->barrier_arrived || !b->shared || !b->shared_written) {
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < b->n_warps; i++) {
		r = warp_init(&b->warps[i], b, i);
		if (r < 0) {
			return r;
		}
	}
	return 0;
}

int interp_block_new(struct interp_block **ret, const struct interp_launch *launch,
		     const uint32_t ctaid[3], struct interp_place place,
		     const struct interp_machine *machine) {
	const struct interp_kernel *k = launch->kernel;
	struct interp_block *b;
	int r;

	r = block_check(launch);
	if (r < 0) {
		return r;
	}
	b = calloc(1, sizeof(*b));
	if (!b) {
		return -ENOMEM;
	}
	b->kernel = k;
	b->module = k->module;
	b->launch = *launch;
	b->machine = *machine;
	b->place = place;
	memcpy(b->ctaid, ctaid, sizeof(b->ctaid));
	b->n_threads = launch->block[0] * launch->block[1] * launch->block[2];
	b->n_warps = (b->n_threads + WARP_LANES - 1) / WARP_LANES;
	b->dynamic_shared = (k->static_shared + 15u) & ~15u;
	b->shared_size = b->dynamic_shared + launch->dynamic_shared_bytes;
	r = block_init(b);
	if (r < 0) {
		interp_block_free(b);
		return r;
	}
	*ret = b;
	return 0;
}

struct interp_block *interp_block_free(struct interp_block *b) {
	if (!b) {
		return NULL;
	}
	for (uint32_t i = 0; b->warps && i < b->n_warps; i++) {
		warp_deinit(&b->warps[i]);
	}
	free(b->warps);
	free(b->barrier_arrived);
	free(b->shared);
	free(b->shared_written);
	free(b->params);
	free(b);
	return NULL;
}

/* Nobody can run: done, or the first thread that waits tells where the block hangs. */
static enum interp_result block_end(struct interp_block *b) {
	char text[160];

	for (uint32_t k = 0; k < b->n_warps; k++) {
		struct warp *w = &b->warps[k];

		if (w->alive) {
			unsigned i = (unsigned)__builtin_ctz(w->alive);

			(w->wait[i].barrier >= 0 ? barrier_tell_wait
						 : sync_tell_wait)(w, i, text, sizeof(text));
			warp_fault(w, warp_lane_insn(w, i), i, INTERP_FAULT_HANG, "%s", text);
			return INTERP_HANG;
		}
	}
	return INTERP_DONE;
}

enum interp_result interp_block_run(struct interp_block *b, uint64_t budget,
				    uint64_t *ret_instructions, uint64_t *ret_cycles) {
	uint64_t total = 0, cycles = b->cycles, done;
	enum interp_result result = INTERP_MORE;
	uint32_t idle = 0;

	if (b->fault != INTERP_FAULT_NONE) {
		*ret_instructions = 0;
		*ret_cycles = 0;
		return b->fault == INTERP_FAULT_HANG ? INTERP_HANG : INTERP_FAULT;
	}
	/* Memory may have been freed and given anew since the last call. */
	memset(b->tlb, 0, sizeof(b->tlb));
	while (total < budget) {
		uint64_t n = budget - total < BLOCK_TURN ? budget - total : BLOCK_TURN;

		if (!warp_run(&b->warps[b->turn], n, &done)) {
			total += done;
			result = INTERP_FAULT;
			break;
		}
		total += done;
		b->turn = b->turn + 1 < b->n_warps ? b->turn + 1 : 0;
		idle = done ? 0 : idle + 1;
		if (idle == b->n_warps) {
			result = block_end(b);
			break;
		}
	}
	b->instructions += total;
	*ret_instructions = total;
	*ret_cycles = b->cycles - cycles;
	return result;
}

enum interp_fault_kind interp_block_fault(const struct interp_block *b, const char **ret_text) {
	*ret_text = b->fault_text;
	return b->fault;
}
