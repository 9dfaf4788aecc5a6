/* test-cgroup.c: in which cgroups a process is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "daemon/base/cgroup.h"

static const char old[] =
	"9:name=systemd:/user.slice\n"
	"6:freezer:/slurm/uid_1000/job_17/step_0\n"
	"1:cpu,cpuacct:/\n";

static void cgroup_finds_the_path_and_those_above(void **state) {
	assert_true(cgroup_is_within(old, "/slurm/uid_1000/job_17"));
	assert_true(cgroup_is_within(old, "/slurm/uid_1000/job_17/step_0"));
	assert_true(cgroup_is_within(old, "/user.slice"));
	assert_true(cgroup_is_within("0::/a.slice/b", "/a.slice"));
}

static void cgroup_tells_paths_apart(void **state) {
	assert_false(cgroup_is_within(old, "/slurm/uid_1000/job_1"));
	assert_false(cgroup_is_within(old, "/slurm/uid_1000/job_17/step_0/task"));
	assert_false(cgroup_is_within(old, "/job_17"));
	assert_false(cgroup_is_within("0::/user.slice/slurm/uid_1000/job_17\n",
				      "/slurm/uid_1000/job_17"));
}

static void cgroup_survives_odd_texts(void **state) {
	assert_false(cgroup_is_within("", "/a"));
	assert_false(cgroup_is_within("\n\n:\n", "/a"));
	assert_false(cgroup_is_within("0:", "/a"));
	assert_true(cgroup_is_within("no colon\n0::/a", "/a"));
	assert_false(cgroup_is_within("0::/ab", "/a"));
}

static const char *unit_of(const char *text) {
	static char unit[64];

	cgroup_unit(text, unit, sizeof(unit));
	return unit;
}

static void cgroup_finds_the_unit(void **state) {
	assert_string_equal(unit_of(old), "/user.slice");
	assert_string_equal(unit_of("0::/a.slice/b.service\n"), "/a.slice/b.service");
	assert_string_equal(unit_of("1:name=systemd:/a\n0::/\n"), "/a");
	assert_string_equal(unit_of("1:name=systemd:/a\n0::/b\n"), "/b");
	assert_string_equal(unit_of("6:freezer:/a\n0::/\n"), "/");
	assert_string_equal(unit_of("6:freezer:/a\n"), "");
}

/* A user can name cgroups of his own. */
static void cgroup_takes_no_other_hierarchy_for_the_unit(void **state) {
	assert_string_equal(unit_of("6:freezer:/a:name=systemd:/sbeet.service\n"), "");
	assert_string_equal(unit_of("6:freezer:/a0::/sbeet.service\n"), "");
	assert_string_equal(unit_of("10::/sbeet.service\n"), "");
	assert_string_equal(unit_of("6:name=systemd2:/sbeet.service\n"), "");
	assert_string_equal(unit_of("1:name=systemd:/a\n0::/b/c"), ""); /* cut */
	assert_string_equal(
		unit_of("0::/a.service-whose-name-is-longer-than-all-that-there-is-room-for-it\n"),
		"");
	assert_string_equal(unit_of(""), "");
}

static void cgroup_reads_our_own(void **state) {
	char text[4096], none[8] = "x";

	cgroup_read(getpid(), text, sizeof(text));
	assert_true(strchr(text, ':') || !*text);
	cgroup_read(0, none, sizeof(none));
	assert_string_equal(none, "");
	assert_false(cgroup_exists("/no-such-cgroup-of-sbeet"));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cgroup_finds_the_path_and_those_above),
		cmocka_unit_test(cgroup_tells_paths_apart),
		cmocka_unit_test(cgroup_survives_odd_texts),
		cmocka_unit_test(cgroup_finds_the_unit),
		cmocka_unit_test(cgroup_takes_no_other_hierarchy_for_the_unit),
		cmocka_unit_test(cgroup_reads_our_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
