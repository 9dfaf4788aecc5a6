/*
 * test-gpu-lock.c: one daemon holds a GPU's lock, and no other user has a say in that.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
/* after the above, as cmocka demands */
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/base/gpu-lock.h"

#define NOBODY 65534

static const uint8_t uuid[PROTO_UUID_BYTES] = {0xab, 1, 2, 3};
static const char name[] = "gpu-ab010203000000000000000000000000.lock";

static char parent[64], folder[80], path[160], why[1024];

static int setup(void **state) {
	strcpy(parent, "/tmp/sbeet-lock-XXXXXX");
	assert_non_null(mkdtemp(parent));
	assert_int_equal(chmod(parent, 0755), 0);
	snprintf(folder, sizeof(folder), "%s/locks", parent);
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return 0;
}

static int clean(void **state) {
	unlink(path);
	rmdir(folder);
	rmdir(parent);
	return 0;
}

static mode_t mode_of(const char *of) {
	struct stat st;

	assert_int_equal(lstat(of, &st), 0);
	assert_int_equal(st.st_uid, geteuid());
	return st.st_mode & 07777;
}

/* Return: -1, or the errno of opening the file or of creating one beside it. */
static int try_as(uid_t uid) {
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		char other[160];

		snprintf(other, sizeof(other), "%s/other", folder);
		if (setgid(uid) < 0 || setuid(uid) < 0) {
			_exit(254);
		}
		_exit(open(path, O_RDONLY) < 0 && errno == EACCES &&
				      open(other, O_RDWR | O_CREAT, 0600) < 0 && errno == EACCES
			      ? EACCES
			      : 255);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WEXITSTATUS(status);
}

static void lock_is_held_by_one(void **state) {
	char pid[32];
	int fd = gpu_lock(folder, uuid, why, sizeof(why));

	assert_true(fd >= 0);
	snprintf(pid, sizeof(pid), "(pid %d, ", getpid());
	assert_int_equal(gpu_lock(folder, uuid, why, sizeof(why)), -EBUSY);
	assert_non_null(strstr(why, pid));
	close(fd);
	fd = gpu_lock(folder, uuid, why, sizeof(why));
	assert_true(fd >= 0);
	close(fd);
}

static void lock_is_out_of_reach_of_others(void **state) {
	int fd = gpu_lock(folder, uuid, why, sizeof(why));

	assert_true(fd >= 0);
	assert_int_equal(mode_of(folder), 0700);
	assert_int_equal(mode_of(path), 0600);
	if (geteuid() == 0) {
		assert_int_equal(try_as(NOBODY), EACCES);
	}
	close(fd);
}

/* Somebody was there before, with a lock of his own. */
static void shared_folder_is_not_used(void **state) {
	int fd;

	assert_int_equal(mkdir(folder, 0700), 0);
	assert_int_equal(chmod(folder, 01777), 0);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(gpu_lock(folder, uuid, why, sizeof(why)), -EPERM);
	assert_non_null(strstr(why, "mode 1777"));
	assert_non_null(strstr(why, "SBEET_LOCK_DIR"));
	close(fd);
}

static void folder_of_another_user_is_not_used(void **state) {
	int fd;

	if (geteuid() != 0) {
		skip();
	}
	assert_int_equal(mkdir(folder, 0700), 0);
	assert_int_equal(chown(folder, NOBODY, NOBODY), 0);
	assert_int_equal(gpu_lock(folder, uuid, why, sizeof(why)), -EPERM);
	/* The service's own folder, where root's daemon meets it. */
	assert_int_equal(chown(parent, NOBODY, NOBODY), 0);
	fd = gpu_lock(folder, uuid, why, sizeof(why));
	assert_true(fd >= 0);
	close(fd);
}

static void link_is_not_followed(void **state) {
	char target[96];

	snprintf(target, sizeof(target), "%s/target", parent);
	assert_int_equal(mkdir(target, 0700), 0);
	assert_int_equal(symlink(target, folder), 0);
	assert_true(gpu_lock(folder, uuid, why, sizeof(why)) < 0);
	assert_int_equal(unlink(folder), 0);
	assert_int_equal(mkdir(folder, 0700), 0);
	assert_int_equal(symlink(target, path), 0);
	assert_true(gpu_lock(folder, uuid, why, sizeof(why)) < 0);
	assert_int_equal(rmdir(target), 0);
}

/* Not a number: the holder is not known, and nothing of it is repeated. */
static void text_in_the_file_is_not_repeated(void **state) {
	static const char text[] = "12\x1b]0;title\x07\n";
	int fd = gpu_lock(folder, uuid, why, sizeof(why));

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(pwrite(fd, text, sizeof(text) - 1, 0), sizeof(text) - 1);
	assert_int_equal(gpu_lock(folder, uuid, why, sizeof(why)), -EBUSY);
	assert_null(strchr(why, '\x1b'));
	assert_null(strstr(why, "pid"));
	close(fd);
}

static void lock_tells_that_there_is_no_folder(void **state) {
	assert_int_equal(gpu_lock("", uuid, why, sizeof(why)), -ENOENT);
	assert_non_null(strstr(why, "SBEET_LOCK_DIR"));
}

static void lock_directory_is_the_service_s(void **state) {
	char directory[PROTO_PATH_MAX], tiny[4];

	setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
	unsetenv("RUNTIME_DIRECTORY");
	unsetenv("SBEET_LOCK_DIR");
	assert_int_equal(gpu_lock_directory(directory, sizeof(directory)), 0);
	assert_string_equal(directory,
			    geteuid() == 0 ? "/run/sbeet/locks" : "/run/user/7/sbeet/locks");
	setenv("RUNTIME_DIRECTORY", "/run/a:/run/b", 1);
	assert_int_equal(gpu_lock_directory(directory, sizeof(directory)), 0);
	assert_string_equal(directory, "/run/a/locks");
	setenv("SBEET_LOCK_DIR", "/own", 1);
	assert_int_equal(gpu_lock_directory(directory, sizeof(directory)), 0);
	assert_string_equal(directory, "/own");
	assert_int_equal(gpu_lock_directory(tiny, sizeof(tiny)), -ENAMETOOLONG);
	assert_string_equal(tiny, "");
	unsetenv("SBEET_LOCK_DIR");
	unsetenv("RUNTIME_DIRECTORY");
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, clean)

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(lock_is_held_by_one),
		CASE(lock_is_out_of_reach_of_others),
		CASE(shared_folder_is_not_used),
		CASE(folder_of_another_user_is_not_used),
		CASE(link_is_not_followed),
		CASE(text_in_the_file_is_not_repeated),
		CASE(lock_tells_that_there_is_no_folder),
		CASE(lock_directory_is_the_service_s),
	};

	return cmocka_run_group_tests_name("gpu-lock", tests, NULL, NULL);
}
