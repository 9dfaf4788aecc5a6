/*
 * process.c: ways to begin further processes, and ways to end. What a guest leaves behind ends with
 * it or by itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu.h"

extern char **environ;

static struct chain some_work(const char *name) {
	struct chain c = chain_new(CHAIN_N);

	for (unsigned i = 0; i < 12; i++) {
		chain_step(&c, NULL);
	}
	chain_tell(name, &c, NULL);
	return c;
}

static void open_and_work(void) {
	gpu_open();
	some_work("work");
}

/* Work that is under way for a while. */
static CUstream long_work(void) {
	CUstream s = gpu_stream(CU_STREAM_NON_BLOCKING);
	CUdeviceptr p = gpu_alloc(sizeof(unsigned));

	for (unsigned i = 0; i < 8; i++) {
		gpu_spin(s, p, 8, 3000);
	}
	return s;
}

/* ---- children ---- */

static void fork_before(void) {
	for (unsigned i = 0; i < 3; i++) {
		guest_in_child("child", open_and_work);
	}
	open_and_work();
}

/* One begins before the other has opened the GPU; they run at the same time. */
static void fork_beside(void) {
	int pids[3];

	for (unsigned i = 0; i < 3; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			gpu_open();
			struct chain c = chain_new(CHAIN_N);

			for (unsigned k = 0; k < 40; k++) {
				chain_step(&c, NULL);
				CU(cuCtxSynchronize());
			}
			_exit(gpu_word(c.p) == c.want ? 40 + (int)i : 1);
		}
	}
	open_and_work();
	for (unsigned i = 0; i < 3; i++) {
		guest_await_child("child", pids[i]);
	}
}

static void ask_after_fork(void) {
	CUdeviceptr p;
	int n = 0;

	TELL_RESULT(cuDeviceGetCount(&n));
	TELL_RESULT(cuMemAlloc(&p, 16));
	TELL_RESULT(cuCtxSynchronize());
	TELL_RESULT(cuInit(0));
	TELL_RESULT(cuStreamSynchronize(NULL));
}

/* CUDA can't be used in a child of a process that uses it: it is told so, and nothing hangs. */
static void fork_after(void) {
	gpu_open();
	some_work("parent");
	guest_in_child("child", ask_after_fork);
	some_work("parent");
}

static void nothing(void) {
	free(malloc(1000));
}

static void fork_again_and_again(void) {
	struct chain c;

	gpu_open();
	c = chain_new(20000);
	for (unsigned i = 0; i < 20; i++) {
		chain_step(&c, NULL);
		guest_in_child("child", nothing);
	}
	chain_tell("parent", &c, NULL);
}

/* The child runs what the parent has registered for its end. */
static void say_bye(void) {
	TELL("bye\n");
}

static void child_exits(void) {
	int pid;

	atexit(say_bye);
	gpu_open();
	some_work("parent");
	long_work();
	pid = fork();
	if (pid == 0) {
		exit(5);
	}
	guest_await_child("child", pid);
}

static void fork_with_work(void) {
	CUstream s;

	gpu_open();
	s = long_work();
	guest_in_child("child", nothing);
	TELL_RESULT(cuStreamSynchronize(s));
	some_work("parent");
}

static void start_again(void) {
	gpu_open();
	some_work("parent");
	guest_start_again("work");
	long_work();
	guest_start_again("work");
	some_work("parent");
}

static void spawn_again(void) {
	char work[] = "work", *arguments[] = {guest_arguments[0], work, NULL};
	posix_spawn_file_actions_t actions;
	int pid;

	gpu_open();
	some_work("parent");
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	for (unsigned i = 0; i < 2; i++) {
		if (posix_spawn(&pid, "/proc/self/exe", &actions, NULL, arguments, environ) != 0) {
			guest_fail("posix_spawn");
		}
		guest_await_child("spawned", pid);
	}
	some_work("parent");
}

static void vfork_and_exec(void) {
	char work[] = "work", *arguments[] = {guest_arguments[0], work, NULL};
	int pid;

	gpu_open();
	long_work();
	pid = vfork();
	if (pid == 0) {
		execv("/proc/self/exe", arguments);
		_exit(127);
	}
	guest_await_child("child", pid);
	some_work("parent");
}

static void shell(void) {
	char command[4200], line[200];
	FILE *f;

	gpu_open();
	long_work();
	TELL("true: %d\n", system("exit 3") >> 8);
	snprintf(command, sizeof(command), "'%s' work", guest_arguments[0]);
	f = popen(command, "r");
	while (f && fgets(line, sizeof(line), f)) {
		TELL("> %s", line);
	}
	TELL("ends with %d\n", f ? pclose(f) : -1);
	some_work("parent");
}

/* Without sbeet's variables and whatever else there was. */
static void bare_environment(void) {
	char work[] = "work", *arguments[] = {guest_arguments[0], work, NULL};
	char libraries[4096] = "LD_LIBRARY_PATH=", folder[200] = "SIMGPU_DIR=",
	     gpus[100] = "SIMGPU=";
	char *bare[] = {libraries, folder, gpus, NULL};
	const char *values[] = {getenv("LD_LIBRARY_PATH"), getenv("SIMGPU_DIR"), getenv("SIMGPU")};
	int pid;

	strncat(libraries, values[0] ? values[0] : "", sizeof(libraries) - 50);
	strncat(folder, values[1] ? values[1] : "", sizeof(folder) - 50);
	strncat(gpus, values[2] ? values[2] : "", sizeof(gpus) - 50);
	pid = fork();
	if (pid == 0) {
		execve("/proc/self/exe", arguments, values[1] ? bare : (char *[]){libraries, NULL});
		_exit(127);
	}
	guest_await_child("child", pid);
	open_and_work();
}

/* The same process is another program, while it has work on the GPU. */
static void exec_with_work(void) {
	char work[] = "work", *arguments[] = {guest_arguments[0], work, NULL};

	gpu_open();
	long_work();
	execv("/proc/self/exe", arguments);
	guest_fail("execv");
}

static void exec_idle(void) {
	char work[] = "work", *arguments[] = {guest_arguments[0], work, NULL};

	gpu_open();
	some_work("before");
	execv("/proc/self/exe", arguments);
	guest_fail("execv");
}

static void *exec_in_thread(void *data) {
	(void)data;
	exec_with_work();
	return NULL;
}

static void exec_from_thread(void) {
	pthread_t t;

	gpu_open();
	pthread_create(&t, NULL, exec_in_thread, NULL);
	pthread_join(t, NULL);
}

static void exec_fails(void) {
	char name[] = "nothing", *arguments[] = {name, NULL};

	gpu_open();
	long_work();
	TELL("exec: %d\n", execv("/nowhere/nothing", arguments));
	some_work("goes on");
}

/* A daemon: two forks, a session of its own, no descriptors but what it opens. */
static void become_daemon(void) {
	int ends[2], pid;
	char text[300];
	ssize_t n;

	if (pipe(ends) != 0) {
		guest_fail("pipe");
	}
	pid = fork();
	if (pid == 0) {
		setsid();
		if (fork() != 0) {
			_exit(0);
		}
		dup2(ends[1], 1);
		for (int fd = 3; fd < 1024; fd++) {
			close(fd);
		}
		if (chdir("/") != 0) {
			_exit(1);
		}
		open_and_work();
		_exit(0);
	}
	close(ends[1]);
	guest_await_child("first", pid);
	while ((n = read(ends[0], text, sizeof(text) - 1)) > 0) {
		text[n] = '\0';
		TELL("%s", text);
	}
}

/* A server that never uses the GPU forks workers that do. */
static void fork_server(void) {
	int n = 0;

	for (unsigned i = 0; i < 4; i++) {
		guest_in_child("worker", open_and_work);
	}
	TELL_RESULT(cuDeviceGetCount(&n));
}

static void wait_for_any(void) {
	int r = wait(NULL);

	TELL("wait: %d, no child %d\n", r, errno == ECHILD);
}

/* The program waits for any child: there are none but its own. */
static void waits_for_any(void) {
	int pid, status;

	gpu_open();
	some_work("parent");
	wait_for_any();
	pid = fork();
	if (pid == 0) {
		_exit(9);
	}
	TELL("its own: %d\n", wait(&status) == pid);
	wait_for_any();
}

/* ---- descriptors and limits ---- */

static void closes_all(void) {
	for (int fd = 3; fd < 4096; fd++) {
		close(fd);
	}
	open_and_work();
}

static void no_standard_files(void) {
	close(0);
	open_and_work();
	TELL("0 is open: %d\n", fcntl(0, F_GETFD) >= 0);
}

static void few_descriptors(void) {
	struct rlimit limit = {100, 100};

	setrlimit(RLIMIT_NOFILE, &limit);
	open_and_work();
}

static void next_descriptor(void) {
	int before = dup(0), after;

	close(before);
	open_and_work();
	after = open("/dev/null", O_RDONLY);
	TELL("below 64: %d %d\n", before < 64, after < 64);
}

static void small_stack_limit(void) {
	struct rlimit limit = {256 << 10, 256 << 10};

	setrlimit(RLIMIT_STACK, &limit);
	guest_start_again("work");
}

static void other_name(void) {
	prctl(PR_SET_NAME, "someone else");
	if (chdir("/") != 0) {
		guest_fail("chdir");
	}
	open_and_work();
}

/* ---- signals ---- */

static volatile sig_atomic_t n_signals;

static void on_signal(int signal) {
	(void)signal;
	n_signals++;
}

static void timer(void) {
	struct sigaction a = {.sa_handler = on_signal}; /* calls are interrupted */
	struct itimerval every = {{0, 2000}, {0, 2000}};
	struct chain c;

	sigaction(SIGALRM, &a, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	gpu_open();
	c = chain_new(20000);
	for (unsigned i = 0; i < 100; i++) {
		chain_step(&c, NULL);
		if (i % 10 == 0) {
			CU(cuCtxSynchronize());
		}
	}
	every = (struct itimerval){{0, 0}, {0, 0}};
	setitimer(ITIMER_REAL, &every, NULL);
	chain_tell("under signals", &c, NULL);
	TELL("signals: %d\n", n_signals > 0);
}

/* A signal to the process comes to the one thread that waits for it. */
static void waits_for_signal(void) {
	sigset_t set;
	int got = 0;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	gpu_open();
	long_work();
	kill(getpid(), SIGUSR1);
	sigwait(&set, &got);
	TELL("signal %d\n", got == SIGUSR1);
	kill(getpid(), SIGTERM);
	sigwait(&set, &got);
	TELL("signal %d\n", got == SIGTERM);
	some_work("afterwards");
}

/* The same, of signals that it blocks only when the GPU is open. */
static void blocks_late(void) {
	sigset_t set;
	int fd;
	struct signalfd_siginfo info;

	gpu_open();
	some_work("before");
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC);
	kill(getpid(), SIGUSR2);
	if (read(fd, &info, sizeof(info)) != sizeof(info)) {
		guest_fail("signalfd");
	}
	TELL("signal %d\n", info.ssi_signo == SIGUSR2);
	some_work("after");
}

static void handlers(void) {
	static const int signals[] = {SIGHUP,  SIGINT,	SIGQUIT, SIGUSR1, SIGUSR2, SIGPIPE, SIGALRM,
				      SIGTERM, SIGCHLD, SIGIO,	 SIGSYS,  SIGSEGV, SIGFPE,  SIGBUS};

	gpu_open();
	some_work("work");
	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++) {
		struct sigaction a;

		sigaction(signals[i], NULL, &a);
		TELL("%d: %s\n", signals[i], a.sa_handler == SIG_DFL ? "default" : "another");
	}
	signal(SIGPIPE, SIG_IGN);
	some_work("work");
	TELL("ignored: %d\n", signal(SIGPIPE, SIG_IGN) == SIG_IGN);
}

/* ---- ends ---- */

static void end_return(void) {
	gpu_open();
	long_work();
}

static void end_exit(void) {
	gpu_open();
	long_work();
	exit(7);
}

static void end_at_once(void) {
	gpu_open();
	long_work();
	_exit(8);
}

static void end_quick(void) {
	at_quick_exit(say_bye);
	gpu_open();
	long_work();
	quick_exit(9);
}

static void end_abort(void) {
	gpu_open();
	long_work();
	abort();
}

static void end_signal(int signal) {
	gpu_open();
	long_work();
	raise(signal);
}

static void end_term(void) {
	end_signal(SIGTERM);
}

static void kill_itself(void) {
	end_signal(SIGKILL);
}

static void end_kill(void) {
	guest_in_child("killed", kill_itself);
	open_and_work();
}

static void end_interrupt(void) {
	end_signal(SIGINT);
}

static void end_fault(void) {
	gpu_open();
	long_work();
	*(volatile int *)gpu_alloc(16) = 1; /* no address of the host */
}

static void on_term(int signal) {
	(void)signal;
	_exit(12);
}

static void end_handler(void) {
	signal(SIGTERM, on_term);
	gpu_open();
	long_work();
	kill(getpid(), SIGTERM);
	pause();
}

/* SIGTERM is for the process; whichever thread gets it, the process ends. */
static void *sleep_long(void *data) {
	(void)data;
	for (;;) {
		pause();
	}
	return NULL;
}

static void end_thread_of_many(void) {
	pthread_t t;

	gpu_open();
	long_work();
	pthread_create(&t, NULL, sleep_long, NULL);
	kill(getpid(), SIGTERM);
	for (;;) {
		pause();
	}
}

static void end_main_thread(void) {
	gpu_open();
	long_work();
	pthread_exit(NULL);
}

static void end_main_thread_idle(void) {
	gpu_open();
	some_work("work");
	pthread_exit(NULL);
}

static void *work_on(void *data) {
	(void)data;
	gpu_enter();
	some_work("without the main thread");
	return NULL;
}

/* The last thread ends the process, with 0. */
static void end_last_thread(void) {
	pthread_t t;

	gpu_open();
	some_work("work");
	pthread_create(&t, NULL, work_on, NULL);
	pthread_exit(NULL);
}

static void *exit_in_thread(void *data) {
	(void)data;
	gpu_enter();
	long_work();
	exit(11);
}

static void end_by_thread(void) {
	pthread_t t;

	gpu_open();
	long_work();
	pthread_create(&t, NULL, exit_in_thread, NULL);
	for (;;) {
		pause();
	}
}

static CUdeviceptr endless_p;

static void *launch_for_ever(void *data) {
	(void)data;
	gpu_enter();
	for (;;) {
		gpu_spin(NULL, endless_p, 4, 50);
		cuStreamSynchronize(NULL);
	}
	return NULL;
}

static void end_beside_launches(void) {
	pthread_t t;

	gpu_open();
	endless_p = gpu_alloc(sizeof(unsigned));
	for (unsigned i = 0; i < 3; i++) {
		pthread_create(&t, NULL, launch_for_ever, NULL);
	}
	usleep(100000);
	_exit(10);
}

static struct chain kept;

static void free_at_exit(void) {
	TELL_RESULT(cuMemFree(kept.p));
	TELL_RESULT(cuModuleUnload(gpu.module));
	TELL_RESULT(cuDevicePrimaryCtxRelease(gpu.device));
}

static void frees_at_exit(void) {
	atexit(free_at_exit);
	gpu_open();
	kept = some_work("work");
}

static void work_at_exit(void) {
	chain_step(&kept, NULL);
	chain_step(&kept, NULL);
	chain_tell("at exit", &kept, NULL);
	some_work("more at exit");
}

static void works_at_exit(void) {
	atexit(work_at_exit);
	gpu_open();
	kept = some_work("work");
}

static bool destroy_at_end;

static __attribute__((destructor)) void at_end(void) {
	if (destroy_at_end) {
		free_at_exit();
	}
}

static void frees_in_destructor(void) {
	destroy_at_end = true;
	gpu_open();
	kept = some_work("work");
	chain_step(&kept, NULL);
}

/* Opened for the first time when the process ends. */
static void opens_at_exit(void) {
	atexit(open_and_work);
}

static void fork_at_exit(void) {
	guest_in_child("child", nothing);
}

static void forks_at_exit(void) {
	atexit(fork_at_exit);
	gpu_open();
	some_work("work");
}

/* ---- of no use of the GPU ---- */

static void idle(void) {
	TELL("nothing\n");
	exit(3);
}

static void init_alone(void) {
	int n = 0;

	CU(cuInit(0));
	CU(cuDeviceGetCount(&n));
	TELL("%d\n", n > 0);
}

const struct guest guests[] = {
	{"work", open_and_work},
	{"idle", idle},
	{"init-alone", init_alone},
	{"fork-before", fork_before},
	{"fork-beside", fork_beside},
	{"fork-after", fork_after},
	{"fork-again-and-again", fork_again_and_again},
	{"fork-with-work", fork_with_work},
	{"fork-server", fork_server},
	{"child-exits", child_exits},
	{"start-again", start_again},
	{"spawn", spawn_again},
	{"vfork", vfork_and_exec},
	{"shell", shell},
	{"bare-environment", bare_environment},
	{"exec-with-work", exec_with_work},
	{"exec-idle", exec_idle},
	{"exec-from-thread", exec_from_thread},
	{"exec-fails", exec_fails},
	{"daemon", become_daemon},
	{"waits-for-any", waits_for_any},
	{"closes-all", closes_all},
	{"no-standard-files", no_standard_files},
	{"few-descriptors", few_descriptors},
	{"next-descriptor", next_descriptor},
	{"small-stack-limit", small_stack_limit},
	{"other-name", other_name},
	{"timer", timer},
	{"waits-for-signal", waits_for_signal},
	{"blocks-late", blocks_late},
	{"handlers", handlers},
	{"end-return", end_return},
	{"end-exit", end_exit},
	{"end-at-once", end_at_once},
	{"end-quick", end_quick},
	{"end-abort", end_abort},
	{"end-term", end_term},
	{"end-kill", end_kill},
	{"end-interrupt", end_interrupt},
	{"end-fault", end_fault},
	{"end-handler", end_handler},
	{"end-thread-of-many", end_thread_of_many},
	{"end-main-thread", end_main_thread},
	{"end-main-thread-idle", end_main_thread_idle},
	{"end-last-thread", end_last_thread},
	{"end-by-thread", end_by_thread},
	{"end-beside-launches", end_beside_launches},
	{"frees-at-exit", frees_at_exit},
	{"works-at-exit", works_at_exit},
	{"frees-in-destructor", frees_in_destructor},
	{"opens-at-exit", opens_at_exit},
	{"forks-at-exit", forks_at_exit},
	{NULL, NULL},
};
