/*
 * bypass.c: switches the shim of this process off and on, to measure within one process what it
 * costs.
 *
 * Two processes of the same program differ by more than what the shim costs, by where they happen
 * to lie in memory. So a program under the shim loads this library (job-start.c, cost.py). While
 * the shim is switched off, each of the driver's functions that libsbeet.so stands in for begins
 * with a jump to the driver's own: what is left of the shim is that jump, and its threads.
 *
 * x86-64 only.
 */
#include "tests/bench/bypass.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shim/object.h"

#ifndef __x86_64__
#error "The jump is one of x86-64"
#endif

#define JUMP_LEN 14 /* jmp *0(%rip), and the address */

static const char *const names[] = {
#define OP(name, params, args, kind, bytes, stream, traits) #name,
#define HOOK(name, params, args)			    #name,
#include "shim/hooks.def"
};

#define N_NAMES (sizeof(names) / sizeof(*names))

/* Of the same name. @ours: NULL where the driver is older than the function. */
static struct detour {
	unsigned char *ours;
	unsigned char own_text[JUMP_LEN], jump[JUMP_LEN];
} detours[N_NAMES];

static size_t n_found;

/* What dlsym() finds is ours already, so the driver's own symbols are asked. */
static bool find_detours(const struct object *o, void *driver) {
	static const unsigned char jump[] = {0xff, 0x25, 0, 0, 0, 0};

	if (!object_is(o, "libcuda.so.1")) {
		return false;
	}
	for (size_t i = 0; i < N_NAMES; i++) {
		struct detour *d = &detours[i];
		void *theirs = object_symbol(o, names[i], NULL);

		d->ours = theirs ? dlsym(driver, names[i]) : NULL;
		if (d->ours == theirs) {
			d->ours = NULL;
			continue;
		}
		/* Else the jump might reach into the next function. */
		if ((uintptr_t)d->ours % 16 != 0) {
			fprintf(stderr, "bypass: %s is not aligned\n", names[i]);
			n_found = 0;
			return true;
		}
		memcpy(d->own_text, d->ours, JUMP_LEN);
		memcpy(d->jump, jump, sizeof(jump));
		memcpy(d->jump + sizeof(jump), &theirs, sizeof(theirs));
		n_found++;
	}
	return true;
}

static int detours_find(void) {
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

	if (!driver) {
		fprintf(stderr, "bypass: this process has no libcuda.so.1\n");
		return -1;
	}
	object_each(find_detours, driver);
	if (n_found == 0) {
		fprintf(stderr, "bypass: libsbeet.so is not preloaded\n");
		return -1;
	}
	return 0;
}

__attribute__((visibility("default"))) int bypass_switch(int off) {
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = UINTPTR_MAX, to = 0;

	if (n_found == 0 && detours_find() != 0) {
		return -1;
	}
	for (size_t i = 0; i < N_NAMES; i++) {
		uintptr_t at = (uintptr_t)detours[i].ours;

		if (at) {
			from = at < from ? at : from;
			to = at + JUMP_LEN > to ? at + JUMP_LEN : to;
		}
	}
	from -= from % page;
	if (mprotect((void *)from, to - from, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) {
		perror("bypass: mprotect");
		return -1;
	}
	for (size_t i = 0; i < N_NAMES; i++) {
		struct detour *d = &detours[i];

		if (d->ours) {
			memcpy(d->ours, off ? d->jump : d->own_text, JUMP_LEN);
		}
	}
	if (mprotect((void *)from, to - from, PROT_READ | PROT_EXEC) != 0) {
		perror("bypass: mprotect");
		return -1;
	}
	return (int)n_found;
}
