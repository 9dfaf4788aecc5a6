/*
 * mps-control.c: the double of nvidia-cuda-mps-control, for the simulated GPUs that are shared.
 *
 * Usage: nvidia-cuda-mps-control [-d | -f [-M]]. With -d or -f it is the control daemon: it listens
 * at $CUDA_MPS_PIPE_DIRECTORY/control and writes its number beside it, unless another one lives
 * there. Without, it hands the lines of its stdin to that daemon and prints the answers.
 *
 * Commands: get_server_list, get_server_status SERVER, get_client_list SERVER, terminate_client
 * SERVER CLIENT, get_default_active_thread_percentage, quit; answered as driver 580 does. The
 * server is simgpud, as long as processes have contexts on shared GPUs; its clients are those
 * processes.
 *
 * $SIMGPU_MPS_FAULT of the daemon: "silent": it takes commands and never answers; "garbage": it
 * answers nonsense; "deaf": it listens to nobody (does not make its socket); "ends": it ends at the
 * first command; "server": it has one, without clients, in the state after a program's fault;
 * "late": it makes its socket SLOW_MS after its start; "lingers": it answers nothing from SIGTERM
 * on and ends SLOW_MS later, when it removes the files, also those of another one that has started
 * meanwhile; "hides": the same, but it removes its files at SIGTERM, and no other one can start
 * until it has ended. $SIMGPU_MPS_PERCENT: the thread percentage.
 *
 * Unlike the real one it gives clients no access: what a program needs of the simulated GPU it has
 * from simgpud with or without.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "tests/simgpu/place.h"
#include "tests/simgpu/wire.h"

#define LINE_MAX_BYTES	 256
#define ANSWER_MAX_BYTES 4096
#define SLOW_MS		 300

static char control_path[sizeof(((struct sockaddr_un *)0)->sun_path)], pid_path[256];
static int listening = -1, lock = -1;

static bool fault_is(const char *name) {
	const char *fault = getenv("SIMGPU_MPS_FAULT");

	return fault && strcmp(fault, name) == 0;
}

/* ---- what simgpud knows ---- */

/* Return: a connection to the simgpud that runs, or -1. It is never started for this. */
static int simgpud_connect(void) {
	struct wire_hello hello = {.h = {.type = WIRE_HELLO, .id = 1}, .version = WIRE_VERSION};
	struct wire_hello_reply reply;
	struct sockaddr_un addr;
	char dir[256], path[300];
	int fd;

	if (place_dir(dir, sizeof(dir)) < 0 ||
	    place_file(path, sizeof(path), dir, "simgpud.sock") < 0) {
		return -1;
	}
	addr = place_address(path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd >= 0 && (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ||
			send(fd, &hello, sizeof(hello), MSG_NOSIGNAL) < 0 ||
			recv(fd, &reply, sizeof(reply), 0) != sizeof(reply))) {
		close(fd);
		return -1;
	}
	return fd;
}

static int simgpud_ask(const struct wire_object *q, void *reply, size_t size) {
	int fd = simgpud_connect();
	ssize_t n = -1;

	if (fd >= 0) {
		if (send(fd, q, sizeof(*q), MSG_NOSIGNAL) == sizeof(*q)) {
			n = recv(fd, reply, size, 0);
		}
		close(fd);
	}
	return n == (ssize_t)size ? 0 : -1;
}

/* ---- commands ---- */

static void list_servers(char *answer) {
	struct wire_object q = {.h = {.type = WIRE_MPS_CLIENTS, .id = 2}};
	struct wire_mps_reply reply;

	if (fault_is("server")) {
		snprintf(answer, ANSWER_MAX_BYTES, "%d\n", getpid());
	} else if (simgpud_ask(&q, &reply, sizeof(reply)) == 0 && reply.n_clients > 0) {
		snprintf(answer, ANSWER_MAX_BYTES, "%u\n", reply.server);
	}
}

static void list_clients(char *answer, unsigned server) {
	struct wire_object q = {.h = {.type = WIRE_MPS_CLIENTS, .id = 2}};
	struct wire_mps_reply reply;
	size_t n = 0;

	if (simgpud_ask(&q, &reply, sizeof(reply)) < 0 || reply.server != server) {
		snprintf(answer, ANSWER_MAX_BYTES, "Server %u not found\n", server);
		return;
	}
	for (unsigned i = 0; i < reply.n_clients; i++) {
		n += (size_t)snprintf(answer + n, ANSWER_MAX_BYTES - n, "%u\n", reply.clients[i]);
	}
}

static void tell_status(char *answer, unsigned server) {
	struct wire_object q = {.h = {.type = WIRE_MPS_CLIENTS, .id = 2}};
	struct wire_mps_reply reply;

	if (fault_is("server")) {
		snprintf(answer, ANSWER_MAX_BYTES, "FAULT\n");
	} else if (simgpud_ask(&q, &reply, sizeof(reply)) < 0 || reply.server != server) {
		snprintf(answer, ANSWER_MAX_BYTES, "Server %u not found\n", server);
	} else {
		snprintf(answer, ANSWER_MAX_BYTES, "ACTIVE\n");
	}
}

static void terminate(char *answer, unsigned server, unsigned client) {
	struct wire_object q = {.h = {.type = WIRE_MPS_TERMINATE, .id = 2}, .value = client};
	struct wire_value_reply reply;

	if (simgpud_ask(&q, &reply, sizeof(reply)) < 0 || reply.value != server) {
		snprintf(answer, ANSWER_MAX_BYTES, "Server %u not found\n1\n", server);
	} else if (reply.value2 == 0) {
		snprintf(answer, ANSWER_MAX_BYTES, "Invalid process %u!\n1\n", client);
	} else {
		snprintf(answer, ANSWER_MAX_BYTES, "0\n");
	}
}

/* Return: whether the daemon goes on. */
static bool perform(const char *line, char *answer) {
	const char *percent = getenv("SIMGPU_MPS_PERCENT");
	unsigned server, client;

	*answer = '\0';
	if (fault_is("garbage")) {
		snprintf(answer, ANSWER_MAX_BYTES, "12\n-7 \x01 %s\n", line);
	} else if (strcmp(line, "get_server_list") == 0) {
		list_servers(answer);
	} else if (sscanf(line, "get_server_status %u", &server) == 1) {
		tell_status(answer, server);
	} else if (sscanf(line, "get_client_list %u", &server) == 1) {
		list_clients(answer, server);
	} else if (sscanf(line, "terminate_client %u %u", &server, &client) == 2) {
		terminate(answer, server, client);
	} else if (strcmp(line, "get_default_active_thread_percentage") == 0) {
		snprintf(answer, ANSWER_MAX_BYTES, "%s\n", percent ? percent : "100.0");
	} else if (strcmp(line, "quit") == 0) {
		return false;
	} else {
		snprintf(answer, ANSWER_MAX_BYTES, "Unknown command \"%s\"\n", line);
	}
	return true;
}

/* ---- the daemon ---- */

static void be_slow(void) {
	struct timespec left = {.tv_nsec = SLOW_MS * 1000000};

	while (nanosleep(&left, &left) < 0 && errno == EINTR) {
	}
}

static void remove_files(void) {
	(void)unlink(control_path);
	(void)unlink(pid_path);
}

static void leave(int signal_number) {
	bool hides = fault_is("hides");

	(void)signal_number;
	if (hides || fault_is("lingers")) {
		close(listening);
		if (hides) {
			remove_files();
		} else {
			close(lock);
		}
		be_slow();
	}
	if (!hides) {
		remove_files();
	}
	_exit(0);
}

/* As long as this process lives. */
static bool be_the_only_one(const char *dir) {
	char path[300];

	snprintf(path, sizeof(path), "%s/control_lock", dir);
	lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	return lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0;
}

/* A packet is a command, its answer a packet; an empty one ends it. Return: whether to go on. */
static bool serve(int listen_fd) {
	char line[LINE_MAX_BYTES], answer[ANSWER_MAX_BYTES];
	int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
	bool on = true;
	ssize_t n;

	while (fd >= 0 && on && (n = recv(fd, line, sizeof(line) - 1, 0)) > 0) {
		line[n] = '\0';
		if (fault_is("ends")) {
			return false;
		}
		while (fault_is("silent")) {
			pause();
		}
		on = perform(line, answer);
		(void)!send(fd, answer, strlen(answer) + 1, MSG_NOSIGNAL);
	}
	if (fd >= 0) {
		close(fd);
	}
	return on;
}

static int listen_here(void) {
	struct sockaddr_un addr = place_address(control_path);
	FILE *pid = fopen(pid_path, "we");
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	(void)unlink(control_path);
	if (!pid || fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ||
	    chmod(control_path, 0666) < 0 || listen(fd, 16) < 0) {
		fprintf(stderr, "Cannot listen at %s: %s\n", control_path, strerror(errno));
		exit(1);
	}
	fprintf(pid, "%d\n", getpid());
	fclose(pid);
	return fd;
}

static int run_daemon(bool background) {
	if (background) {
		pid_t pid = fork();

		if (pid != 0) {
			return pid < 0;
		}
		setsid();
	}
	signal(SIGTERM, leave);
	while (fault_is("deaf")) {
		pause();
	}
	if (fault_is("late")) {
		be_slow();
	}
	listening = listen_here();
	while (serve(listening)) {
	}
	leave(0);
	return 0;
}

/* ---- the other side ---- */

static int send_commands(void) {
	struct sockaddr_un addr = place_address(control_path);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	char line[LINE_MAX_BYTES], answer[ANSWER_MAX_BYTES];

	if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0) {
		printf("Cannot find MPS control daemon process\n");
		return 1;
	}
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		if (!*line) {
			continue;
		}
		if (send(fd, line, strlen(line), MSG_NOSIGNAL) < 0 ||
		    recv(fd, answer, sizeof(answer), 0) <= 0) {
			printf("The MPS control daemon does not answer\n");
			return 1;
		}
		fputs(answer, stdout);
	}
	close(fd);
	return 0;
}

int main(int argc, char **argv) {
	const char *dir = getenv("CUDA_MPS_PIPE_DIRECTORY");
	bool daemon = argc >= 2 && (strcmp(argv[1], "-d") == 0 || strcmp(argv[1], "-f") == 0);

	if (argc > 3 || (argc >= 2 && !daemon) || (argc == 3 && strcmp(argv[2], "-M") != 0)) {
		fprintf(stderr, "usage: nvidia-cuda-mps-control [-d | -f [-M]]\n");
		return 2;
	}
	dir = dir && *dir ? dir : "/tmp/nvidia-mps";
	if (daemon && mkdir(dir, 0755) < 0 && errno != EEXIST) {
		fprintf(stderr, "Cannot make %s: %s\n", dir, strerror(errno));
		return 1;
	}
	if (place_file(control_path, sizeof(control_path), dir, "control") < 0 ||
	    (size_t)snprintf(pid_path, sizeof(pid_path), "%s/nvidia-cuda-mps-control.pid", dir) >=
		    sizeof(pid_path)) {
		fprintf(stderr, "The name of %s is too long\n", dir);
		return 1;
	}
	if (daemon && !be_the_only_one(dir)) {
		fprintf(stderr, "An instance of this daemon is already running\n");
		return 1;
	}
	return daemon ? run_daemon(argv[1][1] == 'd') : send_commands();
}
