/*
 * held.c: see held.h.
 */
#include "shim/held.h"

#include <string.h>

#include "proto/granted-job.h"

struct held {
	struct granted_job job; /* its number 0: free */

	bool stopped;	    /* it holds no SMs now */
	nsec_t ended;	    /* 0: it runs */
	uint64_t requested; /* a grant of a later job confirms that its end was read */
	Sbeet__JobDone done;
};

static struct held table[PROTO_JOBS_PER_SESSION];
static size_t n_running, n_ended;

static struct held *find(uint64_t job) {
	for (size_t i = 0; i < PROTO_JOBS_PER_SESSION; i++) {
		if (table[i].job.number == job) {
			return &table[i];
		}
	}
	return NULL;
}

/* An end. */
static void forget(struct held *h) {
	h->job.number = 0;
	h->ended = 0;
	n_ended--;
}

/* A free one, or that of an end that is not confirmed: then most probably it was read as well. */
static struct held *find_room(void) {
	struct held *h = find(0);

	for (size_t i = 0; !h && i < PROTO_JOBS_PER_SESSION; i++) {
		if (table[i].ended) {
			h = &table[i];
			forget(h);
		}
	}
	return h;
}

bool held_add(const struct conn_ask *ask, const Sbeet__Grant *grant, nsec_t now) {
	struct held *h = find(ask->job);
	bool again = h && h->stopped;
	struct smset sms;

	h = again ? h : find_room();
	if (!h || smset_from_bytes(grant->sms.data, grant->sms.len, &sms) < 0) {
		return false;
	}
	*h = (struct held){.job = {
				   .number = ask->job,
				   .sequence = grant->sequence,
				   .requested = ask->release_ns,
				   .deadline = grant->deadline_ns,
				   .granted = now,
				   .sms = sms,
				   .slot = grant->slot,
				   .enforcement = (uint32_t)grant->enforcement,
				   .enforcement_mask = ask->enforcement_mask,
				   .tid = ask->tid,
			   }};
	memcpy(h->job.uuid, grant->gpu_uuid.data, sizeof(h->job.uuid));
	n_running += !again;
	return true;
}

static struct held *find_running(uint64_t job) {
	struct held *h = job != 0 && n_running > 0 ? find(job) : NULL;

	return h && !h->ended ? h : NULL;
}

bool held_has(uint64_t job) {
	return find_running(job) != NULL;
}

bool held_any(void) {
	return n_running > 0;
}

void held_end(uint64_t job, const Sbeet__JobDone *done, uint64_t requested, nsec_t now) {
	struct held *h = find_running(job);

	if (h) {
		h->ended = now;
		h->stopped = false;
		h->requested = requested;
		h->done = *done;
		n_running--;
		n_ended++;
	}
}

void held_stop(uint64_t job) {
	struct held *h = find_running(job);

	if (h) {
		h->stopped = true;
	}
}

void held_forget_stopped(uint64_t job) {
	for (struct held *h = table; n_running > 0 && h < table + PROTO_JOBS_PER_SESSION; h++) {
		if (h->stopped && (job == 0 || h->job.number == job)) {
			h->job.number = 0;
			h->stopped = false;
			n_running--;
		}
	}
}

void held_confirm(uint64_t job) {
	size_t left = n_ended; /* mostly the one in the first place */

	for (struct held *h = table; left > 0; h++) {
		if (h->ended) {
			left--;
			if (h->requested < job) {
				forget(h);
			}
		}
	}
}

static void forget_old(nsec_t now) {
	for (struct held *h = table; h < table + PROTO_JOBS_PER_SESSION; h++) {
		if (h->ended && now - h->ended > HELD_TELL_MAX_NS) {
			forget(h);
		}
	}
}

bool held_anything(nsec_t now) {
	forget_old(now);
	return n_running + n_ended > 0;
}

void held_clear(void) {
	memset(table, 0, sizeof(table));
	n_running = n_ended = 0;
}

void held_declare(Sbeet__Hello *hello, nsec_t now) {
	static Sbeet__Held messages[PROTO_JOBS_PER_SESSION], *list[PROTO_JOBS_PER_SESSION];
	static Sbeet__JobDone *ended[PROTO_JOBS_PER_SESSION];
	static uint8_t sms[PROTO_JOBS_PER_SESSION][32];
	size_t n = 0, k = 0;

	forget_old(now);
	for (struct held *h = table; h < table + PROTO_JOBS_PER_SESSION; h++) {
		Sbeet__Held *m = &messages[n];

		if (h->ended) {
			ended[k++] = &h->done;
		}
		if (h->job.number == 0 || h->ended || h->stopped) {
			continue;
		}
		granted_job_to_wire(&h->job, sms[n], m);
		list[n++] = m;
	}
	hello->held = list;
	hello->n_held = n;
	hello->ended = ended;
	hello->n_ended = k;
}
