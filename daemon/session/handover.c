/*
 * handover.c: what goes from one daemon to the next. See handover.h.
 */
#include "daemon/session/handover.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "daemon/base/log.h"
#include "daemon/base/notify.h"
#include "daemon/base/quota.h"
#include "daemon/base/util.h"
#include "daemon/engine/engine.h"
#include "daemon/gpu/inventory.h"
#include "daemon/mps/mps.h"
#include "daemon/session/resume.h"
#include "daemon/session/session-hear.h"
#include "daemon/session/session-task.h"
#include "daemon/session/session.h"
#include "proto/hash.h"
#include "proto/limits.h"
#include "proto/packet.h"
#include "proto/validate.h"
#include "state.pb-c.h"

#define FILE_NAME   "sessions"
#define SOCKET_NAME "shim-%llu"

/* More than any daemon ever writes: 4096 sessions of 64 KiB. */
#define FILE_MAX (256u * 1024 * 1024)

static const char magic[8] = "sbeetses";

struct header {
	char magic[8];
	uint32_t version;
	uint32_t reserved;
	uint64_t next_session;
	uint64_t bytes;	   /* that follow: records, each behind its length in 4 bytes */
	uint64_t checksum; /* of them */
};

/* ---- saving ---- */

struct writer {
	uint8_t *bytes; /* owned */
	size_t n, room;
	bool failed;
};

static void write_record(struct writer *w, const Sbeet__State__Record *record) {
	size_t size = sbeet__state__record__get_packed_size(record);
	uint32_t n = (uint32_t)size;

	if (size > PROTO_PACKET_MAX || w->failed) {
		w->failed = true;
		return;
	}
	if (w->room - w->n < sizeof(n) + size) {
		size_t room = w->room ? w->room * 2 : 4 * PROTO_PACKET_MAX;
		uint8_t *bytes = realloc(w->bytes, room);

		if (!bytes) {
			w->failed = true;
			return;
		}
		w->bytes = bytes;
		w->room = room;
	}
	memcpy(w->bytes + w->n, &n, sizeof(n));
	w->n += sizeof(n) + sbeet__state__record__pack(record, w->bytes + w->n + sizeof(n));
}

/* Those of @gpus, a bit each. Return: their number. */
static size_t list_gpus(const struct inventory *inventory, uint32_t gpus,
			ProtobufCBinaryData ret[static SCHED_GPUS_MAX]) {
	size_t n = 0;

	for (size_t i = 0; i < inventory_n_gpus(inventory); i++) {
		if (gpus & BIT(i)) {
			ret[n++] = (ProtobufCBinaryData){
				.data = (uint8_t *)inventory_gpu(inventory, i)->uuid,
				.len = PROTO_UUID_BYTES};
		}
	}
	return n;
}

static void say_feature(Sbeet__Hello *hello, bool has, const char *name) {
	if (has) {
		hello->features[hello->n_features++] = (char *)name;
	}
}

/* The next sbeetd finds MPS in the same place, or it is another one. */
static void say_mps(Sbeet__Hello *hello, const struct session *s) {
	const char *pipe = mps_info(s->all->mps).pipe_directory;

	hello->initialised = true;
	hello->mps_pipe_directory = (char *)(s->mps == SESSION_MPS_CLIENT ? pipe : "/");
}

static void write_session(struct writer *w, const struct session *s) {
	static Sbeet__Held held[PROTO_JOBS_PER_SESSION], *list[PROTO_JOBS_PER_SESSION];
	static uint8_t sms[PROTO_JOBS_PER_SESSION][32];
	const struct session_counters *c = &s->counters;
	char *features[PROTO_FEATURES_MAX];
	ProtobufCBinaryData gpus[SCHED_GPUS_MAX];
	Sbeet__TaskSpec task = SBEET__TASK_SPEC__INIT;
	Sbeet__Hello hello = SBEET__HELLO__INIT;
	Sbeet__State__Counters counters = SBEET__STATE__COUNTERS__INIT;
	Sbeet__State__Session session = SBEET__STATE__SESSION__INIT;
	Sbeet__State__Record record = SBEET__STATE__RECORD__INIT;
	const struct job *job;
	uint32_t n_stopped = 0;

	TAILQ_FOREACH(job, &s->jobs, link) {
		n_stopped += job->state == JOB_STOPPED;
		if (job->state != JOB_WAITING && job->sched_id != SCHED_JOB_NONE) {
			size_t n = hello.n_held++;

			granted_job_to_wire(&job->record, sms[n], &held[n]);
			list[n] = &held[n];
		}
	}
	task_spec_to_wire(&s->task, &task);
	hello.version = PROTO_VERSION;
	hello.features = features;
	say_feature(&hello, s->answers_pings, PROTO_FEATURE_PING);
	say_feature(&hello, s->counts, PROTO_FEATURE_COUNTS);
	say_feature(&hello, s->terms.page, PROTO_FEATURE_TERMS);
	say_feature(&hello, s->takes_board, PROTO_FEATURE_COPIES);
	say_feature(&hello, s->stops, PROTO_FEATURE_STOP);
	say_feature(&hello, s->levels, PROTO_FEATURE_LEVEL);
	say_feature(&hello, s->has_thread, PROTO_FEATURE_THREAD);
	say_feature(&hello, s->owner.offers, PROTO_FEATURE_PREEMPT);
	hello.program = (char *)s->program;
	hello.run = (char *)s->run;
	hello.task = &task;
	hello.scope = s->scope;
	hello.enforcement_mask = s->enforcement_mask;
	hello.held = list;
	say_mps(&hello, s);
	if (identity_has_secret(&s->identity)) {
		hello.secret.data = (uint8_t *)s->identity.secret;
		hello.secret.len = sizeof(s->identity.secret);
	}
	counters.jobs = c->jobs;
	counters.jobs_partition = c->jobs_partition;
	counters.launches = c->launches;
	counters.copies = c->copies;
	counters.misses = c->misses;
	counters.outside_blocks = c->outside_blocks;
	counters.unreported = c->unreported;
	counters.max_wait_ns = c->max_wait;
	counters.max_started_late_ns = c->max_started_late;
	counters.max_response_ns = c->max_response;
	session.id = s->id;
	session.hello = s->state == SESSION_NEW ? NULL : &hello;
	session.connected_ns = s->connected;
	session.kernels.data = s->kernels.declared;
	session.kernels.len = s->kernels.declared_bytes;
	session.n_kernels = s->kernels.n;
	session.n_confinable = s->kernels.n_confinable;
	session.counters = &counters;
	session.first_release_ns = s->releases.first;
	session.gpu_uuids = gpus;
	session.n_gpu_uuids = list_gpus(s->all->inventory, s->gpus, gpus);
	session.task_known = true;
	/* The next one does not know them: it may hear of their end, or of a new job for the rest.
	 */
	session.n_disowned = s->n_disowned + n_stopped;
	record.body_case = SBEET__STATE__RECORD__BODY_SESSION;
	record.session = &session;
	write_record(w, &record);
}

static void write_kernels(struct writer *w, const struct session *s) {
	const struct kernel_info *info = kernels_next(&s->kernels, 0);

	for (; info; info = kernels_next(&s->kernels, info->id)) {
		Sbeet__KernelDef def = SBEET__KERNEL_DEF__INIT;
		Sbeet__KernelCount count = SBEET__KERNEL_COUNT__INIT;
		Sbeet__State__Kernel kernel = SBEET__STATE__KERNEL__INIT;
		Sbeet__State__Record record = SBEET__STATE__RECORD__INIT;

		def.id = count.kernel = info->id;
		def.name = info->name->text;
		def.enforcement_mask = info->enforcement_mask;
		def.refusal = info->refusal ? info->refusal : def.refusal;
		def.dependent = info->dependent;
		count.launches = info->launches;
		count.blocks = info->blocks;
		count.block_threads = info->block_threads;
		kernel.session = s->id;
		kernel.def = &def;
		kernel.count = &count;
		record.body_case = SBEET__STATE__RECORD__BODY_KERNEL;
		record.kernel = &kernel;
		write_record(w, &record);
	}
}

/* Jobs under terms: they hold no SMs, so the ledger does not know of them. */
static void write_running(struct writer *w, const struct session *s) {
	const struct job *job;

	TAILQ_FOREACH(job, &s->jobs, link) {
		Sbeet__Began began = SBEET__BEGAN__INIT;
		Sbeet__State__Running running = SBEET__STATE__RUNNING__INIT;
		Sbeet__State__Record record = SBEET__STATE__RECORD__INIT;

		if (job->terms == 0) {
			continue;
		}
		began.job = job->record.number;
		began.gpu_uuid.data = (uint8_t *)job->record.uuid;
		began.gpu_uuid.len = sizeof(job->record.uuid);
		began.release_ns = job->record.requested;
		began.began_ns = job->record.granted;
		began.tid = job->record.tid;
		began.terms = job->terms;
		began.own_deadline_ns = job->own_deadline;
		running.session = s->id;
		running.began = &began;
		running.release_ns = job->release;
		record.body_case = SBEET__STATE__RECORD__BODY_RUNNING;
		record.running = &running;
		write_record(w, &record);
	}
}

/* Those that are withheld (quiet.h) come last. */
static uint64_t order_of(const struct job *job) {
	const struct sched_job *waits =
		sched_job(engine_sched(job->session->all->engine), job->sched_id);

	return waits ? waits->order : UINT64_MAX;
}

static int compare_order(const void *a, const void *b) {
	uint64_t i = order_of(*(struct job *const *)a), k = order_of(*(struct job *const *)b);

	return (i > k) - (i < k);
}

static void write_waiting(struct writer *w, const struct job *job) {
	Sbeet__Request request = SBEET__REQUEST__INIT;
	Sbeet__State__Waiting waiting = SBEET__STATE__WAITING__INIT;
	Sbeet__State__Record record = SBEET__STATE__RECORD__INIT;
	ProtobufCBinaryData others[SCHED_GPUS_MAX];

	request.job = job->record.number;
	request.gpu_uuid.data = (uint8_t *)job->record.uuid;
	request.gpu_uuid.len = sizeof(job->record.uuid);
	request.release_ns = job->record.requested;
	request.enforcement_mask = job->record.enforcement_mask;
	request.op = SBEET__OP_KIND__OP_KIND_LAUNCH; /* nobody asks again which it was */
	request.tid = job->record.tid;
	request.sm_step = job->sm_step;
	request.own_deadline_ns = job->own_deadline;
	request.other_gpu_uuids = others;
	request.n_other_gpu_uuids = list_gpus(job->session->all->inventory, job->gpus, others);
	waiting.session = job->session->id;
	waiting.request = &request;
	waiting.release_ns = job->release;
	record.body_case = SBEET__STATE__RECORD__BODY_WAITING;
	record.waiting = &waiting;
	write_record(w, &record);
}

static void write_all_waiting(struct writer *w, struct sessions *all) {
	_cleanup_free_ struct job **list = calloc(ENGINE_JOBS_MAX, sizeof(*list));
	struct session *s;
	struct job *job;
	size_t n = 0;

	TAILQ_FOREACH(s, &all->list, link) {
		TAILQ_FOREACH(job, &s->jobs, link) {
			if (list && n < ENGINE_JOBS_MAX && s->fd >= 0 &&
			    job->state == JOB_WAITING) {
				list[n++] = job;
			}
		}
	}
	if (!list) {
		w->failed = true;
		return;
	}
	qsort(list, n, sizeof(*list), compare_order);
	for (size_t i = 0; i < n; i++) {
		write_waiting(w, list[i]);
	}
}

/* Return: a memory file with all that is to be known, or negative errno. */
static int make_file(struct sessions *all) {
	_cleanup_close_ int fd = memfd_create("sbeetd-" FILE_NAME, MFD_CLOEXEC);
	struct header header = {.version = HANDOVER_VERSION, .next_session = all->next_id};
	struct writer w = {0};
	struct session *s;
	bool written;

	if (fd < 0) {
		return -errno;
	}
	TAILQ_FOREACH(s, &all->list, link) {
		if (s->fd >= 0) {
			write_session(&w, s);
			write_kernels(&w, s);
			write_running(&w, s);
		}
	}
	write_all_waiting(&w, all);
	memcpy(header.magic, magic, sizeof(magic));
	header.bytes = w.n;
	header.checksum = hash_bytes(HASH_EMPTY, w.bytes, w.n);
	written = !w.failed && write(fd, &header, sizeof(header)) == sizeof(header) &&
		  (w.n == 0 || write(fd, w.bytes, w.n) == (ssize_t)w.n);
	free(w.bytes);
	return written ? TAKE_FD(fd) : -ENOMEM;
}

bool handover_save(struct sessions *all) {
	_cleanup_close_ int fd = -1;
	struct session *s, *next;
	unsigned n = 0;
	char name[32];

	if (TAILQ_EMPTY(&all->list) || !notify_can_store()) {
		return false;
	}
	fd = make_file(all);
	if (fd < 0 || notify_store(fd, FILE_NAME) < 0) {
		log_warning("Can't hand the connections over: %s; programs connect again",
			    strerror(fd < 0 ? -fd : EIO));
		return false;
	}
	for (s = TAILQ_FIRST(&all->list); s; s = next) {
		next = TAILQ_NEXT(s, link);
		snprintf(name, sizeof(name), SOCKET_NAME, (unsigned long long)s->id);
		if (s->fd >= 0 && notify_store(s->fd, name) == 0) {
			session_hand_over(s);
			n++;
		}
	}
	notify_barrier(); /* before we are gone, the service manager must have seen it all */
	log_info("%u connections are kept for the next sbeetd", n);
	return true;
}

/* ---- restoring ---- */

struct handover {
	struct sessions *all; /* borrowed */
	uint8_t *file;	      /* mapped */
	size_t size;
};

/* Return: NULL, and why not. */
static struct handover *open_file(struct sessions *all, int fd, const char **why) {
	struct handover *h = calloc(1, sizeof(*h));
	struct header header;
	struct stat st;
	void *p;

	*why = "it is no file of sbeetd's";
	if (!h || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    st.st_size < (off_t)sizeof(header) || st.st_size > FILE_MAX) {
		free(h);
		return NULL;
	}
	h->all = all;
	h->size = (size_t)st.st_size;
	p = mmap(NULL, h->size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED) {
		free(h);
		return NULL;
	}
	h->file = p;
	memcpy(&header, p, sizeof(header));
	if (memcmp(header.magic, magic, sizeof(magic)) == 0 && header.version != HANDOVER_VERSION) {
		*why = "it is of another version";
	} else if (memcmp(header.magic, magic, sizeof(magic)) == 0 &&
		   header.bytes == h->size - sizeof(header) &&
		   header.checksum == hash_bytes(HASH_EMPTY, h->file + sizeof(header),
						 h->size - sizeof(header)) &&
		   header.next_session < UINT64_MAX / 2) {
		if (header.next_session > all->next_id) {
			all->next_id = header.next_session;
		}
		return h;
	}
	munmap(h->file, h->size);
	free(h);
	return NULL;
}

static void restore_counters(struct session *s, const Sbeet__State__Counters *saved) {
	s->counters = (struct session_counters){
		.jobs = saved->jobs,
		.jobs_partition = saved->jobs_partition,
		.launches = saved->launches,
		.copies = saved->copies,
		.misses = saved->misses,
		.outside_blocks = saved->outside_blocks,
		.unreported = saved->unreported,
		.max_wait = saved->max_wait_ns,
		.max_started_late = saved->max_started_late_ns,
		.max_response = saved->max_response_ns,
	};
}

static void restore_gpus(struct session *s, const Sbeet__State__Session *saved) {
	for (size_t i = 0; i < saved->n_gpu_uuids; i++) {
		const ProtobufCBinaryData *uuid = &saved->gpu_uuids[i];
		int gpu = uuid->len == PROTO_UUID_BYTES
				  ? inventory_find(s->all->inventory, uuid->data)
				  : -1;

		s->gpus |= gpu >= 0 ? BIT((unsigned)gpu) : 0;
	}
}

/* What a Hello does not tell. */
static void restore_releases(struct session *s, const Sbeet__State__Session *saved) {
	if (s->releases.first && saved->first_release_ns) {
		s->releases.first = saved->first_release_ns;
		session_task_set(s, &s->task, false);
		session_task_refresh(s);
	}
}

/* As if its process had just connected and said what is saved. */
static void restore_session(struct sessions *all, Sbeet__State__Session *saved) {
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;
	nsec_t now = all->now();
	struct session *s;
	char name[32];
	int fd;

	snprintf(name, sizeof(name), SOCKET_NAME, (unsigned long long)saved->id);
	fd = notify_take_stored(name);
	if (fd < 0) {
		return;
	}
	if (session_new(&s, all, saved->id, fd, ADMISSION_REPLAYED)) {
		close(fd);
		return;
	}
	s->connected = saved->connected_ns < now ? saved->connected_ns : now;
	if (saved->counters) {
		restore_counters(s, saved->counters);
	}
	if (kernels_restore_declared(&s->kernels, saved->kernels.data, saved->kernels.len,
				     saved->n_kernels, saved->n_confinable)) {
		session_end(s); /* its process connects again, and declares them again */
		return;
	}
	restore_gpus(s, saved);
	if (!saved->hello) {
		return;
	}
	m.body_case = SBEET__TO_DAEMON__BODY_HELLO;
	m.hello = saved->hello;
	s->replayed = true;
	s->task_known = saved->task_known;
	session_hear(s, &m);
	s->replayed = false;
	if (s->state == SESSION_ACTIVE) {
		s->n_disowned += saved->n_disowned;
		restore_releases(s, saved);
	}
}

/* The restored one, if it is still connected. */
static struct session *find_session(const struct sessions *all, uint64_t id) {
	struct session *s = sessions_find(all, id);

	return s && s->fd >= 0 ? s : NULL;
}

/* @s says @m, of a job that was released at @release, once more. */
static void hear_again(struct session *s, const Sbeet__ToDaemon *m, nsec_t release) {
	s->replayed_release = release;
	s->replayed = true;
	session_hear(s, m);
	s->replayed = false;
}

static void restore_waiting(struct sessions *all, Sbeet__State__Waiting *saved) {
	struct session *s = find_session(all, saved->session);
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;

	if (s && saved->request) {
		m.body_case = SBEET__TO_DAEMON__BODY_REQUEST;
		m.request = saved->request;
		hear_again(s, &m, saved->release_ns);
	}
}

static void restore_running(struct sessions *all, Sbeet__State__Running *saved) {
	struct session *s = find_session(all, saved->session);
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;

	if (s && saved->began) {
		m.body_case = SBEET__TO_DAEMON__BODY_BEGAN;
		m.began = saved->began;
		hear_again(s, &m, saved->release_ns);
	}
}

static void restore_kernel(struct sessions *all, const Sbeet__State__Kernel *saved) {
	struct session *s = find_session(all, saved->session);

	if (s && saved->def && saved->count) {
		kernels_restore(&s->kernels, saved->def, saved->count);
	}
}

static void restore_record(struct sessions *all, const uint8_t *bytes, size_t n) {
	ProtobufCMessage *m = NULL;
	Sbeet__State__Record *record;

	if (packet_unpack(&sbeet__state__record__descriptor, bytes, n, &m) < 0) {
		return;
	}
	record = (Sbeet__State__Record *)m;
	if (record->body_case == SBEET__STATE__RECORD__BODY_SESSION) {
		restore_session(all, record->session);
	} else if (record->body_case == SBEET__STATE__RECORD__BODY_WAITING) {
		restore_waiting(all, record->waiting);
	} else if (record->body_case == SBEET__STATE__RECORD__BODY_KERNEL) {
		restore_kernel(all, record->kernel);
	} else if (record->body_case == SBEET__STATE__RECORD__BODY_RUNNING) {
		restore_running(all, record->running);
	}
	packet_free(m);
}

struct handover *handover_begin(struct sessions *all) {
	_cleanup_close_ int fd = notify_take_stored(FILE_NAME);
	struct handover *h;
	const char *why;

	if (fd < 0) {
		return NULL;
	}
	h = open_file(all, fd, &why);
	if (!h) {
		log_warning("What the sbeetd before left is not used: %s; programs connect again",
			    why);
	}
	return h;
}

void handover_finish(struct handover *h) {
	uint32_t n;

	for (size_t at = sizeof(struct header); h && h->size - at > sizeof(n); at += n) {
		memcpy(&n, h->file + at, sizeof(n));
		at += sizeof(n);
		if (n > PROTO_PACKET_MAX || n > h->size - at) {
			break;
		}
		restore_record(h->all, h->file + at, n);
	}
	if (h) {
		resume_replayed(h->all);
		munmap(h->file, h->size);
		free(h);
	}
	notify_drop_stored(); /* what nobody took: their programs connect again */
}
