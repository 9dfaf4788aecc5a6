/*
 * turn.c: see turn.h. A thread of its own, for it waits for the board and for the driver.
 */
#include "shim/turn.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proto/units.h"
#include "shim/base/log.h"
#include "shim/conn.h"
#include "shim/groups.h"
#include "shim/own-thread.h"
#include "shim/seat.h"
#include "shim/state.h"
#include "shim/terms.h"

#define STACK_BYTES (64 * 1024)

/* Channels that could not be enabled are tried again after so long. */
#define AGAIN_NS (10 * NSEC_PER_MSEC)

/* One that can't be disabled. */
#define REFUSED_MAX 3

static struct board_slot nobody; /* never waits */
static _Atomic(struct board_slot *) slot = &nobody;
static _Atomic uint32_t wanted;	    /* over this connection; 0: they are not */
static _Atomic uint32_t connection; /* of the slot */
static _Atomic bool left;
static bool running; /* the tracker's */

static void wake(struct board_slot *s) {
	atomic_fetch_add(&s->turn_bell, 1);
	syscall(SYS_futex, &s->turn_bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Until when we are to wait; 0: not at all. One whose groups are on several GPUs does not: it would
 * leave them all. */
static nsec_t waits_until(const struct board_slot *s, nsec_t now) {
	nsec_t until = atomic_load(&s->turn_wait_ns);

	return until > now && until - now <= BOARD_TURN_MAX_NS && !atomic_load(&left) &&
			       groups_known() && terms_held() &&
			       conn_is_current(atomic_load(&connection))
		       ? until
		       : 0;
}

/* As @s says now. Return: when to do so again at the latest; 0: when the bell rings. */
static nsec_t follow(struct board_slot *s, unsigned *refused) {
	nsec_t now = nsec_now(), until = *refused < REFUSED_MAX ? waits_until(s, now) : 0;

	if (until > 0) {
		if (groups_put(atomic_load(&s->turn_stays) ? GROUPS_OFF_LATER : GROUPS_OFF) == 0) {
			*refused = 0;
			atomic_store(&s->turn_state, BOARD_TURN_TAKES | BOARD_TURN_OFF);
			return until;
		}
		++*refused;
	}
	atomic_store(&s->turn_state, *refused < REFUSED_MAX ? BOARD_TURN_TAKES : 0);
	if (groups_put(GROUPS_ON) != 0) {
		return now + AGAIN_NS;
	}
	if (*refused == REFUSED_MAX) {
		log_once(LOG_LEVEL_INFO,
			 "The driver does not disable this program's channels: it "
			 "takes no turns with others");
	}
	return until;
}

static void run(void) {
	unsigned refused = 0;

	state_enter(); /* for good */
	for (;;) {
		struct board_slot *s = atomic_load(&slot);
		uint32_t bell = atomic_load(&s->turn_bell);
		bool last = own_thread_must_end();
		nsec_t until = follow(s, &refused);
		struct timespec t = nsec_timespec(until);

		if (last && until == 0) {
			return;
		}
		if (atomic_load(&slot) == s) {
			syscall(SYS_futex, &s->turn_bell, FUTEX_WAIT_BITSET, bell,
				until ? &t : NULL, NULL, FUTEX_BITSET_MATCH_ANY);
		}
	}
}

/* ---- the tracker's side ---- */

void turn_wanted(uint32_t number) {
	atomic_store(&wanted, number);
}

/* The slot changes before its old bell rings: the thread sees one of them. */
static void sit(struct board_slot *new) {
	struct board_slot *old = atomic_exchange(&slot, new);

	if (old != new) {
		atomic_store(&old->turn_state, 0);
	}
	wake(old);
}

void turn_begin(int device) {
	const struct seat *seat = seat_get();
	struct board_slot *own;
	unsigned place;

	if (!atomic_load(&wanted) || !conn_is_current(atomic_load(&wanted)) || !seat ||
	    !terms_place(device, &place)) {
		return;
	}
	own = &seat->board->slots[place][seat->slot];
	if (!running) {
		running = own_thread_start("sbeet-turn", STACK_BYTES, run) == 0;
	}
	if (running) {
		atomic_store(&connection, atomic_load(&wanted));
		sit(own);
	}
}

/* It takes no lock, for exit() may be called in the middle of anything: the thread does the rest.
 */
void turn_leave(void) {
	atomic_store(&left, true);
	sit(&nobody);
}

void turn_after_fork(void) {
	atomic_store(&slot, &nobody);
	atomic_store(&wanted, 0);
	atomic_store(&left, false);
	running = false;
}
