/*
 * test-hooks.c: every function of hooks.def is reached by each way into the driver: as a symbol, by
 * dlsym, by cuGetProcAddress. Runs itself again with libsbeet.so preloaded and the fake driver
 * below.
 *
 * With FAKE_CODES each function of the driver returns a number of its own, so an answer tells which
 * one was reached; that it was reached through the wrapper is told by the address that was found.
 */
#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "shim/real.h"
#include "tests/fake/fake.h"

/* Enough for the longest list of parameters; all but one function's are integers or pointers, and 0
 * is an answer to each: a NULL out-parameter as well. */
typedef CUresult (*any_fn)(long, long, long, long, long, long, long, long, long, long, long, long);

static const struct hook {
	const char *name;
	void *symbol;
} hooks[] = {
#define OP(name, params, args, kind, bytes, stream, traits) {#name, (void *)name},
#define HOOK(name, params, args)			    {#name, (void *)name},
#include "shim/hooks.def"
};

#define N_HOOKS (sizeof(hooks) / sizeof(*hooks))

/* Calls @f, found as hook @i, with nothing. */
static CUresult call(size_t i, void *f) {
	/* arm64 passes a struct of this size by reference, which must not be NULL. */
	if (hooks[i].symbol == (void *)cuIpcOpenEventHandle) {
		return ((__typeof__(cuIpcOpenEventHandle) *)f)(NULL, (CUipcEventHandle){{0}});
	}
	return ((any_fn)f)(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
}

static bool codes; /* this run's functions return their numbers */

static const char *file_of(void *address) {
	Dl_info info;

	return dladdr(address, &info) && info.dli_fname ? info.dli_fname : "";
}

/* These two keep working in the fake driver, for the look-ups; called with nothing, they refuse. */
static bool looks_up(size_t i) {
	return strncmp(hooks[i].name, "cuGetProcAddress", strlen("cuGetProcAddress")) == 0;
}

static void check(size_t i, void *found, const char *way) {
	if (!strstr(file_of(found), "libsbeet.so")) {
		fail_msg("%s by %s is in '%s'", hooks[i].name, way, file_of(found));
	}
	if (codes && !looks_up(i)) {
		CUresult rc = call(i, found);

		if ((int)rc != FAKE_CODE + (int)i) {
			fail_msg("%s by %s gives %d", hooks[i].name, way, (int)rc);
		}
	}
}

static void hooks_are_reached_as_symbols(void **state) {
	for (size_t i = 0; i < N_HOOKS; i++) {
		check(i, hooks[i].symbol, "symbol");
	}
}

static void hooks_are_reached_by_dlsym(void **state) {
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	void *all = dlopen(NULL, RTLD_NOW);

	assert_non_null(driver);
	for (size_t i = 0; i < N_HOOKS; i++) {
		check(i, dlsym(driver, hooks[i].name), "dlsym");
		check(i, dlsym(RTLD_DEFAULT, hooks[i].name), "dlsym(RTLD_DEFAULT)");
		check(i, dlsym(all, hooks[i].name), "dlsym(dlopen(NULL))");
	}
	/* What we do not stand in for is the driver's own. */
	assert_non_null(strstr(file_of(dlsym(driver, "cuCtxGetCurrent")), "libcuda.so"));
	assert_null(dlsym(driver, "cuNothingLikeThis"));
	assert_non_null(dlerror());
}

static void hook_by_address(void *raw, void *given) {
	for (size_t i = 0; i < N_HOOKS; i++) {
		void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
		Dl_info info;

		(void)driver;
		if (dladdr(raw, &info) && info.dli_sname &&
		    strcmp(info.dli_sname, hooks[i].name) == 0) {
			check(i, given, "cuGetProcAddress");
			return;
		}
	}
	assert_ptr_equal(raw, given); /* not one of ours */
}

/* The name without what tells the variant. */
static void base_of(const char *name, char *base, size_t size) {
	static const char *const ends[] = {"_ptsz", "_ptds", "_v2", "_v3", "_v4"};

	snprintf(base, size, "%s", name);
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		size_t n = strlen(base), m = strlen(ends[i]);

		if (n > m && strcmp(base + n - m, ends[i]) == 0) {
			base[n - m] = '\0';
		}
	}
}

static void hooks_are_reached_by_get_proc_address(void **state) {
	static const int versions[] = {4000, 11030, 12000, 13000};
	static const cuuint64_t flags[] = {0, CU_GET_PROC_ADDRESS_LEGACY_STREAM,
					   CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM};
	char base[128];

	for (size_t i = 0; i < N_HOOKS; i++) {
		base_of(hooks[i].name, base, sizeof(base));
		for (size_t v = 0; v < 4; v++) {
			for (size_t f = 0; f < 3; f++) {
				void *raw = NULL, *given = NULL, *old = NULL;
				CUresult rc = fake_find(base, &raw, versions[v], flags[f]);

				assert_int_equal(cuGetProcAddress_v2(base, &given, versions[v],
								     flags[f], NULL),
						 rc);
				assert_int_equal(
					cuGetProcAddress(base, &old, versions[v], flags[f]), rc);
				assert_ptr_equal(given, old);
				if (rc == CUDA_SUCCESS) {
					hook_by_address(raw, given);
				}
			}
		}
	}
}

static void null_parameters_are_the_drivers_business(void **state) {
	assert_int_equal(cuGetProcAddress_v2("cuInit", NULL, 12000, 0, NULL),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuGetProcAddress(NULL, NULL, 12000, 0), CUDA_ERROR_INVALID_VALUE);
	for (size_t i = 0; !codes && i < N_HOOKS; i++) {
		call(i, hooks[i].symbol); /* returns, whatever it returns */
	}
}

/* The C library finds out who asks for the "next" object by the return address: it must be ours
 * here, and not libsbeet's, after which there is no other dlsym but the C library's. */
static void dlsym_next_is_seen_from_the_caller(void **state) {
	assert_non_null(strstr(file_of(dlsym(RTLD_NEXT, "dlsym")), "libsbeet.so"));
}

static void dlsym_finds_what_only_the_caller_sees(void **state) {
	void *plugin = dlopen(getenv("SBEET_TEST_PLUGIN"), RTLD_NOW | RTLD_LOCAL);
	void *(*find)(void);

	assert_non_null(plugin);
	find = (void *(*)(void))dlsym(plugin, "plugin_find");
	assert_non_null(find);
	assert_non_null(find());
	dlclose(plugin);
}

/* A program that loads it by itself can't get rid of it: a thread may run in it. */
static bool stays_loaded(const char *shim) {
	void *handle = dlopen(shim, RTLD_NOW);

	return handle && dlclose(handle) == 0 && dlopen(shim, RTLD_NOW | RTLD_NOLOAD);
}

int main(int argc, char **argv) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hooks_are_reached_as_symbols),
		cmocka_unit_test(hooks_are_reached_by_dlsym),
		cmocka_unit_test(hooks_are_reached_by_get_proc_address),
		cmocka_unit_test(null_parameters_are_the_drivers_business),
		cmocka_unit_test(dlsym_next_is_seen_from_the_caller),
		cmocka_unit_test(dlsym_finds_what_only_the_caller_sees),
	};

	if (!getenv("LD_PRELOAD")) {
		if (!stays_loaded(getenv("SBEET_TEST_SHIM"))) {
			fprintf(stderr, "libsbeet.so can be unloaded\n");
			return 1;
		}
		setenv("LD_PRELOAD", getenv("SBEET_TEST_SHIM"), 1);
		setenv("SBEET_SOCKET", "/nonexistent/shim.sock", 1);
		setenv("SBEET_LOG", "error", 1);
		execv(argv[0], argv);
		perror(argv[0]);
		return 1;
	}
	codes = getenv("FAKE_CODES") != NULL;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
