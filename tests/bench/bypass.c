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

#ifndef __x86_64__
#error "The jump is one of x86-64"
#endif

#define JUMP_LEN 14 /* jmp *0(%rip), and the address */

typedef void *(*dlsym_fn)(void *handle, const char *name);

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

static int detours_find(void) {
	static const unsigned char jump[] = {0xff, 0x25, 0, 0, 0, 0};
	void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	/* The C library's, for the shim stands in for dlsym, too. */
	dlsym_fn find = libc ? (dlsym_fn)dlvsym(libc, "dlsym", "GLIBC_2.2.5") : NULL;

	if (!driver || !find) {
		fprintf(stderr, "bypass: this process has no libcuda.so.1\n");
		return -1;
	}
	for (size_t i = 0; i < N_NAMES; i++) {
		struct detour *d = &detours[i];
		void *theirs = find(driver, names[i]);

		d->ours = find(RTLD_DEFAULT, names[i]);
		if (!theirs || !d->ours || d->ours == theirs) {
			d->ours = NULL;
			continue;
		}
		/* Else the jump might reach into the next function. */
		if ((uintptr_t)d->ours % 16 != 0) {
			fprintf(stderr, "bypass: %s is not aligned\n", names[i]);
			return -1;
		}
		memcpy(d->own_text, d->ours, JUMP_LEN);
		memcpy(d->jump, jump, sizeof(jump));
		memcpy(d->jump + sizeof(jump), &theirs, sizeof(theirs));
		n_found++;
	}
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
