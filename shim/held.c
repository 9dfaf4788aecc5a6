/*
 * held.c: see held.h.
 */
#include "shim/held.h"

#include <string.h>

#include "proto/smset.h"

struct held {
	uint64_t job; /* 0: free */
	uint64_t sequence;
	nsec_t release, deadline, granted;
	uint32_t slot, mask, tid;
	Sbeet__Enforcement enforcement;
	uint8_t uuid[PROTO_UUID_BYTES];
	uint8_t sms[sizeof(struct smset)];
	size_t n_sms; /* bytes of it */
};

static struct held table[PROTO_JOBS_PER_SESSION];
static size_t n_held;

static struct held *find(uint64_t job) {
	for (size_t i = 0; i < PROTO_JOBS_PER_SESSION; i++) {
		if (table[i].job == job) {
			return &table[i];
		}
	}
	return NULL;
}

bool held_add(const struct conn_ask *ask, const Sbeet__Grant *grant, nsec_t now) {
	struct held *h = find(0);

	if (!h || grant->sms.len > sizeof(h->sms)) {
		return false;
	}
	*h = (struct held){
		.job = ask->job,
		.sequence = grant->sequence,
		.release = ask->release_ns,
		.deadline = grant->deadline_ns,
		.granted = now,
		.slot = grant->slot,
		.mask = ask->enforcement_mask,
		.tid = ask->tid,
		.enforcement = grant->enforcement,
		.n_sms = grant->sms.len,
	};
	memcpy(h->uuid, ask->uuid, sizeof(h->uuid));
	memcpy(h->sms, grant->sms.data, grant->sms.len);
	n_held++;
	return true;
}

bool held_has(uint64_t job) {
	return job != 0 && n_held > 0 && find(job);
}

bool held_any(void) {
	return n_held > 0;
}

void held_remove(uint64_t job) {
	struct held *h = job ? find(job) : NULL;

	if (h) {
		h->job = 0;
		n_held--;
	}
}

void held_clear(void) {
	memset(table, 0, sizeof(table));
	n_held = 0;
}

void held_declare(Sbeet__Hello *hello) {
	static Sbeet__Held messages[PROTO_JOBS_PER_SESSION], *list[PROTO_JOBS_PER_SESSION];
	size_t n = 0;

	for (struct held *h = table; n < n_held && h < table + PROTO_JOBS_PER_SESSION; h++) {
		Sbeet__Held *m = &messages[n];

		if (h->job == 0) {
			continue;
		}
		sbeet__held__init(m);
		m->job = h->job;
		m->gpu_uuid.data = h->uuid;
		m->gpu_uuid.len = sizeof(h->uuid);
		m->sms.data = h->sms;
		m->sms.len = h->n_sms;
		m->slot = h->slot;
		m->enforcement = h->enforcement;
		m->sequence = h->sequence;
		m->deadline_ns = h->deadline;
		m->release_ns = h->release;
		m->enforcement_mask = h->mask;
		m->tid = h->tid;
		m->granted_ns = h->granted;
		list[n++] = m;
	}
	hello->held = list;
	hello->n_held = n;
}
