/*
 * interpose.c: a program with other preloaded libraries, before libsbeet.so and behind it. A
 * guest's name is the library's, and where it stands.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu.h"

static void work_in(const char *name, CUstream s) {
	struct chain c = chain_new(20000);

	for (unsigned round = 0; round < 4; round++) {
		chain_restart(&c, s, round);
		for (unsigned i = 0; i < 12; i++) {
			chain_step(&c, s);
		}
		chain_tell(name, &c, s);
	}
}

/* One stream, launches as linked and as found: what is preloaded may be in the way of one of them.
 */
static void mix(const char *name, __typeof__(cuLaunchKernel) *found, CUstream s) {
	struct chain c = chain_new(20000);

	for (unsigned i = 0; i < 60; i++) {
		CU(CHAIN_LAUNCH(i % 2 ? found : cuLaunchKernel, &c, s));
	}
	chain_tell(name, &c, s);
}

static void work(void) {
	void *f = NULL;

	gpu_open();
	work_in("default", NULL);
	work_in("non-blocking", gpu_stream(CU_STREAM_NON_BLOCKING));
	work_in("per thread", CU_STREAM_PER_THREAD);
	mix("found", gpu_function("cuLaunchKernel"), gpu_stream(CU_STREAM_NON_BLOCKING));
	GPU_NEEDS_AS(cuGetProcAddress, "cuGetProcAddress_v2");
	CU(cuGetProcAddress("cuLaunchKernel", &f, 13000, 0, NULL));
	mix("found by address", (__typeof__(cuLaunchKernel) *)f,
	    gpu_stream(CU_STREAM_NON_BLOCKING));
	guest_start_again("alone");
}

static void alone(void) {
	gpu_open();
	work_in("started again", gpu_stream(CU_STREAM_NON_BLOCKING));
}

static void with(const char *library, bool first) {
	char self[] = "work", *arguments[] = {guest_arguments[0], self, NULL};
	const char *old = getenv("LD_PRELOAD"), *folder = guest_setting("GUEST_LIBRARIES");
	char list[8192];

	if (!old) {
		old = "";
	}
	if (first) {
		snprintf(list, sizeof(list), "%s/libguest-%s.so%s%s", folder, library,
			 *old ? ":" : "", old);
	} else {
		snprintf(list, sizeof(list), "%s%s%s/libguest-%s.so", old, *old ? ":" : "", folder,
			 library);
	}
	setenv("LD_PRELOAD", list, 1);
	execv("/proc/self/exe", arguments);
	guest_fail("execv");
}

#define LIBRARIES          \
	LIBRARY(next)      \
	LIBRARY(handle)    \
	LIBRARY(own_dlsym) \
	LIBRARY(malloc)    \
	LIBRARY(calls)     \
	LIBRARY(clock)

static void with_named(const char *name, bool first) {
	char library[100] = "pre-";

	strcat(library, name);
	for (char *c = library; *c; c++) {
		*c = *c == '_' ? '-' : *c;
	}
	with(library, first);
}

#define LIBRARY(name)                     \
	static void name##_first(void) {  \
		with_named(#name, true);  \
	}                                 \
	static void name##_last(void) {   \
		with_named(#name, false); \
	}
LIBRARIES
#undef LIBRARY

/* Plug-ins, preloaded. */

static void stubs_first(void) {
	with("plug-stubs", true);
}

static void stubs_last(void) {
	with("plug-stubs", false);
}

static void driver_first(void) {
	char self[] = "work", *arguments[] = {guest_arguments[0], self, NULL};
	const char *old = getenv("LD_PRELOAD");
	char list[8192];

	snprintf(list, sizeof(list), "libcuda.so.1%s%s", old ? ":" : "", old ? old : "");
	setenv("LD_PRELOAD", list, 1);
	execv("/proc/self/exe", arguments);
}

static void bound_now(void) {
	char self[] = "work", *arguments[] = {guest_arguments[0], self, NULL};

	setenv("LD_BIND_NOW", "1", 1);
	execv("/proc/self/exe", arguments);
}

static void audited(void) {
	char self[] = "work", *arguments[] = {guest_arguments[0], self, NULL};
	char path[4200];

	snprintf(path, sizeof(path), "%s/libguest-audit.so", guest_setting("GUEST_LIBRARIES"));
	setenv("LD_AUDIT", path, 1);
	execv("/proc/self/exe", arguments);
}

static void poisoned_memory(void) {
	char self[] = "work", *arguments[] = {guest_arguments[0], self, NULL};

	setenv("MALLOC_PERTURB_", "165", 1);
	setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0", 1);
	execv("/proc/self/exe", arguments);
}

const struct guest guests[] = {
	{"work", work},
	{"alone", alone},
#define LIBRARY(name) {#name "-first", name##_first}, {#name "-last", name##_last},
	LIBRARIES
#undef LIBRARY
	{"stubs-first", stubs_first},
	{"stubs-last", stubs_last},
	{"driver-first", driver_first},
	{"bound-now", bound_now},
	{"audited", audited},
	{"poisoned-memory", poisoned_memory},
	{NULL, NULL},
};
