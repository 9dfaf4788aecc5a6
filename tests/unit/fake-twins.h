/*
 * fake-twins.h: a rewriter and a driver of the tests' own, for kernel.c, enforce.c and what they
 * stand on. The device's memory is the test's memory, launches are written down, and the rewriter's
 * answers are made up: "add" and "reads_known" have twins, "grid_sync" and "reads_unknown" don't.
 */
#pragma once

#include "proto/enforcement.h"
#include "shim/real.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/enforce/enforce.h"
#include "shim/enforce/kernel.h"
#include "shim/ptx/transform.h"
#include "shim/ptx/twin.h"

#define N_SMS	   40
#define OCCUPANCY  4
#define PROGRAM	   ".version 7.0 .target sm_75 // original"
#define PROGRAM_90 ".version 7.0 .target sm_90 // original"

/* Whatever works by twins. */
enum { CONFINED = ENFORCEMENT_WITH(ENFORCEMENT_BY_TWIN) };

#define NONE  SBEET__ENFORCEMENT__ENFORCEMENT_NONE
#define SMID  SBEET__ENFORCEMENT__ENFORCEMENT_SMID
#define WHOLE (1u << SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE)

#define CONTEXT(i) ((CUcontext)&fake.contexts[i])

struct fake_module {
	bool twins;
	uint64_t vars[2];
	uint64_t known; /* a variable of the program's */
};

struct fake_function {
	void *module;
	char name[64];
};

struct fake_context {
	CUdevice device;
};

extern struct fake {
	struct fake_context contexts[2], *current;
	struct fake_context *stream_context; /* of all streams; NULL: the current one */
	int sm[2];
	struct fake_function functions[64];
	unsigned n_functions;
	unsigned n_loads, n_unloads, n_allocs, n_copies;
	struct jit jit;	  /* of the last load, but for the log */
	int twin_threads; /* that a twin's blocks may have at most */
	bool no_memory, no_loads, no_twin_launch;
	CUresult launch_result;
	/* the last launch */
	struct fake_function *launched;
	unsigned grid[3];
	CUstream stream;
	unsigned n_attributes;
	CUlaunchAttributeID first_attribute;
	struct twin_arg arg;
	void *params[3];
	unsigned n_launches, n_launches_ex, attribute_calls;
	void *memory[256];
	unsigned n_memory;
} fake;

extern struct fake_module fake_program;
extern void *fake_params[2]; /* of "add" */
extern const struct enforce_grant fake_half;
extern unsigned fake_n_transforms;

/* Around each test. */
int fake_setup(void **state);
int fake_teardown(void **state);
#define TEST(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)

/* The handle that stands for @name in a module or library, always the same. */
struct fake_function *fake_function_of(void *module, const char *name);

/* A kernel of fake_program, as if the program had looked it up; with the module loaded first. */
struct kernel *fake_kernel_of(const char *name);
struct kernel *fake_load(const char *name);

struct launch fake_launch_of(const char *name);

/* Asks, or launches, in the context that is current. */
uint32_t fake_mask(const struct kernel *k, const struct launch *l);
CUresult fake_launch(const struct enforce_grant *g, const struct launch *l,
		     Sbeet__Enforcement *ret_how);

/* Launches, and checks which function was launched and in which way. */
void fake_launch_gives(const struct enforce_grant *g, const struct launch *l,
		       Sbeet__Enforcement expected, const char *function);
