/*
 * retry.c: see retry.h.
 */
#include "shim/retry.h"

#include <stdatomic.h>
#include <unistd.h>

/* Between attempts to connect. Doubled after each that timed out, for such a one costs a wait. */
#define RETRY_MIN_NS (1 * NSEC_PER_SEC)
#define RETRY_MAX_NS (60 * NSEC_PER_SEC)

static _Atomic nsec_t next;	 /* not before */
static _Atomic nsec_t hopes_end; /* until then the daemon that vanished is waited for */
static nsec_t pause_ns;		 /* the last one; of who holds the connection's lock */

nsec_t retry_at(void) {
	return atomic_load_explicit(&next, memory_order_relaxed);
}

bool retry_is_due(nsec_t now) {
	return now >= retry_at();
}

bool retry_hopes(nsec_t now) {
	return now < atomic_load_explicit(&hopes_end, memory_order_relaxed);
}

void retry_at_once(void) {
	atomic_store_explicit(&next, 0, memory_order_relaxed);
}

void retry_lost(nsec_t now, nsec_t wait_ns) {
	atomic_store(&hopes_end, now + wait_ns);
	retry_at_once();
	pause_ns = 0;
}

static nsec_t doubled(nsec_t pause, nsec_t least, nsec_t most) {
	return pause * 2 < least ? least : pause * 2 < most ? pause * 2 : most;
}

/* While a restart is waited for, a random part of up to a half is taken off, lest a thousand
 * programs come at once. Held jobs must be told of within the daemon's RESUME_GRACE_MS. */
void retry_failed(nsec_t now, bool stuck, bool hurry) {
	nsec_t off = 0;

	if (!stuck && (retry_hopes(now) || hurry)) {
		pause_ns = doubled(pause_ns, RETRY_RESTART_MIN_NS, RETRY_RESTART_MAX_NS);
		off = (now ^ (nsec_t)getpid() * 2654435761u) % (pause_ns / 2);
	} else {
		pause_ns = stuck ? doubled(pause_ns, RETRY_MIN_NS, RETRY_MAX_NS) : RETRY_MIN_NS;
	}
	atomic_store_explicit(&next, now + pause_ns - off, memory_order_relaxed);
}

void retry_reset(void) {
	retry_at_once();
	atomic_store(&hopes_end, 0);
	pause_ns = 0;
}
