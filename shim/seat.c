/*
 * seat.c: see seat.h.
 */
#include "shim/seat.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/base/env.h"
#include "shim/base/hot.h"
#include "shim/base/log.h"
#include "shim/lane.h"
#include "shim/terms.h"

#define OPENED (UINT64_C(1) << 32)

HOT_DATA static _Atomic(const struct seat *) seat;
HOT_WRITTEN static _Atomic uint64_t jobs[LANE_DEVICES_MAX]; /* as board_slot.jobs, by device */
HOT_WRITTEN static _Atomic uint64_t dues[LANE_DEVICES_MAX]; /* see seat_due() */
static _Atomic bool left;

/* One that could shrink would kill the programs that touch it. */
static struct board *map_board(int fd) {
	int seals = fcntl(fd, F_GET_SEALS);
	struct board *board;
	struct stat st;

	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    st.st_size < (off_t)sizeof(*board)) {
		return NULL;
	}
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (board == MAP_FAILED) {
		return NULL;
	}
	if (board->magic != PROTO_BOARD_MAGIC || board->version != PROTO_BOARD_VERSION) {
		munmap(board, sizeof(*board));
		return NULL;
	}
	madvise(board, sizeof(*board), MADV_DONTFORK);
	return board;
}

/* NULL: there is none. */
HOT_CODE static struct board_slot *own_slot(const struct seat *s, CUdevice device) {
	unsigned place;

	return s && terms_place(device, &place) ? &s->board->slots[place][s->slot] : NULL;
}

static struct board_needs *own_needs(CUdevice device) {
	const struct seat *s = atomic_load(&seat);
	unsigned place;

	return s && !atomic_load(&left) && terms_place(device, &place)
		       ? &s->board->needs[place][s->slot]
		       : NULL;
}

#define set(where, value) atomic_store_explicit(&(where), value, memory_order_release)

HOT_CODE void seat_needs(CUdevice device, const struct seat_needs *needs) {
	struct board_needs *n = own_needs(device);

	if (n) {
		set(n->from_ns, needs->from);
		set(n->next_due_ns, needs->next_due);
		set(n->next_until_ns, needs->next_until);
		set(n->next_from_ns, needs->next_from);
	}
}

HOT_CODE void seat_expect_copy(CUdevice device, const struct seat_copy *copy) {
	struct board_needs *n = own_needs(device);

	if (n) {
		set(n->copy_due_ns, copy->due);
		set(n->copy_late_ns, copy->late);
		set(n->copy_from_ns, copy->from);
	}
}

uint32_t seat_only_job(CUdevice device) {
	uint64_t now = atomic_load(&jobs[device]);

	return (uint32_t)now == 1 ? (uint32_t)(now >> 32) : 0;
}

void seat_kernels_done(CUdevice device, uint32_t job) {
	struct board_needs *n = own_needs(device);

	if (n && job) {
		set(n->since_ns, nsec_now());
	}
	if (n) {
		set(n->done, job);
	}
}

HOT_CODE void seat_needs_over(CUdevice device) {
	struct board_needs *n = own_needs(device);

	if (n && atomic_load(&n->done) != (uint32_t)(atomic_load(&jobs[device]) >> 32)) {
		set(n->since_ns, nsec_now());
	}
}

/* Of threads that come together the last one writes what holds. */
HOT_CODE static void publish(CUdevice device) {
	struct board_slot *slot = own_slot(atomic_load(&seat), device);
	uint64_t now, more = 0;

	if (!slot) {
		return;
	}
	if (env_get()->task.made_by == TASK_JOBS_MARKS) {
		more = BOARD_JOBS_UNSEEN;
	}
	do {
		now = atomic_load(&jobs[device]);
		atomic_store(&slot->jobs, atomic_load(&left) ? 0 : now | more);
	} while (atomic_load(&jobs[device]) != now);
}

/* Of the open jobs on one device. */
struct due {
	CUdevice device;
	uint64_t any, awaited; /* the earliest; 0: none */
};

static void add_due(struct lane *lane, void *data) {
	uint64_t due = atomic_load(&lane->due_ns);
	struct due *sum = data;

	if (lane->device != sum->device || due == 0) {
		return;
	}
	sum->any = sum->any && sum->any < due ? sum->any : due;
	if (terms_are_awaited(atomic_load(&lane->terms))) {
		sum->awaited = sum->awaited && sum->awaited < due ? sum->awaited : due;
	}
}

static struct due find_due(CUdevice device) {
	struct due sum = {.device = device};

	lane_for_each(add_due, &sum);
	return sum;
}

/* As publish(). */
HOT_CODE void seat_due_changed(CUdevice device) {
	struct board_slot *slot = own_slot(atomic_load(&seat), device);
	struct due due = find_due(device), again;
	bool same;

	do {
		atomic_store(&dues[device], due.any);
		if (slot) {
			atomic_store(&slot->job_due_ns, atomic_load(&left) ? 0 : due.awaited);
		}
		again = find_due(device);
		same = again.any == due.any && again.awaited == due.awaited;
		due = again;
	} while (!same);
}

void seat_take(int fd, unsigned slot) {
	struct board *board = fd >= 0 ? map_board(fd) : NULL;
	struct seat *s = board ? malloc(sizeof(*s)) : NULL;

	if (fd >= 0) {
		close(fd);
	}
	if (!s) {
		if (board) {
			munmap(board, sizeof(*board));
		}
		log_once(LOG_LEVEL_WARN,
			 "The board that sbeetd has sent can't be used: copies are "
			 "made as ever, and no program is preempted for this one");
		return;
	}
	*s = (struct seat){.board = board, .slot = slot, .before = atomic_load(&seat)};
	atomic_store(&seat, s);
	for (CUdevice d = 0; d < LANE_DEVICES_MAX; d++) {
		publish(d);
		seat_due_changed(d);
	}
}

const struct seat *seat_get(void) {
	return atomic_load_explicit(&seat, memory_order_acquire);
}

HOT_CODE static void ring(const struct seat *s) {
	atomic_fetch_add(&s->board->bell, 1);
	syscall(SYS_futex, &s->board->bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

HOT_CODE void seat_job_opened(CUdevice device, bool rings) {
	const struct seat *s;

	atomic_fetch_add(&jobs[device], OPENED + 1);
	publish(device);
	s = rings ? atomic_load(&seat) : NULL;
	if (s) {
		ring(s);
	}
}

HOT_CODE void seat_job_closed(CUdevice device) {
	bool last = (uint32_t)atomic_fetch_sub(&jobs[device], 1) == 1;
	const struct seat *s = atomic_load(&seat);
	const struct board_slot *slot = own_slot(s, device);

	publish(device);
	if (last && slot && atomic_load(&slot->end_rings)) {
		ring(s);
	}
}

void seat_note_unseen(CUdevice device) {
	struct board_slot *slot = own_slot(atomic_load(&seat), device);

	if (slot) {
		atomic_store_explicit(&slot->unseen_ns, nsec_now(), memory_order_relaxed);
	}
}

uint64_t seat_due(CUdevice device) {
	return atomic_load(&dues[device]);
}

int seat_only_device(void) {
	int device = -1;

	for (CUdevice d = 0; d < LANE_DEVICES_MAX; d++) {
		if (atomic_load(&jobs[d]) >= OPENED) {
			if (device >= 0) {
				return -1;
			}
			device = d;
		}
	}
	return device;
}

void seat_leave(void) {
	for (CUdevice d = 0; d < LANE_DEVICES_MAX; d++) {
		seat_needs(d, &(struct seat_needs){0});
		seat_expect_copy(d, &(struct seat_copy){0});
	}
	atomic_store(&left, true);
	for (CUdevice d = 0; d < LANE_DEVICES_MAX; d++) {
		publish(d);
		seat_due_changed(d);
	}
}

void seat_after_fork(void) {
	atomic_store(&seat, NULL);
	atomic_store(&left, false);
	for (CUdevice d = 0; d < LANE_DEVICES_MAX; d++) {
		atomic_store(&jobs[d], 0);
		atomic_store(&dues[d], 0);
	}
}
