/*
 * count-launch.c: what libsbeet.so does between the program and the driver at each operation of an
 * open job, and at the job's start and end: how many instructions, which of them lock a cache line
 * or fence, how often it asks the clock, the kernel and the driver, and how many cache lines and
 * pages of code and of data it touches, which is what it costs after a pause, when nothing is
 * cached. Counted one by one (the program is single-stepped), so the figures are the same on any
 * machine, however busy. Nothing within the driver counts.
 *
 * Prints one JSON line an operation; with COUNT_LINES set also where the lines are, to stderr. Run
 * by count-launch.sh, which says under which conditions.
 *
 * usage: count-launch CASE
 */
#include <cuda.h>
#include <dlfcn.h>
#include <err.h>
#include <link.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "touched.h"

#define TURNS 31 /* of each operation; that of the fewest instructions counts */
#define BYTES 64
#define CALLS 16 /* different functions of the driver in one operation */

#define NOTHING ".address_size 64\n.visible .entry nothing() { ret; }\n"

/* For GPUs of any kind; with SBEET_DEPENDENT=1 one that is launched as a dependent kernel. */
static const char *image(void) {
	return getenv("SBEET_DEPENDENT") ? ".version 7.8\n.target sm_90\n" NOTHING
					 : ".version 7.0\n.target sm_75\n" NOTHING;
}

/* ---- the program that is watched ---- */

static CUfunction function;
static CUkernel kernel;
static CUstream stream;
static CUdeviceptr memory;
static char host[BYTES];

static void check(CUresult rc) {
	if (rc != CUDA_SUCCESS) {
		errx(2, "CUDA error %d", rc);
	}
}

static void launch_default(void) {
	check(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
}

static void launch_stream(void) {
	check(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL));
}

static void copy_stream(void) {
	check(cuMemcpyHtoDAsync_v2(memory, host, BYTES, stream));
}

/* Libraries of NVIDIA's do so before each launch. */
static void find_function(void) {
	CUfunction found;

	check(cuKernelGetFunction(&found, kernel));
}

static void wait_for_all(void) {
	check(cuCtxSynchronize());
}

static const struct operation {
	const char *name;
	void (*run)(void);
	void (*before)(void); /* each time; NULL: nothing */
} operations[] = {
	{"launch, default stream", launch_default, NULL},
	{"launch, own stream", launch_stream, NULL},
	{"copy, own stream", copy_stream, NULL},
	{"function of a kernel", find_function, NULL},
	{"launch that opens a job", launch_stream, wait_for_all},
	{"wait that ends it", wait_for_all, launch_stream},
};
#define OPERATIONS (sizeof(operations) / sizeof(operations[0]))

/* Stops for the parent, which steps from the first of two to the second. */
static void mark(void) {
	__asm__ volatile("int3" ::: "memory");
}

static void watched(void) {
	CUcontext context;
	CUlibrary library;
	CUmodule module;

	check(cuInit(0));
	check(cuDevicePrimaryCtxRetain(&context, 0));
	check(cuCtxSetCurrent(context));
	check(cuModuleLoadData(&module, image()));
	check(cuModuleGetFunction(&function, module, "nothing"));
	check(cuLibraryLoadData(&library, image(), NULL, NULL, 0, NULL, NULL, 0));
	check(cuLibraryGetKernel(&kernel, library, "nothing"));
	check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	check(cuMemAlloc_v2(&memory, BYTES));
	for (size_t i = 0; i < OPERATIONS; i++) {
		operations[i].run();
		operations[i].run(); /* the first one met the stream */
		for (unsigned turn = 0; turn < TURNS; turn++) {
			if (operations[i].before) {
				operations[i].before();
			}
			mark();
			operations[i].run();
			mark();
		}
	}
	check(cuCtxSynchronize());
}

/* ---- the counting ---- */

struct count {
	unsigned instructions, locked, clock, system_calls, driver;
	struct touched code, data; /* of the turn */
	struct {
		const char *name;
		unsigned n;
	} calls[CALLS];
};

/* Of a library, or the program itself, from its first segment to its last. */
struct range {
	const char *name;
	uintptr_t begin, end;
};

static struct range shim = {.name = "libsbeet.so"}, driver = {.name = "libcuda.so.1"},
		    program = {.name = ""}, vdso;

static int look_at(struct dl_phdr_info *info, size_t size, void *data) {
	struct range *list[] = {&shim, &driver, &program};
	const char *slash = strrchr(info->dlpi_name, '/');
	const char *name = slash ? slash + 1 : info->dlpi_name;
	bool is_vdso = info->dlpi_addr == getauxval(AT_SYSINFO_EHDR);

	for (size_t i = 0; i < 4; i++) {
		struct range *r = i < 3 ? list[i] : &vdso;

		if (i < 3 ? is_vdso || strcmp(name, r->name) != 0 : !is_vdso) {
			continue;
		}
		r->begin = UINTPTR_MAX;
		for (int j = 0; j < info->dlpi_phnum; j++) {
			uintptr_t at = info->dlpi_addr + info->dlpi_phdr[j].p_vaddr;

			if (info->dlpi_phdr[j].p_type == PT_LOAD) {
				r->begin = at < r->begin ? at : r->begin;
				r->end = at + info->dlpi_phdr[j].p_memsz;
			}
		}
		break;
	}
	return 0;
}

static bool within(const struct range *r, uintptr_t at) {
	return at >= r->begin && at < r->end;
}

/* Does the instruction take a cache line for itself, or wait for all stores? */
static bool locks(const unsigned char *i) {
	while (*i == 0x66 || (*i & 0xF0) == 0x40) {
		i++;
	}
	return *i == 0xF0 || ((*i == 0x86 || *i == 0x87) && i[1] < 0xC0) ||
	       (i[0] == 0x0F && i[1] == 0xAE && i[2] == 0xF0);
}

static void add_call(struct count *c, uintptr_t at) {
	Dl_info info = {.dli_sname = NULL};
	const char *name = dladdr((void *)at, &info) && info.dli_sname ? info.dli_sname : "?";
	size_t i = 0;

	c->driver++;
	while (i < CALLS - 1 && c->calls[i].name && strcmp(c->calls[i].name, name) != 0) {
		i++;
	}
	c->calls[i].name = name;
	c->calls[i].n++;
}

static void wait_mark(pid_t pid) {
	int status;

	while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
		if (WSTOPSIG(status) == SIGTRAP) {
			return;
		}
		ptrace(PTRACE_CONT, pid, NULL, WSTOPSIG(status)); /* somebody else's signal */
	}
	errx(2, "the program ended with status %#x", status);
}

/* One instruction, or to the next mark. */
static void go_on(pid_t pid, enum __ptrace_request how) {
	if (ptrace(how, pid, NULL, NULL) < 0) {
		err(2, "ptrace");
	}
	wait_mark(pid);
}

static uintptr_t where(pid_t pid, struct user_regs_struct *ret) {
	if (ptrace(PTRACE_GETREGS, pid, NULL, ret) < 0) {
		err(2, "registers");
	}
	return ret->rip;
}

static void touch(struct count *c, const struct user_regs_struct *regs) {
	const unsigned char *code = (const unsigned char *)regs->rip;
	uintptr_t data[2];

	touched_add(&c->code, regs->rip);
	for (unsigned n = touched_by(code, regs, data); n > 0; n--) {
		touched_add(&c->data, data[n - 1]);
	}
}

/* From one mark to the next. The program, the shim and the C library stand where they stand in this
 * process, which has not begun anything else when it forks. */
static void step_through(pid_t pid, struct count *c) {
	bool in_driver = false, in_vdso = false;
	struct user_regs_struct regs;
	uintptr_t at;

	for (;;) {
		go_on(pid, PTRACE_SINGLESTEP);
		at = where(pid, &regs);
		if (within(&program, at)) {
			in_driver = false;
			if (*(const unsigned char *)at == 0xCC) {
				go_on(pid, PTRACE_CONT);
				return;
			}
			continue;
		}
		if (!in_driver && within(&driver, at)) {
			add_call(c, at);
			in_driver = true;
		} else if (within(&shim, at)) {
			in_driver = false;
		}
		if (in_driver) {
			continue;
		}
		touch(c, &regs);
		c->instructions++;
		c->locked += locks((const unsigned char *)at);
		c->system_calls += memcmp((const void *)at, "\x0F\x05", 2) == 0;
		c->clock += within(&vdso, at) && !in_vdso;
		in_vdso = within(&vdso, at);
	}
}

static int compare(const void *a, const void *b) {
	const struct count *x = a, *y = b;

	return (x->instructions > y->instructions) - (x->instructions < y->instructions);
}

static void say(const char *condition, const char *operation, const struct count *c) {
	printf("{\"bench\":\"count-launch\",\"case\":\"%s\",\"operation\":\"%s\","
	       "\"instructions\":%u,\"locked\":%u,\"clock\":%u,\"system_calls\":%u,"
	       "\"code_lines\":%u,\"code_pages\":%u,\"data_lines\":%u,\"data_pages\":%u,"
	       "\"driver\":%u,\"driver_calls\":\"",
	       condition, operation, c->instructions, c->locked, c->clock, c->system_calls,
	       c->code.n, touched_pages(&c->code), c->data.n, touched_pages(&c->data), c->driver);
	for (size_t i = 0; i < CALLS && c->calls[i].name; i++) {
		printf("%s%s %u", i ? ", " : "", c->calls[i].name, c->calls[i].n);
	}
	printf("\"}\n");
}

/* Where the lines are: in which library, how far from its begin; else the address. */
static void say_lines(const char *operation, const char *kind, const struct touched *t) {
	for (unsigned i = 0; i < t->n; i++) {
		bool ours = within(&shim, t->lines[i]);
		Dl_info info = {.dli_fname = "?"};

		dladdr((void *)t->lines[i], &info);
		fprintf(stderr, "%s: %s %s %#lx\n", operation, kind, ours ? "shim" : info.dli_fname,
			t->lines[i] - (ours ? shim.begin : (uintptr_t)info.dli_fbase));
	}
}

int main(int argc, char **argv) {
	static struct count counts[TURNS];
	pid_t pid;

	if (argc != 2) {
		errx(2, "usage: count-launch CASE");
	}
	dl_iterate_phdr(look_at, NULL);
	if (!shim.end || !driver.end) {
		errx(2, "libsbeet.so is not preloaded");
	}
	pid = fork();
	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0) {
			err(2, "ptrace");
		}
		mark();
		watched();
		_exit(0);
	}
	wait_mark(pid);
	for (size_t i = 0; i < OPERATIONS; i++) {
		for (unsigned turn = 0; turn < TURNS; turn++) {
			go_on(pid, PTRACE_CONT);
			counts[turn] = (struct count){0};
			step_through(pid, &counts[turn]);
		}
		qsort(counts, TURNS, sizeof(counts[0]), compare);
		say(argv[1], operations[i].name, &counts[0]);
		if (getenv("COUNT_LINES")) {
			say_lines(operations[i].name, "code", &counts[0].code);
			say_lines(operations[i].name, "data", &counts[0].data);
		}
	}
	ptrace(PTRACE_DETACH, pid, NULL, NULL);
	waitpid(pid, NULL, 0);
	return 0;
}
