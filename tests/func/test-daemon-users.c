/*
 * test-daemon-users.c: what a user takes of sbeetd leaves the others theirs, however many
 * connections and user ids that user has.
 */
#include "harness.h"

#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness-internal.h"
#include "proto/packet.h"

static struct harness harness;

static int teardown(void **state) {
	unsetenv("SBEET_SUBUID");
	harness_clean(&harness);
	return 0;
}

/* ---- questions ---- */

#define ASKING 400

static void ask_for_status(int fd) {
	Sbeet__Control__StatusRequest ask = SBEET__CONTROL__STATUS_REQUEST__INIT;
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;

	request.body_case = SBEET__CONTROL__REQUEST__BODY_STATUS;
	request.status = &ask;
	assert_int_equal(packet_send(fd, &request.base, -1), 0);
}

/* When the only job was granted. */
static nsec_t granted_at(void) {
	Sbeet__Control__Status *status = status_get();
	nsec_t at;

	assert_int_equal(status->n_jobs, 1);
	at = status->jobs[0]->granted_ns;
	status_free(status);
	return at;
}

/* All connections have asked before the program does, and sbeetd finds all of it at once. */
static void programs_are_served_between_answers(void **state) {
	int asking[ASKING];
	struct shim program;
	unsigned before = 0;
	nsec_t granted;

	harness_start(&harness, (const char *const[]){"--gpus", "8", NULL});
	program = shim_open("program", MASK_WHOLE);
	for (unsigned i = 0; i < ASKING; i++) {
		asking[i] = harness_connect("control.sock");
	}
	harness_settle();
	assert_int_equal(kill(harness.pid, SIGSTOP), 0);
	for (unsigned i = 0; i < ASKING; i++) {
		ask_for_status(asking[i]);
	}
	shim_request(program.fd, 1, 0, MASK_WHOLE);
	assert_int_equal(kill(harness.pid, SIGCONT), 0);
	shim_granted(program.fd, 1);
	granted = granted_at();
	for (unsigned i = 0; i < ASKING; i++) {
		Sbeet__Control__Reply *reply = control_end(asking[i]);

		assert_int_equal(reply->body_case, SBEET__CONTROL__REPLY__BODY_STATUS);
		before += reply->status->service->now_ns < granted;
		packet_free(&reply->base);
	}
	if (before >= ASKING / 2) {
		fail_msg("%u of %d answers came before the program's grant", before, ASKING);
	}
	shim_close(&program);
	harness_finish(&harness);
}

/* ---- connections ---- */

/* Programs of another user, which stay until they are let go. */
struct guests {
	pid_t pid;
	unsigned n; /* that were welcomed */
};

static bool is_welcomed(int fd) {
	Sbeet__Hello hello = SBEET__HELLO__INIT;
	Sbeet__ToDaemon say = SBEET__TO_DAEMON__INIT;
	Sbeet__ToShim *m;
	bool welcomed;

	hello.version = PROTO_VERSION;
	hello.program = hello.shim_version = (char[]){"guest"};
	hello.enforcement_mask = MASK_WHOLE;
	say.body_case = SBEET__TO_DAEMON__BODY_HELLO;
	say.hello = &hello;
	packet_send(fd, &say.base, -1); /* or it is refused by now */
	m = shim_receive(fd);
	welcomed = m && m->body_case == SBEET__TO_SHIM__BODY_WELCOME;
	if (m) {
		packet_free(&m->base);
	}
	return welcomed;
}

static void be_guests(uid_t uid, unsigned n, int tell) {
	unsigned welcomed = 0;

	if (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 ||
	    setresuid(uid, uid, uid) < 0) {
		_exit(99);
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	harness.pid = 0;
	for (unsigned i = 0; i < n; i++) {
		welcomed += is_welcomed(shim_connect());
	}
	if (write(tell, &welcomed, sizeof(welcomed)) == sizeof(welcomed)) {
		pause();
	}
	_exit(0);
}

/* @n programs of @uid try to connect, one after the other. */
static struct guests invite(uid_t uid, unsigned n) {
	struct guests g = {.n = 0};
	int tell[2];

	assert_int_equal(pipe(tell), 0);
	g.pid = fork();
	assert_true(g.pid >= 0);
	if (g.pid == 0) {
		be_guests(uid, n, tell[1]);
	}
	close(tell[1]);
	assert_int_equal(read(tell[0], &g.n, sizeof(g.n)), sizeof(g.n));
	close(tell[0]);
	return g;
}

static void dismiss(struct guests *g) {
	assert_int_equal(kill(g->pid, SIGKILL), 0);
	assert_int_equal(waitpid(g->pid, NULL, 0), g->pid);
}

static void write_file(const char *name, const char *text) {
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", harness.directory, name);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void allow_everybody(const char *name, mode_t mode) {
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", harness.directory, name);
	assert_int_equal(chmod(path, mode), 0);
}

/* For users other than root. */
static void start_for_all(void) {
	if (geteuid() != 0) {
		skip();
	}
	harness_start(&harness, (const char *const[]){"--gpus", "8", NULL});
	allow_everybody("", 0755);
	allow_everybody("shim.sock", 0666);
	allow_everybody("control.sock", 0666);
}

#define ALICE	  60001
#define BOB	  60002
#define CAROL	  60003
#define SUBUIDS	  3000000
#define N_SUBUIDS 100

/* sbeetd's descriptors are few: a user leaves as many to others as it has. */
static void users_leave_descriptors_to_others(void **state) {
	struct rlimit few = {128, 128};
	struct guests alice, bob, carol;

	if (geteuid() == 0) {
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	}
	start_for_all();
	alice = invite(ALICE, 60);
	assert_in_range(alice.n, 10, 30);
	bob = invite(BOB, 60);
	assert_in_range(bob.n, 5, alice.n);
	carol = invite(CAROL, 1);
	assert_int_equal(carol.n, 1);
	/* What is given back is there for all. */
	dismiss(&alice);
	dismiss(&carol);
	alice = invite(CAROL, 60);
	assert_true(alice.n > bob.n);
	dismiss(&alice);
	dismiss(&bob);
	harness_finish(&harness);
}

/* However many subordinate ids a user has: they have one limit together. */
static void subuids_count_as_their_owner(void **state) {
	struct guests one, other, owner, bob;
	char text[128], path[128];

	harness_prepare(&harness);
	write_file("sbeetd.conf", "[users]\nsessions = 5\n");
	snprintf(text, sizeof(text), "root:%d:100\nnonsense\n%d:%d:%d\n", SUBUIDS + 1000, ALICE,
		 SUBUIDS, N_SUBUIDS);
	write_file("subuid", text);
	snprintf(path, sizeof(path), "%s/subuid", harness.directory);
	setenv("SBEET_SUBUID", path, 1);
	start_for_all();
	one = invite(SUBUIDS, 3);
	assert_int_equal(one.n, 3);
	other = invite(SUBUIDS + N_SUBUIDS - 1, 3);
	assert_int_equal(other.n, 2);
	owner = invite(ALICE, 1);
	assert_int_equal(owner.n, 0);
	bob = invite(SUBUIDS + N_SUBUIDS, 6); /* not hers */
	assert_int_equal(bob.n, 5);
	dismiss(&bob);
	/* Root's are those of different people. */
	bob = invite(SUBUIDS + 1000, 5);
	assert_int_equal(bob.n, 5);
	dismiss(&bob);
	bob = invite(SUBUIDS + 1001, 5);
	assert_int_equal(bob.n, 5);
	dismiss(&bob);
	/* Another file holds for those that come from then on. */
	write_file("subuid", "");
	owner = invite(ALICE, 1);
	assert_int_equal(owner.n, 0);
	bob = invite(SUBUIDS + 1, 5);
	assert_int_equal(bob.n, 5);
	dismiss(&bob);
	dismiss(&owner);
	dismiss(&one);
	dismiss(&other);
	harness_finish(&harness);
}

/* ---- root of a container ---- */

static Sbeet__ErrorCode try_policy(void) {
	Sbeet__Control__PolicyRequest policy = SBEET__CONTROL__POLICY_REQUEST__INIT;
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;
	Sbeet__ErrorCode code = SBEET__ERROR_CODE__ERROR_CODE_NONE;
	Sbeet__Control__Reply *reply;

	policy.name = (char[]){"fcfs"};
	request.body_case = SBEET__CONTROL__REQUEST__BODY_POLICY;
	request.policy = &policy;
	reply = control_ask(&request);
	if (reply->body_case == SBEET__CONTROL__REPLY__BODY_ERROR) {
		code = reply->error->code;
	}
	packet_free(&reply->base);
	return code;
}

static bool drop_sys_admin(void) {
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data) < 0 || !(data[0].effective & 1u << CAP_SYS_ADMIN)) {
		return false;
	}
	data[0].effective &= ~(1u << CAP_SYS_ADMIN);
	data[0].permitted &= ~(1u << CAP_SYS_ADMIN);
	return syscall(SYS_capset, &header, data) == 0;
}

static void root_without_its_power_is_no_admin(void **state) {
	int status;
	pid_t pid;

	start_for_all();
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		harness.pid = 0;
		_exit(!drop_sys_admin() ? 77
					: try_policy() != SBEET__ERROR_CODE__ERROR_CODE_DENIED);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		skip(); /* this root has none itself */
	}
	assert_int_equal(status, 0);
	assert_int_equal(try_policy(), SBEET__ERROR_CODE__ERROR_CODE_NONE);
	harness_finish(&harness);
}

#define CASE(f) cmocka_unit_test_teardown(f, teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(programs_are_served_between_answers),
		CASE(root_without_its_power_is_no_admin),
		CASE(subuids_count_as_their_owner),
		/* The last: what it limits stays so. */
		CASE(users_leave_descriptors_to_others),
	};

	return cmocka_run_group_tests_name("daemon-users", tests, NULL, NULL);
}
