/*
 * test-ledger.c: what a daemon finds of the one before: its own version's file, an older one's, and
 * entries that can't be true.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
/* after the above, as cmocka demands */
#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/core/sched.h"
#include "daemon/session/ledger.h"
#include "example-job.h"
#include "proto/hash.h"
#include "sbeet.pb-c.h"

#define N_ENTRIES (SCHED_GPUS_MAX * 4) /* up to version 4 */

/* As sbeetd wrote it until the file had secrets. */
struct entry_2 {
	uint64_t checksum, job, sequence, identity;
	nsec_t release, deadline, granted;
	struct smset sms;
	uint32_t pid, uid, slot, enforcement, enforcement_mask, reserved, job_class, tid;
	int32_t priority;
	uint8_t uuid[PROTO_UUID_BYTES];
	char task[PROTO_NAME_MAX + 4], program[PROTO_NAME_MAX + 4];
	uint32_t used;
};

struct file_2 {
	char magic[8];
	uint32_t version, entry_bytes;
	char boot[40];
	struct entry_2 entries[N_ENTRIES];
};

static char directory[64], path[96], why[512];

static int setup(void **state) {
	strcpy(directory, "/tmp/sbeet-ledger-XXXXXX");
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/sbeetd.jobs", directory);
	return 0;
}

static int clean(void **state) {
	unlink(path);
	return rmdir(directory);
}

static struct ledger *open_ledger(void) {
	struct ledger *ledger;

	assert_int_equal(ledger_new(&ledger, directory, why, sizeof(why)), 0);
	assert_string_equal(why, "");
	return ledger;
}

static struct ledger_entry entry(void) {
	return (struct ledger_entry){
		.job = example_job(),
		.identity = {.inode = 3, .pid_ns = 4, .pid = 100, .secret = {9, 8, 7}},
		.release = 1,
		.uid = 1000,
		.priority = -3,
		.task = "camera",
		.program = "cam",
	};
}

/* Leaves @e, as a daemon that is killed does. */
static void leave(const struct ledger_entry *e) {
	struct ledger *ledger = open_ledger();

	ledger_commit(ledger);
	ledger_write(ledger, 0, e->job.slot, e);
	ledger_free(ledger);
}

static void ledger_keeps_an_entry(void **state) {
	struct ledger_entry e = entry();
	struct ledger *ledger;

	leave(&e);
	ledger = open_ledger();
	assert_int_equal(ledger_past(ledger), LEDGER_PAST_KNOWN);
	assert_non_null(ledger_left(ledger, 0));
	assert_null(ledger_left(ledger, 1));
	/* The checksum before it is the ledger's. */
	assert_memory_equal(&ledger_left(ledger, 0)->job, &e.job,
			    offsetof(struct ledger_entry, used) -
				    offsetof(struct ledger_entry, job));
	ledger_free(ledger);
}

/* A number that no daemon can have given: more than one a nanosecond since boot. */
static void ledger_believes_no_impossible_sequence(void **state) {
	struct ledger_entry e = entry();
	struct ledger *ledger;

	e.job.sequence = nsec_now() + 3600 * NSEC_PER_SEC;
	leave(&e);
	ledger = open_ledger();
	assert_int_equal(ledger_past(ledger), LEDGER_PAST_UNKNOWN);
	assert_null(ledger_left(ledger, 0));
	ledger_free(ledger);
}

static void write_version_2(bool spoilt) {
	static struct file_2 file;
	struct entry_2 *e = &file.entries[5];
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

	memset(&file, 0, sizeof(file));
	memcpy(file.magic, "sbeetjob", 8);
	file.version = 2;
	file.entry_bytes = sizeof(struct entry_2);
	assert_int_equal(read(fd, file.boot, 36), 36);
	close(fd);
	*e = (struct entry_2){.job = 7,
			      .sequence = 40,
			      .identity = 12345,
			      .release = 1,
			      .deadline = 2,
			      .granted = 3,
			      .sms = smset_range(0, 4),
			      .pid = 100,
			      .uid = 1000,
			      .slot = 1,
			      .enforcement = SBEET__ENFORCEMENT__ENFORCEMENT_SMID,
			      .enforcement_mask = 6,
			      .tid = 5,
			      .priority = -3,
			      .uuid = {1},
			      .task = "camera",
			      .program = "cam",
			      .used = 1};
	e->checksum = hash_bytes(HASH_EMPTY, &e->job,
				 offsetof(struct entry_2, used) - offsetof(struct entry_2, job));
	e->tid += spoilt;
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, &file, sizeof(file)), sizeof(file));
	close(fd);
}

static void ledger_reads_the_version_before(void **state) {
	const struct ledger_entry *e;
	struct ledger *ledger;

	write_version_2(false);
	ledger = open_ledger();
	assert_int_equal(ledger_past(ledger), LEDGER_PAST_KNOWN);
	e = ledger_left(ledger, 0);
	assert_non_null(e);
	assert_null(ledger_left(ledger, 1));
	assert_true(e->job.number == 7 && e->job.sequence == 40 && e->release == 1 &&
		    e->job.requested == 1 && e->job.deadline == 2 && e->job.granted == 3 &&
		    e->uid == 1000 && e->job.slot == 1 && e->job.tid == 5 && e->priority == -3 &&
		    e->job.enforcement_mask == 6 && e->job.uuid[0] == 1);
	assert_int_equal(e->job.enforcement, SBEET__ENFORCEMENT__ENFORCEMENT_SMID);
	assert_int_equal(smset_count(&e->job.sms), 4);
	assert_string_equal(e->task, "camera");
	assert_string_equal(e->program, "cam");
	/* One of the two, whichever this kernel has; no secret was given. */
	assert_true((e->identity.inode == 12345) != (e->identity.start == 12345));
	assert_int_equal(e->identity.pid, 100);
	assert_false(identity_has_secret(&e->identity));
	ledger_free(ledger);
}

/* Version 4 had room for four jobs a GPU. */
static void ledger_reads_fewer_jobs_a_gpu(void **state) {
	const size_t new = (size_t)SCHED_GPUS_MAX *SCHED_SLOTS_MAX;
	struct ledger_entry e = entry();
	struct ledger *ledger;
	struct stat st;
	int fd;

	leave(&e);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(pwrite(fd, &(uint32_t){4}, sizeof(uint32_t), 8), sizeof(uint32_t));
	assert_int_equal(ftruncate(fd, st.st_size - (off_t)((new - N_ENTRIES) * sizeof(e))), 0);
	ledger = open_ledger();
	assert_int_equal(ledger_past(ledger), LEDGER_PAST_KNOWN);
	assert_non_null(ledger_left(ledger, 0));
	assert_int_equal(ledger_left(ledger, 0)->job.number, e.job.number);
	ledger_free(ledger);

	assert_int_equal(ftruncate(fd, st.st_size / 4), 0);
	close(fd);
	ledger = open_ledger();
	assert_int_equal(ledger_past(ledger), LEDGER_PAST_UNKNOWN);
	ledger_free(ledger);
}

static void ledger_believes_no_spoilt_entry_of_the_version_before(void **state) {
	struct ledger *ledger;

	write_version_2(true);
	ledger = open_ledger();
	assert_int_equal(ledger_past(ledger), LEDGER_PAST_UNKNOWN);
	assert_null(ledger_left(ledger, 0));
	ledger_free(ledger);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, clean)

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(ledger_keeps_an_entry),
		CASE(ledger_believes_no_impossible_sequence),
		CASE(ledger_reads_the_version_before),
		CASE(ledger_reads_fewer_jobs_a_gpu),
		CASE(ledger_believes_no_spoilt_entry_of_the_version_before),
	};

	return cmocka_run_group_tests_name("ledger", tests, NULL, NULL);
}
