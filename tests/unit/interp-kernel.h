/*
 * interp-kernel.h: kernels of a few instructions, one block of which is run, for the tests of the
 * PTX interpreter.
 */
#pragma once

#include "tests/unit/interp-harness.h"

#define HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"

/*
 * A kernel `k` with one parameter, a buffer of u32: %out is the address of this thread's element,
 * %buf that of the first, %t its %tid.x. The body must end by storing and returning.
 */
#define KERNEL(body)                                                                          \
	HEAD ".visible .entry k(.param .u64 k_buf)\n{\n"                                      \
	     ".reg .b32 %t, %x, %r<16>;\n.reg .b64 %buf, %out, %rd<16>;\n.reg .pred %p<8>;\n" \
	     "ld.param.u64 %buf, [k_buf];\nmov.u32 %t, %tid.x;\n"                             \
	     "mad.wide.u32 %out, %t, 4, %buf;\n" body "\n}\n"

#define THREADS_MAX 256u

/* Runs one block of the kernel and gives its buffer's first words. */
void kernel_run(const char *ptx, uint32_t threads, uint32_t words[THREADS_MAX]);

/* Runs one block of the kernel, which must not go well. @text: what is told. */
enum interp_fault_kind kernel_fault(const char *ptx, uint32_t threads, char text[1024]);
