/*
 * plan.c: see plan.h. The numbers are from gpu-facts.md's measurements, section "Persistent
 * threads".
 */
#include "shim/enforce/plan.h"

#include <errno.h>

/* The grid limits of all GPUs since compute capability 3.0. */
#define PLAN_GRID_X_MAX	 0x7FFFFFFFu
#define PLAN_GRID_YZ_MAX 0xFFFFu

/*
 * With exactly SMs x occupancy workers an SM was given 5-6 of 8, because surplus workers go to SMs
 * that outsiders have already left, and those leave at once; with a quarter more 61 of 66 SMs were
 * given 8 of 8.
 */
static uint64_t with_margin(uint64_t n) {
	return 2 * n;
}

/* A small grid does not need full SMs, only some worker in the set. */
static uint64_t with_small_margin(uint64_t n) {
	return n + (n + 3) / 4;
}

int plan_make(struct plan *ret, const unsigned grid[3], unsigned set_sms, unsigned gpu_sms,
	      unsigned occupancy, unsigned n_workers_max) {
	uint64_t n_blocks, per_sm, n;

	if (!grid[0] || !grid[1] || !grid[2] || grid[0] > PLAN_GRID_X_MAX ||
	    grid[1] > PLAN_GRID_YZ_MAX || grid[2] > PLAN_GRID_YZ_MAX) {
		return -EINVAL;
	}
	n_blocks = (uint64_t)grid[0] * grid[1] * grid[2]; /* below 2^63 */
	if (n_blocks > TWIN_BLOCKS_MAX) {
		return -E2BIG;
	}

	/* A small grid needs few workers on each SM of the set; but which SM a worker lands on is
	 * the hardware's choice, so there are as many for each SM of the GPU: those of the set get
	 * theirs, and the others leave at once. */
	per_sm = (n_blocks - 1) / set_sms + 1;
	n = per_sm < occupancy ? with_small_margin(gpu_sms * per_sm)
			       : with_margin((uint64_t)gpu_sms * occupancy);
	if (n > n_workers_max) {
		n = n_workers_max;
	}
	*ret = (struct plan){
		.n_blocks = n_blocks,
		.n_workers = (uint32_t)n,
	};
	return 0;
}

unsigned plan_workers_max(unsigned gpu_sms, unsigned blocks_per_sm) {
	uint64_t n = with_margin((uint64_t)gpu_sms * blocks_per_sm);

	return n > TWIN_WORKERS_MAX ? TWIN_WORKERS_MAX : (unsigned)n;
}

static bool attribute_allows(const CUlaunchAttribute *a) {
	switch (a->id) {
	case CU_LAUNCH_ATTRIBUTE_IGNORE:
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
	case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
	case CU_LAUNCH_ATTRIBUTE_PRIORITY:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
	case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION: /* left out of twins' launches
								     */
		return true;
	case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
		return !a->value.cooperative;
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
		return a->value.clusterDim.x <= 1 && a->value.clusterDim.y <= 1 &&
		       a->value.clusterDim.z <= 1;
	default:
		/* Events in the middle of a grid, nodes that graphs change, and what is not known.
		 */
		return false;
	}
}

bool plan_attributes_allow(const CUlaunchConfig *config) {
	if (!config) {
		return true;
	}
	if (config->numAttrs && !config->attrs) {
		return false; /* the driver refuses it */
	}
	if (config->numAttrs > PLAN_ATTRIBUTES_MAX) {
		return false;
	}
	for (unsigned i = 0; i < config->numAttrs; i++) {
		if (!attribute_allows(&config->attrs[i])) {
			return false;
		}
	}
	return true;
}

/*
 * Programmatic serialization lets a launch start before the one in front of it on its stream is
 * complete, which has put its control block back only then: see hazards.h.
 */
unsigned plan_attributes(const CUlaunchConfig *config, CUlaunchAttribute *ret) {
	unsigned n = 0;

	for (unsigned i = 0; i < config->numAttrs; i++) {
		if (config->attrs[i].id != CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) {
			ret[n++] = config->attrs[i];
		}
	}
	return n;
}

/* The parameter buffer in the program's `extra`, or NULL. */
static const void *extra_buffer(void **extra, size_t *ret_size) {
	const void *buffer = NULL;
	const size_t *size = NULL;

	for (; extra && *extra != CU_LAUNCH_PARAM_END; extra += 2) {
		if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) {
			buffer = extra[1];
		} else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) {
			size = extra[1];
		} else {
			return NULL;
		}
	}
	if (!buffer || !size) {
		return NULL;
	}
	*ret_size = *size;
	return buffer;
}

bool plan_launch_allows(const struct twin_kernel *twin, const struct launch *l) {
	size_t size;

	if (l->cooperative || !plan_attributes_allow(l->config)) {
		return false;
	}
	if (!l->block[0] || !l->block[1] || !l->block[2] ||
	    (twin->block_multiple > 1 && l->block[0] % twin->block_multiple)) {
		return false;
	}
	if (twin->n_params > PLAN_PARAMS_MAX) {
		return false;
	}
	if (!twin->n_params || l->params) {
		return !(l->params && l->extra); /* both: the driver refuses it */
	}
	return extra_buffer(l->extra, &size) && size >= twin->params_size;
}

void plan_params(const struct twin_kernel *twin, const struct launch *l, struct twin_arg *arg,
		 void **params) {
	char *buffer = NULL;
	size_t size;

	if (twin->n_params && !l->params) {
		buffer = (char *)extra_buffer(l->extra, &size);
	}
	for (size_t i = 0; i < twin->n_params; i++) {
		params[i] = buffer ? buffer + twin->param_offsets[i] : l->params[i];
	}
	params[twin->n_params] = arg;
}
