/* client.c: see client.h. */
#include "tests/simgpu/client.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/simgpu/place.h"

/* Tries of 10 ms each to reach a simgpud that is being started. */
#define CLIENT_TRIES 1000

struct waiter {
	struct waiter *next;
	uint32_t id;
	bool done;
	const struct client_message *reply;
	int n;
	pthread_cond_t wake;
};

static struct {
	pthread_mutex_t lock; /* guards all but fd, and is never held while the socket blocks */
	int fd;
	bool connected, forked;
	int broken; /* negative errno once the connection is lost */
	uint32_t last_id;
	struct waiter *waiters;
	bool reading; /* some thread is in recv() */
	const struct client_listener *listener;
	struct wire_hello_reply hello;
} client = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

/* ---- after fork ---- */

static void client_forked(void) {
	pthread_mutex_init(&client.lock, NULL);
	client.waiters = NULL;
	if (client.connected) {
		/* Else the parent's death would go unnoticed. */
		close(client.fd);
		client.fd = -1;
		client.forked = true;
		client.broken = -ECHILD;
	}
}

/* ---- starting simgpud ---- */

extern char **environ;

/* simgpud is no CUDA program: what is preloaded into those must stay out of it. */
static char **client_environment(void) {
	size_t n = 0, kept = 0;
	char **env;

	while (environ[n]) {
		n++;
	}
	env = calloc(n + 1, sizeof(*env));
	for (size_t i = 0; env && i < n; i++) {
		if (strncmp(environ[i], "LD_PRELOAD=", 11) != 0) {
			env[kept++] = environ[i];
		}
	}
	return env;
}

/* Return: 0 when simgpud has been started or runs already; -ENOENT; another errno. */
static int client_start_simgpud(void) {
	char path[4096], *slash, *argv[] = {path, NULL}, **env;
	posix_spawnattr_t attr;
	sigset_t none, defaults;
	Dl_info info;
	pid_t pid;
	int r;

	if (!dladdr((void *)client_connect, &info) || !info.dli_fname ||
	    strlen(info.dli_fname) + sizeof("simgpud") > sizeof(path)) {
		return -ENOENT;
	}
	strcpy(path, info.dli_fname);
	slash = strrchr(path, '/');
	strcpy(slash ? slash + 1 : path, "simgpud");
	env = client_environment();
	if (!env) {
		return -ENOMEM;
	}
	sigemptyset(&none);
	sigfillset(&defaults);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &defaults);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	r = -posix_spawn(&pid, path, NULL, &attr, argv, env);
	posix_spawnattr_destroy(&attr);
	free(env);
	if (r == 0) {
		int status = 0;

		/* It goes into the background once it listens. ECHILD if SIGCHLD is ignored. */
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
		}
		if (WIFEXITED(status) && WEXITSTATUS(status) != 0) {
			r = -EINVAL;
		}
	}
	return r;
}

/* ---- connecting ---- */

/* A descriptor that programs which close or redirect low numbers do not meet. */
static int client_move_up(int fd) {
	int high = fcntl(fd, F_DUPFD_CLOEXEC, 512);

	if (high < 0) {
		return fd;
	}
	close(fd);
	return high;
}

/* Return: 0; -EBUSY; -EAGAIN when simgpud cannot be reached or went away meanwhile. */
static int client_try(const char *path) {
	struct sockaddr_un addr = place_address(path);
	struct wire_hello hello = {.h = {.type = WIRE_HELLO, .id = 1}, .version = WIRE_VERSION};
	const char *config = getenv("SIMGPU");
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	ssize_t n;

	if (fd < 0) {
		return -errno;
	}
	snprintf(hello.config, sizeof(hello.config), "%s", config ? config : "");
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ||
	    send(fd, &hello, sizeof(hello), MSG_NOSIGNAL) < 0) {
		close(fd);
		return -EAGAIN;
	}
	do {
		n = recv(fd, &client.hello, sizeof(client.hello), 0);
	} while (n < 0 && errno == EINTR);
	if (n != sizeof(client.hello)) {
		close(fd);
		return -EAGAIN;
	}
	if (client.hello.r.result != 0) {
		fprintf(stderr,
			"simgpu: the simgpud at %s runs with SIMGPU=%s, this program wants %s: "
			"stop it "
			"with 'simgpud --stop' or use another SIMGPU_DIR\n",
			path, client.hello.config, hello.config);
		close(fd);
		return -EBUSY;
	}
	client.fd = client_move_up(fd);
	return 0;
}

static int client_connect_locked(void) {
	char dir[256], path[300];
	int r = place_dir(dir, sizeof(dir));

	if (r == 0) {
		r = place_file(path, sizeof(path), dir, "simgpud.sock");
	}
	if (r < 0) {
		fprintf(stderr, "simgpu: cannot use SIMGPU_DIR: %s\n", strerror(-r));
		return r;
	}
	for (int i = 0; i < CLIENT_TRIES; i++) {
		r = client_try(path);
		if (r != -EAGAIN) {
			break;
		}
		r = client_start_simgpud();
		if (r < 0) {
			fprintf(stderr, "simgpu: simgpud could not be started: %s\n", strerror(-r));
			return r;
		}
		r = client_try(path);
		if (r != -EAGAIN) {
			break;
		}
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	}
	if (r == 0) {
		static bool registered;

		client.connected = true;
		if (!registered) {
			registered = true;
			pthread_atfork(NULL, NULL, client_forked);
		}
	}
	return r;
}

int client_connect(void) {
	int r = 0;

	if (client.forked) {
		return -ECHILD;
	}
	pthread_mutex_lock(&client.lock);
	if (!client.connected) {
		r = client_connect_locked();
	}
	pthread_mutex_unlock(&client.lock);
	return r;
}

int client_state(void) {
	return client.forked ? -ECHILD : client.connected ? 0 : -ENOTCONN;
}

const struct wire_hello_reply *client_gpus(void) {
	return &client.hello;
}

void client_listen(const struct client_listener *listener) {
	client.listener = listener;
}

/* Not when it is killed: under MPS that is another matter, see device.h. */
__attribute__((destructor)) static void client_leave(void) {
	struct wire_header leave = {.type = WIRE_LEAVE};

	if (client.connected && !client.forked && client.fd >= 0) {
		(void)!send(client.fd, &leave, sizeof(leave), MSG_NOSIGNAL | MSG_DONTWAIT);
	}
}

/* ---- talking ---- */

static int client_send(const struct client_message *request, int fd) {
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec iov[2] = {
		{.iov_base = request->head, .iov_len = request->head_size},
		{.iov_base = request->data, .iov_len = request->data_size},
	};
	struct msghdr m = {.msg_iov = iov, .msg_iovlen = request->data_size > 0 ? 2 : 1};

	if (client.fd < 0) {
		return -EPIPE;
	}
	if (fd >= 0) {
		m.msg_control = &control;
		m.msg_controllen = sizeof(control);
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	}
	while (sendmsg(client.fd, &m, MSG_NOSIGNAL) < 0) {
		if (errno != EINTR) {
			return -EPIPE;
		}
	}
	return 0;
}

int client_post(const struct client_message *request) {
	int r, saved_errno = errno;

	((struct wire_header *)request->head)->id = 0;
	r = client_send(request, -1);
	errno = saved_errno;
	return r;
}

static void client_copy_out(const struct client_message *to, const uint8_t *bytes, size_t n) {
	size_t head = n < to->head_size ? n : to->head_size;

	memcpy(to->head, bytes, head);
	n -= head;
	if (to->data) {
		memcpy(to->data, bytes + head, n < to->data_size ? n : to->data_size);
	}
}

/* Hands an answer to whom it belongs. Called with the lock held. */
static void client_deliver(const uint8_t *bytes, size_t n) {
	const struct wire_header *h = (const struct wire_header *)bytes;

	for (struct waiter *w = client.waiters; w; w = w->next) {
		if (w->id == h->id) {
			client_copy_out(w->reply, bytes, n);
			w->n = (int)n;
			w->done = true;
			pthread_cond_signal(&w->wake);
			return;
		}
	}
}

/* Reads one packet for whom it may concern. Called with the lock held, returns with it; gives it up
 * meanwhile. */
static void client_read(void) {
	static _Alignas(16) uint8_t bytes[WIRE_PACKET_MAX]; /* the one reader's */
	const struct wire_header *h = (const struct wire_header *)bytes;
	ssize_t n;

	client.reading = true;
	pthread_mutex_unlock(&client.lock);
	do {
		n = recv(client.fd, bytes, sizeof(bytes), 0);
	} while (n < 0 && errno == EINTR);
	if (n > (ssize_t)sizeof(*h) && client.listener) {
		if (h->type == WIRE_FAULT) {
			const struct wire_fault *f = (const struct wire_fault *)bytes;

			client.listener->fault(f->context, f->result, f->text);
		} else if (h->type == WIRE_PRINT) {
			client.listener->print((const char *)bytes + sizeof(*h),
					       (size_t)n - sizeof(*h));
		}
	}
	pthread_mutex_lock(&client.lock);
	client.reading = false;
	if (n <= 0) {
		client.broken = -EPIPE;
	} else if (h->type == WIRE_REPLY) {
		client_deliver(bytes, (size_t)n);
	}
}

/* Somebody must read for those who still wait. */
static void client_pass_on(void) {
	if (client.broken) {
		for (struct waiter *w = client.waiters; w; w = w->next) {
			pthread_cond_signal(&w->wake);
		}
	} else if (!client.reading && client.waiters) {
		pthread_cond_signal(&client.waiters->wake);
	}
}

int client_call(const struct client_message *request, int fd, const struct client_message *reply) {
	struct waiter w = {.reply = reply, .wake = PTHREAD_COND_INITIALIZER};
	int r, saved_errno = errno;

	pthread_mutex_lock(&client.lock);
	if (++client.last_id == 0) {
		client.last_id = 1; /* 0 wants no answer */
	}
	w.id = client.last_id;
	w.next = client.waiters;
	client.waiters = &w;
	pthread_mutex_unlock(&client.lock);

	((struct wire_header *)request->head)->id = w.id;
	r = client_send(request, fd);

	pthread_mutex_lock(&client.lock);
	while (r == 0 && !w.done && !client.broken) {
		if (client.reading) {
			pthread_cond_wait(&w.wake, &client.lock);
		} else {
			client_read();
		}
	}
	for (struct waiter **p = &client.waiters; *p; p = &(*p)->next) {
		if (*p == &w) {
			*p = w.next;
			break;
		}
	}
	client_pass_on();
	pthread_mutex_unlock(&client.lock);
	pthread_cond_destroy(&w.wake);
	errno = saved_errno;
	return w.done ? w.n : -EPIPE;
}
