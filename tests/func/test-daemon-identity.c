/*
 * test-daemon-identity.c: a process that connects again is known by what it is and by the secret
 * that it was given, whatever its user, its number and the daemon are by then; and nobody else is
 * taken for it.
 *
 * Programs are processes of their own here, which the test leads step by step.
 */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "manager.h"
#include "proto/limits.h"
#include "proto/packet.h"
#include "proto/units.h"

#define NOBODY 65534

static struct harness harness;
static bool in_namespace; /* the daemon runs in a pid namespace of its own */

static const char *const plain[] = {"--gpus", "8,8", "--sharing", "mps", "--drain", "1h", NULL};

static int clean(void **state) {
	harness_clean(&harness);
	in_namespace = false;
	return 0;
}

/* ---- the daemon, perhaps where it sees no process of ours ---- */

/* For the next child. Return: whether that is allowed here. */
static bool choose_namespace(bool own) {
	static int outer = -1;

	if (outer < 0) {
		outer = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
	}
	if (outer < 0 || setns(outer, CLONE_NEWPID) < 0) {
		return false;
	}
	return !own || unshare(CLONE_NEWPID) == 0;
}

static void start(void) {
	char path[128];

	if (in_namespace) {
		assert_true(choose_namespace(true));
	}
	harness_start(&harness, plain);
	if (in_namespace) {
		assert_true(choose_namespace(false));
	}
	/* Users other than ours come in, too. */
	assert_int_equal(chmod(harness.directory, 0755), 0);
	snprintf(path, sizeof(path), "%s/shim.sock", harness.directory);
	assert_int_equal(chmod(path, 0666), 0);
}

static void restart(void) {
	assert_int_equal(harness_stop(&harness, SIGKILL), 128 + SIGKILL);
	start();
}

static unsigned busy(unsigned gpu) {
	Sbeet__Control__Status *status = status_get();
	struct smset sms;
	unsigned n;

	assert_int_equal(smset_from_bytes(status->gpus[gpu]->sms_busy.data,
					  status->gpus[gpu]->sms_busy.len, &sms),
			 0);
	n = smset_count(&sms);
	status_free(status);
	return n;
}

/* ---- a program ---- */

enum step {
	STEP_REQUEST = 'q', /* asks for all SMs of its GPU, and is granted them */
	STEP_LOSE = 'l',    /* its connection */
	STEP_DROP = 'd',    /* its rights */
	STEP_RETURN = 'r',  /* connects again, and names its job */
	STEP_LOOK = 'k',    /* whether it was revoked */
	STEP_DONE = 'o',    /* its job ends */
	STEP_FORGET = 'f',  /* shows no secret */
	STEP_GUESS = 'g',   /* shows another secret */
	STEP_SHOW = 's',    /* shows the one it was given */
	STEP_FORK = 'c',    /* a child of it returns in its place, secret and all */
	STEP_NEW = 'n',	    /* connects again, and names nothing */
};

struct program {
	pid_t pid;
	int to, from; /* owned */
	unsigned gpu;
};

/* The program's own. */
static struct {
	int fd;
	unsigned gpu;
	struct grant grant;
	uint8_t secret[PROTO_SECRET_BYTES];
} self;

static void come_back(void) {
	struct claim claim;

	claim_init(&claim, 1, self.gpu, &self.grant);
	self.fd = shim_come_back("program", &claim, 1);
}

/* Whether the job is kept ('k') or revoked ('r'). The next daemon says welcome again. */
static char look(void) {
	struct pollfd p = {.fd = self.fd, .events = POLLIN};
	char c = 'k';

	while (c == 'k' && poll(&p, 1, 0) == 1) {
		Sbeet__ToShim *m = shim_receive(self.fd);

		if (!m || m->body_case != SBEET__TO_SHIM__BODY_WELCOME) {
			c = m && m->body_case == SBEET__TO_SHIM__BODY_REVOKE ? 'r' : '?';
		}
		if (m) {
			packet_free(&m->base);
		}
	}
	return c;
}

/* The child answers for the rest of its life; the program itself only waits. */
static char fork_here(void) {
	pid_t pid = fork();

	if (pid > 0) {
		waitpid(pid, NULL, 0);
		_exit(0);
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	come_back();
	return pid < 0 ? '!' : '.';
}

static char do_step(enum step step) {
	struct shim s;

	switch (step) {
	case STEP_REQUEST:
		shim_forget_secret();
		s = shim_open("program", MASK_ALL);
		self.fd = s.fd;
		shim_keep_secret(self.secret);
		shim_request(self.fd, 1, self.gpu, MASK_WHOLE);
		self.grant = shim_granted(self.fd, 1);
		return '.';
	case STEP_LOSE:
		close(self.fd);
		return '.';
	case STEP_DROP:
		return setgroups(0, NULL) == 0 && setgid(NOBODY) == 0 && setuid(NOBODY) == 0 ? '.'
											     : '!';
	case STEP_RETURN:
		come_back();
		return '.';
	case STEP_NEW:
		s = shim_open("program", MASK_ALL);
		self.fd = s.fd;
		return '.';
	case STEP_LOOK:
		return look();
	case STEP_DONE:
		shim_done(self.fd, 1);
		return '.';
	case STEP_FORGET:
		shim_forget_secret();
		return '.';
	case STEP_GUESS:
		self.secret[3] ^= 0x10;
		shim_show_secret(self.secret);
		self.secret[3] ^= 0x10;
		return '.';
	case STEP_SHOW:
		shim_show_secret(self.secret);
		return '.';
	case STEP_FORK:
		return fork_here();
	}
	return '?';
}

static void live(int from, int to, unsigned gpu) {
	char step, answer;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setenv("CMOCKA_TEST_ABORT", "1", 1); /* a check that fails here ends this process alone */
	self.gpu = gpu;
	while (read(from, &step, 1) == 1) {
		answer = do_step((enum step)step);
		if (write(to, &answer, 1) != 1) {
			break;
		}
	}
	_exit(0);
}

static struct program begin(unsigned gpu) {
	int to[2], from[2];
	struct program p = {.gpu = gpu};

	assert_int_equal(pipe2(to, O_CLOEXEC), 0);
	assert_int_equal(pipe2(from, O_CLOEXEC), 0);
	p.pid = fork();
	assert_true(p.pid >= 0);
	if (p.pid == 0) {
		close(to[1]);
		close(from[0]);
		live(to[0], from[1], gpu);
	}
	close(to[0]);
	close(from[1]);
	p.to = to[1];
	p.from = from[0];
	return p;
}

static char ask(const struct program *p, char step) {
	struct pollfd wait = {.fd = p->from, .events = POLLIN};
	char answer = 0;

	assert_int_equal(write(p->to, &step, 1), 1);
	assert_int_equal(poll(&wait, 1, 30000), 1);
	assert_int_equal(read(p->from, &answer, 1), 1);
	return answer;
}

static void lead(const struct program *p, const char *steps) {
	for (; *steps; steps++) {
		char answer = ask(p, *steps);

		if (answer != '.') {
			fail_msg("step '%c' ends with '%c'", *steps, answer);
		}
		harness_settle();
	}
}

static void end(struct program *p) {
	kill(p->pid, SIGKILL);
	waitpid(p->pid, NULL, 0);
	close(p->to);
	close(p->from);
}

/* It waits for what @p holds, and is granted that only when its job is over. */
static void expect_no_second_grant(const struct program *p) {
	struct shim other;

	shim_forget_secret();
	other = shim_open("other", MASK_ALL);
	assert_int_equal(busy(p->gpu), 8);
	shim_request(other.fd, 1, p->gpu, MASK_WHOLE);
	shim_expect_silence(other.fd);
	lead(p, (char[]){STEP_DONE, 0});
	shim_granted(other.fd, 1);
	shim_done(other.fd, 1);
	shim_close(&other);
	harness_settle();
}

static void expect_kept(const struct program *p) {
	assert_int_equal(ask(p, STEP_LOOK), 'k');
	expect_no_second_grant(p);
}

/* ---- cases ---- */

/* @between: kills sbeetd before it comes back. */
static void drops_rights(bool between) {
	struct program p;

	if (geteuid() != 0) {
		skip();
	}
	start();
	p = begin(0);
	lead(&p, "ql");
	if (between) {
		restart();
	}
	lead(&p, "dr");
	expect_kept(&p);
	end(&p);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void program_that_drops_its_rights_keeps_its_job(void **state) {
	drops_rights(false);
}

static void it_keeps_it_over_a_restart_too(void **state) {
	drops_rights(true);
}

/* Charged to the user that it is now, and given back there. */
static void what_it_drops_to_is_charged(void **state) {
	struct program p;

	if (geteuid() != 0) {
		skip();
	}
	start();
	p = begin(0);
	for (int i = 0; i < 3; i++) {
		lead(&p, i == 0 ? "qldr" : "lr");
	}
	lead(&p, "ol");
	assert_int_equal(busy(0), 0);
	end(&p);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0); /* asserts that nothing is charged */
}

static void without_its_secret_nothing_is_taken_over(void **state) {
	static const char *const wrong[] = {"lfr", "lgr"};

	for (size_t i = 0; i < 2; i++) {
		struct program p;

		start();
		p = begin(0);
		lead(&p, "q");
		lead(&p, wrong[i]);
		assert_int_equal(ask(&p, STEP_LOOK), 'r');
		assert_int_equal(busy(0), 8); /* its kernel runs on */
		lead(&p, "lsr");
		expect_kept(&p);
		end(&p);
		assert_int_equal(harness_stop(&harness, SIGTERM), 0);
	}
}

/* Neither does a mere Hello end anything. With the secret it does: what it does not name is over.
 */
static void only_the_secret_ends_what_was_before(void **state) {
	struct program p;

	start();
	p = begin(0);
	lead(&p, "qlfn");
	assert_int_equal(busy(0), 8);
	lead(&p, "lgn");
	assert_int_equal(busy(0), 8);
	lead(&p, "lsn");
	assert_int_equal(busy(0), 0);
	end(&p);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void child_does_not_inherit(void **state) {
	struct program p;

	start();
	p = begin(0);
	lead(&p, "qlc");
	assert_int_equal(ask(&p, STEP_LOOK), 'r');
	assert_int_equal(busy(0), 8);
	end(&p);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void secret_outlives_the_daemon(void **state) {
	struct program p;

	start();
	p = begin(0);
	lead(&p, "q");
	restart();
	lead(&p, "fr");
	assert_int_equal(ask(&p, STEP_LOOK), 'r');
	assert_int_equal(busy(0), 8);
	restart();
	lead(&p, "lsr");
	expect_kept(&p);
	end(&p);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* Where the daemon sees none of them, all have the number 0. */
static void invisible(bool between) {
	struct program a, b;

	if (!choose_namespace(true) || !choose_namespace(false)) {
		print_message("no pid namespace here\n");
		skip();
	}
	in_namespace = true;
	start();
	a = begin(0);
	b = begin(1);
	lead(&a, "ql");
	lead(&b, "ql");
	assert_int_equal(busy(0) + busy(1), 16);
	if (between) {
		restart();
	}
	lead(&b, "r");
	assert_int_equal(ask(&b, STEP_LOOK), 'k');
	assert_int_equal(busy(0) + busy(1), 16);
	lead(&a, "r");
	expect_kept(&a);
	expect_kept(&b);
	end(&a);
	end(&b);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void processes_of_another_namespace_are_told_apart(void **state) {
	invisible(false);
}

static void they_are_over_a_restart_too(void **state) {
	invisible(true);
}

/* Sockets that a service manager keeps: the next daemon knows the secret without a word. */
static void secret_is_handed_over(void **state) {
	struct program p;

	harness_prepare(&harness);
	manager_begin(&harness);
	start();
	p = begin(0);
	lead(&p, "q");
	assert_int_equal(manager_stop(&harness), 0);
	start();
	manager_forget(&harness);
	harness_settle();
	assert_int_equal(ask(&p, STEP_LOOK), 'k');
	lead(&p, "lfr");
	assert_int_equal(ask(&p, STEP_LOOK), 'r');
	lead(&p, "lsr");
	expect_kept(&p);
	end(&p);
	assert_int_equal(manager_stop(&harness), 0);
	manager_end(&harness);
}

/* It does not hold SMs, but its program still says when it has ended. */
static void end_of_a_refused_job_may_be_told_to_the_next_daemon(void **state) {
	struct program p;

	harness_prepare(&harness);
	manager_begin(&harness);
	start();
	p = begin(0);
	lead(&p, "qlfr");
	assert_int_equal(ask(&p, STEP_LOOK), 'r');
	assert_int_equal(manager_stop(&harness), 0);
	start();
	manager_forget(&harness);
	harness_settle();
	lead(&p, "o");
	assert_int_equal(ask(&p, STEP_LOOK), 'k'); /* no error */
	end(&p);
	assert_int_equal(manager_stop(&harness), 0);
	manager_end(&harness);
}

#define CASE(test) cmocka_unit_test_teardown(test, clean)

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(program_that_drops_its_rights_keeps_its_job),
		CASE(it_keeps_it_over_a_restart_too),
		CASE(what_it_drops_to_is_charged),
		CASE(without_its_secret_nothing_is_taken_over),
		CASE(only_the_secret_ends_what_was_before),
		CASE(child_does_not_inherit),
		CASE(secret_outlives_the_daemon),
		CASE(processes_of_another_namespace_are_told_apart),
		CASE(they_are_over_a_restart_too),
		CASE(secret_is_handed_over),
		CASE(end_of_a_refused_job_may_be_told_to_the_next_daemon),
	};

	return cmocka_run_group_tests_name("daemon-identity", tests, NULL, NULL);
}
