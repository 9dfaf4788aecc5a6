/*
 * test-history.c: what is kept of programs that have ended: how exact, whose, how much, and over
 * which ends of sbeetd.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "daemon/watch/history-file.h"
#include "daemon/watch/history.h"

static struct history_run runs[HISTORY_RUNS];
static struct history history;
static struct history_run *holders[2 * HISTORY_RUNS];

static int start(void **state) {
	memset(runs, 0, sizeof(runs));
	memset(holders, 0, sizeof(holders));
	history_init(&history, runs);
	return 0;
}

/* --- histogram ------------------------------------------------------------------------------ */

static void middles_are_near_their_times(void **state) {
	size_t last = 0;

	for (nsec_t t = 1; t < (nsec_t)1 << 40; t += t / 97 + 1) {
		size_t bucket = histogram_bucket(t);
		nsec_t middle = histogram_middle(bucket),
		       off = t > middle ? t - middle : middle - t;

		assert_true(bucket >= last && bucket < HISTOGRAM_BUCKETS);
		assert_true(t < HISTOGRAM_LOWEST || off * 1000 <= t * 32);
		assert_int_equal(histogram_bucket(middle), bucket);
		last = bucket;
	}
	assert_int_equal(last, HISTOGRAM_BUCKETS - 1);
	assert_int_equal(histogram_bucket(UINT64_MAX), HISTOGRAM_BUCKETS - 1);
	assert_int_equal(histogram_bucket(0), 0);
}

static void percentiles_count_jobs(void **state) {
	struct histogram h = {.counts = {0}};

	assert_int_equal(histogram_percentile(&h, 50), 0);
	for (nsec_t ms = 1; ms <= 100; ms++) {
		histogram_add(&h, histogram_bucket(ms * NSEC_PER_MSEC), 1);
	}
	assert_int_equal(histogram_percentile(&h, 50),
			 histogram_middle(histogram_bucket(50 * NSEC_PER_MSEC)));
	assert_int_equal(histogram_percentile(&h, 99),
			 histogram_middle(histogram_bucket(99 * NSEC_PER_MSEC)));
	assert_int_equal(histogram_percentile(&h, 1),
			 histogram_middle(histogram_bucket(1 * NSEC_PER_MSEC)));
	histogram_add(&h, 7, UINT32_MAX);
	histogram_add(&h, 7, 5);
	assert_int_equal(h.counts[7], UINT32_MAX);
}

/* --- whose ---------------------------------------------------------------------------------- */

static struct history_program program(uint32_t uid, uint32_t pid, const char *task) {
	return (struct history_program){.identity = {.inode = pid, .pid = pid, .secret = {1}},
					.task = task,
					.program = "app",
					.run = "",
					.uid = uid,
					.pid = pid};
}

static struct history_run **begin(uint32_t uid, uint32_t pid, const char *task) {
	struct history_program p = program(uid, pid, task);

	history_begin(&history, &p, pid, &holders[pid]);
	assert_non_null(holders[pid]);
	return &holders[pid];
}

static void end(uint32_t pid) {
	history_end(&history, &holders[pid], HISTORY_END_EXIT, pid);
	assert_null(holders[pid]);
}

static unsigned count(uint32_t uid, const char *task) {
	unsigned n = 0;

	for (size_t i = 0; i < HISTORY_RUNS; i++) {
		n += runs[i].number > 0 && runs[i].uid == uid &&
		     (!task || strcmp(runs[i].task, task) == 0);
	}
	return n;
}

/* A user with few runs keeps them, whatever another one does, who keeps the latest. */
static void users_do_not_crowd_each_other_out(void **state) {
	for (uint32_t pid = 1; pid <= 3; pid++) {
		begin(7, pid, "quiet");
		end(pid);
	}
	for (uint32_t pid = 4; pid < 2 * HISTORY_RUNS; pid++) {
		begin(8, pid, "loud");
		end(pid);
	}
	assert_int_equal(count(7, NULL), 3);
	assert_int_equal(count(8, NULL), HISTORY_RUNS - 3);
	for (size_t i = 0; i < HISTORY_RUNS; i++) {
		assert_true(runs[i].uid == 7 || runs[i].pid >= HISTORY_RUNS + 3);
	}
}

/* Both have as many: who adds one loses one. */
static void users_with_equal_shares_keep_them(void **state) {
	for (uint32_t pid = 1; pid <= HISTORY_RUNS; pid++) {
		begin(pid % 2, pid, "x");
		end(pid);
	}
	for (uint32_t pid = HISTORY_RUNS + 1; pid < HISTORY_RUNS + 50; pid++) {
		begin(0, pid, "x");
		end(pid);
	}
	assert_int_equal(count(0, NULL), HISTORY_RUNS / 2);
	assert_int_equal(count(1, NULL), HISTORY_RUNS / 2);
}

/* One that is started often does not crowd out the user's others. */
static void tasks_of_a_user_share_its_room(void **state) {
	for (uint32_t pid = 1; pid <= 5; pid++) {
		begin(7, pid, "rare");
		end(pid);
	}
	for (uint32_t pid = 6; pid < 2 * HISTORY_RUNS; pid++) {
		begin(7, pid, "often");
		end(pid);
	}
	assert_int_equal(count(7, "rare"), 5);
}

/* Runs that still count go last, and who counts there is told. */
static void running_programs_lose_their_runs_last(void **state) {
	uint32_t pid = 1;

	for (; pid <= HISTORY_RUNS - 1; pid++) {
		begin(7, pid, "on");
	}
	begin(7, pid, "over");
	end(pid++);
	begin(7, pid++, "on");
	assert_int_equal(count(7, "over"), 0);
	for (uint32_t i = 1; i <= HISTORY_RUNS - 1; i++) {
		assert_non_null(holders[i]);
	}
	begin(7, pid, "on");
	assert_null(holders[1]);
	assert_non_null(holders[2]);
	history_end(&history, &holders[1], HISTORY_END_EXIT, 0); /* nothing */
}

/* Under the next sbeetd, if it is the same program of the same process and user. */
static void programs_resume_their_runs(void **state) {
	struct history_job job = {.response = 5 * NSEC_PER_MSEC, .missed = true};
	struct history_program p = program(7, 1, "x"), other;
	struct history_run *holder = NULL;

	history_job(*begin(7, 1, "x"), &job, 50);
	assert_false(history_resume(&history, &p, true, &holder)); /* it is held */
	history_init(&history, runs);
	assert_int_equal(runs[0].end, HISTORY_END_RESTART);
	other = program(7, 2, "x");
	assert_false(history_resume(&history, &other, true, &holder));
	other = program(8, 1, "x");
	assert_false(history_resume(&history, &other, true, &holder));
	other = p;
	other.program = "another";
	assert_false(history_resume(&history, &other, true, &holder));
	other = p;
	memset(other.identity.secret, 9, sizeof(other.identity.secret)); /* a new one */
	assert_true(history_resume(&history, &other, true, &holder));
	assert_ptr_equal(holder, &runs[0]);
	assert_int_equal(holder->end, HISTORY_END_NONE);
	assert_int_equal(holder->restarted, 1);
	assert_int_equal(holder->gpus, 1);
	job.on = 2;
	history_job(holder, &job, 60);
	assert_int_equal(holder->gpus, 5);
	assert_int_equal(holder->jobs, 2);
	assert_int_equal(holder->misses, 2);
	assert_int_equal(histogram_count(&holder->response), 2);
	history_end(&history, &holder, HISTORY_END_EXIT, 70);
	assert_false(history_resume(&history, &p, true, &holder));
}

/* --- in files ------------------------------------------------------------------------------- */

static char directory[64], state_directory[80], path[96], copy[96];
static struct history_file *file;

static int prepare(void **state) {
	strcpy(directory, "/tmp/test-history.XXXXXX");
	assert_non_null(mkdtemp(directory));
	snprintf(state_directory, sizeof(state_directory), "%s/state", directory);
	snprintf(path, sizeof(path), "%s/sbeetd.history", directory);
	snprintf(copy, sizeof(copy), "%s/history", state_directory);
	return mkdir(state_directory, 0700);
}

static int clean(void **state) {
	unlink(path);
	unlink(copy);
	rmdir(state_directory);
	return rmdir(directory);
}

static struct history *open_file(void) {
	char why[256];

	assert_int_equal(history_file_open(&file, directory, state_directory, why, sizeof(why)), 0);
	assert_string_equal(why, "");
	return history_file_get(file);
}

static void add(struct history *h, uint32_t pid, enum history_end how) {
	static struct history_run *holder;
	struct history_program p = program(7, pid, "x");

	history_begin(h, &p, 5, &holder);
	history_job(holder, &(struct history_job){.response = 1}, 6);
	if (how != HISTORY_END_NONE) {
		history_end(h, &holder, how, 7);
	}
}

static void meddle(const char *where, const void *bytes, size_t n, off_t at) {
	int fd = open(where, O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, n, at), (ssize_t)n);
	close(fd);
}

/* All of them: after a crash from the file, after a boot from the copy, then without identities. */
static void history_outlives_sbeetd(void **state) {
	struct history *h = open_file();
	struct history_file *killed = file;

	add(h, 1, HISTORY_END_EXIT);
	add(h, 2, HISTORY_END_NONE);
	h = open_file(); /* the one before is left as kill -9 leaves it */
	assert_int_equal(h->next_number, 3);
	assert_int_equal(h->runs[0].end, HISTORY_END_EXIT);
	assert_int_equal(h->runs[1].end, HISTORY_END_RESTART);
	assert_int_equal(h->runs[1].jobs, 1);
	assert_int_equal(h->runs[1].identity.inode, 2);
	assert_int_equal(history_file_close(file), 0);
	meddle(copy, "another boot", 12, 16);
	unlink(path);
	h = open_file();
	assert_int_equal(h->next_number, 3);
	assert_int_equal(h->runs[1].jobs, 1);
	assert_int_equal(h->runs[1].identity.inode, 0);
	assert_int_equal(history_file_close(file), 0);
	assert_int_equal(history_file_close(killed), 0); /* for its memory alone */
}

#define RUNS_AT (8 + 4 + 4 + 40)

/* What is not sound is dropped, alone where that is enough; nothing else is lost. */
static void broken_files_are_not_believed(void **state) {
	static const uint32_t end_of_none = 99;
	struct history *h = open_file();
	struct history_run long_name;
	struct stat st;

	add(h, 1, HISTORY_END_EXIT);
	add(h, 2, HISTORY_END_EXIT);
	long_name = h->runs[0];
	memset(long_name.task, 'x', sizeof(long_name.task));
	assert_int_equal(history_file_close(file), 0);
	meddle(path, &long_name, sizeof(long_name), RUNS_AT);
	h = open_file();
	assert_int_equal(h->runs[0].number, 0);
	assert_int_equal(h->runs[1].number, 2);
	assert_int_equal(history_file_close(file), 0);
	meddle(path, &end_of_none, 4,
	       (off_t)(RUNS_AT + sizeof(long_name) + offsetof(struct history_run, end)));
	h = open_file();
	assert_int_equal(h->runs[1].number, 0);
	add(h, 3, HISTORY_END_EXIT);
	assert_int_equal(history_file_close(file), 0);

	meddle(path, "\x63", 1, 8); /* another version */
	meddle(copy, "\x63", 1, 8);
	h = open_file();
	assert_int_equal(h->next_number, 1);
	add(h, 1, HISTORY_END_EXIT);
	assert_int_equal(history_file_close(file), 0);
	assert_int_equal(truncate(path, 100), 0);
	h = open_file(); /* the copy */
	assert_int_equal(h->next_number, 2);
	assert_int_equal(history_file_close(file), 0);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0); /* nobody waits */
	h = open_file();
	assert_int_equal(h->next_number, 2);
	assert_int_equal(stat(path, &st), 0);
	assert_true(S_ISREG(st.st_mode) && (st.st_mode & 0777) == 0600);
	assert_int_equal(history_file_close(file), 0);
}

/* Where nothing can be written it works until the end, and says so. */
static void history_works_without_files(void **state) {
	char why[256];

	assert_int_equal(history_file_open(&file, "/proc/none", NULL, why, sizeof(why)), 0);
	assert_non_null(strstr(why, "/proc/none"));
	add(history_file_get(file), 1, HISTORY_END_EXIT);
	assert_int_equal(history_file_close(file), 0);
	assert_int_equal(history_file_open(&file, directory, "/proc/none", why, sizeof(why)), 0);
	assert_string_equal(why, "");
	assert_true(history_file_close(file) < 0);
	assert_int_equal(history_file_close(NULL), 0);
}

#define CASE(test)	cmocka_unit_test_setup(test, start)
#define FILE_CASE(test) cmocka_unit_test_setup_teardown(test, prepare, clean)

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(middles_are_near_their_times),
		CASE(percentiles_count_jobs),
		CASE(users_do_not_crowd_each_other_out),
		CASE(users_with_equal_shares_keep_them),
		CASE(tasks_of_a_user_share_its_room),
		CASE(running_programs_lose_their_runs_last),
		CASE(programs_resume_their_runs),
		FILE_CASE(history_outlives_sbeetd),
		FILE_CASE(broken_files_are_not_believed),
		FILE_CASE(history_works_without_files),
	};

	return cmocka_run_group_tests_name("history", tests, NULL, NULL);
}
