/*
 * plugin.c: plug-ins that use the driver, opened in every way by a program that uses it too, on the
 * same streams.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu.h"
#include "plug.h"

struct plug {
	void *handle;
	__typeof__(plug_launch) *launch;
	__typeof__(plug_synchronize) *synchronize;
	__typeof__(plug_opened) *opened;
	__typeof__(plug_set) *set;
	__typeof__(plug_wait) *wait;
};

static const char *path_of(const char *name) {
	static char path[4096];

	snprintf(path, sizeof(path), "%s/libguest-%s.so", guest_setting("GUEST_LIBRARIES"), name);
	return path;
}

static struct plug from_handle(void *handle) {
	if (!handle) {
		guest_fail(dlerror());
	}
	return (struct plug){
		.handle = handle,
		.launch = dlsym(handle, "plug_launch"),
		.synchronize = dlsym(handle, "plug_synchronize"),
		.opened = dlsym(handle, "plug_opened"),
		.set = dlsym(handle, "plug_set"),
		.wait = dlsym(handle, "plug_wait"),
	};
}

static struct plug open_plug(const char *name, int flags) {
	return from_handle(dlopen(path_of(name), flags));
}

static void step_by(const struct plug *plug, struct chain *c, CUstream s) {
	struct chain_step step;
	int r;

	chain_next(c, &step);
	r = plug->launch(gpu.step, step.blocks, step.threads, s, step.params);
	if (r) {
		TELL("the plug-in launches: %d\n", r);
		exit(1);
	}
}

/* Steps of the program and of the plug-in by turns, in one stream. */
static void mix_in(const char *name, const struct plug *plug, CUstream s) {
	struct chain c = chain_new(20000);

	for (unsigned round = 0; round < 6; round++) {
		for (unsigned i = 0; i < 12; i++) {
			if (i % 2) {
				step_by(plug, &c, s);
			} else {
				chain_step(&c, s);
			}
		}
		if (round % 2) {
			plug->synchronize(s);
		}
		chain_tell(name, &c, s);
	}
}

static void mix(const char *name, int flags) {
	struct plug plug = open_plug(name, flags);

	gpu_open();
	mix_in("non-blocking", &plug, gpu_stream(CU_STREAM_NON_BLOCKING));
	mix_in("blocking", &plug, gpu_stream(CU_STREAM_DEFAULT));
	mix_in("default", &plug, NULL);
	mix_in("per thread", &plug, CU_STREAM_PER_THREAD);
}

static void now(void) {
	mix("plug", RTLD_NOW | RTLD_LOCAL);
}

static void lazy_global(void) {
	mix("plug", RTLD_LAZY | RTLD_GLOBAL);
}

static void deep(void) {
	mix("plug", RTLD_NOW | RTLD_DEEPBIND);
}

static void deep_lazy(void) {
	mix("plug", RTLD_LAZY | RTLD_DEEPBIND | RTLD_GLOBAL);
}

/* Only so: in the program's scope the driver's functions come before the plug-in's variables. */
static void table_deep(void) {
	mix("plug-table", RTLD_NOW | RTLD_DEEPBIND);
}

static void stubs(void) {
	mix("plug-stubs", RTLD_NOW | RTLD_GLOBAL);
}

static void stubs_deep(void) {
	mix("plug-stubs", RTLD_NOW | RTLD_DEEPBIND);
}

static void symbolic(void) {
	mix("plug-symbolic", RTLD_NOW | RTLD_GLOBAL);
}

static void weak(void) {
	mix("plug-weak", RTLD_NOW);
}

/* ---- more than launches, past the preloaded library or not ---- */

static void all_calls(const struct plug *plug) {
	struct chain c = chain_new(20000);
	CUstream s[2] = {gpu_stream(CU_STREAM_NON_BLOCKING), gpu_stream(CU_STREAM_NON_BLOCKING)};

	for (unsigned i = 0; i < 30; i++) {
		if (i % 5 == 0 && plug->set(c.p, i, c.n, s[i % 2]) == 0) {
			c.want = i;
		}
		chain_step(&c, s[i % 2]);
		step_by(plug, &c, s[i % 2]);
		if (plug->wait(s[i % 2], s[(i + 1) % 2]) != 0) {
			guest_fail("the plug-in's wait");
		}
	}
	chain_tell("sets and waits", &c, s[0]);
}

static void calls(void) {
	struct plug plug = open_plug("plug", RTLD_NOW);

	gpu_open();
	all_calls(&plug);
}

static void calls_deep(void) {
	struct plug plug = open_plug("plug", RTLD_NOW | RTLD_DEEPBIND);

	gpu_open();
	all_calls(&plug);
}

/* ---- loading ---- */

static void opened_in_constructor(void) {
	struct plug plug;

	setenv("GUEST_OPENS", "yes", 1);
	plug = open_plug("plug", RTLD_NOW);
	TELL("opened: %d\n", plug.opened());
	gpu_open();
	mix_in("after it", &plug, gpu_stream(CU_STREAM_NON_BLOCKING));
	TELL("closed: %d\n", dlclose(plug.handle));
	struct chain c = chain_new(CHAIN_N);

	chain_step(&c, NULL);
	chain_tell("without it", &c, NULL);
}

static void opened_deep_in_constructor(void) {
	struct plug plug;

	setenv("GUEST_OPENS", "yes", 1);
	plug = open_plug("plug", RTLD_NOW | RTLD_DEEPBIND);
	TELL("opened: %d\n", plug.opened());
	gpu_open();
	mix_in("after it", &plug, gpu_stream(CU_STREAM_NON_BLOCKING));
}

static void closed_and_opened(void) {
	gpu_open();
	for (unsigned i = 0; i < 5; i++) {
		struct plug plug = open_plug(i % 2 ? "plug-stubs" : "plug", RTLD_NOW);

		mix_in("opened", &plug, gpu_stream(CU_STREAM_NON_BLOCKING));
		dlclose(plug.handle);
	}
}

static void *open_in_thread(void *data) {
	*(struct plug *)data = open_plug("plug", RTLD_NOW);
	gpu_open();
	mix_in("in the thread", data, gpu_stream(CU_STREAM_NON_BLOCKING));
	return NULL;
}

static void in_a_thread(void) {
	struct plug plug;
	pthread_t t;

	pthread_create(&t, NULL, open_in_thread, &plug);
	pthread_join(t, NULL);
	gpu_enter();
	mix_in("in the main thread", &plug, gpu_stream(CU_STREAM_NON_BLOCKING));
}

/* All kinds at once: each finds what it would find without the others. */
static void all_kinds(void) {
	static const char *const names[] = {"plug-weak", "plug-stubs", "plug", "plug-symbolic"};
	CUstream s;

	gpu_open();
	s = gpu_stream(CU_STREAM_NON_BLOCKING);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct plug plug = open_plug(names[i], RTLD_NOW | RTLD_LOCAL);

		if (strcmp(names[i], "plug-weak") != 0) {
			TELL("%s: %d\n", names[i], plug.opened() > 0);
		}
		mix_in(names[i], &plug, s);
	}
}

/* The plug-in has a driver of its own, and a GPU that it opens itself. */
static void own_namespace(void) {
	struct plug plug = {0};
	void *handle;

	setenv("GUEST_OPENS", "yes", 1);
	handle = dlmopen(LM_ID_NEWLM, path_of("plug"), RTLD_NOW);
	if (!handle) {
		guest_skip("no further namespace");
	}
	plug = from_handle(handle);
	TELL("opened: %d\n", plug.opened());
}

const struct guest guests[] = {
	{"now", now},
	{"lazy-global", lazy_global},
	{"deep", deep},
	{"deep-lazy", deep_lazy},
	{"table-deep", table_deep},
	{"stubs", stubs},
	{"stubs-deep", stubs_deep},
	{"symbolic", symbolic},
	{"weak", weak},
	{"calls", calls},
	{"calls-deep", calls_deep},
	{"opened-in-constructor", opened_in_constructor},
	{"opened-deep-in-constructor", opened_deep_in_constructor},
	{"closed-and-opened", closed_and_opened},
	{"in-a-thread", in_a_thread},
	{"all-kinds", all_kinds},
	{"own-namespace", own_namespace},
	{NULL, NULL},
};
