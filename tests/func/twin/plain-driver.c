/*
 * plain-driver.c: see plain-driver.h.
 */
#include "tests/func/twin/plain-driver.h"

#include <dlfcn.h>

#include "shim/state.h"

STATE_TLS struct state_self state_self;
struct real plain_driver;

int state_enter(void) {
	return 0;
}

void state_leave(int token) {
}

const struct real *real_get(void) {
	return &plain_driver;
}

const struct real *real_get_loaded(void) {
	return &plain_driver;
}

bool plain_driver_load(void) {
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);

	if (!lib) {
		return false;
	}
#define OP(name, params, args, kind, bytes, stream, traits) CALL(name)
#define HOOK(name, params, args)			    CALL(name)
#define CALL(name)					    plain_driver.name = (__typeof__(plain_driver.name))dlsym(lib, #name);
#include "shim/hooks.def"
#include "shim/real.def"
	return plain_driver.cuInit && plain_driver.cuInit(0) == CUDA_SUCCESS;
}
