/*
 * interp-cost.c: the cost model: cycles of one warp instruction, by class.
 *
 * The device model makes time of these weights; they are in proportion to what NVIDIA publishes as
 * throughput per SM, with a share of the latency for memory. Not a claim about any real GPU.
 *
 *	integer and f32 arithmetic, moves, branches	1
 *	integer division, f64				16
 *	special functions (sin, ex2, rcp, sqrt, ...)	4
 *	shuffles, votes, barriers			2
 *	shared, local, parameter, constant memory	4
 *	device memory, generic				16
 *	atomics						24
 *	fences						8
 *	nanosleep					64
 */
#include "tests/simgpu/interp-internal.h"

enum cost {
	COST_ALU = 1,
	COST_SYNC = 2,
	COST_SFU = 4,
	COST_NEAR = 4,
	COST_FENCE = 8,
	COST_SLOW = 16,
	COST_GLOBAL = 16,
	COST_ATOM = 24,
	COST_SLEEP = 64,
};

static const struct {
	const char *name;
	enum cost cost;
} costs[] = {
	{"sin", COST_SFU},	{"cos", COST_SFU},	{"ex2", COST_SFU},
	{"lg2", COST_SFU},	{"rcp", COST_SFU},	{"sqrt", COST_SFU},
	{"rsqrt", COST_SFU},	{"tanh", COST_SFU},	{"div", COST_SLOW},
	{"rem", COST_SLOW},	{"shfl", COST_SYNC},	{"vote", COST_SYNC},
	{"match", COST_SYNC},	{"redux", COST_SYNC},	{"bar", COST_SYNC},
	{"barrier", COST_SYNC}, {"atom", COST_ATOM},	{"red", COST_ATOM},
	{"fence", COST_FENCE},	{"membar", COST_FENCE}, {"nanosleep", COST_SLEEP},
	{"call", COST_SYNC},
};

uint8_t cost_of(struct ptx_name opcode, uint8_t space) {
	struct ptx_name first = ptx_opcode_part(opcode, 0);

	if (ptx_name_is(first, "ld") || ptx_name_is(first, "st") || ptx_name_is(first, "ldu") ||
	    ptx_name_is(first, "cp")) {
		return space == PTX_SPACE_GLOBAL || space == PTX_SPACE_NONE ? COST_GLOBAL
									    : COST_NEAR;
	}
	for (size_t i = 0; i < sizeof(costs) / sizeof(*costs); i++) {
		if (ptx_name_is(first, costs[i].name)) {
			return (uint8_t)costs[i].cost;
		}
	}
	return ptx_opcode_has(opcode, "f64") ? COST_SLOW : COST_ALU;
}
