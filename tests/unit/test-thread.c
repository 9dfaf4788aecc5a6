/* test-thread.c: threads of our own take no signals. */
#include "proto/thread.h"

#include <errno.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include <cmocka.h>

#define STACK_BYTES ((size_t)256 << 10)

struct seen {
	sigset_t mask;
	size_t stack_bytes;
	int detached;
	sem_t there;
};

static void *look(void *data) {
	struct seen *seen = data;
	pthread_attr_t attr;

	pthread_sigmask(SIG_SETMASK, NULL, &seen->mask);
	pthread_getattr_np(pthread_self(), &attr);
	pthread_attr_getstacksize(&attr, &seen->stack_bytes);
	pthread_attr_getdetachstate(&attr, &seen->detached);
	pthread_attr_destroy(&attr);
	sem_post(&seen->there);
	return seen;
}

static bool takes(const sigset_t *mask, int signal_number) {
	return sigismember(mask, signal_number) == 0;
}

static void threads_take_no_signals(void **state) {
	struct seen seen = {.detached = -1};
	sigset_t before, after;
	pthread_t thread;
	void *result;

	(void)state;
	sem_init(&seen.there, 0, 0);
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	assert_true(takes(&before, SIGTERM));
	assert_int_equal(thread_start(&thread, 0, look, &seen), 0);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	assert_true(takes(&after, SIGTERM));
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, &seen);
	assert_false(takes(&seen.mask, SIGTERM));
	assert_false(takes(&seen.mask, SIGUSR1));
	assert_int_equal(seen.detached, PTHREAD_CREATE_JOINABLE);
	assert_true(seen.stack_bytes > STACK_BYTES);
}

static void threads_that_nobody_joins_have_the_stack_given(void **state) {
	struct seen seen = {.detached = -1};

	(void)state;
	sem_init(&seen.there, 0, 0);
	assert_int_equal(thread_start(NULL, STACK_BYTES, look, &seen), 0);
	while (sem_wait(&seen.there) < 0 && errno == EINTR) {
	}
	assert_int_equal(seen.detached, PTHREAD_CREATE_DETACHED);
	assert_int_equal(seen.stack_bytes, STACK_BYTES);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_take_no_signals),
		cmocka_unit_test(threads_that_nobody_joins_have_the_stack_given),
	};

	return cmocka_run_group_tests_name("thread", tests, NULL, NULL);
}
