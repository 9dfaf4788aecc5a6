/*
 * terms.c: preloaded into periodic, gives it a level and a set of SMs once, at its start, without
 *anybody to ask, and writes down where the time of each of its jobs went.
 *
 * PROBE_LEVEL	the stream's priority, 0 to -5; "edf": at each job's begin -5 and one less for each
 *open job of others with an earlier deadline (PROBE_SLOT, PROBE_DEADLINE_NS: this task's) PROBE_SET
 *groups of 8 SMs that make its green context, as "0-7" or "3,5-6"; 16: what is left of the GPU
 * PROBE_HELD	1: copies to the GPU go in pieces (PROBE_PIECE_MIB, 4), each behind a wait for a word
 *(cuStreamWaitValue32) that a thread keeps closed while a task with an earlier deadline copies; 2: only
 *for tasks whose relative deadline is at most half of this one's
 * PROBE_EMPTY	1: jobs (but the first 4) launch empty kernels; 2: and copy 4 bytes
 * PROBE_TRACE	a file: a line for each job, times in ns of CLOCK_MONOTONIC: first call, return of
 *that call (behind a grant, if somebody gives grants), copy to the GPU done, last kernel done, copy
 *back done, synchronised; launches, sum of their kernels' times, time from the first's begin to the
 *last's end
 *
 * A kernel's time is from the begin of its first block to the end of its last one, by %globaltimer,
 *which code added to its PTX stores: that is two stores a launch.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "probe.h"

#define JOBS_MAX   8192
#define STAMPS_MAX (1u << 22)
#define SLOTS	   32
#define GROUP	   8
#define WARM_JOBS  4


struct page {
	_Atomic uint64_t deadline[SLOTS]; /* of the open job; 0: none */
	_Atomic uint64_t copying[SLOTS];  /* of the one whose copy to the GPU is open */
	_Atomic uint64_t relative[SLOTS]; /* the task's own */
};

static struct job {
	double call, issued, done;
	unsigned first_launch, n_launches;
	CUevent copied_in, computed, copied_out;
} jobs[JOBS_MAX];

static unsigned n_jobs, n_launches;
static bool open_job, dynamic, held, soft;
static size_t piece;
static volatile uint32_t *gate; /* pinned; 1: open */
static CUdeviceptr gate_dev;
static volatile uint32_t *copied; /* pinned: how many copies are done */
static CUdeviceptr copied_dev;
static _Atomic uint32_t n_copies; /* issued */
static int empty;
static const char *trace;
static struct page *page;
static unsigned slot;
static uint64_t deadline_ns;
static CUstream app, level_stream[6], current;
static CUdeviceptr stamps; /* STAMPS_MAX pairs: begin, end */
static CUfunction empty_kernel;

#define REAL(name)                                                                  \
	({                                                                          \
		static __typeof__(&name) real_function;                             \
		if (!real_function) {                                               \
			real_function = (__typeof__(&name))dlsym(RTLD_NEXT, #name); \
		}                                                                   \
		real_function;                                                      \
	})

/* Clocks: events count from one that was recorded when the host's clock was here. */
struct anchor {
	CUevent event;
	double host_us;
};
static struct anchor first_anchor, last_anchor;

static void anchor(struct anchor *a) {
	double best = 1e12;
	CUevent event;

	for (int i = 0; i < 40; i++) {
		double t0, t1;

		CHECK(cuEventCreate(&event, CU_EVENT_DEFAULT));
		t0 = now_us();
		CHECK(REAL(cuEventRecord)(event, current));
		CHECK(REAL(cuStreamSynchronize)(current));
		t1 = now_us();
		if (t1 - t0 < best) {
			best = t1 - t0;
			a->event = event;
			a->host_us = (t0 + t1) / 2;
		}
	}
}

static double event_us(CUevent event, double scale) {
	float ms;

	CHECK(cuEventElapsedTime(&ms, first_anchor.event, event));
	return first_anchor.host_us + (double)ms * 1000 * scale;
}

static void write_trace(void) {
	FILE *f = fopen(trace, "w");
	uint64_t *stamp = malloc(STAMPS_MAX * 2 * sizeof(*stamp));
	float ms;
	double scale;

	CHECK(cuCtxSynchronize());
	CHECK(cuMemcpyDtoH(stamp, stamps, STAMPS_MAX * 2 * sizeof(*stamp)));
	anchor(&last_anchor);
	CHECK(cuEventElapsedTime(&ms, first_anchor.event, last_anchor.event));
	scale = (last_anchor.host_us - first_anchor.host_us) / ((double)ms * 1000);
	for (unsigned i = 0; i < n_jobs && f; i++) {
		struct job *j = &jobs[i];
		uint64_t sum = 0, span = 0;

		for (unsigned k = 0; k < j->n_launches; k++) {
			uint64_t *s = &stamp[2 * ((j->first_launch + k) % STAMPS_MAX)];

			sum += s[1] - s[0];
			span = s[1] - stamp[2 * (j->first_launch % STAMPS_MAX)];
		}
		fprintf(f, "%.0f %.0f %.0f %.0f %.0f %.0f %u %lu %lu\n", j->call * 1e3,
			j->issued * 1e3, event_us(j->copied_in, scale) * 1e3,
			event_us(j->computed, scale) * 1e3, event_us(j->copied_out, scale) * 1e3,
			j->done * 1e3, j->n_launches, empty ? 0 : sum, empty ? 0 : span);
	}
	if (!f || fclose(f) != 0) {
		perror(trace);
	}
	free(stamp);
}

/* "0-7", "3,5-6": bits. */
static unsigned parse_set(const char *text) {
	unsigned set = 0;
	char *end;

	while (*text) {
		unsigned a = (unsigned)strtoul(text, &end, 10), b = a;

		if (*end == '-') {
			b = (unsigned)strtoul(end + 1, &end, 10);
		}
		for (; a <= b; a++) {
			set |= 1u << a;
		}
		text = *end ? end + 1 : end;
	}
	return set;
}

static CUgreenCtx green_context(const char *text) {
	CUdevResource all, group[17], chosen[17];
	CUdevResourceDesc desc;
	CUgreenCtx green;
	CUdevice device;
	unsigned n = 16, n_chosen = 0, set = parse_set(text);

	CHECK(cuCtxGetDevice(&device));
	CHECK(cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM));
	CHECK(cuDevSmResourceSplitByCount(group, &n, &all, &group[16], 0, GROUP));
	for (unsigned i = 0; i < 17; i++) {
		if (set & 1u << i && (i < n || i == 16)) {
			chosen[n_chosen++] = group[i];
		}
	}
	CHECK(cuDevResourceGenerateDesc(&desc, chosen, n_chosen));
	CHECK(cuGreenCtxCreate(&green, desc, device, CU_GREEN_CTX_DEFAULT_STREAM));
	return green;
}

/* No call into the driver: it would hold up the thread that launches. */
static void *keep_gate(void *userdata) {
	(void)userdata;
	for (;;) {
		uint64_t mine = page->deadline[slot];
		bool wait = false;

		if (page->copying[slot] && *copied == n_copies) {
			page->copying[slot] = 0;
		}
		for (unsigned i = 0; i < SLOTS; i++) {
			uint64_t other = page->copying[i];

			wait |= i != slot && other && mine &&
				(soft ? page->relative[i] * 2 <= deadline_ns : other < mine);
		}
		*gate = !wait;
	}
	return NULL;
}

static void make_gate(void) {
	pthread_t thread;

	CHECK(cuMemHostAlloc((void **)&gate, 2 * sizeof(*gate), CU_MEMHOSTALLOC_DEVICEMAP));
	CHECK(cuMemHostGetDevicePointer(&gate_dev, (void *)gate, 0));
	copied = gate + 1;
	copied_dev = gate_dev + sizeof(*gate);
	*gate = 1;
	*copied = 0;
	page->copying[slot] = 0;
	CHECK(pthread_create(&thread, NULL, keep_gate, NULL));
	pthread_detach(thread);
}

static CUresult copy_held(CUdeviceptr to, const char *from, size_t n) {
	CUresult result = CUDA_SUCCESS;

	n_copies++;
	page->copying[slot] = page->deadline[slot];
	for (size_t at = 0; at < n && result == CUDA_SUCCESS; at += piece) {
		CHECK(cuStreamWaitValue32(current, gate_dev, 1, CU_STREAM_WAIT_VALUE_GEQ));
		result = REAL(cuMemcpyHtoDAsync_v2)(to + at, from + at,
						    n - at < piece ? n - at : piece, current);
	}
	CHECK(cuStreamWriteValue32(current, copied_dev, n_copies, CU_STREAM_WRITE_VALUE_DEFAULT));
	return result;
}

static long number(const char *name, long otherwise) {
	const char *value = getenv(name);

	return value ? strtol(value, NULL, 10) : otherwise;
}

static void load_empty_kernel(void) {
	CUmodule module;

	CHECK(REAL(cuModuleLoadData)(&module,
				     ".version 7.0\n.target sm_75\n.address_size 64\n"
				     ".visible .entry nothing()\n{\n\tret;\n}\n"));
	CHECK(cuModuleGetFunction(&empty_kernel, module, "nothing"));
}

/* periodic makes one stream, after its first module. */
CUresult cuStreamCreate(CUstream *ret, unsigned flags) {
	const char *level = getenv("PROBE_LEVEL"), *set = getenv("PROBE_SET");
	CUgreenCtx green = set ? green_context(set) : NULL;

	dynamic = level && strcmp(level, "edf") == 0;
	for (int i = 0; i < 6; i++) {
		if (!dynamic && i != -number("PROBE_LEVEL", 0)) {
			continue;
		}
		if (green) {
			CHECK(cuGreenCtxStreamCreate(&level_stream[i], green,
						     CU_STREAM_NON_BLOCKING, -i));
		} else {
			CHECK(cuStreamCreateWithPriority(&level_stream[i], flags, -i));
		}
		current = level_stream[i];
	}
	app = *ret = current;
	empty = (int)number("PROBE_EMPTY", 0);
	if (empty) {
		load_empty_kernel();
	}
	slot = (unsigned)number("PROBE_SLOT", 0) % SLOTS;
	deadline_ns = (uint64_t)number("PROBE_DEADLINE_NS", 1);
	page = shared_page(sizeof(*page));
	page->deadline[slot] = 0;
	page->relative[slot] = deadline_ns;
	held = number("PROBE_HELD", 0) != 0;
	soft = number("PROBE_HELD", 0) == 2;
	piece = (size_t)number("PROBE_PIECE_MIB", 4) << 20;
	if (held) {
		make_gate();
	}
	if (trace) {
		for (unsigned i = 0; i < JOBS_MAX; i++) {
			CHECK(cuEventCreate(&jobs[i].copied_in, CU_EVENT_DEFAULT));
			CHECK(cuEventCreate(&jobs[i].computed, CU_EVENT_DEFAULT));
			CHECK(cuEventCreate(&jobs[i].copied_out, CU_EVENT_DEFAULT));
		}
		anchor(&first_anchor);
		atexit(write_trace); /* before the driver's own end */
	}
	return CUDA_SUCCESS;
}

#define SHARED_CODE                                                  \
	"\tmov.u32 %probe_a, %tid.x;\n\tmov.u32 %probe_b, %tid.y;\n" \
	"\tor.b32 %probe_a, %probe_a, %probe_b;\n"
#define BEGIN_CODE                                                                                \
	"\n{\n\t.reg .pred %probe_p;\n\t.reg .b32 %probe_a, %probe_b;\n"                          \
	"\t.reg .b64 %probe_n, %probe_at, %probe_t;\n" SHARED_CODE                                \
	"\tmov.u32 %probe_b, %ctaid.x;\n\tor.b32 %probe_a, %probe_a, %probe_b;\n"                 \
	"\tmov.u32 %probe_b, %ctaid.y;\n\tor.b32 %probe_a, %probe_a, %probe_b;\n"                 \
	"\tsetp.ne.u32 %probe_p, %probe_a, 0;\n\t@%probe_p bra PROBE_BEGUN;\n"                    \
	"\tld.volatile.global.u64 %probe_n, [probe_n];\n\tld.global.u64 %probe_at, [probe_at];\n" \
	"\tand.b64 %probe_n, %probe_n, 4194303;\n\tshl.b64 %probe_n, %probe_n, 4;\n"              \
	"\tadd.u64 %probe_at, %probe_at, %probe_n;\n\tmov.u64 %probe_t, %globaltimer;\n"          \
	"\tst.volatile.global.u64 [%probe_at], %probe_t;\nPROBE_BEGUN:\n}\n"
#define END_CODE                                                                                  \
	"\n{\n\t.reg .pred %probe_p;\n\t.reg .b32 %probe_a, %probe_b, %probe_c;\n"                \
	"\t.reg .b64 %probe_n, %probe_m, %probe_at, %probe_t;\n" SHARED_CODE                      \
	"\tmov.u32 %probe_b, %ctaid.x;\n\tadd.u32 %probe_b, %probe_b, 1;\n"                       \
	"\tmov.u32 %probe_c, %nctaid.x;\n\txor.b32 %probe_b, %probe_b, %probe_c;\n"               \
	"\tor.b32 %probe_a, %probe_a, %probe_b;\n"                                                \
	"\tmov.u32 %probe_b, %ctaid.y;\n\tadd.u32 %probe_b, %probe_b, 1;\n"                       \
	"\tmov.u32 %probe_c, %nctaid.y;\n\txor.b32 %probe_b, %probe_b, %probe_c;\n"               \
	"\tor.b32 %probe_a, %probe_a, %probe_b;\n"                                                \
	"\tsetp.ne.u32 %probe_p, %probe_a, 0;\n\t@%probe_p bra PROBE_ENDED;\n"                    \
	"\tld.volatile.global.u64 %probe_n, [probe_n];\n\tld.global.u64 %probe_at, [probe_at];\n" \
	"\tand.b64 %probe_m, %probe_n, 4194303;\n\tshl.b64 %probe_m, %probe_m, 4;\n"              \
	"\tadd.u64 %probe_at, %probe_at, %probe_m;\n\tmov.u64 %probe_t, %globaltimer;\n"          \
	"\tst.volatile.global.u64 [%probe_at+8], %probe_t;\n\tadd.u64 %probe_n, %probe_n, 1;\n"   \
	"\tst.volatile.global.u64 [probe_n], %probe_n;\nPROBE_ENDED:\n}\n\tret;"

/* periodic's modules have one kernel with one "ret;". */
static char *with_stamps(const char *ptx) {
	const char *entry = strstr(ptx, ".visible .entry"), *body, *ret;
	char *text = malloc(strlen(ptx) + 8192);

	body = strchr(strchr(entry, ')'), '{') + 1;
	ret = strstr(body, "\tret;");
	sprintf(text, "%.*s\n.global .u64 probe_n, probe_at;\n%.*s%s%.*s%s%s", (int)(entry - ptx),
		ptx, (int)(body - entry), entry, BEGIN_CODE, (int)(ret - body), body, END_CODE,
		ret + strlen("\tret;"));
	return text;
}

CUresult cuModuleLoadData(CUmodule *ret, const void *image) {
	CUdeviceptr at;
	CUresult result;
	char *text;

	trace = getenv("PROBE_TRACE");
	if (!trace || stamps) {
		return REAL(cuModuleLoadData)(ret, image);
	}
	text = with_stamps(image);
	result = REAL(cuModuleLoadData)(ret, text);
	free(text);
	CHECK(result);
	CHECK(cuMemAlloc(&stamps, STAMPS_MAX * 16));
	CHECK(cuMemsetD8(stamps, 0, STAMPS_MAX * 16));
	CHECK(cuModuleGetGlobal(&at, NULL, *ret, "probe_at"));
	CHECK(cuMemcpyHtoD(at, &stamps, sizeof(stamps)));
	return result;
}

static CUstream place(CUstream stream) {
	return stream == app ? current : stream;
}

/* The first of a job's calls. */
static void begin_job(void) {
	uint64_t now = (uint64_t)(now_us() * 1e3), mine = now + deadline_ns;
	int rank = 0;

	open_job = true;
	jobs[n_jobs].call = now_us();
	jobs[n_jobs].first_launch = n_launches;
	page->deadline[slot] = mine;
	if (!dynamic) {
		return;
	}
	for (unsigned i = 0; i < SLOTS; i++) {
		uint64_t other = page->deadline[i];

		rank += i != slot && other && other < mine;
	}
	current = level_stream[rank > 5 ? 0 : 5 - rank];
}

static bool replaced(void) {
	return empty && n_jobs >= WARM_JOBS;
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t n, CUstream stream) {
	CUresult result;

	begin_job();
	n = empty == 2 && replaced() ? 4 : n;
	result = held ? copy_held(to, from, n)
		      : REAL(cuMemcpyHtoDAsync_v2)(to, from, n, place(stream));
	jobs[n_jobs].issued = now_us();
	if (trace) {
		CHECK(REAL(cuEventRecord)(jobs[n_jobs].copied_in, current));
	}
	return result;
}

CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t n, CUstream stream) {
	CUresult result;

	if (trace) {
		CHECK(REAL(cuEventRecord)(jobs[n_jobs].computed, current));
	}
	n = empty == 2 && replaced() ? 4 : n;
	result = REAL(cuMemcpyDtoHAsync_v2)(to, from, n, place(stream));
	if (trace) {
		CHECK(REAL(cuEventRecord)(jobs[n_jobs].copied_out, current));
	}
	return result;
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t n, CUstream stream) {
	return replaced() ? CUDA_SUCCESS : REAL(cuMemsetD32Async)(to, value, n, place(stream));
}

CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
			unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params,
			void **extra) {
	n_launches++;
	if (replaced()) {
		return REAL(cuLaunchKernel)(empty_kernel, 1, 1, 1, 1, 1, 1, 0, place(stream), NULL,
					    NULL);
	}
	return REAL(cuLaunchKernel)(f, gx, gy, gz, bx, by, bz, shared, place(stream), params,
				    extra);
}

CUresult cuStreamSynchronize(CUstream stream) {
	CUresult result = REAL(cuStreamSynchronize)(place(stream));

	if (open_job && stream == app) {
		jobs[n_jobs].done = now_us();
		jobs[n_jobs].n_launches = n_launches - jobs[n_jobs].first_launch;
		page->deadline[slot] = 0;
		open_job = false;
		if (n_jobs + 1 < JOBS_MAX) {
			n_jobs++;
		}
	}
	return result;
}
