/*
 * host.c: a program that is not linked with the driver and opens plug-ins that are, or that look
 * for it themselves.
 */
#include <dlfcn.h>
#include <stdio.h>

#include "guest.h"

static void *open_plug(const char *name, int flags) {
	char path[4096];
	void *handle;

	snprintf(path, sizeof(path), "%s/libguest-%s.so", guest_setting("GUEST_LIBRARIES"), name);
	handle = dlopen(path, flags);
	if (!handle) {
		guest_fail(dlerror());
	}
	return handle;
}

static void ask(const char *name, int flags) {
	int (*opened)(void) = dlsym(open_plug(name, flags), "plug_opened");

	TELL("%s: %d\n", name, opened());
}

static void table(void) {
	ask("plug-table", RTLD_NOW);
}

static void table_global(void) {
	ask("plug-table", RTLD_LAZY | RTLD_GLOBAL);
}

static void table_deep(void) {
	ask("plug-table", RTLD_NOW | RTLD_DEEPBIND);
}

static void stubs(void) {
	ask("plug-stubs", RTLD_NOW);
}

static void stubs_deep(void) {
	ask("plug-stubs", RTLD_NOW | RTLD_DEEPBIND);
}

/* Without the driver it goes on without it. */
static void weak(void) {
	ask("plug-weak", RTLD_NOW);
}

static void weak_lazy(void) {
	ask("plug-weak", RTLD_LAZY);
}

static void weak_deep(void) {
	ask("plug-weak", RTLD_NOW | RTLD_DEEPBIND);
}

/* With it, if somebody has put it into the global scope. */
static void weak_after_driver(void) {
	if (!dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL)) {
		guest_fail(dlerror());
	}
	ask("plug-weak", RTLD_NOW);
}

/* The handle of a plug-in finds what the plug-in is linked with. */
static void through_plug(void) {
	int (*init)(unsigned) = dlsym(open_plug("plug", RTLD_NOW | RTLD_LOCAL), "cuInit");
	int (*count)(int *) = dlsym(open_plug("plug", RTLD_NOW | RTLD_LOCAL), "cuDeviceGetCount");
	int n = 0;

	TELL("found %d %d\n", init != NULL, count != NULL);
	TELL("init %d\n", init(0));
	TELL("count %d\n", count(&n));
	TELL("default %d\n", dlsym(RTLD_DEFAULT, "cuInit") != NULL);
	TELL("of another %d\n", dlsym(open_plug("plug-weak", RTLD_NOW), "cuInit") != NULL);
}

const struct guest guests[] = {
	{"table", table},
	{"table-global", table_global},
	{"table-deep", table_deep},
	{"stubs", stubs},
	{"stubs-deep", stubs_deep},
	{"weak", weak},
	{"weak-lazy", weak_lazy},
	{"weak-deep", weak_deep},
	{"weak-after-driver", weak_after_driver},
	{"through-plug", through_plug},
	{NULL, NULL},
};
