/*
 * board.c: see board.h.
 */
#include "daemon/session/board.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/base/memfile.h"

struct user_board {
	TAILQ_ENTRY(user_board) link;
	uid_t uid;
	int fd;		    /* owned */
	struct board *page; /* owned mapping */
	uint64_t taken;	    /* slots, a bit each */
};

_Static_assert(PROTO_BOARD_SLOTS == 64, "a bit for each slot");

static int make_board(struct board_list *boards, uid_t uid, struct user_board **ret) {
	struct user_board *b = calloc(1, sizeof(*b));
	void *page;
	int r;

	if (!b) {
		return -ENOMEM;
	}
	r = memfile_new("sbeet-board", sizeof(*b->page), true, &page);
	if (r < 0) {
		free(b);
		return r;
	}
	b->uid = uid;
	b->fd = r;
	b->page = page;
	b->page->magic = PROTO_BOARD_MAGIC;
	b->page->version = PROTO_BOARD_VERSION;
	TAILQ_INSERT_TAIL(boards, b, link);
	*ret = b;
	return 0;
}

static struct user_board *find_board(const struct board_list *boards, uid_t uid) {
	struct user_board *b;

	TAILQ_FOREACH(b, boards, link) {
		if (b->uid == uid) {
			break;
		}
	}
	return b;
}

int board_join(struct board_list *boards, uid_t uid, struct board_seat *ret) {
	struct user_board *b = find_board(boards, uid);
	int r;

	if (!b) {
		r = make_board(boards, uid, &b);
		if (r < 0) {
			return r;
		}
	}
	if (~b->taken == 0) {
		return BOARD_E_FULL;
	}
	ret->board = b;
	ret->slot = (unsigned)__builtin_ctzll(~b->taken);
	b->taken |= UINT64_C(1) << ret->slot;
	return 0;
}

int board_fd(const struct board_seat *seat) {
	return seat->board->fd;
}

void board_leave(struct board_list *boards, struct board_seat *seat) {
	struct user_board *b = seat->board;

	if (!b) {
		return;
	}
	for (unsigned i = 0; i < PROTO_TERMS_GPUS_MAX; i++) {
		atomic_store(&b->page->slots[i][seat->slot].due_ns, 0);
		atomic_store(&b->page->slots[i][seat->slot].length_ns, 0);
		atomic_store(&b->page->slots[i][seat->slot].jobs, 0);
		atomic_store(&b->page->slots[i][seat->slot].turn_wait_ns, 0);
		atomic_store(&b->page->slots[i][seat->slot].turn_state, 0);
		atomic_store(&b->page->needs[i][seat->slot].next_from_ns, 0);
		atomic_store(&b->page->needs[i][seat->slot].done, 0);
		atomic_store(&b->page->slots[i][seat->slot].job_due_ns, 0);
		atomic_store(&b->page->slots[i][seat->slot].unseen_ns, 0);
	}
	b->taken &= ~(UINT64_C(1) << seat->slot);
	*seat = (struct board_seat){.board = NULL};
	if (!b->taken) {
		TAILQ_REMOVE(boards, b, link);
		munmap(b->page, sizeof(*b->page));
		close(b->fd);
		free(b);
	}
}
