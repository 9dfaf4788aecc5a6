/*
 * board.c: see board.h.
 */
#include "proto/board.h"

#include <string.h>

static uint64_t due_of(const struct board *board, unsigned gpu, unsigned slot) {
	return atomic_load_explicit(&board->slots[gpu][slot].due_ns, memory_order_acquire);
}

static uint64_t job_due_of(const struct board *board, unsigned gpu, unsigned slot) {
	return atomic_load_explicit(&board->slots[gpu][slot].job_due_ns, memory_order_acquire);
}

static bool counts(uint64_t other, uint64_t due, nsec_t now) {
	return other != 0 && other < due && (other >= now || now - other <= BOARD_STALE_NS);
}

#define get(where) atomic_load_explicit(&(where), memory_order_acquire)

/* Whether the next copy of a program is expected before a piece of @copy would end. */
static bool is_copy_expected(const struct board_needs *needs, const struct board_copy *copy,
			     nsec_t now) {
	uint64_t from = get(needs->copy_from_ns);

	return from != 0 && now + copy->takes > from &&
	       (now < from || now - from < get(needs->copy_late_ns));
}

/* What @copy has to wait for. */
struct before {
	uint64_t due;  /* 0: nothing */
	nsec_t length; /* of what is under way; 0: not known, or nothing is yet */
};

static struct before before_of(const struct board *board, unsigned gpu, unsigned i,
			       const struct board_copy *copy, nsec_t now) {
	const struct board_needs *needs = &board->needs[gpu][i];
	uint64_t next = is_copy_expected(needs, copy, now) ? get(needs->copy_due_ns) : 0;
	uint64_t due = due_of(board, gpu, i); /* last: it is announced before it is unexpected */

	if (counts(due, copy->due, now)) {
		nsec_t length = get(board->slots[gpu][i].length_ns);

		return (struct before){
			due, length > 0 && length < BOARD_HOLD_MAX_NS ? length : BOARD_HOLD_MAX_NS};
	}
	return (struct before){counts(next, copy->due, now) ? next : 0, 0};
}

bool board_is_before(const struct board *board, unsigned gpu, unsigned slot,
		     const struct board_copy *copy, nsec_t now) {
	for (unsigned i = 0; i < PROTO_BOARD_SLOTS; i++) {
		if (i != slot && before_of(board, gpu, i, copy, now).due) {
			return true;
		}
	}
	return false;
}

/* Whether the open job of slot @i needs the SMs before @kernel would end. */
static bool needs_sms(const struct board *board, unsigned gpu, unsigned i,
		      const struct board_kernel *kernel, nsec_t now) {
	const struct board_needs *needs = &board->needs[gpu][i];
	uint32_t opened = (uint32_t)(get(board->slots[gpu][i].jobs) >> 32);

	if (opened != 0 && get(needs->done) == opened) {
		return false;
	}
	return kernel->takes == 0 || now + kernel->takes > get(needs->from_ns);
}

/* Whether the next job of slot @i is expected before @kernel would end. */
static bool is_expected(const struct board_needs *needs, const struct board_kernel *kernel,
			nsec_t now) {
	uint64_t from = get(needs->next_from_ns);

	return from != 0 && now < get(needs->next_until_ns) && now + kernel->takes > from &&
	       get(needs->since_ns) + kernel->takes <= from;
}

/* The deadline of slot @i that @kernel has to wait for, 0: none. */
static uint64_t awaited_due(const struct board *board, unsigned gpu, unsigned i,
			    const struct board_kernel *kernel, nsec_t now) {
	const struct board_needs *needs = &board->needs[gpu][i];
	uint64_t next = is_expected(needs, kernel, now) ? get(needs->next_due_ns) : 0;
	uint64_t due = job_due_of(board, gpu, i); /* last: see struct board_needs */

	if (due == 0 || !needs_sms(board, gpu, i, kernel, now)) {
		due = next;
	}
	return counts(due, kernel->due, now) ? due : 0;
}

bool board_is_awaited(const struct board *board, unsigned gpu, unsigned slot,
		      const struct board_kernel *kernel, nsec_t now) {
	for (unsigned i = 0; i < PROTO_BOARD_SLOTS; i++) {
		if (i != slot && awaited_due(board, gpu, i, kernel, now)) {
			return true;
		}
	}
	return false;
}

bool board_is_busy(const struct board *board, unsigned gpu, unsigned slot) {
	for (unsigned i = 0; i < PROTO_BOARD_SLOTS; i++) {
		if (i != slot && due_of(board, gpu, i) != 0) {
			return true;
		}
	}
	return false;
}

/* The gate is to be closed for @other, of slot @i, whose copies may become more. */
static void count(struct board_gate *gate, unsigned i, const struct before *other) {
	if (gate->counted[i] != other->due) {
		gate->counted[i] = other->due;
		gate->lengths[i] = 0;
		gate->limit_ns += BOARD_HOLD_MIN_NS;
	}
	if (other->length > gate->lengths[i]) {
		gate->limit_ns += 2 * (other->length - gate->lengths[i]);
		gate->lengths[i] = other->length;
	}
	if (gate->limit_ns > BOARD_HOLD_MAX_NS) {
		gate->limit_ns = BOARD_HOLD_MAX_NS;
	}
}

bool board_gate_is_open(struct board_gate *gate, const struct board *board, unsigned gpu,
			unsigned slot, const struct board_copy *copy, nsec_t now) {
	uint64_t others[PROTO_BOARD_SLOTS];
	bool wait = false;

	for (unsigned i = 0; i < PROTO_BOARD_SLOTS; i++) {
		struct before other = {.due = 0};

		if (i != slot) {
			other = before_of(board, gpu, i, copy, now);
		}
		others[i] = other.due != gate->passed[i] ? other.due : 0;
		if (others[i]) {
			count(gate, i, &other);
			wait = true;
		}
	}
	if (wait && gate->closed_ns && now - gate->closed_ns >= gate->limit_ns) {
		for (unsigned i = 0; i < PROTO_BOARD_SLOTS; i++) {
			gate->passed[i] = others[i] ? others[i] : gate->passed[i];
		}
		wait = false;
	}
	if (wait) {
		gate->closed_ns = gate->closed_ns ? gate->closed_ns : now;
		return false;
	}
	gate->closed_ns = gate->limit_ns = 0;
	memset(gate->counted, 0, sizeof(gate->counted));
	return true;
}

bool board_yield_is_open(struct board_yield *yield, const struct board *board, unsigned gpu,
			 unsigned slot, const struct board_kernel *kernel, nsec_t now) {
	bool over = yield->closed_ns && now - yield->closed_ns >= BOARD_YIELD_MAX_NS, wait = false;

	for (unsigned i = 0; i < PROTO_BOARD_SLOTS; i++) {
		uint64_t other = i == slot ? 0 : awaited_due(board, gpu, i, kernel, now);

		if (other && other != yield->passed[i]) {
			yield->passed[i] = over ? other : yield->passed[i];
			wait |= !over;
		}
	}
	if (!wait) {
		yield->closed_ns = 0;
	} else if (!yield->closed_ns) {
		yield->closed_ns = now;
	}
	return !wait;
}
