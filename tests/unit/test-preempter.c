/*
 * test-preempter.c: the process that preempts, started and led by sbeetd's end of it. This
 * executable is both. The driver is a pipe: its ioctl writes down what it was asked, into the
 * descriptor on which it was. Reading a time slice leaves nothing there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/base/memfile.h"
#include "daemon/preempt/helper.h"
#include "daemon/preempt/preempter.h"
#include "daemon/preempt/slices.h"
#include "proto/board.h"
#include "proto/rm.h"

#define OPENED (UINT64_C(1) << 32)
#define OWN_US 2048 /* the time slice that the driver gives */

/* ---- the driver ---- */

/* What an ioctl leaves. */
struct asked {
	struct rm_control control;
	struct rm_preempt params;
	uint64_t slice_us;
	uint64_t request;
	int opened, socket, exec; /* errno of what the process must not do */
};

int __wrap_ioctl(int fd, unsigned long request, ...);
int __wrap_ioctl(int fd, unsigned long request, ...) {
	char *const no_arguments[] = {NULL};
	struct asked asked = {.request = request};
	struct rm_control *control;
	va_list list;

	va_start(list, request);
	control = va_arg(list, struct rm_control *);
	va_end(list);
	if (control->command == RM_COMMAND_GROUP_GET_TIMESLICE) {
		((struct rm_timeslice *)(uintptr_t)control->params)->us = OWN_US;
		return 0;
	}
	asked.control = *control;
	if (control->command == RM_COMMAND_GROUP_PREEMPT) {
		asked.params = *(const struct rm_preempt *)(uintptr_t)control->params;
	} else if (control->command == RM_COMMAND_GROUP_SET_TIMESLICE) {
		asked.slice_us = ((const struct rm_timeslice *)(uintptr_t)control->params)->us;
	}
	asked.opened = open("/dev/null", O_RDONLY | O_CLOEXEC) < 0 ? errno : 0;
	asked.socket = socket(AF_UNIX, SOCK_STREAM, 0) < 0 ? errno : 0;
	asked.exec = execve("/bin/true", no_arguments, no_arguments) < 0 ? errno : 0;
	return write(fd, &asked, sizeof(asked)) == sizeof(asked) ? 0 : -1;
}

/* ---- sbeetd ---- */

/* Whoever is woken sees what is said before anything more is. Reads six arguments, like the C
 * library's own, though fewer may have been passed: not for the address sanitizer. */
long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...) __attribute__((no_sanitize_address));

long __wrap_syscall(long number, ...) {
	va_list args;
	long a[6], r;

	va_start(args, number);
	for (unsigned i = 0; i < 6; i++) {
		a[i] = va_arg(args, long);
	}
	va_end(args);
	r = __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	if (number == SYS_futex && a[1] == FUTEX_WAKE) {
		usleep(100);
	}
	return r;
}

static struct event_base *base;
static struct preempter *preempter;
static unsigned changes;
static struct board *board;
static int board_file = -1;

static void on_changed(void *userdata) {
	assert_ptr_equal(userdata, &changes);
	changes++;
}

static int setup(void **state) {
	void *map;

	board_file = memfile_new("board", sizeof(*board), true, &map);
	assert_true(board_file >= 0);
	board = map;
	base = event_base_new();
	changes = 0;
	assert_int_equal(preempter_new(&preempter, base, false, on_changed, &changes), 0);
	assert_true(preempter_works(preempter));
	assert_int_equal(preempter_starts(preempter), 1);
	return 0;
}

static int teardown(void **state) {
	preempter = preempter_free(preempter);
	event_base_free(base);
	munmap(board, sizeof(*board));
	close(board_file);
	return 0;
}

/* ---- programs ---- */

/* One with a channel group, and a process that only waits. */
struct program {
	uint64_t number;
	pid_t pid;
	int pidfd;
	int driver; /* what the driver was asked for it; its end: the descriptor is closed */
};

static void ring(void) {
	atomic_fetch_add(&board->bell, 1);
	syscall(SYS_futex, &board->bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void set_jobs(const struct program *p, unsigned gpu, int change) {
	atomic_fetch_add(&board->slots[gpu][p->number].jobs,
			 change > 0 ? OPENED + 1 : (uint64_t)-1);
	ring();
}

static struct program program_start_on(unsigned gpu, uint64_t number, uint64_t urgency) {
	struct program p = {.number = number, .pid = fork()};
	int pipe_fds[2];

	if (p.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		syscall(SYS_close_range, 3, ~0u, 0); /* sbeetd's end of the socket */
		for (;;) {
			pause();
		}
	}
	p.pidfd = (int)syscall(SYS_pidfd_open, p.pid, 0);
	assert_true(p.pidfd >= 0);
	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	p.driver = pipe_fds[0];
	assert_int_equal(preempter_add_owner(preempter, number,
					     &(struct preempter_rank){.urgency = urgency}, p.pidfd,
					     board_file, (unsigned)number),
			 0);
	assert_int_equal(
		preempter_add_group(preempter, number, gpu, 100, (uint32_t)number, pipe_fds[1]), 0);
	close(pipe_fds[1]);
	return p;
}

static struct program program_start(uint64_t number, uint64_t urgency) {
	return program_start_on(0, number, urgency);
}

static void program_end(struct program *p) {
	kill(p->pid, SIGKILL);
	waitpid(p->pid, NULL, 0);
	close(p->pidfd);
	close(p->driver);
	atomic_store(&board->slots[0][p->number].jobs, 0);
}

/* The next time that the driver is asked to do @command. */
static struct asked await_command(const struct program *p, uint32_t command) {
	struct asked asked;

	do {
		assert_int_equal(read(p->driver, &asked, sizeof(asked)), sizeof(asked));
	} while (asked.control.command != command);
	return asked;
}

/* The next preemption. */
static struct asked await(const struct program *p) {
	return await_command(p, RM_COMMAND_GROUP_PREEMPT);
}

/* Until the group has this time slice. */
static void await_slice(const struct program *p, uint64_t us) {
	while (await_command(p, RM_COMMAND_GROUP_SET_TIMESLICE).slice_us != us) {
	}
	await_command(p, RM_COMMAND_GROUP_SCHEDULE);
}

/* Whatever is still there, until its descriptor is closed. */
static void await_close(const struct program *p) {
	struct asked asked;
	ssize_t n;

	do {
		n = read(p->driver, &asked, sizeof(asked));
	} while (n == (ssize_t)sizeof(asked));
	assert_int_equal(n, 0);
}

/* It was not preempted so far. */
static bool is_quiet(const struct program *p) {
	struct pollfd f = {.fd = p->driver, .events = POLLIN};
	struct asked asked;

	while (poll(&f, 1, 0) > 0) {
		assert_int_equal(read(p->driver, &asked, sizeof(asked)), sizeof(asked));
		if (asked.control.command == RM_COMMAND_GROUP_PREEMPT) {
			return false;
		}
	}
	return true;
}

/* ---- the tests ---- */

static void a_job_preempts_a_less_urgent_program(void **state) {
	struct program low = program_start(1, 1), high = program_start(2, 2);
	struct asked asked;

	set_jobs(&low, 0, 1);
	set_jobs(&high, 0, 1);
	for (unsigned i = 0; i < 20; i++) {
		asked = await(&low);
		assert_true(asked.request == _IOWR(RM_TYPE, RM_CONTROL_NR, struct rm_control));
		assert_int_equal(asked.control.client, 100);
		assert_int_equal(asked.control.object, 1);
		assert_int_equal(asked.control.command, RM_COMMAND_GROUP_PREEMPT);
		assert_int_equal(asked.control.params_size, sizeof(asked.params));
		assert_int_equal(asked.params.wait, 0);
	}
	assert_true(is_quiet(&high));
	program_end(&low);
	program_end(&high);
}

/* Two GPUs, on each an urgent program and another: jobs on one are none of the other's business. */
static void gpus_are_apart(void **state) {
	struct program low[] = {program_start_on(0, 1, 1), program_start_on(1, 2, 1)};
	struct program high[] = {program_start_on(0, 3, 2), program_start_on(1, 4, 2)};

	set_jobs(&low[0], 0, 1);
	set_jobs(&low[1], 1, 1);
	set_jobs(&high[0], 0, 1);
	for (unsigned i = 0; i < 5; i++) {
		await(&low[0]);
	}
	assert_true(is_quiet(&low[1]));
	set_jobs(&high[1], 1, 1);
	for (unsigned i = 0; i < 5; i++) {
		await(&low[1]);
	}
	assert_true(is_quiet(&high[0]));
	assert_true(is_quiet(&high[1]));
	for (unsigned i = 0; i < 2; i++) {
		program_end(&low[i]);
		program_end(&high[i]);
	}
}

/* The urgent program keeps the GPU for long, the other for a short time; alone it has what the
 * driver gave it. */
static void slices_go_by_rank(void **state) {
	struct program low = program_start(1, 1), high = program_start(2, 2);

	await_slice(&high, SLICES_LONG_NS / NSEC_PER_USEC);
	await_slice(&low, SLICES_SHORT_NS / NSEC_PER_USEC);
	preempter_remove_owner(preempter, 2);
	await_slice(&low, OWN_US);
	program_end(&low);
	program_end(&high);
}

/* Jobs are timed before time slices are set. One that nobody was beside when it opened is not
 * timed: it must not wait for ever for another's turn to end. */
static void a_long_job_that_is_not_timed_is_helped(void **state) {
	struct program high = program_start(2, 2), low;

	preempter_set_effect(preempter, 0, true, NULL);
	set_jobs(&high, 0, 1);
	low = program_start(1, 1);
	set_jobs(&low, 0, 1);
	await_slice(&low, SLICES_SHORT_NS / NSEC_PER_USEC);
	program_end(&low);
	program_end(&high);
}

static void slices_are_given_back_in_the_end(void **state) {
	struct program low = program_start(1, 1), high = program_start(2, 2);

	await_slice(&high, SLICES_LONG_NS / NSEC_PER_USEC);
	await_slice(&low, SLICES_SHORT_NS / NSEC_PER_USEC);
	preempter = preempter_free(preempter);
	await_slice(&low, OWN_US);
	await_slice(&high, OWN_US);
	await_close(&low);
	await_close(&high);
	program_end(&low);
	program_end(&high);
}

static void it_has_no_rights(void **state) {
	struct program low = program_start(1, 1), high = program_start(2, 2);
	struct asked asked;

	set_jobs(&low, 0, 1);
	set_jobs(&high, 0, 1);
	asked = await(&low);
	assert_int_equal(asked.opened, EPERM);
	assert_int_equal(asked.socket, EPERM);
	assert_int_equal(asked.exec, EPERM);
	program_end(&low);
	program_end(&high);
}

static void urgency_may_change(void **state) {
	struct program a = program_start(1, 1), b = program_start(2, 2);

	set_jobs(&a, 0, 1);
	set_jobs(&b, 0, 1);
	await(&a);
	preempter_set_rank(preempter, 1, &(struct preempter_rank){.urgency = 3});
	await(&b);
	program_end(&a);
	program_end(&b);
}

static void the_descriptor_of_a_dead_program_is_closed(void **state) {
	struct program low = program_start(1, 1), high = program_start(2, 2);

	set_jobs(&low, 0, 1);
	set_jobs(&high, 0, 1);
	await(&low);
	kill(low.pid, SIGKILL); /* in the middle of it */
	await_close(&low);
	kill(high.pid, SIGKILL);
	await_close(&high);
	program_end(&low);
	program_end(&high);
}

static void what_is_taken_back_is_closed(void **state) {
	struct program low = program_start(1, 1), high = program_start(2, 2);

	set_jobs(&low, 0, 1);
	set_jobs(&high, 0, 1);
	await(&low);
	preempter_remove_group(preempter, 1, 100, 77); /* there is none */
	preempter_remove_group(preempter, 1, 100, 1);
	await_close(&low);
	preempter_remove_owner(preempter, 2);
	await_close(&high);
	preempter_remove_owner(preempter, 2);
	program_end(&low);
	program_end(&high);
}

/* As a process of its own it is our only child that is no program. */
static void kill_helper(const struct program *programs, unsigned n) {
	char path[64];
	FILE *f;
	int pid;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	f = fopen(path, "re");
	assert_non_null(f);
	while (fscanf(f, "%d", &pid) == 1) {
		bool is_program = false;

		for (unsigned i = 0; i < n; i++) {
			is_program |= pid == programs[i].pid;
		}
		if (!is_program) {
			kill(pid, SIGKILL);
		}
	}
	fclose(f);
}

static void it_is_started_again(void **state) {
	struct program programs[] = {program_start(1, 1), program_start(2, 2)};
	struct program again;

	set_jobs(&programs[0], 0, 1);
	set_jobs(&programs[1], 0, 1);
	await(&programs[0]);
	kill_helper(programs, 2);
	await_close(&programs[0]);
	await_close(&programs[1]);
	while (changes == 0) {
		assert_true(event_base_loop(base, EVLOOP_ONCE) >= 0);
	}
	assert_true(preempter_works(preempter));
	assert_int_equal(preempter_starts(preempter), 2);
	/* It knows nobody: whoever is to be known is handed over. */
	again = program_start(3, 1);
	assert_int_equal(preempter_add_owner(preempter, 2, &(struct preempter_rank){.urgency = 2},
					     programs[1].pidfd, board_file, 2),
			 0);
	set_jobs(&again, 0, 1);
	await(&again);
	program_end(&again);
	program_end(&programs[0]);
	program_end(&programs[1]);
}

static void one_that_always_ends_is_given_up(void **state) {
	setenv("TEST_PREEMPTER_ENDS", "1", 1);
	kill_helper(NULL, 0);
	while (preempter_works(preempter)) {
		assert_true(event_base_loop(base, EVLOOP_ONCE) >= 0);
	}
	unsetenv("TEST_PREEMPTER_ENDS");
	assert_true(changes > 1);
	assert_int_equal(preempter_add_owner(preempter, 1, &(struct preempter_rank){.urgency = 1},
					     board_file, board_file, 0),
			 -ENOTCONN);
}

/* ---- turns ---- */

static void take_turns(const struct program *p) {
	preempter_set_rank(preempter, p->number,
			   &(struct preempter_rank){.urgency = 1, .turn = 10 * NSEC_PER_MSEC});
	atomic_store(&board->slots[0][p->number].turn_state, BOARD_TURN_TAKES);
}

static nsec_t waits_until(const struct program *p) {
	return atomic_load(&board->slots[0][p->number].turn_wait_ns);
}

/* Until @p waits, and its bell has rung for it. */
static void await_wait(const struct program *p) {
	uint32_t bell = atomic_load(&board->slots[0][p->number].turn_bell);

	while (waits_until(p) == 0 || atomic_load(&board->slots[0][p->number].turn_bell) == bell) {
		usleep(1000);
	}
}

static void await_no_wait(const struct program *p) {
	while (waits_until(p) != 0) {
		usleep(1000);
	}
}

/* Both come to wait, again and again, but never for long without being told again. */
static void programs_take_turns(void **state) {
	struct program a = program_start(1, 1), b = program_start(2, 1), high = program_start(3, 2);
	const struct program programs[] = {a, b, high};
	nsec_t killed;

	set_jobs(&a, 0, 1);
	set_jobs(&b, 0, 1);
	take_turns(&a);
	take_turns(&b);
	set_jobs(&high, 0, 1);
	for (unsigned i = 0; i < 3; i++) {
		await_wait(&a);
		await_wait(&b);
	}
	assert_int_equal(waits_until(&high), 0);
	kill_helper(programs, 3); /* while one of them waits */
	killed = nsec_now();
	assert_true(waits_until(&a) <= killed + BOARD_TURN_MAX_NS);
	assert_true(waits_until(&b) <= killed + BOARD_TURN_MAX_NS);
	while (changes == 0) {
		assert_true(event_base_loop(base, EVLOOP_ONCE) >= 0);
	}
	program_end(&a);
	program_end(&b);
	program_end(&high);
}

/* Whether @p was waiting for its turn all the time in which the other one was looked at. */
static bool both_wait(const struct program *p, const struct program *other) {
	_Atomic uint32_t *bell = &board->slots[0][p->number].turn_bell;
	uint32_t before = atomic_load(bell);

	return waits_until(p) != 0 && waits_until(other) != 0 && waits_until(p) != 0 &&
	       atomic_load(bell) == before;
}

static bool rings(const struct program *p) {
	return atomic_load(&board->slots[0][p->number].end_rings) != 0;
}

/* Nobody is told to wait before the next one may go on. When a turn is to end the urgent program is
 * asked to ring. */
static void one_of_them_goes_on(void **state) {
	struct program a = program_start(1, 1), b = program_start(2, 1), high = program_start(3, 2);

	set_jobs(&a, 0, 1);
	set_jobs(&b, 0, 1);
	take_turns(&a);
	take_turns(&b);
	set_jobs(&high, 0, 1);
	for (unsigned i = 0; i < 10; i++) {
		while (!is_quiet(&a) || !is_quiet(&b)) { /* the pipes stay empty */
		}
		while (!rings(&high)) {
			assert_false(both_wait(&a, &b) || both_wait(&b, &a));
		}
		while (rings(&high)) {
			assert_false(both_wait(&a, &b) || both_wait(&b, &a));
		}
	}
	assert_false(rings(&a) || rings(&b));
	while (!rings(&high)) {
		usleep(100);
	}
	preempter = preempter_free(preempter);
	while (rings(&high)) {
		usleep(100);
	}
	program_end(&a);
	program_end(&b);
	program_end(&high);
}

static bool was_told_to_stay(const struct program *p) {
	return waits_until(p) != 0 && atomic_load(&board->slots[0][p->number].turn_stays) != 0;
}

/* Where short time slices do what preempting does, nobody is taken off the GPU. */
static void one_of_them_stays(void **state) {
	struct order_gpu known = {0};
	struct program a, b, high;

	known.effect[0][EFFECT_SLICED] = EFFECT_WORKS;
	known.effect_ns[0][EFFECT_SLICED] = 1;
	preempter_set_effect(preempter, 0, true, &known);
	a = program_start(1, 1);
	b = program_start(2, 1);
	high = program_start(3, 2);
	set_jobs(&a, 0, 1);
	set_jobs(&b, 0, 1);
	take_turns(&a);
	take_turns(&b);
	set_jobs(&high, 0, 1);
	while (!was_told_to_stay(&a)) {
		is_quiet(&a);
		is_quiet(&b);
	}
	while (!was_told_to_stay(&b)) {
		is_quiet(&a);
		is_quiet(&b);
	}
	preempter = preempter_free(preempter);
	while (was_told_to_stay(&a) || was_told_to_stay(&b)) {
		usleep(100);
	}
	program_end(&a);
	program_end(&b);
	program_end(&high);
}

/* Who is alone, or has ended, does not wait; nor does anybody when the process is dismissed. */
static void nobody_waits_in_the_end(void **state) {
	struct program a = program_start(1, 1), b = program_start(2, 1), high = program_start(3, 2);

	set_jobs(&a, 0, 1);
	set_jobs(&b, 0, 1);
	take_turns(&a);
	take_turns(&b);
	set_jobs(&high, 0, 1);
	await_wait(&a);
	preempter_remove_owner(preempter, 2); /* the other one is alone */
	await_no_wait(&a);
	await_no_wait(&b);
	preempter_add_owner(preempter, 2, &(struct preempter_rank){.urgency = 1}, b.pidfd,
			    board_file, 2);
	preempter_add_group(preempter, 2, 0, 100, 2, a.driver);
	take_turns(&b);
	await_wait(&a);
	preempter = preempter_free(preempter);
	await_no_wait(&a);
	await_no_wait(&b);
	program_end(&a);
	program_end(&b);
	program_end(&high);
}

static void it_reports(void **state) {
	struct program low = program_start(1, 1), high = program_start(2, 2);

	set_jobs(&low, 0, 1);
	set_jobs(&high, 0, 1);
	while (preempter_report(preempter).gpus[0].preempted == 0) {
		await(&low);
		assert_true(event_base_loop(base, EVLOOP_NONBLOCK) >= 0);
	}
	assert_int_equal(preempter_report(preempter).gpus[0].refused, 0);
	assert_true(preempter_report(preempter).gpus[0].shortest_ns > 0);
	assert_true(preempter_report(preempter).gpus[0].longest_ns >=
		    preempter_report(preempter).gpus[0].shortest_ns);
	assert_int_equal(preempter_report(preempter).gpus[1].preempted, 0);
	program_end(&low);
	program_end(&high);
}

static void only_the_control_device_is_taken(void **state) {
	int pair[2], null = open("/dev/null", O_RDWR | O_CLOEXEC);

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_false(preempter_is_control(null)); /* a character device, but another one */
	assert_false(preempter_is_control(pair[0]));
	assert_false(preempter_is_control(board_file));
	assert_false(preempter_is_control(-1));
	close(null);
	close(pair[0]);
	close(pair[1]);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(int argc, char **argv) {
	const struct CMUnitTest tests[] = {
		CASE(a_job_preempts_a_less_urgent_program),
		CASE(gpus_are_apart),
		CASE(slices_go_by_rank),
		CASE(a_long_job_that_is_not_timed_is_helped),
		CASE(slices_are_given_back_in_the_end),
		CASE(it_has_no_rights),
		CASE(urgency_may_change),
		CASE(the_descriptor_of_a_dead_program_is_closed),
		CASE(what_is_taken_back_is_closed),
		CASE(it_is_started_again),
		CASE(one_that_always_ends_is_given_up),
		CASE(programs_take_turns),
		CASE(one_of_them_goes_on),
		CASE(one_of_them_stays),
		CASE(nobody_waits_in_the_end),
		CASE(it_reports),
		CASE(only_the_control_device_is_taken),
	};

	if (argc > 1 && strcmp(argv[1], HELPER_OPTION) == 0) {
		return getenv("TEST_PREEMPTER_ENDS") ? 1 : helper_run(argc > 2);
	}
	signal(SIGPIPE, SIG_IGN);
	alarm(60); /* a hang ends here */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
