/*
 * kernel-twin.h: what enforce.c needs of kernel.c beyond kernel.h.
 */
#pragma once

#include <stdbool.h>

#include "shim/context.h"
#include "shim/kernel.h"
#include "shim/twin.h"

/* The twin for the GPU of @c; may have no handle. NULL: none was built. */
struct twin *kernel_twin(const struct kernel *k, const struct context *c);

/* True too if the driver refuses to say. */
bool kernel_stream_is_capturing(const struct launch *l);

void kernel_after_fork(void);
