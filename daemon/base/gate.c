/*
 * gate.c: a cache of accounts, in sets by process id. See gate.h.
 */
#include "daemon/base/gate.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/base/pace.h"

/* 50 connections may end at once, and 200 a second: at some 30 us each this is less than a
 * hundredth of the daemon's time; so are its items, of up to a microsecond each. A violation counts
 * as five. */
#define LEAVE_COST  (5 * NSEC_PER_MSEC)
#define ITEM_COST   (400 * NSEC_PER_USEC)
#define FAULT_COST  (20 * NSEC_PER_MSEC)
#define LEAVE_BURST (250 * NSEC_PER_MSEC)

/* A process is told what it did wrong a hundred times at once and a hundred times a second. */
#define MISTAKE_COST  (10 * NSEC_PER_MSEC)
#define MISTAKE_BURST (1 * NSEC_PER_SEC)

#define SETS 64
#define WAYS 8

struct account {
	pid_t pid;
	uid_t uid; /* processes that we can't see all have the id 0 */
	unsigned n_waiting;
	struct pace visits, mistakes;
};

struct gate {
	struct account accounts[SETS][WAYS];
};

int gate_new(struct gate **ret) {
	struct gate *gate = calloc(1, sizeof(*gate));

	if (!gate) {
		return -ENOMEM;
	}
	*ret = gate;
	return 0;
}

struct gate *gate_free(struct gate *gate) {
	free(gate);
	return NULL;
}

static struct account *set_of(struct gate *gate, const struct ucred *cred) {
	return gate->accounts[((unsigned)cred->pid ^ (unsigned)cred->uid) % SETS];
}

/* NULL: it owes nothing. */
static struct account *find(struct gate *gate, const struct ucred *cred) {
	struct account *set = set_of(gate, cred);

	for (size_t i = 0; i < WAYS; i++) {
		if (set[i].pid == cred->pid && set[i].uid == cred->uid) {
			return &set[i];
		}
	}
	return NULL;
}

static nsec_t owes_until(const struct account *a) {
	return a->visits.paid_until > a->mistakes.paid_until ? a->visits.paid_until
							     : a->mistakes.paid_until;
}

/* Its account; a new one takes the place of the one that owes least. */
static struct account *need(struct gate *gate, const struct ucred *cred) {
	struct account *a = find(gate, cred), *set = set_of(gate, cred);

	if (a) {
		return a;
	}
	a = &set[0];
	for (size_t i = 1; i < WAYS; i++) {
		if (owes_until(&set[i]) < owes_until(a)) {
			a = &set[i];
		}
	}
	*a = (struct account){.pid = cred->pid, .uid = cred->uid};
	return a;
}

static void charge(struct account *a, nsec_t cost, nsec_t now) {
	if (pace_add(&a->visits, cost, LEAVE_BURST, now) > GATE_WAIT_MAX) {
		pace_settle(&a->visits, now + GATE_WAIT_MAX);
	}
}

nsec_t gate_enter(struct gate *gate, const struct ucred *cred, nsec_t now) {
	struct account *a = find(gate, cred);

	if (!a || a->visits.paid_until <= now) {
		return 0;
	}
	if (a->n_waiting == GATE_WAITING_MAX) {
		return GATE_FULL;
	}
	a->n_waiting++;
	charge(a, LEAVE_COST, now); /* else all that wait would be heard at the same moment */
	return a->visits.paid_until - now;
}

void gate_waited(struct gate *gate, const struct ucred *cred) {
	struct account *a = find(gate, cred);

	if (a && a->n_waiting > 0) {
		a->n_waiting--;
	}
}

void gate_leave(struct gate *gate, const struct ucred *cred, size_t n_items, bool faulty,
		nsec_t now) {
	charge(need(gate, cred), LEAVE_COST + n_items * ITEM_COST + (faulty ? FAULT_COST : 0), now);
}

nsec_t gate_mistake(struct gate *gate, const struct ucred *cred, nsec_t now) {
	return pace_add(&need(gate, cred)->mistakes, MISTAKE_COST, MISTAKE_BURST, now);
}
