/*
 * main.c: sbeetd: puts the parts together, runs the loop, takes them apart.
 */
#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "daemon/base/awake.h"
#include "daemon/base/client-socket.h"
#include "daemon/base/gpu-lock.h"
#include "daemon/base/log.h"
#include "daemon/base/notify.h"
#include "daemon/base/runtime.h"
#include "daemon/base/timer.h"
#include "daemon/base/util.h"
#include "daemon/config/options.h"
#include "daemon/config/reload.h"
#include "daemon/gpu/inventory.h"
#include "daemon/gpu/learn-store.h"
#include "daemon/gpu/learn.h"
#include "daemon/gpu/profiles.h"
#include "daemon/gpu/table-file.h"
#include "daemon/mps/mps.h"
#include "daemon/preempt/helper.h"
#include "daemon/server.h"
#include "daemon/session/guard.h"
#include "daemon/session/ledger.h"
#include "daemon/watch/history-file.h"

struct daemon {
	struct options options;
	struct reload reload;
	struct event_base *base;
	struct runtime *runtime;
	struct guard *guard; /* NULL: nobody looks after the sockets */
	struct mps *mps;
	struct inventory *inventory;
	int gpu_locks[SCHED_GPUS_MAX]; /* owned; n of them */
	size_t n_gpu_locks;
	struct profiles *profiles;
	struct table_file *table;  /* NULL: none */
	struct learn_store *learn; /* NULL: off */
	struct learn *corrections; /* then; owned */
	struct ledger *ledger;
	struct history_file *history;
	struct awake awake;
	/* Owned: listening, until the server takes them over; else -1. */
	int shim_fd, control_fd, metrics_fd;
	struct server *server;	       /* NULL until the GPUs are known */
	struct event *signals[3];      /* SIGTERM, SIGINT, SIGHUP */
	struct timer watchdog, status; /* if there is a service manager that wants them */
	nsec_t watchdog_interval;
	char told[160]; /* as status, so far */
	bool failed;
	bool in_use; /* programs were connected when we stopped */
};

/* Each session takes two descriptors. */
static void raise_descriptor_limit(void) {
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static void on_signal(evutil_socket_t signal_number, short what, void *userdata) {
	struct daemon *d = userdata;

	if (signal_number == SIGHUP) {
		char why[PROTO_TEXT_MAX];

		reload_now(&d->reload, why, sizeof(why)); /* which tells of a failure */
		return;
	}
	log_info("Stopping on %s", signal_number == SIGINT ? "SIGINT" : "SIGTERM");
	notify_stopping();
	if (d->server) {
		d->in_use = server_is_used(d->server);
		server_stop(d->server);
	}
	event_base_loopbreak(d->base);
}

static void on_watchdog(evutil_socket_t fd, short what, void *userdata) {
	struct daemon *d = userdata;

	timer_set(&d->watchdog, d->watchdog_interval);
	notify_watchdog();
}

#define STATUS_EVERY NSEC_PER_SEC

/* What the service manager shows, when it has changed. */
static void on_status(evutil_socket_t fd, short what, void *userdata) {
	struct daemon *d = userdata;
	char status[sizeof(d->told)];

	timer_set(&d->status, STATUS_EVERY);
	server_describe(d->server, status, sizeof(status));
	if (strcmp(status, d->told) != 0) {
		memcpy(d->told, status, sizeof(status));
		notify_status(status);
	}
}

static void warn(const char *why) {
	log_warning("%s, ignoring", why);
}

#define DIRECTORY_MAX (PROTO_PATH_MAX + sizeof("/profiles"))

static void profile_directory(const struct daemon *d, char ret[static DIRECTORY_MAX]) {
	const struct config *config = d->reload.config;
	const char *given = config->settings.profile_dir;

	if (*given) {
		snprintf(ret, DIRECTORY_MAX, "%s", given);
	} else {
		snprintf(ret, DIRECTORY_MAX, "%s/profiles", config->directory);
	}
}

/* Return: 0, or a negative errno, logged. */
static int load_profiles(struct daemon *d) {
	bool optional = !*d->reload.config->settings.profile_dir;
	char directory[DIRECTORY_MAX];
	int r;

	profile_directory(d, directory);
	r = profiles_new(&d->profiles, directory, optional, warn);
	if (r < 0) {
		log_error("Can't read the profiles in '%s': %s", directory, strerror(-r));
	} else if (profiles_count(d->profiles) > 0) {
		log_info("%zu profiles in '%s'", profiles_count(d->profiles), directory);
	}
	return r;
}

/* Return: 0, or a negative errno, logged. */
static int load_table(struct daemon *d) {
	const char *path = d->reload.config->settings.table;
	char why[PROTO_TEXT_MAX];
	int r = *path ? table_file_new(&d->table, path, why, sizeof(why)) : 0;

	if (r < 0) {
		log_error("Can't follow the table: %s", why);
	}
	return r;
}

/* Where the service manager lets us keep things. Return: whether it does. */
static bool state_directory(char ret[static PROTO_PATH_MAX]) {
	const char *state = getenv("STATE_DIRECTORY");

	if (!state || !*state) {
		return false;
	}
	snprintf(ret, PROTO_PATH_MAX, "%.*s", (int)strcspn(state, ":"), state);
	return true;
}

/* Where the service manager lets us keep things, else beside the profiles. Return: 0, or a negative
 * errno, logged. */
static int start_learning(struct daemon *d) {
	char directory[DIRECTORY_MAX], state[PROTO_PATH_MAX];
	int r;

	if (!d->reload.config->settings.learn) {
		d->corrections = learn_new_corrections();
		if (!d->corrections) {
			log_error("Can't start: out of memory");
		}
		return d->corrections ? 0 : -ENOMEM;
	}
	profile_directory(d, directory);
	if (state_directory(state)) {
		snprintf(directory, sizeof(directory), "%s", state);
	}
	r = learn_store_new(&d->learn, d->base, directory);
	if (r < 0) {
		log_error("Can't learn times (learn = yes) in '%s': %s", directory, strerror(-r));
		return r;
	}
	return 0;
}

/* Empty if there is none, which gpu_lock() reports. Return: false: the GPU needs no lock. */
static bool choose_lock_directory(const struct inventory_gpu *gpu, char directory[PROTO_PATH_MAX]) {
	const char *simulated = getenv("SIMGPU_DIR");
	int n;

	directory[0] = '\0';
	if (gpu->fixed || (gpu->simulated && (!simulated || !*simulated))) {
		return false;
	}
	if (!gpu->simulated) {
		gpu_lock_directory(directory, PROTO_PATH_MAX);
		return true;
	}
	n = snprintf(directory, PROTO_PATH_MAX, "%s/locks", simulated);
	if (n < 0 || n >= PROTO_PATH_MAX) {
		directory[0] = '\0';
	}
	return true;
}

/* Two sbeetd on one GPU would grant the same SMs twice. Where there can be no lock we go on, with a
 * warning. Return: 0, or -EBUSY, logged. */
static int lock_gpus(struct daemon *d) {
	for (size_t i = 0; i < inventory_n_gpus(d->inventory); i++) {
		const struct inventory_gpu *gpu = inventory_gpu(d->inventory, i);
		char why[PROTO_TEXT_MAX], directory[PROTO_PATH_MAX];
		int fd;

		if (!choose_lock_directory(gpu, directory)) {
			continue;
		}
		fd = gpu_lock(directory, gpu->uuid, why, sizeof(why));
		if (fd == -EBUSY) {
			log_error("GPU %zu: %s; stop that one, or this one", i, why);
			return fd;
		}
		if (fd < 0) {
			log_warning("GPU %zu: %s; a second sbeetd on it would go unnoticed", i,
				    why);
			continue;
		}
		d->gpu_locks[d->n_gpu_locks++] = fd;
	}
	return 0;
}

/* All that the server is made of is there. Return: 0 or negative errno. */
static int make_server(struct daemon *d) {
	char state[PROTO_PATH_MAX];
	struct server_parts parts = {
		.base = d->base,
		.now = nsec_now,
		.awake = &d->awake,
		.reload = &d->reload,
		.inventory = d->inventory,
		.profiles = d->profiles,
		.table = d->table,
		.ledger = d->ledger,
		.history = history_file_get(d->history),
		.mps = d->mps,
		.learn = d->learn ? learn_store_get(d->learn) : d->corrections,
		.state = state_directory(state) ? state : runtime_directory(d->runtime),
		.runtime = runtime_directory(d->runtime),
		.shim_fd = TAKE_FD(d->shim_fd),
		.control_fd = TAKE_FD(d->control_fd),
		.metrics_fd = TAKE_FD(d->metrics_fd),
	};
	int r = server_new(&d->server, &parts);

	if (r == 0) {
		d->reload.apply = server_configure;
		d->reload.userdata = d->server;
	}
	return r;
}

static void on_inventory(void *userdata, int error, const char *why) {
	struct daemon *d = userdata;
	size_t n = inventory_n_gpus(d->inventory);
	int r;

	if (error < 0) {
		log_warning(
			"No GPUs: neither NVML nor CUDA's driver can be used (%s); programs will "
			"run unmanaged. Install "
			"the driver, or name GPUs with --gpus",
			why);
	}
	for (size_t i = 0; i < n; i++) {
		const struct inventory_gpu *gpu = inventory_gpu(d->inventory, i);

		log_info("GPU %zu: %s, %u SMs, %s", i, gpu->name, gpu->n_sms,
			 gpu->sharing == SCHED_SHARING_MPS ? "mps" : "exclusive");
	}
	if (lock_gpus(d) < 0) {
		d->failed = true;
		event_base_loopbreak(d->base);
		return;
	}
	r = profiles_lay_out(d->profiles, d->inventory, warn);
	if (r == 0) {
		r = make_server(d);
	}
	if (r == 0) {
		r = server_start(d->server);
	}
	if (r < 0) {
		log_error("Can't start: %s", strerror(-r));
		d->failed = true;
		event_base_loopbreak(d->base);
		return;
	}
	server_describe(d->server, d->told, sizeof(d->told));
	log_info("Ready in '%s': %s", runtime_directory(d->runtime), d->told);
	notify_ready(d->told);
	if (notify_is_heard()) {
		timer_init(&d->status, d->base, on_status, d);
		timer_set(&d->status, STATUS_EVERY);
	}
}

static void on_replaced(void *userdata, const char *name, int fd) {
	struct daemon *d = userdata;
	int *listening = strcmp(name, "shim") == 0 ? &d->shim_fd : &d->control_fd;

	if (d->server) {
		server_listen_at(d->server, name, fd);
	} else {
		close(*listening);
		*listening = fd;
	}
}

static void on_turn(void *userdata) {
	struct daemon *d = userdata;

	if (d->server) {
		server_decide(d->server);
	}
}

static int listen_at(struct daemon *d, const char *name) {
	char why[PROTO_TEXT_MAX];
	int fd = notify_take_socket(name, SOCK_SEQPACKET);

	if (fd >= 0) {
		if (d->guard) {
			guard_add(d->guard, name, fd, false);
		}
		return fd;
	}
	if (fd != -ENOENT && fd != -EINVAL) {
		log_error("Can't take what the service manager passed: %s", strerror(-fd));
		return fd;
	}
	if (fd != -ENOENT) {
		log_error(
			"The socket '%s' of the service manager is not a listening SOCK_SEQPACKET "
			"socket (ListenSequentialPacket=)",
			name);
		return fd;
	}
	fd = runtime_listen(d->runtime, name, why, sizeof(why));
	if (fd < 0) {
		log_error("%s", why);
	} else if (d->guard) {
		guard_add(d->guard, name, fd, true);
	}
	return fd;
}

/* Where a service manager listens for those who collect metrics. Return: 0, or a negative errno,
 * logged. */
static int take_metrics_socket(struct daemon *d) {
	int fd = notify_take_socket("metrics", SOCK_STREAM);

	if (fd == -EINVAL) {
		log_error(
			"The socket 'metrics' of the service manager is not a listening "
			"SOCK_STREAM socket (ListenStream=)");
		return fd;
	}
	d->metrics_fd = fd >= 0 ? fd : -1;
	return 0;
}

static int add_events(struct daemon *d) {
	d->signals[0] = evsignal_new(d->base, SIGTERM, on_signal, d);
	d->signals[1] = evsignal_new(d->base, SIGINT, on_signal, d);
	d->signals[2] = evsignal_new(d->base, SIGHUP, on_signal, d);
	for (size_t i = 0; i < 3; i++) {
		if (!d->signals[i] || event_add(d->signals[i], NULL) < 0) {
			return -ENOMEM;
		}
	}
	d->watchdog_interval = notify_watchdog_interval();
	if (d->watchdog_interval > 0) {
		timer_init(&d->watchdog, d->base, on_watchdog, d);
		timer_set(&d->watchdog, d->watchdog_interval);
	}
	return 0;
}

/* It is known whether there is MPS, on which the sharing of GPUs depends. */
static void list_gpus(struct daemon *d) {
	const struct settings *o = &d->reload.config->settings;
	struct inventory_sharing sharing = o->sharing;
	int r;

	sharing.mps_is_up = mps_info(d->mps).state == MPS_UP;
	if (o->gpus.n > 0) {
		r = inventory_new_fixed(&d->inventory, o->gpus.sms, o->gpus.n, &sharing);
		if (r == 0) {
			on_inventory(d, 0, NULL);
		}
	} else {
		r = inventory_new_nvml(&d->inventory, d->base, &sharing, o->hwmon, on_inventory, d);
	}
	if (r < 0) {
		log_error("Can't list the GPUs: %s", strerror(-r));
		d->failed = true;
		event_base_loopbreak(d->base);
	}
}

static void on_mps(void *userdata) {
	struct daemon *d = userdata;

	if (!d->inventory) {
		list_gpus(d);
		return;
	}
	inventory_set_mps(d->inventory, mps_info(d->mps).state == MPS_UP);
	if (d->server) {
		server_follow_mps(d->server);
	}
}

/* Return: 0, or a negative errno, logged. */
static int open_history(struct daemon *d) {
	char why[PROTO_TEXT_MAX], state[PROTO_PATH_MAX];
	bool keeps = state_directory(state);
	int r = history_file_open(&d->history, runtime_directory(d->runtime), keeps ? state : NULL,
				  why, sizeof(why));

	if (r < 0) {
		log_error("Can't start: %s", strerror(-r));
	} else if (*why) {
		log_warning("%s", why);
	}
	return r;
}

static void close_history(struct daemon *d) {
	int r = history_file_close(d->history);

	if (r < 0) {
		log_warning("Can't keep the history of tasks over the next boot: %s", strerror(-r));
	}
}

static int start(struct daemon *d) {
	const struct settings *o = &d->reload.config->settings;
	char why[PROTO_TEXT_MAX] = "no memory";
	int r;

	r = runtime_new(&d->runtime, *o->runtime_dir ? o->runtime_dir : NULL, why, sizeof(why));
	if (r < 0) {
		log_error("%s", why);
		return r;
	}
	r = ledger_new(&d->ledger, runtime_directory(d->runtime), why, sizeof(why));
	if (r < 0) {
		log_error("Can't start: %s", strerror(-r));
		return r;
	}
	if (*why) {
		log_warning("%s", why);
	}
	r = open_history(d);
	if (r < 0) {
		return r;
	}
	r = load_profiles(d);
	if (r < 0) {
		return r;
	}
	r = load_table(d);
	if (r < 0) {
		return r;
	}
	/* Signals first: whoever can connect may rely on a clean end. */
	d->base = event_base_new();
	r = d->base ? add_events(d) : -ENOMEM;
	if (r < 0) {
		log_error("Can't start: %s", strerror(-r));
		return r;
	}
	r = guard_new(&d->guard, d->base, d->runtime, on_replaced, d);
	if (r < 0) {
		log_warning("Can't watch over the sockets: %s", strerror(-r));
	}
	d->shim_fd = listen_at(d, "shim");
	d->control_fd = d->shim_fd >= 0 ? listen_at(d, "control") : -1;
	if (d->control_fd < 0 || take_metrics_socket(d) < 0) {
		return -1;
	}
	r = start_learning(d);
	if (r < 0) {
		return r;
	}
	r = mps_new(&d->mps, d->base, o->mps, runtime_directory(d->runtime));
	if (r < 0) {
		log_error("Can't start: %s", strerror(-r));
		return r;
	}
	mps_start(d->mps, on_mps, d);
	return 0;
}

static void stop(struct daemon *d) {
	guard_free(d->guard);
	server_free(d->server);
	util_closep(&d->shim_fd);
	util_closep(&d->control_fd);
	util_closep(&d->metrics_fd);
	learn_store_free(d->learn);
	learn_free(d->corrections);
	ledger_free(d->ledger);
	close_history(d);
	mps_free(d->mps, d->in_use);
	inventory_free(d->inventory);
	while (d->n_gpu_locks > 0) {
		close(d->gpu_locks[--d->n_gpu_locks]);
	}
	profiles_free(d->profiles);
	table_file_free(d->table);
	for (size_t i = 0; i < 3; i++) {
		if (d->signals[i]) {
			event_free(d->signals[i]);
		}
	}
	timer_stop(&d->watchdog);
	timer_stop(&d->status);
	if (d->base) {
		event_base_free(d->base);
	}
	runtime_free(d->runtime);
	reload_deinit(&d->reload);
}

int main(int argc, char **argv) {
	struct daemon d = {.shim_fd = -1, .control_fd = -1, .metrics_fd = -1};
	char why[PROTO_TEXT_MAX];
	int r;

	if (argc > 1 && strcmp(argv[1], HELPER_OPTION) == 0) {
		return helper_run(argc > 2 && strcmp(argv[2], HELPER_SIMULATED) == 0);
	}
	switch (options_parse(argc, argv, &d.options)) {
	case OPTIONS_RUN:
		break;
	case OPTIONS_DONE:
		return 0;
	case OPTIONS_WRONG:
		return 2;
	}
	log_init(LOG_LEVEL_INFO);
	if (reload_init(&d.reload, &d.options, why, sizeof(why)) < 0) {
		log_error("%s", why);
		return 2;
	}
	log_set_level(d.reload.config->settings.log_level);
	signal(SIGPIPE, SIG_IGN);
	r = client_socket_init();
	if (r < 0) {
		log_error("No timer: %s", strerror(-r));
		return 1;
	}
	raise_descriptor_limit();
	r = start(&d);
	if (r == 0 && !d.failed) {
		r = awake_dispatch(&d.awake, d.base, on_turn, &d);
	}
	stop(&d);
	return r < 0 || d.failed ? 1 : 0;
}
