/*
 * machine.h: the least GPU on which a kernel and its twin can be compared: memory, and SMs on which
 * the PTX interpreter runs blocks in a random interleaving. No driver, no time; the simulated GPU
 * of tests/simgpu has those. Here, where a block goes and when it is set aside is as unkind as
 * chance can make it.
 *
 * Errors that are the test's own (no memory) end the process; what a kernel does wrong is returned.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/simgpu/interp.h"

struct machine;

struct machine_grid {
	const struct interp_kernel *kernel;
	uint32_t grid[3], block[3];
	uint32_t shared_bytes;
	const void *params;
	size_t params_size;
	unsigned occupancy; /* blocks that an SM holds at once */
};

/* Called now and then while a grid runs. */
typedef void (*machine_event)(void *userdata);

/* Its SMs are numbered from @first_sm on. */
struct machine *machine_new(unsigned n_sms, unsigned first_sm, uint64_t seed);
struct machine *machine_free(struct machine *m);

/* @size bytes of zeros; the device address is the result, never freed before the machine. */
uint64_t machine_alloc(struct machine *m, size_t size);

/* The host's view of device memory. */
void *machine_at(struct machine *m, uint64_t address);

/* Gives the module's variables addresses and initial values. Return: 0 or an error of interp.h. */
int machine_load(struct machine *m, struct interp_module *module);

/* Device address of a module's variable; 0 if it has none by that name. */
uint64_t machine_variable(struct machine *m, const struct interp_module *module, const char *name);

/* The contents of all variables of a module, in *@to, allocated if it is NULL. Return: bytes. */
size_t machine_save(struct machine *m, const struct interp_module *module, uint8_t **to);
void machine_restore(struct machine *m, const struct interp_module *module, const uint8_t *from);

/* A sum over all text that was printed so far: the same for the same texts in any order. */
uint64_t machine_printed(const struct machine *m);

/* Runs a grid to its end. Return: NULL, or what went wrong (valid until the next call). */
const char *machine_run(struct machine *m, const struct machine_grid *g, machine_event event,
			void *userdata);
