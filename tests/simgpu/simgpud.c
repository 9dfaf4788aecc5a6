/*
 * simgpud: holds the simulated GPUs of $SIMGPU for all processes that use them.
 *
 * Usage: simgpud [--foreground | --stop]. Without an option it goes into the background once it can
 * be connected to, which is how the client libraries start it. It ends a few seconds after its last
 * client, or by --stop.
 *
 * Environment: SIMGPU (config.h), SIMGPU_DIR (place.h), SIMGPU_PACE=0: do not wait for the wall
 * clock, SIMGPU_TRACE=FILE (trace.h), SIMGPU_THREADS=N: cores to interpret on (ahead.h),
 * SIMGPU_PLACE=adversarial:SEED: blocks go to SMs as unkindly as chance with that seed will have
 * it. SIMGPU_SLICE=US: a turn of a context on an exclusive GPU lasts so long if nobody ends it
 * (config.h). SIMGPU_HOST_RATE=BYTES: a copy between host and GPU moves so many a millisecond.
 * SIMGPU_FAULTS=contained: on a shared GPU the fault of one process, or its death in
 * the middle of a kernel, does not reach the others. SIMGPU_PREEMPT=refused: the ioctl that
 * preempts answers that there is no such thing; ignored: it answers success and does nothing.
 * SIMGPU_TIMESLICES: the same of the ioctls that set a group's time slice. SIMGPU_DISABLE=refused:
 * the one that disables channels answers that there is no such thing.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/simgpu/place.h"
#include "tests/simgpu/rm.h"
#include "tests/simgpu/server.h"

#define THREADS_MAX 16

static int simgpud_stop(const char *socket_path) {
	struct wire_header q = {.type = WIRE_STOP, .id = 1};
	struct sockaddr_un addr = place_address(socket_path);
	struct wire_reply reply;
	char end;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0) {
		return 0; /* none runs */
	}
	if (send(fd, &q, sizeof(q), MSG_NOSIGNAL) < 0 || recv(fd, &reply, sizeof(reply), 0) < 0) {
		fprintf(stderr, "simgpud: cannot stop %s: %s\n", socket_path, strerror(errno));
		return 1;
	}
	while (recv(fd, &end, 1, 0) > 0) { /* until it is gone */
	}
	close(fd);
	return 0;
}

/* Nothing that belongs to whoever started us stays open: a pipe held open would hang its reader. */
static void simgpud_detach(void) {
	int null = open("/dev/null", O_RDWR);

	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
		if (null > STDERR_FILENO) {
			close(null);
		}
	}
	setsid();
}

/* $SIMGPU_THREADS, else one for each core that we may use. */
static unsigned simgpud_threads(void) {
	const char *text = getenv("SIMGPU_THREADS");
	unsigned n = 0;
	cpu_set_t cores;

	for (; text && *text >= '0' && *text <= '9' && n < THREADS_MAX; text++) {
		n = n * 10 + (unsigned)(*text - '0');
	}
	if (n == 0 && sched_getaffinity(0, sizeof(cores), &cores) == 0) {
		n = (unsigned)CPU_COUNT(&cores);
	}
	return n == 0 ? 1 : n > THREADS_MAX ? THREADS_MAX : n;
}

static bool is_set(const char *name, const char *value) {
	const char *text = getenv(name);

	return text && strcmp(text, value) == 0;
}

int main(int argc, char **argv) {
	static struct server server;
	const char *text = getenv("SIMGPU"), *pace = getenv("SIMGPU_PACE");
	const char *faults = getenv("SIMGPU_FAULTS");
	char dir[256], path[300], control_path[300], lock_path[300], error[512] = "";
	bool foreground = argc == 2 && strcmp(argv[1], "--foreground") == 0;
	bool stop = argc == 2 && strcmp(argv[1], "--stop") == 0;
	int lock, r;

	if (argc > 2 || (argc == 2 && !foreground && !stop)) {
		fprintf(stderr, "usage: simgpud [--foreground | --stop]\n");
		return 2;
	}
	r = place_dir(dir, sizeof(dir));
	if (r == 0) {
		r = place_file(path, sizeof(path), dir, "simgpud.sock");
	}
	if (r == 0) {
		r = place_file(control_path, sizeof(control_path), dir, RM_SOCKET);
	}
	if (r == 0) {
		r = place_file(lock_path, sizeof(lock_path), dir, "simgpud.lock");
	}
	if (r < 0) {
		fprintf(stderr, "simgpud: cannot use SIMGPU_DIR: %s\n", strerror(-r));
		return 1;
	}
	if (stop) {
		return simgpud_stop(path);
	}
	if (!foreground) {
		closefrom(STDERR_FILENO + 1); /* the starter's */
	}
	lock = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) < 0) {
		fprintf(stderr, "simgpud: another one runs in %s\n", dir);
		return lock < 0 ? 1 : 0;
	}
	signal(SIGPIPE, SIG_IGN);
	r = server_init(&server,
			&(struct server_options){
				.gpus = text && *text ? text : CONFIG_DEFAULT,
				.socket_path = path,
				.control_path = control_path,
				.trace_path = getenv("SIMGPU_TRACE"),
				.place = getenv("SIMGPU_PLACE"),
				.slice = getenv("SIMGPU_SLICE"),
				.host_rate = getenv("SIMGPU_HOST_RATE"),
				.paced = !(pace && strcmp(pace, "0") == 0),
			},
			error, sizeof(error));
	if (r < 0) {
		fprintf(stderr, "simgpud: %s\n", error);
		server_deinit(&server);
		return 1;
	}
	if (!foreground) {
		pid_t pid = fork();

		if (pid != 0) {
			_exit(pid < 0 ? 1 : 0);
		}
		simgpud_detach();
	}
	server.n_threads = simgpud_threads();
	server.contained = faults && strcmp(faults, "contained") == 0;
	server.no_preempt = is_set("SIMGPU_PREEMPT", "refused");
	server.ignores_preempt = is_set("SIMGPU_PREEMPT", "ignored");
	server.no_slices = is_set("SIMGPU_TIMESLICES", "refused");
	server.ignores_slices = is_set("SIMGPU_TIMESLICES", "ignored");
	server.no_disable = is_set("SIMGPU_DISABLE", "refused");
	r = server_run(&server);
	(void)unlink(path);
	(void)unlink(control_path);
	server_deinit(&server);
	return r < 0 ? 1 : 0;
}
