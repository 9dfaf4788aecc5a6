/*
 * inventory.c: the GPUs, and the thread that asks NVML about them. See inventory.h.
 *
 * The thread and the loop share `struct worker` under its mutex. The thread never touches anything
 * else, so the loop can leave it behind when it hangs: the last one to let go frees it.
 */
#include "daemon/gpu/inventory.h"

#include <errno.h>
#include <event2/event.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#include "daemon/base/log.h"
#include "daemon/base/util.h"
#include "daemon/gpu/listing.h"
#include "daemon/gpu/sensor.h"
#include "proto/thread.h"
#include "proto/units.h"

#define REFRESH_AFTER NSEC_PER_SEC
#define SENSE_EVERY   NSEC_PER_MSEC /* as the papers measured the Jetsons */

struct reading {
	struct nvml_reading of;
	bool lost;
};

struct worker {
	pthread_mutex_t lock;
	pthread_cond_t wanted;
	int eventfd; /* owned; readable: there are results */
	unsigned n_refs;
	char sensors[256]; /* their folder */

	/* under the lock */
	bool stop;
	bool refresh;
	bool listed, fresh; /* results that the loop has not taken yet */
	int error;
	char why[256];
	struct nvml_gpu gpus[SCHED_GPUS_MAX];
	struct reading readings[SCHED_GPUS_MAX];
	size_t n_gpus;
	unsigned n_left_out;
	char rail[64]; /* of the sensor; empty: none */
	nsec_t read_at;
};

/* What the thread asks: NVML, or else a sensor or nothing. */
struct source {
	struct nvml *nvml;     /* owned */
	struct sensor *sensor; /* owned */
	struct sensor_energy energy;
	size_t n_gpus;
};

struct inventory {
	struct inventory_gpu gpus[SCHED_GPUS_MAX];
	size_t n_gpus;
	struct inventory_sharing sharing;
	uint64_t first_energy_mj[SCHED_GPUS_MAX];

	struct worker *worker; /* shared with the thread; NULL: fixed */
	struct event *event;   /* owned */
	bool refreshing;
	inventory_ready_fn ready;
	void *userdata;
};

static int parse_mode(const char *text, size_t n, bool *ret_automatic, enum sched_sharing *ret) {
	if (n == 4 && strncmp(text, "auto", n) == 0) {
		*ret_automatic = true;
		return 0;
	}
	if (n == 3 && strncmp(text, "mps", n) == 0) {
		*ret = SCHED_SHARING_MPS;
	} else if (n == 9 && strncmp(text, "exclusive", n) == 0) {
		*ret = SCHED_SHARING_EXCLUSIVE;
	} else {
		return -EINVAL;
	}
	*ret_automatic = false;
	return 0;
}

static int parse_index(const char *text, size_t n, int64_t *ret) {
	char number[8];

	if (n >= sizeof(number)) {
		return -EINVAL;
	}
	memcpy(number, text, n);
	number[n] = '\0';
	return units_parse_int(number, 0, SCHED_GPUS_MAX - 1, ret);
}

int inventory_sharing_parse(const char *text, struct inventory_sharing *ret) {
	struct inventory_sharing sharing = {0};
	enum sched_sharing mode = SCHED_SHARING_EXCLUSIVE;
	bool automatic = true, single = !strchr(text, '=');

	if (single && parse_mode(text, strlen(text), &automatic, &mode) < 0) {
		return -EINVAL;
	}
	for (size_t i = 0; i < SCHED_GPUS_MAX; i++) {
		sharing.automatic[i] = automatic;
		sharing.mode[i] = mode;
	}
	while (!single) {
		size_t n = strcspn(text, ","), n_index = strcspn(text, "=");
		int64_t i;

		if (n_index >= n || parse_index(text, n_index, &i) < 0 ||
		    parse_mode(text + n_index + 1, n - n_index - 1, &sharing.automatic[i],
			       &sharing.mode[i]) < 0) {
			return -EINVAL;
		}
		single = text[n] == '\0';
		text += n + 1;
	}
	*ret = sharing;
	return 0;
}

int inventory_sms_parse(const char *text, unsigned ret_sms[static SCHED_GPUS_MAX]) {
	unsigned sms[SCHED_GPUS_MAX];
	int n = 0, r;

	for (;;) {
		size_t length = strcspn(text, ",");
		char number[8];
		int64_t value;

		if (n == SCHED_GPUS_MAX) {
			return -E2BIG;
		}
		if (length >= sizeof(number)) {
			return -EINVAL;
		}
		memcpy(number, text, length);
		number[length] = '\0';
		r = units_parse_int(number, 1, PROTO_SMS_MAX, &value);
		if (r < 0) {
			return r;
		}
		sms[n++] = (unsigned)value;
		if (text[length] == '\0') {
			break;
		}
		text += length + 1;
	}
	memcpy(ret_sms, sms, (size_t)n * sizeof(sms[0]));
	return n;
}

/* @first_mj: what the energy counter showed when the daemon started. */
static void take_reading(struct inventory_gpu *gpu, const struct nvml_reading *r,
			 uint64_t first_mj) {
	gpu->power_mw = r->power_mw;
	gpu->energy_mj = r->energy_mj > first_mj ? r->energy_mj - first_mj : 0;
	gpu->memory_used_bytes = r->memory_used_bytes;
	gpu->utilization_percent = r->utilization_percent;
	gpu->temperature_celsius = r->temperature_celsius;
}

static struct inventory *inventory_new(const struct inventory_sharing *sharing) {
	struct inventory *inventory = calloc(1, sizeof(*inventory));

	if (inventory) {
		inventory->sharing = *sharing;
		for (size_t i = 0; i < SCHED_GPUS_MAX; i++) {
			take_reading(&inventory->gpus[i], &NVML_READING_NULL, 0);
		}
	}
	return inventory;
}

static void follow_mps(const struct inventory *inventory, struct inventory_gpu *gpu) {
	if (gpu->follows_mps) {
		gpu->sharing =
			inventory->sharing.mps_is_up ? SCHED_SHARING_MPS : SCHED_SHARING_EXCLUSIVE;
	}
}

/* What holds for GPU @index; @simulated as in struct nvml_gpu. */
static void set_sharing(struct inventory *inventory, size_t index, int simulated) {
	struct inventory_gpu *gpu = &inventory->gpus[index];

	gpu->follows_mps = inventory->sharing.automatic[index] && simulated < 0;
	gpu->sharing = !inventory->sharing.automatic[index] ? inventory->sharing.mode[index]
		       : simulated == 1			    ? SCHED_SHARING_MPS
							    : SCHED_SHARING_EXCLUSIVE;
	follow_mps(inventory, gpu);
}

void inventory_set_mps(struct inventory *inventory, bool is_up) {
	inventory->sharing.mps_is_up = is_up;
	for (size_t i = 0; i < inventory->n_gpus; i++) {
		follow_mps(inventory, &inventory->gpus[i]);
	}
}

int inventory_new_fixed(struct inventory **ret, const unsigned *sms, size_t n,
			const struct inventory_sharing *sharing) {
	struct inventory *inventory = inventory_new(sharing);

	if (!inventory) {
		return -ENOMEM;
	}
	inventory->n_gpus = n;
	for (size_t i = 0; i < n; i++) {
		struct inventory_gpu *gpu = &inventory->gpus[i];

		gpu->uuid[0] = (uint8_t)(i + 1);
		snprintf(gpu->name, sizeof(gpu->name), "fixed");
		gpu->n_sms = sms[i];
		set_sharing(inventory, i, -1);
		gpu->fixed = true;
	}
	*ret = inventory;
	return 0;
}

static void worker_unref(struct worker *w) {
	bool last;

	pthread_mutex_lock(&w->lock);
	last = --w->n_refs == 0;
	pthread_mutex_unlock(&w->lock);
	if (last) {
		close(w->eventfd);
		pthread_cond_destroy(&w->wanted);
		pthread_mutex_destroy(&w->lock);
		free(w);
	}
}

static void worker_tell(struct worker *w) {
	uint64_t one = 1;

	/* Can only fail when the counter is full, and then the loop knows already. */
	if (write(w->eventfd, &one, sizeof(one)) < 0) {
		return;
	}
}

static struct nvml_reading sensor_reading(const struct source *from) {
	struct nvml_reading reading = NVML_READING_NULL;

	reading.power_mw = from->energy.mw;
	reading.energy_mj = from->energy.uj / 1000;
	return reading;
}

/* Outside the lock while NVML works. */
static void worker_read(struct worker *w, const struct source *from) {
	struct reading readings[SCHED_GPUS_MAX] = {0};

	for (size_t i = 0; i < from->n_gpus; i++) {
		readings[i].of = NVML_READING_NULL;
		if (from->nvml) {
			readings[i].lost = nvml_read(from->nvml, i, &readings[i].of) == -ENODEV;
		} else if (from->sensor) {
			readings[i].of = sensor_reading(from);
		}
	}
	pthread_mutex_lock(&w->lock);
	memcpy(w->readings, readings, sizeof(readings));
	w->read_at = nsec_now();
	w->fresh = true;
	pthread_mutex_unlock(&w->lock);
}

static void sense(struct source *from) {
	uint64_t mw;

	if (from->sensor && sensor_read(from->sensor, &mw) == 0) {
		sensor_add(&from->energy, nsec_now(), mw);
	}
}

/* Whatever can be asked, or nothing; in both cases the loop is told. */
static struct source worker_list(struct worker *w) {
	struct source from = {.nvml = NULL};
	struct gpu_listing l = {.n = 0};
	char why[sizeof(w->why)];
	int r = gpu_list(&l, why, sizeof(why));

	from.nvml = l.nvml;
	from.n_gpus = l.n;
	if (l.n == 1 && l.integrated) {
		sensor_new(&from.sensor, w->sensors); /* or there is none */
	}
	sense(&from);
	worker_read(w, &from);
	pthread_mutex_lock(&w->lock);
	w->error = r;
	memcpy(w->why, why, sizeof(why));
	memcpy(w->gpus, l.gpus, l.n * sizeof(l.gpus[0]));
	w->n_gpus = l.n;
	w->n_left_out = l.n_left_out;
	snprintf(w->rail, sizeof(w->rail), "%s", from.sensor ? sensor_rail(from.sensor) : "");
	w->listed = true;
	pthread_mutex_unlock(&w->lock);
	worker_tell(w);
	return from;
}

/* Until something is wanted; meanwhile it reads the sensor. Return: whether to go on. */
static bool worker_wait(struct worker *w, struct source *from) {
	bool stop;

	pthread_mutex_lock(&w->lock);
	while (!w->stop && !w->refresh) {
		struct timespec until;

		if (!from->sensor) {
			pthread_cond_wait(&w->wanted, &w->lock);
			continue;
		}
		pthread_mutex_unlock(&w->lock);
		sense(from);
		until = nsec_timespec(nsec_now() + SENSE_EVERY);
		pthread_mutex_lock(&w->lock);
		if (!w->stop && !w->refresh) {
			pthread_cond_timedwait(&w->wanted, &w->lock, &until);
		}
	}
	stop = w->stop;
	w->refresh = false;
	pthread_mutex_unlock(&w->lock);
	return !stop;
}

static void *worker_main(void *data) {
	struct worker *w = data;
	struct source from = worker_list(w);

	while (from.n_gpus > 0 && worker_wait(w, &from)) {
		worker_read(w, &from);
		worker_tell(w);
	}
	nvml_close(from.nvml);
	sensor_free(from.sensor);
	worker_unref(w);
	return NULL;
}

static struct worker *worker_new(const char *sensors) {
	struct worker *w = calloc(1, sizeof(*w));
	pthread_condattr_t monotonic;

	if (!w) {
		return NULL;
	}
	w->eventfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->eventfd < 0) {
		free(w);
		return NULL;
	}
	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&w->wanted, &monotonic);
	pthread_condattr_destroy(&monotonic);
	snprintf(w->sensors, sizeof(w->sensors), "%s", sensors);
	w->n_refs = 1;
	return w;
}

static void take_list(struct inventory *inventory, const struct worker *w) {
	inventory->n_gpus = w->n_gpus;
	for (size_t i = 0; i < w->n_gpus; i++) {
		const struct nvml_gpu *from = &w->gpus[i];
		struct inventory_gpu *gpu = &inventory->gpus[i];

		memcpy(gpu->uuid, from->uuid, sizeof(gpu->uuid));
		memcpy(gpu->name, from->name, sizeof(gpu->name));
		memcpy(gpu->pci, from->pci, sizeof(gpu->pci));
		memcpy(gpu->driver, from->driver, sizeof(gpu->driver));
		gpu->n_sms = from->n_sms;
		gpu->green_step = from->green_step;
		gpu->memory_bytes = from->memory_bytes;
		gpu->power_limit_mw = from->power_limit_mw;
		set_sharing(inventory, i, from->simulated_sharing);
		gpu->simulated = from->simulated_sharing >= 0;
		inventory->first_energy_mj[i] = w->readings[i].of.energy_mj;
	}
}

static void take_readings(struct inventory *inventory, const struct worker *w) {
	for (size_t i = 0; i < inventory->n_gpus; i++) {
		const struct reading *reading = &w->readings[i];
		struct inventory_gpu *gpu = &inventory->gpus[i];

		take_reading(gpu, &reading->of, inventory->first_energy_mj[i]);
		gpu->read_at = w->read_at;
		if (reading->lost && !gpu->lost) {
			/* Its jobs go on being granted: the driver tells programs at once, and a
			 * job that waits would wait for ever. */
			log_error(
				"GPU %zu is lost: the driver can't reach it. Programs on it get "
				"errors from CUDA; see the kernel's log for 'Xid', reset or "
				"replace the GPU, and restart sbeetd",
				i);
		}
		gpu->lost = reading->lost;
	}
}

static void on_results(evutil_socket_t fd, short what, void *userdata) {
	struct inventory *inventory = userdata;
	struct worker *w = inventory->worker;
	uint64_t count;
	bool listed;

	if (read(fd, &count, sizeof(count)) < 0) {
		return;
	}
	inventory->refreshing = false;
	pthread_mutex_lock(&w->lock);
	listed = w->listed;
	if (listed) {
		take_list(inventory, w);
	}
	if (w->fresh) {
		take_readings(inventory, w);
	}
	w->listed = w->fresh = false;
	pthread_mutex_unlock(&w->lock);
	if (listed) {
		/* Written once by the thread, before it said so. */
		if (w->n_left_out > 0) {
			log_warning("%u GPUs can't be read through NVML, ignoring", w->n_left_out);
		}
		if (*w->rail) {
			log_info("Power of the GPU is that of the board's rail '%s'", w->rail);
		}
		inventory->ready(inventory->userdata, w->error, w->why);
	}
}

int inventory_new_nvml(struct inventory **ret, struct event_base *base,
		       const struct inventory_sharing *sharing, const char *sensors,
		       inventory_ready_fn ready, void *userdata) {
	struct inventory *inventory = inventory_new(sharing);
	int r = -ENOMEM;

	if (!inventory) {
		return -ENOMEM;
	}
	inventory->ready = ready;
	inventory->userdata = userdata;
	inventory->worker = worker_new(sensors);
	if (inventory->worker) {
		inventory->event = event_new(base, inventory->worker->eventfd, EV_READ | EV_PERSIST,
					     on_results, inventory);
	}
	if (inventory->event && event_add(inventory->event, NULL) == 0) {
		inventory->worker->n_refs++; /* the thread's */
		r = thread_start(NULL, 0, worker_main, inventory->worker);
		if (r == 0) {
			*ret = inventory;
			return 0;
		}
		inventory->worker->n_refs--;
	}
	inventory_free(inventory);
	return r;
}

struct inventory *inventory_free(struct inventory *inventory) {
	if (!inventory) {
		return NULL;
	}
	if (inventory->event) {
		event_free(inventory->event);
	}
	if (inventory->worker) {
		pthread_mutex_lock(&inventory->worker->lock);
		inventory->worker->stop = true;
		pthread_cond_signal(&inventory->worker->wanted);
		pthread_mutex_unlock(&inventory->worker->lock);
		worker_unref(inventory->worker);
	}
	free(inventory);
	return NULL;
}

size_t inventory_n_gpus(const struct inventory *inventory) {
	return inventory->n_gpus;
}

const struct inventory_gpu *inventory_gpu(const struct inventory *inventory, size_t index) {
	return index < inventory->n_gpus ? &inventory->gpus[index] : NULL;
}

int inventory_find(const struct inventory *inventory, const uint8_t uuid[static PROTO_UUID_BYTES]) {
	for (size_t i = 0; i < inventory->n_gpus; i++) {
		if (memcmp(inventory->gpus[i].uuid, uuid, PROTO_UUID_BYTES) == 0) {
			return (int)i;
		}
	}
	return -1;
}

void inventory_refresh(struct inventory *inventory, nsec_t now) {
	struct worker *w = inventory->worker;

	if (!w || inventory->n_gpus == 0 || inventory->refreshing ||
	    now - inventory->gpus[0].read_at <= REFRESH_AFTER) {
		return;
	}
	inventory->refreshing = true;
	pthread_mutex_lock(&w->lock);
	w->refresh = true;
	pthread_cond_signal(&w->wanted);
	pthread_mutex_unlock(&w->lock);
}
