/*
 * board.c: see board.h.
 */
#include "proto/board.h"

static uint64_t due_of(const struct board *board, unsigned gpu, unsigned slot) {
	return atomic_load_explicit(&board->slots[gpu][slot].due_ns, memory_order_acquire);
}

static bool counts(uint64_t other, uint64_t due, nsec_t now) {
	return other != 0 && other < due && (other >= now || now - other <= BOARD_STALE_NS);
}

bool board_is_before(const struct board *board, unsigned gpu, unsigned slot, uint64_t due,
		     nsec_t now) {
	for (unsigned i = 0; i < PROTO_BOARD_SLOTS; i++) {
		if (i != slot && counts(due_of(board, gpu, i), due, now)) {
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

bool board_gate_is_open(struct board_gate *gate, const struct board *board, unsigned gpu,
			unsigned slot, uint64_t due, nsec_t now) {
	bool enough = gate->closed_ns && now - gate->closed_ns >= BOARD_HOLD_MAX_NS, wait = false;

	for (unsigned i = 0; i < PROTO_BOARD_SLOTS; i++) {
		uint64_t other = i == slot ? 0 : due_of(board, gpu, i);

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
