/*
 * ledger.c: the file of running jobs. See ledger.h.
 */
#include "daemon/session/ledger.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "daemon/base/boot.h"
#include "daemon/base/util.h"
#include "daemon/core/sched.h"
#include "proto/enforcement.h"
#include "proto/hash.h"
#include "proto/validate.h"
#include "sbeet.pb-c.h"

#define FILE_NAME "sbeetd.jobs"
#define N_ENTRIES (SCHED_GPUS_MAX * SCHED_SLOTS_MAX)

/* Up to version 4: four jobs a GPU. */
#define N_ENTRIES_4 (SCHED_GPUS_MAX * 4)

struct header {
	char magic[8];
	uint32_t version;
	uint32_t entry_bytes;
	char boot[BOOT_ID_BYTES]; /* times and process ids of another boot mean nothing */
};

struct file {
	struct header header;
	struct ledger_entry entries[N_ENTRIES];
};

/* Version 2. */
struct entry_2 {
	uint64_t checksum;
	uint64_t job, sequence;
	uint64_t identity; /* see identity_from_ledger_2() */
	nsec_t release, deadline, granted;
	struct smset sms;
	uint32_t pid, uid;
	uint32_t slot, enforcement, enforcement_mask, reserved;
	uint32_t job_class, tid;
	int32_t priority;
	uint8_t uuid[PROTO_UUID_BYTES];
	char task[PROTO_NAME_MAX + 4], program[PROTO_NAME_MAX + 4];
	uint32_t used;
};

struct file_2 {
	struct header header;
	struct entry_2 entries[N_ENTRIES_4];
};

static const char magic[8] = "sbeetjob";

struct ledger {
	char path[PROTO_PATH_MAX], next_path[PROTO_PATH_MAX];
	struct file *file; /* mapped; private memory where there is no room for a new one */
	bool on_disk;
	struct file *old; /* mapped, then: the file before, to be written over; NULL: none */
	enum ledger_past past;
	struct ledger_entry left[N_ENTRIES];
	size_t n_left;
};

/* Of what is between the checksum, which comes first, and `used`. */
static uint64_t checksum_of(const void *entry, size_t offset_of_used) {
	return hash_bytes(HASH_EMPTY, (const uint8_t *)entry + sizeof(uint64_t),
			  offset_of_used - sizeof(uint64_t));
}

static uint64_t checksum(const struct ledger_entry *entry) {
	return checksum_of(entry, offsetof(struct ledger_entry, used));
}

static bool is_name(const char *text, size_t size) {
	return memchr(text, '\0', size) && validate_name(text) == 0;
}

static bool is_sound(const struct ledger_entry *e) {
	nsec_t now = nsec_now();

	return e->used == 1 && e->checksum == checksum(e) && e->job.number > 0 &&
	       e->identity.pid <= INT32_MAX && e->job.slot < SCHED_SLOTS_MAX &&
	       !smset_empty(&e->job.sms) && e->job.granted <= now && e->release <= now &&
	       e->job.requested <= now && e->job.deadline <= PROTO_TIME_MAX_NS &&
	       e->job.enforcement < ENFORCEMENT_N && e->job_class <= SCHED_CLASS_REALTIME &&
	       e->priority >= PROTO_PRIORITY_MIN && e->priority <= PROTO_PRIORITY_MAX &&
	       e->job.sequence < now && is_name(e->task, sizeof(e->task)) &&
	       memchr(e->program, '\0', sizeof(e->program));
}

/* One that was not sound stays so. */
static void convert_2(const struct entry_2 *old, struct ledger_entry *ret) {
	*ret = (struct ledger_entry){
		.job =
			{
				.number = old->job,
				.sequence = old->sequence,
				.requested = old->release, /* or later: that was not kept */
				.deadline = old->deadline,
				.granted = old->granted,
				.sms = old->sms,
				.slot = old->slot,
				.enforcement = old->enforcement,
				.enforcement_mask = old->enforcement_mask,
				.tid = old->tid,
			},
		.identity = identity_from_ledger_2(old->identity, old->pid),
		.release = old->release,
		.uid = old->uid,
		.job_class = old->job_class,
		.priority = old->priority,
		.used = old->used,
	};
	memcpy(ret->job.uuid, old->uuid, sizeof(ret->job.uuid));
	memcpy(ret->task, old->task, sizeof(ret->task));
	memcpy(ret->program, old->program, sizeof(ret->program));
	if (old->checksum == checksum_of(old, offsetof(struct entry_2, used))) {
		ret->checksum = checksum(ret);
	}
}

/* The file as this version would have written it. Return: NULL if it is not sound, of another
 * version, or there is no memory. Freed by the caller. */
static struct file *read_file(int fd) {
	_cleanup_free_ struct file *file = calloc(1, sizeof(*file));
	_cleanup_free_ struct file_2 *old = calloc(1, sizeof(*old));
	const struct header *h;

	if (!file || !old || pread(fd, file, sizeof(*file), 0) < (ssize_t)sizeof(*h)) {
		return NULL;
	}
	h = &file->header;
	if (memcmp(h->magic, magic, sizeof(magic)) != 0 || !*h->boot) {
		return NULL;
	}
	if (h->version == 2 && h->entry_bytes == sizeof(struct entry_2) &&
	    pread(fd, old, sizeof(*old), 0) == sizeof(*old)) {
		memset(file->entries, 0, sizeof(file->entries));
		for (size_t i = 0; i < N_ENTRIES_4; i++) {
			convert_2(&old->entries[i], &file->entries[i]);
		}
		return TAKE_PTR(file);
	}
	if (h->version == 4 && h->entry_bytes == sizeof(struct ledger_entry) &&
	    pread(fd, file, sizeof(*file), 0) ==
		    (ssize_t)offsetof(struct file, entries[N_ENTRIES_4])) {
		return TAKE_PTR(file);
	}
	if (h->version == LEDGER_VERSION && h->entry_bytes == sizeof(struct ledger_entry) &&
	    pread(fd, file, sizeof(*file), 0) == sizeof(*file)) {
		return TAKE_PTR(file);
	}
	return NULL;
}

static void read_past(struct ledger *ledger) {
	_cleanup_close_ int fd = open(ledger->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	_cleanup_free_ struct file *file = NULL;
	char boot[BOOT_ID_BYTES];

	if (fd < 0 && errno == ENOENT) {
		return;
	}
	ledger->past = LEDGER_PAST_UNKNOWN;
	file = fd >= 0 && boot_read_id(boot) ? read_file(fd) : NULL;
	if (!file) {
		return;
	}
	ledger->past = LEDGER_PAST_KNOWN;
	for (size_t i = 0; i < N_ENTRIES && memcmp(file->header.boot, boot, sizeof(boot)) == 0;
	     i++) {
		if (is_sound(&file->entries[i])) {
			ledger->left[ledger->n_left++] = file->entries[i];
		} else if (file->entries[i].used) {
			ledger->past = LEDGER_PAST_UNKNOWN;
		}
	}
}

/* Return: 0, or negative errno. */
static int map_file(struct ledger *ledger) {
	_cleanup_close_ int fd = -1;
	void *p;
	int r;

	unlink(ledger->next_path);
	fd = open(ledger->next_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0) {
		return -errno;
	}
	/* All its blocks now: a write into a hole on a full disk would be a SIGBUS. */
	r = -posix_fallocate(fd, 0, sizeof(struct file));
	if (r == 0) {
		p = mmap(NULL, sizeof(struct file), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		r = p == MAP_FAILED ? -errno : 0;
	}
	if (r < 0) {
		unlink(ledger->next_path);
		return r;
	}
	ledger->file = p;
	ledger->on_disk = true;
	return 0;
}

/* The room that the old file takes, where a new one can't have any. */
static struct file *map_old(const struct ledger *ledger) {
	_cleanup_close_ int fd = open(ledger->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	void *p = MAP_FAILED;
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    posix_fallocate(fd, 0, sizeof(struct file)) == 0) {
		p = mmap(NULL, sizeof(struct file), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	}
	return p == MAP_FAILED ? NULL : p;
}

int ledger_new(struct ledger **ret, const char *directory, char *why, size_t why_size) {
	struct ledger *ledger = calloc(1, sizeof(*ledger));
	int r;

	if (!ledger) {
		return -ENOMEM;
	}
	*why = '\0';
	snprintf(ledger->path, sizeof(ledger->path), "%s/" FILE_NAME, directory);
	snprintf(ledger->next_path, sizeof(ledger->next_path), "%s/" FILE_NAME ".new", directory);
	read_past(ledger);
	r = map_file(ledger);
	if (r < 0) {
		ledger->file = calloc(1, sizeof(*ledger->file));
		if (!ledger->file) {
			free(ledger);
			return -ENOMEM;
		}
		ledger->old = map_old(ledger);
	}
	if (r < 0 && !ledger->old) {
		snprintf(why, why_size,
			 "Can't keep the list of running jobs in '%s': %s; if sbeetd is killed, "
			 "they are known again only if their programs tell",
			 directory, strerror(-r));
	}
	memcpy(ledger->file->header.magic, magic, sizeof(magic));
	ledger->file->header.version = LEDGER_VERSION;
	ledger->file->header.entry_bytes = sizeof(struct ledger_entry);
	boot_read_id(ledger->file->header.boot);
	*ret = ledger;
	return 0;
}

struct ledger *ledger_free(struct ledger *ledger) {
	if (!ledger) {
		return NULL;
	}
	if (ledger->on_disk) {
		munmap(ledger->file, sizeof(*ledger->file));
		unlink(ledger->next_path); /* if it was never committed */
	} else {
		free(ledger->file);
	}
	if (ledger->old) {
		munmap(ledger->old, sizeof(*ledger->old));
	}
	free(ledger);
	return NULL;
}

enum ledger_past ledger_past(const struct ledger *ledger) {
	return ledger->past;
}

const struct ledger_entry *ledger_left(const struct ledger *ledger, size_t i) {
	return i < ledger->n_left ? &ledger->left[i] : NULL;
}

/* What the old file says is no longer so; an empty one, which takes no room, tells that there was
 * something. */
static void empty_old(const struct ledger *ledger) {
	_cleanup_close_ int fd =
		open(ledger->path,
		     O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);

	if (fd < 0) {
		unlink(ledger->path);
	}
}

/* Whoever is killed amid this leaves a file that is not sound, and programs are asked. */
static void take_old(struct ledger *ledger) {
	memset(ledger->old->header.magic, 0, sizeof(ledger->old->header.magic));
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	memcpy((char *)ledger->old + sizeof(magic), (char *)ledger->file + sizeof(magic),
	       sizeof(*ledger->old) - sizeof(magic));
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	memcpy(ledger->old->header.magic, magic, sizeof(magic));
	free(ledger->file);
	ledger->file = TAKE_PTR(ledger->old);
	ledger->on_disk = true;
}

void ledger_commit(struct ledger *ledger) {
	if (ledger->old) {
		take_old(ledger);
	} else if (!ledger->on_disk) {
		empty_old(ledger);
	} else if (rename(ledger->next_path, ledger->path) < 0) {
		unlink(ledger->path);
	}
}

void ledger_write(struct ledger *ledger, size_t gpu, unsigned slot,
		  const struct ledger_entry *entry) {
	struct ledger_entry *e;

	assert(gpu < SCHED_GPUS_MAX && slot < SCHED_SLOTS_MAX);
	e = &ledger->file->entries[gpu * SCHED_SLOTS_MAX + slot];
	ledger_erase(ledger, gpu, slot);
	memcpy(e, entry, offsetof(struct ledger_entry, used));
	e->job.slot = slot;
	e->checksum = checksum(e);
	__atomic_store_n(&e->used, 1,
			 __ATOMIC_RELEASE); /* whoever is killed before: nobody was told */
}

void ledger_erase(struct ledger *ledger, size_t gpu, unsigned slot) {
	__atomic_store_n(&ledger->file->entries[gpu * SCHED_SLOTS_MAX + slot].used, 0,
			 __ATOMIC_RELEASE);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}
