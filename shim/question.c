/*
 * question.c: see question.h.
 */
#include "shim/question.h"
#include "shim/base/hot.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

HOT_DATA static _Atomic uint32_t asking; /* odd while a question is asked; a futex */
static _Atomic unsigned settling;
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

void question_begin(void) {
	pthread_mutex_lock(&one_at_a_time);
	atomic_fetch_add(&asking, 1);
}

void question_end(void) {
	atomic_fetch_add(&asking, 1);
	if (atomic_load(&settling) > 0) {
		syscall(SYS_futex, &asking, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
	}
	pthread_mutex_unlock(&one_at_a_time);
}

/* Out of line: hardly anybody comes here. */
static __attribute__((noinline)) void settle(uint32_t now, nsec_t deadline) {
	atomic_fetch_add(&settling, 1);
	while (atomic_load(&asking) == now) {
		nsec_t time = deadline ? nsec_now() : 0;
		const struct timespec left = nsec_timespec(deadline - time);

		if (deadline && time >= deadline) {
			break;
		}
		syscall(SYS_futex, &asking, FUTEX_WAIT_PRIVATE, now, deadline ? &left : NULL, NULL,
			0);
	}
	atomic_fetch_sub(&settling, 1);
}

HOT_CODE void question_settle(nsec_t deadline) {
	uint32_t now = atomic_load(&asking);

	if (now % 2 == 1) {
		settle(now, deadline);
	}
}

void question_after_fork(void) {
	pthread_mutex_init(&one_at_a_time, NULL);
	atomic_store(&asking, 0);
	atomic_store(&settling, 0);
}
