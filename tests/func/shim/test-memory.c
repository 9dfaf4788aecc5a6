/*
 * test-memory.c: a program under the shim in which one allocation of the shim's fails: each in
 * turn, until a run needs no more. The program must not notice: every call succeeds and every
 * launch reaches the driver, managed or not.
 *
 * The shim is linked in, and its calls for memory, and for its thread, go through the functions
 * below (the linker's --wrap). Needs a running sbeetd, see meson.build. Each run is a child of its
 * own.
 */
#include <cuda.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fake/fake.h"

#define LAUNCHES   5
#define NOT_FAILED 42 /* exit code: all was well, and nothing failed */
#define TIMEOUT_S  60 /* a hang ends in a failure */

static _Atomic long left; /* calls until the one that fails; below 0: it was */

static bool fails(void) {
	return atomic_fetch_sub(&left, 1) == 0;
}

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
char *__real_strdup(const char *s);
char *__real_strndup(const char *s, size_t n);
void *__real_mmap(void *p, size_t n, int protection, int flags, int fd, off_t at);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *data);

void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
char *__wrap_strdup(const char *s);
char *__wrap_strndup(const char *s, size_t n);
int __wrap_asprintf(char **ret, const char *format, ...) __attribute__((format(printf, 2, 3)));
void *__wrap_mmap(void *p, size_t n, int protection, int flags, int fd, off_t at);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *data);

void *__wrap_malloc(size_t n) {
	return fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size) {
	return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n) {
	return fails() ? NULL : __real_realloc(p, n);
}

char *__wrap_strdup(const char *s) {
	return fails() ? NULL : __real_strdup(s);
}

char *__wrap_strndup(const char *s, size_t n) {
	return fails() ? NULL : __real_strndup(s, n);
}

int __wrap_asprintf(char **ret, const char *format, ...) {
	va_list args;
	int n;

	if (fails()) {
		return -1;
	}
	va_start(args, format);
	n = vasprintf(ret, format, args);
	va_end(args);
	return n;
}

void *__wrap_mmap(void *p, size_t n, int protection, int flags, int fd, off_t at) {
	return fails() ? MAP_FAILED : __real_mmap(p, n, protection, flags, fd, at);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *data) {
	return fails() ? 11 : __real_pthread_create(thread, attr, run, data);
}

/* Ends the run where something is not as without the shim. */
static void must(const char *what, bool holds) {
	if (!holds) {
		fprintf(stderr, "%s\n", what);
		exit(1);
	}
}

#define MUST(call) must(#call, (call) == CUDA_SUCCESS)

static void launch(CUfunction f, CUstream stream) {
	MUST(cuLaunchKernel(f, 8, 1, 1, 32, 1, 1, 0, stream, NULL, NULL));
}

/* Each thing that the shim keeps something for. */
static void be_program(void) {
	static const char text[] =
		".version 7.0\n.target sm_75\n.address_size 64\n"
		".visible .entry nothing() { ret; }\n";
	CUfunction function;
	CUcontext context;
	CUlinkState link;
	CUstream stream;
	CUmodule module;
	char host[16];

	MUST(cuInit(0));
	MUST(cuDevicePrimaryCtxRetain(&context, 0));
	MUST(cuCtxSetCurrent(context));
	MUST(cuLinkCreate(0, NULL, NULL, &link));
	MUST(cuLinkAddData(link, CU_JIT_INPUT_PTX, (void *)text, sizeof(text), "", 0, NULL, NULL));
	MUST(cuLinkDestroy(link));
	MUST(cuModuleLoadData(&module, text));
	MUST(cuModuleGetFunction(&function, module, "nothing"));
	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	launch(function, NULL);
	launch(function, stream);
	launch(function, CU_STREAM_PER_THREAD);
	MUST(cuCtxSynchronize());
	launch(function, NULL);
	MUST(cuMemcpyDtoH(host, 0x1000, sizeof(host)));
	MUST(cuStreamDestroy(stream));
	launch(function, NULL);
	MUST(cuCtxSynchronize());
	MUST(cuModuleUnload(module));
	MUST(cuDevicePrimaryCtxRelease(0));
	must("each launch reaches the driver", fake_launches() + fake_twin_launches() == LAUNCHES);
}

/* Return: the exit code of a run whose call number @n fails. */
static int run(long n) {
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		alarm(TIMEOUT_S);
		atomic_store(&left, n);
		be_program();
		exit(atomic_load(&left) < 0 ? 0 : NOT_FAILED);
	}
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(void) {
	long n = 0;
	int code;

	unsetenv("SBEET_REQUIRE"); /* what fails here leaves the program unmanaged */
	setenv("SBEET_LOG", "error", 1);
	while ((code = run(n)) == 0) {
		n++;
	}
	printf("%ld calls failed in turn\n", n);
	if (code != NOT_FAILED) {
		printf("run %ld ends with %d\n", n, code);
		return 1;
	}
	return n < 20; /* a run needs more than that */
}
