/*
 * lookup.c: every way to find the driver's functions. Not linked with the driver: what is found is
 * found by the guest.
 */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "found.h"

static void *driver;

static void *open_driver(int flags) {
	driver = dlopen("libcuda.so.1", flags);
	if (!driver) {
		guest_fail(dlerror());
	}
	return driver;
}

/* ---- by the dynamic linker ---- */

static void *by_handle(const char *exported, const char *name, int since) {
	(void)name, (void)since;
	return dlsym(driver, exported);
}

static void *by_default(const char *exported, const char *name, int since) {
	(void)name, (void)since;
	return dlsym(RTLD_DEFAULT, exported);
}

static void *by_next(const char *exported, const char *name, int since) {
	(void)name, (void)since;
	return dlsym(RTLD_NEXT, exported);
}

static void *by_program(const char *exported, const char *name, int since) {
	static void *self;

	(void)name, (void)since;
	if (!self) {
		self = dlopen(NULL, RTLD_NOW);
	}
	return dlsym(self, exported);
}

static void *by_version(const char *exported, const char *name, int since) {
	(void)name, (void)since;
	return dlvsym(driver, exported, "GUEST_1.0");
}

static void *by_version_default(const char *exported, const char *name, int since) {
	(void)name, (void)since;
	return dlvsym(RTLD_DEFAULT, exported, "GUEST_1.0");
}

/* dlsym of whoever has it next: not through the preloaded library's, which stands before it. */
static void *by_next_dlsym(const char *exported, const char *name, int since) {
	void *(*find)(void *, const char *) = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");

	(void)name, (void)since;
	if (!find) {
		find = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
	}
	if (!find) {
		find = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.17");
	}
	return find ? find(driver, exported) : NULL;
}

/* dlsym as found by dlsym. */
static void *by_found_dlsym(const char *exported, const char *name, int since) {
	void *(*find)(void *, const char *) = dlsym(RTLD_DEFAULT, "dlsym");

	(void)name, (void)since;
	return find ? find(driver, exported) : NULL;
}

/* The tables of the driver's file, as profilers and injectors read them. */
static const ElfW(Sym) *
	symbols_of(const struct link_map *map, const char **ret_names, size_t *ret_n) {
	const ElfW(Sym) *symbols = NULL;
	const char *names = NULL;

	for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_SYMTAB) {
			symbols = (const void *)d->d_un.d_ptr;
		} else if (d->d_tag == DT_STRTAB) {
			names = (const void *)d->d_un.d_ptr;
		}
	}
	/* Linkers put the names behind the symbols. */
	*ret_n = (size_t)(names - (const char *)symbols) / sizeof(*symbols);
	*ret_names = names;
	return symbols;
}

static void *by_table(const char *exported, const char *name, int since) {
	struct link_map *map = NULL;
	const ElfW(Sym) * symbols;
	const char *names;
	size_t n;

	(void)name, (void)since;
	if (dlinfo(driver, RTLD_DI_LINKMAP, &map) != 0) {
		return NULL;
	}
	symbols = symbols_of(map, &names, &n);
	if ((const char *)symbols > names) {
		guest_skip("the driver's tables are in another order");
	}
	for (size_t i = 0; i < n; i++) {
		if (symbols[i].st_shndx != SHN_UNDEF &&
		    strcmp(names + symbols[i].st_name, exported) == 0) {
			return (char *)map->l_addr + symbols[i].st_value;
		}
	}
	return NULL;
}

/* ---- by the driver ---- */

static uint64_t ask_flags;

static void *by_proc_address(const char *exported, const char *name, int since) {
	CUresult (*ask)(const char *, void **, int, cuuint64_t) = dlsym(driver, "cuGetProcAddress");
	void *f = NULL;

	(void)exported;
	if (ask(name, &f, since < 11030 ? 11030 : since, ask_flags) != CUDA_SUCCESS) {
		return NULL;
	}
	return f;
}

static void *by_proc_address_2(const char *exported, const char *name, int since) {
	__typeof__(cuGetProcAddress) *ask = dlsym(driver, "cuGetProcAddress_v2");
	CUdriverProcAddressQueryResult status;
	void *f = NULL;

	(void)exported;
	if (ask(name, &f, since, ask_flags, &status) != CUDA_SUCCESS) {
		return NULL;
	}
	return f;
}

/* As NVIDIA's runtime does: cuGetProcAddress itself by cuGetProcAddress, in both forms. */
static void *by_proc_address_of_itself(const char *exported, const char *name, int since) {
	__typeof__(cuGetProcAddress) *ask = dlsym(driver, "cuGetProcAddress_v2"), *again = NULL;
	CUdriverProcAddressQueryResult status;
	CUresult (*old)(const char *, void **, int, cuuint64_t) = NULL;
	void *f = NULL, *g = NULL;

	(void)exported;
	if (ask("cuGetProcAddress", (void **)&old, 11030, 0, &status) != CUDA_SUCCESS ||
	    ask("cuGetProcAddress", (void **)&again, 12000, 0, &status) != CUDA_SUCCESS ||
	    old(name, &f, since, 0) != CUDA_SUCCESS ||
	    again(name, &g, since, 0, NULL) != CUDA_SUCCESS) {
		return NULL;
	}
	if (f != g) {
		TELL("%s: two answers\n", name);
	}
	return f;
}

static void handle(void) {
	open_driver(RTLD_NOW | RTLD_LOCAL);
	found_use("handle", by_handle);
}

static void handle_lazy(void) {
	open_driver(RTLD_LAZY | RTLD_GLOBAL | RTLD_NODELETE);
	found_use("handle", by_handle);
}

static void handle_deep(void) {
	open_driver(RTLD_NOW | RTLD_DEEPBIND);
	found_use("handle", by_handle);
}

static void global(void) {
	TELL("before: %d\n", dlsym(RTLD_DEFAULT, "cuInit") != NULL);
	open_driver(RTLD_NOW | RTLD_GLOBAL);
	TELL("after: %d\n", dlsym(RTLD_DEFAULT, "cuInit") != NULL);
	found_use("default", by_default);
	found_use("program", by_program);
}

/* Opened for its handle alone, the driver is in nobody's scope. */
static void local(void) {
	open_driver(RTLD_NOW | RTLD_LOCAL);
	TELL("default: %d\n", dlsym(RTLD_DEFAULT, "cuInit") != NULL);
	TELL("program: %d\n", by_program("cuInit", NULL, 0) != NULL);
	TELL("next: %d\n", dlsym(RTLD_NEXT, "cuInit") != NULL);
}

static void next(void) {
	TELL("next: %d\n", dlsym(RTLD_NEXT, "cuInit") != NULL);
	open_driver(RTLD_NOW | RTLD_GLOBAL);
	found_use("next", by_next);
}

/* The driver has no versions: there is nothing to find. */
static void version(void) {
	open_driver(RTLD_NOW | RTLD_GLOBAL);
	found_use("version", by_version);
	found_use("default", by_version_default);
}

static void other_dlsym(void) {
	open_driver(RTLD_NOW);
	found_use("next dlsym", by_next_dlsym);
}

static void found_dlsym(void) {
	open_driver(RTLD_NOW);
	found_use("found dlsym", by_found_dlsym);
}

static void table(void) {
	open_driver(RTLD_NOW);
	found_use("table", by_table);
}

static void address(void) {
	open_driver(RTLD_NOW);
	found_use("v1", by_proc_address);
	found_use("v2", by_proc_address_2);
	found_use("v2 of itself", by_proc_address_of_itself);
}

static void address_flags(void) {
	open_driver(RTLD_NOW);
	for (ask_flags = 0; ask_flags <= 3; ask_flags++) {
		TELL("flags %u\n", (unsigned)ask_flags);
		found_use("v1", by_proc_address);
		found_use("v2", by_proc_address_2);
	}
}

/* ---- one stream, functions found in two ways ---- */

static void mix(const char *how, found_finder *find, found_finder *find_other) {
	struct found f, other;
	struct found_gpu g;

	if (!found_all(how, find, &f) || !found_all(how, find_other, &other)) {
		return;
	}
	found_open(&f, &g);
	for (unsigned round = 0; round < 10; round++) {
		for (unsigned i = 0; i < 12; i++) {
			found_step(&g, i % 2 ? other.cuLaunchKernel : f.cuLaunchKernel);
		}
		if (round % 2) {
			other.cuStreamSynchronize(g.stream);
		}
		found_tell(how, &g);
	}
}

static void mixed_dlsym(void) {
	open_driver(RTLD_NOW);
	mix("next dlsym", by_handle, by_next_dlsym);
}

/* What is found in the driver's own tables is not mixed with the rest: sbeet can't see such launches,
 * so their order with others of the same stream is lost where that is moved (README, "Limits"). */
static void mixed_address(void) {
	open_driver(RTLD_NOW | RTLD_GLOBAL);
	mix("address", by_handle, by_proc_address_2);
	mix("default", by_proc_address, by_default);
}

/* ---- questions ---- */

static const struct {
	const char *name;
	int version;
	uint64_t flags;
} questions[] = {
	{"cuInit", 13000, 0},
	{"cuInit", 2000, 1},
	{"cuInit", 1000, 0},
	{"cuLaunchKernel", 4000, 2},
	{"cuLaunchKernel", 3000, 0},
	{"cuLaunchKernel", 13000, 4},
	{"cuLaunchKernelEx", 11050, 0},
	{"cuLaunchKernelEx", 11060, 2},
	{"cuStreamBeginCapture", 10000, 0},
	{"cuStreamBeginCapture", 10010, 0},
	{"cuNothing", 13000, 0},
	{"", 13000, 0},
	{"culaunchkernel", 13000, 0},
	{"cuMemAlloc_v2", 13000, 0},
	{"cuGetProcAddress_v2", 13000, 0},
	{"cuEventElapsedTime", 12080, 0},
	{"cuGraphInstantiate", 13000, 0},
};

/* Answers of both forms, with a place for the status and without; addresses are told to be the same
 * or not. */
static void answers(void) {
	void *handle = open_driver(RTLD_NOW);
	CUresult (*old)(const char *, void **, int, cuuint64_t) = dlsym(handle, "cuGetProcAddress");
	__typeof__(cuGetProcAddress) *ask = dlsym(handle, "cuGetProcAddress_v2");

	for (size_t i = 0; i < sizeof(questions) / sizeof(*questions); i++) {
		void *a = &a, *b = &b, *c = &c;
		CUdriverProcAddressQueryResult status = 99;
		int x = old(questions[i].name, &a, questions[i].version, questions[i].flags);
		int y = ask(questions[i].name, &b, questions[i].version, questions[i].flags, NULL);
		int z = ask(questions[i].name, &c, questions[i].version, questions[i].flags,
			    &status);

		TELL("%s %d %u: %d %d %d, status %d, %s, %s\n", questions[i].name,
		     questions[i].version, (unsigned)questions[i].flags, x, y, z, (int)status,
		     a == &a ? "untouched"
		     : a     ? "found"
			     : "none",
		     a == b && b == c ? "same" : "different");
	}
	TELL("nowhere: %d\n", ask("cuInit", NULL, 13000, 0, NULL));
	TELL("nothing: %d\n", ask(NULL, (void **)&handle, 13000, 0, NULL));
}

/* The same function has the same address, however it is found. */
static void same(void) {
	void *handle = open_driver(RTLD_NOW | RTLD_GLOBAL);
	static const char *const names[] = {"cuInit",		"cuLaunchKernel", "cuStreamQuery",
					    "cuCtxSynchronize", "cuGraphLaunch",  "cuMemcpyDtoH_v2",
					    "cuDeviceGetCount"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		void *a = dlsym(handle, names[i]);

		TELL("%s: again %d, default %d, address %d\n", names[i],
		     a == dlsym(handle, names[i]), a == dlsym(RTLD_DEFAULT, names[i]),
		     strchr(names[i], '_') || a == by_proc_address_2(NULL, names[i], 13000));
	}
}

static void tell_error(const char *how, void *found) {
	const char *text = dlerror();

	TELL("%s: %s, %s\n", how, found ? "found" : "none", text ? "an error" : "no error");
}

/* What dlerror() says, once, of what was not found; of what was found it says nothing. */
static void errors(void) {
	static const char *const names[] = {"cuNothing", "cudaNothing", "cuInit", "nothing",
					    "cuInit_v99"};
	void *handle = open_driver(RTLD_NOW);

	(void)dlerror();
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		void *f = dlsym(handle, names[i]);
		const char *text = dlerror();
		const char *tail = text ? strstr(text, "undefined symbol") : NULL;

		TELL("%s: %s, %s, then %s\n", names[i], f ? "found" : "none",
		     tail   ? tail
		     : text ? "?"
			    : "nothing",
		     dlerror() ? "more" : "nothing");
	}
	tell_error("default", dlsym(RTLD_DEFAULT, "cuInit"));
	tell_error("default", dlsym(RTLD_DEFAULT, "cuLaunchKernel"));
	tell_error("next", dlsym(RTLD_NEXT, "cuLaunchKernel"));
	tell_error("version", dlvsym(handle, "cuNothing", "GUEST_1.0"));
}

/* An error that was there before a look-up is still there after it. */
static void error_kept(void) {
	void *handle = open_driver(RTLD_NOW);

	(void)dlsym(handle, "cuNothing");
	(void)dlsym(handle, "cuInit");
	TELL("after a success: %d\n", dlerror() != NULL);
	(void)dlopen("libnothing.so.7", RTLD_NOW);
	(void)dlsym(RTLD_DEFAULT, "strlen");
	TELL("after another's: %d\n", dlerror() != NULL);
	errno = 5;
	(void)dlsym(handle, "cuInit");
	(void)dlsym(handle, "cuLaunchKernel");
	TELL("errno: %d\n", errno);
}

/* "Is the driver here already?" */
static void loaded(void) {
	void *h = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

	TELL("before: %d\n", h != NULL);
	open_driver(RTLD_NOW);
	h = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	TELL("opened: %d, the same %d\n", h != NULL, h == driver);
	/* Under sbeet it stays when it is closed: wrappers hold addresses of it. */
	dlclose(h);
}

static void closed_and_opened(void) {
	for (unsigned i = 0; i < 3; i++) {
		open_driver(RTLD_NOW | RTLD_LOCAL);
		TELL("cuInit: %d\n", dlsym(driver, "cuInit") != NULL);
		dlclose(driver);
	}
	open_driver(RTLD_NOW | RTLD_LOCAL);
	found_use("opened again", by_handle);
}

static void other_names(void) {
	void *handle = open_driver(RTLD_NOW);
	static const char *const names[] = {"cuda",	      "cu",	"c", "", "cublasCreate_v2",
					    "curl_easy_init", "cuInit2"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		TELL("'%s': %d %d\n", names[i], dlsym(handle, names[i]) != NULL,
		     dlsym(RTLD_DEFAULT, names[i]) != NULL);
	}
}

/* ---- in a namespace of its own ---- */

static void own_namespace(void) {
	driver = dlmopen(LM_ID_NEWLM, "libcuda.so.1", RTLD_NOW);
	if (!driver) {
		guest_skip("no further namespace");
	}
	found_use("own namespace", by_handle);
}

/* Two drivers in one process: the functions of one are not those of the other. */
static void two_namespaces(void) {
	void *base = open_driver(RTLD_NOW);
	__typeof__(cuInit) *init = dlsym(base, "cuInit");

	driver = dlmopen(LM_ID_NEWLM, "libcuda.so.1", RTLD_NOW);
	if (!driver) {
		guest_skip("no further namespace");
	}
	TELL("the same: %d, init %d\n", dlsym(driver, "cuInit") == (void *)init, init(0));
	found_use("own namespace", by_handle);
	TELL("again: %d\n", dlsym(base, "cuInit") == (void *)init);
}

/* ---- in threads ---- */

static void *look_up_all(void *data) {
	struct found f;

	for (unsigned i = 0; i < 50; i++) {
		if (!found_all("thread", by_handle, &f)) {
			return data;
		}
	}
	return NULL;
}

static void threads(void) {
	pthread_t t[4];
	void *missing = NULL;

	open_driver(RTLD_NOW);
	for (unsigned i = 0; i < 4; i++) {
		pthread_create(&t[i], NULL, look_up_all, driver);
	}
	for (unsigned i = 0; i < 4; i++) {
		void *r;

		pthread_join(t[i], &r);
		missing = r ? r : missing;
	}
	TELL("missing: %d\n", missing != NULL);
	found_use("after threads", by_handle);
}

static __attribute__((constructor)) void at_start(void) {
	if (getenv("GUEST_CONSTRUCTOR")) {
		open_driver(RTLD_NOW);
		found_use("in a constructor", by_handle);
	}
}

static void constructor(void) {
	if (!getenv("GUEST_CONSTRUCTOR")) {
		setenv("GUEST_CONSTRUCTOR", "yes", 1);
		guest_start_again("constructor");
	}
}

const struct guest guests[] = {
	{"handle", handle},
	{"handle-lazy", handle_lazy},
	{"handle-deep", handle_deep},
	{"global", global},
	{"local", local},
	{"next", next},
	{"version", version},
	{"other-dlsym", other_dlsym},
	{"found-dlsym", found_dlsym},
	{"table", table},
	{"address", address},
	{"address-flags", address_flags},
	{"mixed-dlsym", mixed_dlsym},
	{"mixed-address", mixed_address},
	{"answers", answers},
	{"same", same},
	{"errors", errors},
	{"error-kept", error_kept},
	{"loaded", loaded},
	{"closed-and-opened", closed_and_opened},
	{"other-names", other_names},
	{"own-namespace", own_namespace},
	{"two-namespaces", two_namespaces},
	{"threads", threads},
	{"constructor", constructor},
	{NULL, NULL},
};
