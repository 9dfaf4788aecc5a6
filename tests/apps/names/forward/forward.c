/*
 * forward.c: a libcuda.so.1 that passes every call on to another one, $NAMES_DRIVER, as WSL's does.
 * Each function of its own is a jump. So cuGetProcAddress() answers with the other one's functions.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define ENTRY(name, symbol, since, per_thread) THREAD(symbol)
#define THREAD(symbol)                                                              \
	void *to_##symbol __attribute__((visibility("hidden")));                    \
	__asm__(".globl " #symbol "\n.type " #symbol ", @function\n.p2align 4\n" #symbol \
		":\n\tendbr64\n\tjmp *to_" #symbol "(%rip)\n");
#include "tests/simgpu/driver.def"
#undef THREAD

__attribute__((constructor)) static void start(void) {
	const char *path = getenv("NAMES_DRIVER");
	void *driver = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;

	if (!driver) {
		fprintf(stderr, "forward: no driver behind this one\n");
		abort();
	}
#define THREAD(symbol) to_##symbol = dlsym(driver, #symbol);
#include "tests/simgpu/driver.def"
}
