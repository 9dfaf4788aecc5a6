/*
 * guest.c: a CUDA program that does what it is told on standard input, under libsbeet.so and the
 * fake driver. A line "@T COMMAND [N]" is run by thread T (0 to 3) of the program, which then
 * writes "T COMMAND RESULT". The main thread only reads, so one thread may wait while others go on.
 */
#include <cuda.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "shim/sbeet.h"
#include "tests/fake/fake.h"

#ifndef sigev_notify_thread_id /* older C libraries have no name for it */
#define sigev_notify_thread_id _sigev_un._tid
#endif

#define THREADS 4
#define FILES	300
#define ERRNO	4242

struct guest_thread {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	bool started;
	char command[64]; /* empty: nothing to do */
	int index;
};

static struct guest_thread threads[THREADS];
static CUstream stream;
static CUevent event;
static CUgraph graph;
static int files[FILES];

/* Called by thread sanitizer. libsbeet.so looks whether a descriptor is still its own, which
 * another thread may be closing or opening again just then. */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void) {
	return "race:own_socket_\n";
}

static int do_init(int n) {
	int rc = cuInit(0);

	return rc ? rc : n;
}

/* Makes device @n's context current. */
static int do_device(int n) {
	CUcontext context = NULL;
	int rc = cuDevicePrimaryCtxRetain(&context, n);

	return rc ? rc : (int)cuCtxSetCurrent(context);
}

static int launch_on(CUstream s, int n) {
	int rc = 0;

	for (int i = 0; i < (n ? n : 1) && rc == 0; i++) {
		rc = cuLaunchKernel(FAKE_KERNEL, 2, 3, 4, 32, 2, 1, 0, s, NULL, NULL);
	}
	return rc;
}

static int do_launch(int n) {
	return launch_on(NULL, n);
}

/* So many blocks, of the same size as other launches' are. */
static int do_blocks(int n) {
	return cuLaunchKernel(FAKE_KERNEL, (unsigned)n, 1, 1, 32, 2, 1, 0, NULL, NULL, NULL);
}

static int do_stream_launch(int n) {
	return launch_on(stream, n);
}

static int do_thread_launch(int n) {
	return launch_on(CU_STREAM_PER_THREAD, n);
}

static int do_copy(int n) {
	char host[16] = {0};

	return cuMemcpyHtoD(0x1000, host, sizeof(host));
}

static int do_fetch(int n) {
	char host[16];

	return cuMemcpyDtoH(host, 0x1000, sizeof(host));
}

/* The driver alone knows where such a copy goes to. */
static int do_unified(int n) {
	char host[16];

	return cuMemcpy((CUdeviceptr)(uintptr_t)host, 0, 0);
}

static int do_sync(int n) {
	return cuCtxSynchronize();
}

static int do_stream(int n) {
	return cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
}

static int do_stream_sync(int n) {
	return cuStreamSynchronize(stream);
}

static int do_stream_query(int n) {
	return cuStreamQuery(stream);
}

static int do_stream_destroy(int n) {
	return cuStreamDestroy(stream);
}

static int do_event(int n) {
	int rc = cuEventCreate(&event, CU_EVENT_DEFAULT);

	return rc ? rc : (int)cuEventRecord(event, stream);
}

static int do_event_sync(int n) {
	return cuEventSynchronize(event);
}

static int do_release(int n) {
	return cuDevicePrimaryCtxRelease(n);
}

static int do_context_destroy(int n) {
	CUcontext context = NULL;
	int rc = cuCtxGetCurrent(&context);

	return rc ? rc : (int)cuCtxDestroy(context);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static int do_context_attach(int n) {
	CUcontext context = NULL;

	return cuCtxAttach(&context, 0);
}

static int do_context_detach(int n) {
	CUcontext context = NULL;
	int rc = cuCtxGetCurrent(&context);

	return rc ? rc : (int)cuCtxDetach(context);
}

#pragma GCC diagnostic pop

#define NOTHING ".address_size 64\n.visible .entry nothing() { ret; }\n"

static const char nothing_ptx[] = ".version 7.8\n.target sm_90\n" NOTHING;

/* From now on the kernel that is launched is this module's. */
static int load_module(const char *text) {
	CUmodule module;
	CUfunction function;
	int rc = cuModuleLoadData(&module, text);

	return rc ? rc : (int)cuModuleGetFunction(&function, module, "nothing");
}

/* One which has a twin. */
static int do_module(int n) {
	return load_module(nothing_ptx);
}

/* The same for older GPUs. */
static int do_old_module(int n) {
	return load_module(".version 8.0\n.target sm_75\n" NOTHING);
}

/* An image with machine code for sm_90: $SBEET_TEST_CODE. */
static const char *read_code(void) {
	static char code[16384];
	const char *path = getenv("SBEET_TEST_CODE");
	FILE *f = path ? fopen(path, "re") : NULL;

	if (!f || fread(code, 1, sizeof(code), f) == 0 || fclose(f) != 0) {
		perror("SBEET_TEST_CODE");
		exit(1);
	}
	return code;
}

/* A kernel of machine code. */
static int do_code(int n) {
	CUmodule module;
	CUfunction function;
	int rc = cuModuleLoadData(&module, read_code());

	return rc ? rc : (int)cuModuleGetFunction(&function, module, "scale");
}

/* The same with at most @n registers a thread. Tells how many its twin may take. */
static int do_module_of(int n) {
	CUjit_option options[] = {CU_JIT_LOG_VERBOSE, CU_JIT_MAX_REGISTERS};
	void *values[] = {(void *)1, (void *)(uintptr_t)n};
	CUmodule module;
	int rc = cuModuleLoadDataEx(&module, nothing_ptx, 2, options, values);

	return rc ? -rc : (int)fake_twin_registers();
}

static int load_library(const char *image, const char *name) {
	CUlibraryOption option = CU_LIBRARY_BINARY_IS_PRESERVED;
	void *value = (void *)1;
	CUlibrary library;
	CUkernel kernel;
	int rc = cuLibraryLoadData(&library, image, NULL, NULL, 0, &option, &value, 1);

	return rc ? rc : (int)cuLibraryGetKernel(&kernel, library, name);
}

/* The same by a library. */
static int do_library(int n) {
	return load_library(nothing_ptx, "nothing");
}

static int do_code_library(int n) {
	return load_library(read_code(), "scale");
}

/* A module whose kernel says by itself when the next one may begin. */
static int do_module_of_its_own_way(int n) {
	return load_module(
		".version 7.8\n.target sm_90\n.address_size 64\n"
		".visible .entry nothing() { griddepcontrol.launch_dependents; ret; }\n");
}

/* A module with a log of @n bytes. Tells how many of them the driver has used, by its own words. */
static int do_module_log(int n) {
	CUjit_option options[] = {CU_JIT_LOG_VERBOSE, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
	void *values[] = {(void *)1, (void *)(uintptr_t)n};
	CUmodule module;
	int rc = cuModuleLoadDataEx(&module, nothing_ptx, 2, options, values);

	return rc ? -rc : (int)(uintptr_t)values[1];
}

/* 1: what waits first; 2: dependent launches. */
static int do_refuse(int n) {
	fake_refuse(n & 1, n & 2);
	return 0;
}

static int do_vary(int n) {
	fake_vary(n);
	return 0;
}

/* So many launches by cuLaunchKernelEx(), with another attribute if @n is odd. */
static int do_launch_ex(int n) {
	CUlaunchAttribute none = {.id = CU_LAUNCH_ATTRIBUTE_IGNORE};
	CUlaunchConfig config = {.gridDimX = 2,
				 .gridDimY = 3,
				 .gridDimZ = 4,
				 .blockDimX = 32,
				 .blockDimY = 2,
				 .blockDimZ = 1,
				 .attrs = &none,
				 .numAttrs = n & 1};
	int rc = 0;

	for (int i = 0; i < n && rc == 0; i++) {
		rc = cuLaunchKernelEx(&config, FAKE_KERNEL, NULL, NULL);
	}
	return rc;
}

/* So many launches of a kernel of which the shim knows nothing. */
static int do_other_launch(int n) {
	int rc = 0;

	for (int i = 0; i < n && rc == 0; i++) {
		rc = cuLaunchKernel((CUfunction)0x208, 2, 3, 4, 32, 2, 1, 0, NULL, NULL, NULL);
	}
	return rc;
}

static int do_cooperative_launch(int n) {
	return cuLaunchCooperativeKernel(FAKE_KERNEL, 2, 1, 1, 32, 1, 1, 0, NULL, NULL);
}

static int do_event_wait(int n) {
	return cuStreamWaitEvent(NULL, event, 0);
}

static int do_dependent_launches(int n) {
	return (int)fake_dependent_launches();
}

static int do_careless_launches(int n) {
	return (int)fake_careless_launches();
}

static int do_twin_launches(int n) {
	return (int)fake_twin_launches();
}

static int do_gate(int n) {
	fake_gate(n);
	return 0;
}

static int do_gate_wait(int n) {
	fake_gate_wait();
	return 0;
}

static int do_trampled(int n) {
	return (int)fake_trampled();
}

/* Until somebody has asked whether a stream's work is complete. */
static int do_questions_wait(int n) {
	while (fake_questions() == 0) {
		usleep(100);
	}
	return 0;
}

static int do_questions(int n) {
	return (int)fake_questions();
}

static int do_events_wait(int n) {
	fake_events_wait();
	return 0;
}

static int do_events(int n) {
	return (int)fake_events();
}

static int do_hold(int n) {
	fake_hold(n);
	return 0;
}

static int do_capture(int n) {
	return cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

static int do_capture_end(int n) {
	return cuStreamEndCapture(stream, &graph);
}

static int do_graph(int n) {
	return cuGraphLaunch((CUgraphExec)0x300, stream);
}

static int do_launches(int n) {
	return (int)fake_launches();
}

static int do_spoiled(int n) {
	return (int)fake_spoiled();
}

/* How much later than asked for this thread may wake up, in ns. */
static int do_slack(int n) {
	return prctl(PR_GET_TIMERSLACK);
}

static int do_set_slack(int n) {
	return prctl(PR_SET_TIMERSLACK, 20000UL);
}

/* errno as the program left it, after everything that may have gone on inside. */
static int do_errno(int n) {
	errno = ERRNO;
	do_copy(0);
	if (errno != ERRNO) {
		return errno;
	}
	launch_on(NULL, 1);
	cuCtxSynchronize();
	return errno == ERRNO ? 0 : errno;
}

/* As programs do that turn into a daemon, and then many files of its own. */
static int do_close_all(int n) {
	closefrom(3);
	for (int i = 0; i < FILES; i++) {
		files[i] = open("/dev/null", O_RDONLY);
	}
	return files[FILES - 1] < 0;
}

static int do_check_files(int n) {
	char byte;

	for (int i = 0; i < FILES; i++) {
		if (read(files[i], &byte, 1) != 0) {
			return i + 1;
		}
	}
	return 0;
}

static int do_fork(int n) {
	int status = -1;
	pid_t child = fork();

	if (child == 0) {
		int rc = cuInit(0);

		rc = rc ? rc : do_device(0);
		rc = rc ? rc : launch_on(NULL, 2);
		exit(rc ? rc : (int)cuCtxSynchronize());
	}
	waitpid(child, &status, 0);
	return status;
}

static int do_environment(int n) {
	const char *text = getenv("CUDA_MPS_PIPE_DIRECTORY");

	return text && strcmp(text, "/tmp/pipe-of-test") == 0;
}

static sem_t exit_may_end;

static void wait_in_exit(void) {
	while (sem_wait(&exit_may_end) != 0) {
	}
}

/* From now on exit() lasts until "end-exit". To be said before the first job: handlers are called
 * in the opposite order, so libsbeet.so's comes first. */
static int do_slow_exit(int n) {
	sem_init(&exit_may_end, 0, 0);
	return atexit(wait_in_exit);
}

static int do_exit(int n) {
	exit(n);
}

static int do_end_exit(int n) {
	return sem_post(&exit_may_end);
}

/* A child made without the handlers of pthread_atfork(), which ends by exit(). @n: so many launches
 * before. */
static int do_bare_fork(int n) {
	int status = -1;
	pid_t child = _Fork();

	if (child == 0) {
		exit(n > 0 ? launch_on(NULL, n) : 0);
	}
	waitpid(child, &status, 0);
	return status;
}

static int do_cancel(int n) {
	return pthread_cancel(threads[n].thread);
}

/* Return: 0 if the thread was cancelled. */
static int do_join(int n) {
	void *result = NULL;
	int rc = pthread_join(threads[n].thread, &result);

	threads[n].started = false;
	return rc ? rc : result != PTHREAD_CANCELED;
}

/* From now on what was standard error is closed, and its number is a file of the program's. */
static int do_reuse_stderr(int n) {
	close(STDERR_FILENO);
	return memfd_create("own", MFD_CLOEXEC) != STDERR_FILENO;
}

/* How much was written there. */
static int do_stderr_size(int n) {
	struct stat st;

	return fstat(STDERR_FILENO, &st) == 0 ? (int)st.st_size : -1;
}

/* One short job after the other, for ever. */
static int do_churn(int n) {
	int rc = do_device(n);

	while (rc == 0) {
		rc = launch_on(NULL, 1);
		rc = rc ? rc : (int)cuCtxSynchronize();
	}
	return rc;
}

/* @n short jobs, one after the other. */
static int do_jobs(int n) {
	int rc = 0;

	for (int i = 0; i < n && rc == 0; i++) {
		rc = launch_on(NULL, 1);
		rc = rc ? rc : (int)cuCtxSynchronize();
	}
	return rc;
}

/* How many descriptors are open. */
static int do_descriptors(int n) {
	for (int fd = 0; fd < 1024; fd++) {
		n += fcntl(fd, F_GETFD) >= 0;
	}
	return n;
}

/* Released @n us ago; 0: now. */
static int do_job_begin(int n) {
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	sbeet_job_begin(n ? (uint64_t)(now.tv_sec * 1000000000LL + now.tv_nsec - n * 1000LL) : 0);
	return 0;
}

/* Due after @n us. */
static int do_job_begin_within(int n) {
	sbeet_job_begin_within(0, (uint64_t)n * 1000);
	return 0;
}

static int do_job_end(int n) {
	sbeet_job_end();
	return 0;
}

/* Each digit of @n is a GPU more than its number. Return: the one of the job. */
static int do_job_gpu(int n) {
	int gpus[10], count = 0;
	char digits[12];

	snprintf(digits, sizeof(digits), "%d", n);
	for (const char *d = digits; n > 0 && *d; d++) {
		gpus[count++] = *d - '1';
	}
	return sbeet_job_gpu(gpus, (unsigned)count);
}

static int do_segment_begin(int n) {
	sbeet_segment_begin();
	return 0;
}

static int do_segment_end(int n) {
	sbeet_segment_end();
	return 0;
}

static void on_alarm(int signal) {
}

/* From now on this thread handles a signal every @n ms, as under a profiler. */
static int do_alarms(int n) {
	struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
	struct sigevent often = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM};
	struct itimerspec every = {.it_interval.tv_nsec = n * 1000000L, .it_value.tv_nsec = 1};
	timer_t timer;

	often.sigev_notify_thread_id = gettid();
	return sigaction(SIGALRM, &action, NULL) < 0 ||
	       timer_create(CLOCK_MONOTONIC, &often, &timer) < 0 ||
	       timer_settime(timer, 0, &every, NULL) < 0;
}

static const struct {
	const char *name;
	int (*run)(int n);
} commands[] = {
	{"jobs", do_jobs},
	{"job-begin", do_job_begin},
	{"job-begin-within", do_job_begin_within},
	{"job-end", do_job_end},
	{"job-gpu", do_job_gpu},
	{"segment-begin", do_segment_begin},
	{"segment-end", do_segment_end},
	{"descriptors", do_descriptors},
	{"init", do_init},
	{"device", do_device},
	{"launch", do_launch},
	{"blocks", do_blocks},
	{"stream-launch", do_stream_launch},
	{"thread-launch", do_thread_launch},
	{"copy", do_copy},
	{"fetch", do_fetch},
	{"unified", do_unified},
	{"sync", do_sync},
	{"stream", do_stream},
	{"stream-sync", do_stream_sync},
	{"stream-query", do_stream_query},
	{"stream-destroy", do_stream_destroy},
	{"event", do_event},
	{"event-sync", do_event_sync},
	{"release", do_release},
	{"context-destroy", do_context_destroy},
	{"context-attach", do_context_attach},
	{"context-detach", do_context_detach},
	{"module", do_module},
	{"old-module", do_old_module},
	{"module-of", do_module_of},
	{"module-of-its-own-way", do_module_of_its_own_way},
	{"module-log", do_module_log},
	{"library", do_library},
	{"code", do_code},
	{"code-library", do_code_library},
	{"refuse", do_refuse},
	{"vary", do_vary},
	{"launch-ex", do_launch_ex},
	{"other-launch", do_other_launch},
	{"cooperative-launch", do_cooperative_launch},
	{"event-wait", do_event_wait},
	{"dependent-launches", do_dependent_launches},
	{"careless-launches", do_careless_launches},
	{"twin-launches", do_twin_launches},
	{"gate", do_gate},
	{"gate-wait", do_gate_wait},
	{"trampled", do_trampled},
	{"questions-wait", do_questions_wait},
	{"questions", do_questions},
	{"events-wait", do_events_wait},
	{"events", do_events},
	{"hold", do_hold},
	{"capture", do_capture},
	{"capture-end", do_capture_end},
	{"graph", do_graph},
	{"launches", do_launches},
	{"spoiled", do_spoiled},
	{"slack", do_slack},
	{"set-slack", do_set_slack},
	{"errno", do_errno},
	{"close-all", do_close_all},
	{"check-files", do_check_files},
	{"fork", do_fork},
	{"environment", do_environment},
	{"slow-exit", do_slow_exit},
	{"exit", do_exit},
	{"end-exit", do_end_exit},
	{"churn", do_churn},
	{"bare-fork", do_bare_fork},
	{"cancel", do_cancel},
	{"join", do_join},
	{"reuse-stderr", do_reuse_stderr},
	{"stderr-size", do_stderr_size},
	{"alarms", do_alarms},
};

static void run_command(int thread, const char *line) {
	char name[32] = "", answer[96];
	int n = 0;

	sscanf(line, "%31s %d", name, &n);
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		if (strcmp(commands[i].name, name) == 0) {
			int rc = commands[i].run(n);
			int length =
				snprintf(answer, sizeof(answer), "%d %s %d\n", thread, name, rc);

			if (write(STDOUT_FILENO, answer, (size_t)length) != length) {
				exit(3);
			}
			return;
		}
	}
	fprintf(stderr, "guest: no command '%s'\n", name);
	exit(2);
}

static void *run_thread(void *data) {
	struct guest_thread *t = data;
	char command[sizeof(t->command)];

	for (;;) {
		pthread_mutex_lock(&t->lock);
		while (!*t->command) {
			pthread_cond_wait(&t->changed, &t->lock);
		}
		strcpy(command, t->command);
		*t->command = '\0';
		pthread_mutex_unlock(&t->lock);
		if (strcmp(command, "end") == 0) {
			return NULL;
		}
		run_command(t->index, command);
	}
}

static void hand_over(int index, const char *command) {
	struct guest_thread *t = &threads[index];

	if (!t->started) {
		t->index = index;
		t->started = true;
		pthread_mutex_init(&t->lock, NULL);
		pthread_cond_init(&t->changed, NULL);
		if (pthread_create(&t->thread, NULL, run_thread, t) != 0) {
			exit(4);
		}
	}
	pthread_mutex_lock(&t->lock);
	snprintf(t->command, sizeof(t->command), "%s", command);
	pthread_cond_signal(&t->changed);
	pthread_mutex_unlock(&t->lock);
}

int main(void) {
	char line[64];

	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		if (line[0] != '@' || line[1] < '0' || line[1] >= '0' + THREADS) {
			return 2;
		}
		hand_over(line[1] - '0', line + 3);
	}
	return 0;
}
