/*
 * board.c: see board.h.
 */
#include "proto/board.h"

/* What slot @i says to @at; 0 of its own. */
static uint64_t due_of(const struct board *board, struct board_place at, unsigned i) {
	const struct board_slot *s = &board->slots[at.gpu][i];

	return i == at.slot ? 0 : atomic_load_explicit(&s->due_ns[at.way], memory_order_acquire);
}

static bool counts(uint64_t other, uint64_t due, nsec_t now) {
	return other != 0 && other < due && (other >= now || now - other <= BOARD_STALE_NS);
}

bool board_is_before(const struct board *board, struct board_place at, uint64_t due, nsec_t now) {
	for (unsigned i = 0; i < PROTO_BOARD_SLOTS; i++) {
		if (counts(due_of(board, at, i), due, now)) {
			return true;
		}
	}
	return false;
}

bool board_is_busy(const struct board *board, struct board_place at) {
	for (unsigned i = 0; i < PROTO_BOARD_SLOTS; i++) {
		if (due_of(board, at, i) != 0) {
			return true;
		}
	}
	return false;
}

bool board_was_busy(const struct board *board, struct board_place at, nsec_t now) {
	for (unsigned i = 0; i < PROTO_BOARD_SLOTS; i++) {
		uint64_t bulk = atomic_load_explicit(&board->slots[at.gpu][i].bulk_ns[at.way],
						     memory_order_relaxed);

		if (i != at.slot && bulk != 0 && (bulk >= now || now - bulk <= BOARD_RECENT_NS)) {
			return true;
		}
	}
	return false;
}

bool board_gate_is_open(struct board_gate *gate, const struct board *board, struct board_place at,
			uint64_t due, nsec_t now) {
	bool enough = gate->closed_ns && now - gate->closed_ns >= BOARD_HOLD_MAX_NS, wait = false;

	for (unsigned i = 0; i < PROTO_BOARD_SLOTS; i++) {
		uint64_t other = due_of(board, at, i);

		if (!counts(other, due, now) || other == gate->passed[i]) {
			continue;
		}
		if (enough) {
			gate->passed[i] = other;
		} else {
			wait = true;
		}
	}
	if (!wait) {
		gate->closed_ns = 0;
	} else if (!gate->closed_ns) {
		gate->closed_ns = now;
	}
	return !wait;
}
