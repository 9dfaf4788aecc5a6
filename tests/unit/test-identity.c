/*
 * test-identity.c: what is one process and what is not, in both forms that kernels give.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* after the above, as cmocka demands */
#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/base/identity.h"

static const struct identity modern = {.inode = 77, .pid_ns = 9, .pid = 100, .secret = {1, 2, 3}},
			     old = {.start = 5, .pid_ns = 9, .pid = 100, .secret = {1, 2, 3}},
			     unknown = {.pid_ns = 9, .secret = {1, 2, 3}};

#define DIFFERS(base, field, value)                           \
	do {                                                  \
		struct identity other = base;                 \
		other.field = value;                          \
		assert_false(identity_same(&(base), &other)); \
		assert_false(identity_same(&other, &(base))); \
	} while (0)

#define SAME(base, field, value)                                                 \
	do {                                                                     \
		struct identity other = base;                                    \
		other.field = value;                                             \
		assert_true(identity_same(&(base), &other));                     \
		assert_int_equal(identity_hash(&(base)), identity_hash(&other)); \
	} while (0)

/* The number may change its meaning: another daemon counts in another namespace. */
static void identity_is_the_inode_where_there_is_one(void **state) {
	SAME(modern, inode, 77);
	SAME(modern, pid, 0);
	SAME(modern, pid, 5);
	SAME(modern, pid_ns, 10);
	DIFFERS(modern, inode, 78);
	DIFFERS(modern, inode, 0);
	DIFFERS(modern, secret[0], 0);
	DIFFERS(modern, secret[15], 1);
}

static void identity_is_number_start_and_namespace_elsewhere(void **state) {
	SAME(old, pid, 100);
	DIFFERS(old, pid, 101);
	DIFFERS(old, start, 6);
	DIFFERS(old, start, 0);
	DIFFERS(old, pid_ns, 10);
	DIFFERS(old, secret[7], 9);
	assert_false(identity_same(&modern, &old));
}

static void identity_is_the_secret_where_nothing_else_is_known(void **state) {
	struct identity mute = unknown;

	SAME(unknown, pid, 0);
	DIFFERS(unknown, secret[1], 9);
	DIFFERS(unknown, pid, 100);
	memset(mute.secret, 0, sizeof(mute.secret));
	assert_false(identity_same(&mute, &mute)); /* anybody */
	assert_false(identity_has_secret(&mute));
	assert_true(identity_has_secret(&unknown));
}

/* As older libraries are known: they show none. */
static void known_processes_need_no_secret(void **state) {
	struct identity a = modern, b = old;

	memset(a.secret, 0, sizeof(a.secret));
	memset(b.secret, 0, sizeof(b.secret));
	assert_true(identity_same(&a, &a));
	assert_true(identity_same(&b, &b));
	assert_false(identity_same(&a, &modern));
	assert_false(identity_same(&b, &old));
}

static void secrets_differ(void **state) {
	struct identity a = modern, b = modern;

	assert_int_equal(identity_make_secret(&a), 0);
	assert_int_equal(identity_make_secret(&b), 0);
	assert_true(identity_has_secret(&a));
	assert_memory_not_equal(a.secret, b.secret, sizeof(a.secret));
	assert_int_equal(a.inode, 77);
}

static void saved_process_may_be_found(void **state) {
	struct identity found = {.inode = 77, .pid = 100}, saved = modern;

	assert_true(identity_may_be(&found, &saved));
	found.inode = 78;
	assert_false(identity_may_be(&found, &saved));
	found = (struct identity){.start = 5, .pid = 100};
	assert_true(identity_may_be(&found, &old));
	found.start = 6;
	assert_false(identity_may_be(&found, &old));
	found.start = 0; /* can't be read */
	assert_true(identity_may_be(&found, &old));
}

/* A live process, and one that has taken its place. */
static void processes_of_this_kernel_are_told_apart(void **state) {
	struct identity own, again, child;
	int own_fd = identity_open_process(-1, getpid()), child_fd;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	child_fd = identity_open_process(-1, pid);
	own = identity_of(own_fd, getpid());
	again = identity_of(own_fd, getpid());
	child = identity_of(child_fd, pid);
	assert_true(identity_same(&own, &again));
	assert_false(identity_same(&own, &child));
	assert_true(identity_pid_counts(&own));
	own.pid_ns++;
	assert_false(identity_pid_counts(&own));
	assert_false(identity_has_secret(&own));
	/* Without a pidfd there is still the start time. */
	own = identity_of(-1, getpid());
	child = identity_of(-1, pid);
	assert_true(own.start > 0 && child.start >= own.start && own.inode == 0);
	own = identity_of(-1, 0); /* not visible to us */
	assert_true(own.start == 0 && own.inode == 0 && !identity_pid_counts(&own));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(identity_open_process(-1, pid), -ESRCH);
	assert_int_equal(identity_open_process(-1, 0), -1);
	close(own_fd);
	close(child_fd);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(identity_is_the_inode_where_there_is_one),
		cmocka_unit_test(identity_is_number_start_and_namespace_elsewhere),
		cmocka_unit_test(identity_is_the_secret_where_nothing_else_is_known),
		cmocka_unit_test(known_processes_need_no_secret),
		cmocka_unit_test(secrets_differ),
		cmocka_unit_test(saved_process_may_be_found),
		cmocka_unit_test(processes_of_this_kernel_are_told_apart),
	};

	return cmocka_run_group_tests_name("identity", tests, NULL, NULL);
}
