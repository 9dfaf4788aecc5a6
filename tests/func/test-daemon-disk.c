/*
 * test-daemon-disk.c: disks that are full or can't be written: sbeetd serves all the same, says so
 * once, and keeps what there is room for.
 *
 * The disk is a small tmpfs in a mount namespace of the test's own: at the runtime directory, or in
 * it. Where no such namespace is to be had, there is nothing to test.
 */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "proto/packet.h"
#include "proto/units.h"

#define CANT_KEEP_JOBS	"Can't keep the list of running jobs"
#define CANT_KEEP_TIMES "Can't keep learnt times"

static struct harness harness;
static char disk[128]; /* where it is mounted; "": nowhere */

static const char *const plain[] = {"--gpus", "8", "--sharing", "mps", "--drain", "1h", NULL};

/* ---- the disk ---- */

static void write_text(const char *path, const char *text) {
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd >= 0) {
		assert_int_equal(write(fd, text, strlen(text)), strlen(text));
		close(fd);
	}
}

/* Return: false: it is not allowed here. */
static bool enter_namespace(void) {
	char map[64];
	uid_t uid = geteuid();

	if (unshare(CLONE_NEWNS | (uid == 0 ? 0 : CLONE_NEWUSER)) < 0) {
		return false;
	}
	if (uid != 0) {
		snprintf(map, sizeof(map), "%u %u 1", uid, uid);
		write_text("/proc/self/uid_map", map);
	}
	return mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

static void mount_disk(const char *path) {
	snprintf(disk, sizeof(disk), "%s", path);
	assert_int_equal(mount("tmpfs", disk, "tmpfs", 0, "size=4m,mode=0700"), 0);
}

static void make_read_only(bool yes) {
	assert_int_equal(mount(NULL, disk, NULL, MS_REMOUNT | (yes ? MS_RDONLY : 0), NULL), 0);
}

/* What is in the file that takes all the room. */
static void fill(void) {
	static const char zeros[4096];
	char path[160];
	int fd;

	snprintf(path, sizeof(path), "%s/filler", disk);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	while (write(fd, zeros, sizeof(zeros)) > 0) {
	}
	assert_int_equal(errno, ENOSPC);
	close(fd);
}

static void make_room(void) {
	char path[160];

	snprintf(path, sizeof(path), "%s/filler", disk);
	assert_int_equal(unlink(path), 0);
}

static int setup(void **state) {
	harness_prepare(&harness);
	harness_listen(&harness);
	return 0;
}

static int clean(void **state) {
	for (int i = 0; i < harness.n_passed; i++) {
		close(harness.passed[i]);
	}
	if (harness.pid > 0) {
		harness_stop(&harness, SIGKILL);
	}
	if (*disk) {
		umount2(disk, MNT_DETACH);
		*disk = '\0';
	}
	unsetenv("STATE_DIRECTORY");
	harness_clean(&harness);
	return 0;
}

/* ---- the list of running jobs ---- */

static void expect_service(void) {
	struct shim s = shim_open("s", MASK_ALL);

	shim_request(s.fd, 1, 0, MASK_ALL);
	shim_granted(s.fd, 1);
	shim_done(s.fd, 1);
	shim_close(&s);
}

static void kill_and_start(void) {
	assert_int_equal(harness_stop(&harness, SIGKILL), 128 + SIGKILL);
	harness_start(&harness, plain);
}

static unsigned n_running(void) {
	Sbeet__Control__Status *status = status_get();
	unsigned n = 0;

	for (size_t i = 0; i < status->n_jobs; i++) {
		n += strcmp(status->jobs[i]->state, "running") == 0;
	}
	status_free(status);
	return n;
}

/* Full before the first daemon: the next one knows that it knows nothing, and asks programs. */
static void daemon_serves_on_a_full_disk(void **state) {
	struct claim claim;
	struct grant g;
	struct shim s;
	int fd;

	mount_disk(harness.directory);
	fill();
	harness_start(&harness, plain);
	s = shim_open("before", MASK_ALL);
	assert_int_equal(harness_said(&harness, CANT_KEEP_JOBS), 1);
	shim_request(s.fd, 1, 0, MASK_ALL);
	g = shim_granted(s.fd, 1);
	do {
		/* It believes for half a second, which a slow machine may miss: then it is told
		 * to end its job, and asks for another. */
		kill_and_start();
		close(s.fd);
		claim_init(&claim, 1, 0, &g);
		fd = shim_come_back("before", &claim, 1);
		s.fd = fd;
		harness_settle();
	} while (n_running() == 0);
	assert_true(harness_said(&harness, "so that programs can tell") > 0);
	shim_done(fd, 1);
	close(fd);
	expect_service();
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* The room that it had is enough for ever, for each next one as well. */
static void daemon_keeps_its_jobs_when_the_disk_gets_full(void **state) {
	struct claim claim;
	struct shim s, other;
	struct grant g;

	mount_disk(harness.directory);
	harness_start(&harness, plain);
	s = shim_open("before", MASK_ALL);
	fill();
	shim_request(s.fd, 1, 0, MASK_WHOLE);
	g = shim_granted(s.fd, 1);
	for (int i = 0; i < 3; i++) {
		kill_and_start();
		close(s.fd);
		assert_int_equal(n_running(), 1); /* before its program has said a word */
		claim_init(&claim, 1, 0, &g);
		s.fd = shim_come_back("before", &claim, 1);
	}
	other = shim_open("other", MASK_ALL);
	shim_request(other.fd, 1, 0, MASK_WHOLE);
	shim_expect_silence(other.fd);
	shim_expect_silence(s.fd);
	shim_done(s.fd, 1);
	shim_granted(other.fd, 1);
	assert_int_equal(harness_said(&harness, "warning"), 0);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
	close(s.fd);
	shim_close(&other);
}

/* What it says is lost, and that is all. */
static void daemon_serves_when_its_log_is_full(void **state) {
	char path[160];

	mount_disk(harness.directory);
	snprintf(path, sizeof(path), "%s/log", disk);
	close(harness.log_fd);
	harness.log_fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	assert_true(harness.log_fd > 0);
	fill();
	harness_start(&harness, plain);
	expect_service();
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
	assert_int_equal(lseek(harness.log_fd, 0, SEEK_END), 0);
}

static int listen_at(const char *name) {
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%.64s/%s", harness.directory, name);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 8), 0);
	return fd;
}

/* As a service manager starts it, whose sockets are there already. */
static void daemon_serves_from_a_read_only_directory(void **state) {
	char errors[1024];

	mount_disk(harness.directory);
	harness_start(&harness, plain); /* leaves the file of the lock */
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
	harness.passed[0] = listen_at("shim.sock");
	harness.passed[1] = listen_at("control.sock");
	harness.passed_names = "shim:control";
	make_read_only(true);
	assert_int_equal(harness_run(&harness, plain, errors, sizeof(errors)), 1);
	assert_non_null(strstr(errors, "Read-only file system")); /* without sockets it can't */
	harness.n_passed = 2;
	harness_start(&harness, plain);
	expect_service();
	assert_int_equal(harness_said(&harness, CANT_KEEP_JOBS), 1);
	assert_int_equal(harness_run(&harness, plain, errors, sizeof(errors)), 1);
	assert_non_null(strstr(errors, "runs there already"));
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* ---- files of tasks ---- */

static Sbeet__Control__Reply *save_priority(int priority) {
	Sbeet__Control__TaskChange change = SBEET__CONTROL__TASK_CHANGE__INIT;
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;
	Sbeet__TaskSpec spec = SBEET__TASK_SPEC__INIT;

	change.task = (char[]){"cam"};
	change.spec = &spec;
	change.mask = 1 << 6;
	spec.priority = priority;
	change.save = true;
	request.body_case = SBEET__CONTROL__REQUEST__BODY_TASK_CHANGE;
	request.task_change = &change;
	return control_ask(&request);
}

static void expect_unsaved(const char *why) {
	Sbeet__Control__Reply *reply = save_priority(7);

	assert_int_equal(reply->body_case, SBEET__CONTROL__REPLY__BODY_ERROR);
	assert_non_null(strstr(reply->error->text, why));
	packet_free(&reply->base);
}

static int saved_priority(void) {
	struct shim s = shim_open("cam", MASK_ALL);
	Sbeet__Control__Status *status = status_get();
	int priority = status->sessions[0]->priority;

	status_free(status);
	shim_close(&s);
	return priority;
}

/* Whoever wants a task saved is told that it is not, and what was saved before stays. */
static void saved_tasks_outlast_a_full_disk(void **state) {
	char path[128];

	snprintf(path, sizeof(path), "%s/tasks.d", harness.directory);
	assert_int_equal(mkdir(path, 0755), 0);
	mount_disk(path);
	harness_start(&harness, plain);
	packet_free(&save_priority(3)->base);
	assert_int_equal(saved_priority(), 3);
	fill();
	expect_unsaved("No space left on device; what was there before stays");
	make_room();
	make_read_only(true);
	expect_unsaved("Read-only file system");
	make_read_only(false);
	assert_int_equal(saved_priority(), 3);
	kill_and_start();
	assert_int_equal(saved_priority(), 3);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* ---- learnt times ---- */

#define JOBS_MIN 8 /* LEARN_JOBS_MIN of daemon/gpu/learn.h */

static const char *const learning[] = {"--gpus", "8",	    "--sharing", "mps", "--policy",
				       "sbeet",	 "--learn", "yes",	 NULL};

static struct shim open_task(void) {
	Sbeet__TaskSpec task = SBEET__TASK_SPEC__INIT;
	struct shim s = {.fd = shim_connect()};

	task.name = (char[]){"cam"};
	task.task_class = SBEET__TASK_CLASS__TASK_CLASS_REALTIME;
	task.period_ns = task.deadline_ns = 60 * NSEC_PER_SEC;
	shim_hello(s.fd, "app", &task, MASK_ALL);
	packet_free(&shim_receive(s.fd)->base);
	return s;
}

static bool is_planned(void) {
	struct shim s = open_task();
	Sbeet__Control__Status *status = status_get();
	bool planned = status->sessions[0]->planned;

	status_free(status);
	shim_close(&s);
	return planned;
}

static void run_jobs(void) {
	struct shim s = open_task();

	for (uint64_t i = 1; i <= JOBS_MIN; i++) {
		shim_request(s.fd, i, 0, MASK_ALL);
		shim_granted(s.fd, i);
		shim_done(s.fd, i);
	}
	harness_settle();
	shim_close(&s);
}

static bool has_complained(const Sbeet__Control__Status *status, void *data) {
	return harness_said(&harness, CANT_KEEP_TIMES) > 0;
}

/* It goes on trying, and says it once; when there is room again, nothing was lost. */
static void learnt_times_outlast(void (*begin)(void), void (*end)(void)) {
	char path[128];

	snprintf(path, sizeof(path), "%s/state", harness.directory);
	assert_int_equal(mkdir(path, 0700), 0);
	setenv("STATE_DIRECTORY", path, 1);
	mount_disk(path);
	begin();
	harness_start(&harness, learning);
	run_jobs();
	status_until(has_complained, NULL);
	run_jobs();
	assert_true(is_planned());
	end();
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
	assert_int_equal(harness_said(&harness, CANT_KEEP_TIMES), 1);
	assert_int_equal(harness_said(&harness, "are kept in 'learned-times' again"), 1);
	harness_start(&harness, learning);
	assert_true(is_planned());
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void learnt_times_outlast_a_full_disk(void **state) {
	learnt_times_outlast(fill, make_room);
}

static void lock_disk(void) {
	make_read_only(true);
}

static void unlock_disk(void) {
	make_read_only(false);
}

static void learnt_times_outlast_a_read_only_disk(void **state) {
	learnt_times_outlast(lock_disk, unlock_disk);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, clean)

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(daemon_serves_on_a_full_disk),
		CASE(daemon_keeps_its_jobs_when_the_disk_gets_full),
		CASE(daemon_serves_when_its_log_is_full),
		CASE(daemon_serves_from_a_read_only_directory),
		CASE(learnt_times_outlast_a_full_disk),
		CASE(saved_tasks_outlast_a_full_disk),
		CASE(learnt_times_outlast_a_read_only_disk),
	};

	if (!enter_namespace()) {
		printf("no mount namespace here: %s\n", strerror(errno));
		return 77;
	}
	return cmocka_run_group_tests_name("daemon-disk", tests, NULL, NULL);
}
