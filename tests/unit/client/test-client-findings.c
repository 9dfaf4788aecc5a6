/*
 * test-client-findings.c: what `sbeetctl doctor` makes of the facts.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "client/base/ctl.h"
#include "client/doctor/findings.h"

/* A service under systemd and MPS, of which an ordinary user in the group asks. */
static struct facts healthy(void) {
	return (struct facts){
		.gpu = {.has_cuda = true,
			.cuda_version = 13020,
			.n_gpus = 1,
			.name = "NVIDIA H200",
			.n_sms = 132,
			.finds_gpus = true,
			.has_nvml = true,
			.driver = "580.65.06",
			.kernel_module = true},
		.daemon = {.control = {"/run/sbeet/control.sock", true, true},
			   .shim = {"/run/sbeet/shim.sock", true, true},
			   .version = "1.0",
			   .policy = "steer",
			   .steers = true,
			   .n_gpus = 1,
			   .sharing = "mps",
			   .preemption = "mps",
			   .mps = "up",
			   .mps_directory = "/run/sbeet-mps/pipe"},
		.profiles = {.directory = "/etc/sbeet/profiles"},
		.rights = {.uid = 1000,
			   .user = "alice",
			   .has_group = true,
			   .is_listed = true,
			   .is_member = true},
		.system = {.os = "debian",
			   .systemd = true,
			   .has_unit = true,
			   .is_enabled = true,
			   .has_mps_unit = true,
			   .version = "1.0"},
		.mps = {.found = true, .directory = "/run/sbeet-mps/pipe", .reachable = true},
		.preload = {.library = "/usr/lib/libsbeet.so", .glibc = "2.36", .tried = true},
	};
}

/* The same without an answer of sbeetd. */
static struct facts unreached(int code) {
	struct facts f = healthy();
	struct daemon_facts d = {.control = f.daemon.control,
				 .shim = f.daemon.shim,
				 .code = code,
				 .why = "no answer"};

	f.daemon = d;
	f.mps = (struct mps_facts){0};
	return f;
}

static struct finding of(const struct facts *f, const char *name) {
	struct finding list[FINDINGS_MAX];
	size_t n = findings_judge(f, list);

	for (size_t i = 0; i < n; i++) {
		if (strcmp(list[i].name, name) == 0) {
			return list[i];
		}
	}
	fail_msg("there is no check '%s'", name);
	return list[0];
}

/* @command: NULL: none. */
static void expect(const struct facts *f, const char *name, enum finding_state state,
		   const char *text, const char *command) {
	struct finding got = of(f, name);

	if (got.state != state || !strstr(got.text, text) ||
	    strcmp(got.command, command ? command : "") != 0) {
		fail_msg("%s: %s, '%s', '%s'; expected %s, '%s', '%s'", name,
			 finding_state_name(got.state), got.text, got.command,
			 finding_state_name(state), text, command ? command : "");
	}
}

static void all_is_ok_when_all_is_there(void **state) {
	struct facts f = healthy();
	struct finding list[FINDINGS_MAX];
	size_t n = findings_judge(&f, list);

	assert_int_equal(n, 13); /* no program was given */
	for (size_t i = 0; i < n; i++) {
		if (list[i].state != FINDING_OK || *list[i].command || !*list[i].text) {
			fail_msg("%s: %s", list[i].name, list[i].text);
		}
	}
	expect(&f, "driver", FINDING_OK, "NVIDIA driver 580.65.06, CUDA 13.2", NULL);
	expect(&f, "gpu", FINDING_OK, "1 GPU: NVIDIA H200, 132 SMs", NULL);
	expect(&f, "mps", FINDING_OK, "MPS runs, pipe directory /run/sbeet-mps/pipe", NULL);
	expect(&f, "container", FINDING_OK, "not in one", NULL);
}

static void no_facts_make_no_finding_ok_that_is_needed(void **state) {
	struct facts f = {.daemon.code = CTL_EXIT_NOT_RUNNING};

	assert_int_equal(of(&f, "driver").state, FINDING_MISSING);
	assert_int_equal(of(&f, "gpu").state, FINDING_MISSING);
	assert_int_equal(of(&f, "sbeetd").state, FINDING_MISSING);
	assert_int_equal(of(&f, "library").state, FINDING_MISSING);
	assert_int_equal(of(&f, "preload").state, FINDING_MISSING);
}

static void driver_says_how_it_is_installed(void **state) {
	struct facts f = healthy();

	f.gpu = (struct gpu_facts){.cuda_why = "libcuda.so.1: cannot open"};
	expect(&f, "driver", FINDING_MISSING, "no NVIDIA driver: libcuda.so.1: cannot open",
	       "sudo apt install nvidia-driver");
	expect(&f, "gpu", FINDING_MISSING, "not known without a driver", NULL);
	f.gpu.kernel_module = true;
	expect(&f, "driver", FINDING_MISSING, "kernel module is loaded",
	       "sudo apt install libcuda1");
	strcpy(f.system.os, "ubuntu");
	expect(&f, "driver", FINDING_MISSING, "kernel module", "sudo ubuntu-drivers install");
	strcpy(f.system.os, "gentoo");
	expect(&f, "driver", FINDING_MISSING, "kernel module", NULL);
	strcpy(f.system.container, "docker");
	expect(&f, "driver", FINDING_MISSING, "this container has no NVIDIA driver",
	       "docker run --gpus all $(sbeetctl cdi --docker) IMAGE");
	f.gpu.end = FACTS_CRASHED;
	expect(&f, "driver", FINDING_MISSING, "crashes", "sudo dmesg | grep -i nvrm");
}

static void driver_needs_what_sbeetd_finds_gpus_by(void **state) {
	struct facts f = healthy();

	f.gpu.has_nvml = false;
	f.daemon.n_gpus = 0;
	expect(&f, "driver", FINDING_OK, "without NVML", NULL);
	f.gpu.finds_gpus = false;
	expect(&f, "driver", FINDING_MISSING, "neither NVML nor CUDA's driver", NULL);
	f.daemon.n_gpus = 1; /* of --gpus */
	expect(&f, "driver", FINDING_OK, "", NULL);
}

static void gpu_says_what_cuda_says(void **state) {
	static const struct {
		int init;
		const char *text, *command;
	} cases[] = {
		{100, "no GPU that CUDA can use", "nvidia-smi"},
		{802, "fabric", "sudo systemctl start nvidia-fabricmanager"},
		{803, "different driver versions", "sudo reboot"},
		{804, "compatibility package", "sudo apt remove 'cuda-compat-*'"},
		{805, "MPS refuses", "sudo systemctl restart sbeet-mps"},
		{999, "nvidia-uvm", "sudo modprobe nvidia-uvm"},
		{2, "CUDA does not start: CUDA_NAME (2)", "nvidia-smi"},
	};
	struct facts f = healthy();

	strcpy(f.gpu.init_name, "CUDA_NAME");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		f.gpu.init = cases[i].init;
		expect(&f, "gpu", FINDING_MISSING, cases[i].text, cases[i].command);
	}
	f.gpu.init = 100;
	f.gpu.hidden = true;
	expect(&f, "gpu", FINDING_MISSING, "hides", "unset CUDA_VISIBLE_DEVICES");
	f = healthy();
	f.gpu.n_gpus = 0;
	expect(&f, "gpu", FINDING_MISSING, "no GPU that CUDA can use", "nvidia-smi");
	f = healthy();
	f.gpu.end = FACTS_HUNG;
	expect(&f, "gpu", FINDING_MISSING, "does not answer; MPS may be waiting", "nvidia-smi");
	f.gpu.end = FACTS_CRASHED;
	expect(&f, "gpu", FINDING_MISSING, "crashes when CUDA starts", "sudo dmesg | grep -i nvrm");
	f = healthy();
	f.daemon.n_gpus = 0;
	expect(&f, "gpu", FINDING_MISSING, "sbeetd found none", "sudo systemctl restart sbeetd");
}

static void mps_that_runs_is_judged_by_whom_it_serves(void **state) {
	struct facts f = healthy();

	f.daemon.mps_owner = 1000;
	expect(&f, "mps", FINDING_OK, "MPS runs", NULL);
	f.daemon.mps_owner = 1001;
	expect(&f, "mps", FINDING_NOTE, "serves user 1001 only",
	       "sudo systemctl enable --now sbeet-mps");
	f = healthy();
	strcpy(f.daemon.mps_note, "its server is broken");
	expect(&f, "mps", FINDING_NOTE, "its server is broken", NULL);
	f = healthy();
	f.mps.reachable = false;
	strcpy(f.system.container, "docker");
	expect(&f, "mps", FINDING_MISSING, "not mounted in this container",
	       "docker run --gpus all $(sbeetctl cdi --docker) IMAGE");
}

static void mps_that_is_absent_is_replaced_by_preemption(void **state) {
	static const char unit[] = "sudo systemctl enable --now sbeet-mps";
	struct facts f = healthy();

	f.mps = (struct mps_facts){0};
	strcpy(f.daemon.mps, "absent");
	strcpy(f.daemon.sharing, "exclusive");
	strcpy(f.daemon.preemption, "ready");
	expect(&f, "mps", FINDING_OK, "urgent ones preempt others (preemption: ready)", unit);
	strcpy(f.daemon.preemption, "refused");
	expect(&f, "mps", FINDING_NOTE, "no preemption (refused)", unit);
	f.daemon.steers = false;
	expect(&f, "mps", FINDING_NOTE, "no MPS: programs take turns", unit);
	f.system.has_mps_unit = false;
	expect(&f, "mps", FINDING_NOTE, "no MPS", "sudo nvidia-cuda-mps-control -d");
	strcpy(f.daemon.control.path, "/run/user/1000/sbeet/control.sock");
	expect(&f, "mps", FINDING_NOTE, "no MPS", "nvidia-cuda-mps-control -d");
	f.mps = (struct mps_facts){.found = true, .directory = "/tmp/nvidia-mps"};
	strcpy(f.daemon.mps_note, "it is another user's");
	expect(&f, "mps", FINDING_NOTE,
	       "runs in /tmp/nvidia-mps, and sbeetd does not use it: it is another user's", NULL);
}

static void mps_is_looked_for_without_sbeetd(void **state) {
	struct facts f = unreached(CTL_EXIT_NOT_RUNNING);

	expect(&f, "mps", FINDING_NOTE, "no MPS: programs take turns",
	       "sudo systemctl enable --now sbeet-mps");
	f.mps = (struct mps_facts){.found = true, .directory = "/tmp/nvidia-mps", .owner = 0};
	expect(&f, "mps", FINDING_OK, "control daemon of root runs, pipe directory /tmp/nvidia-mps",
	       NULL);
	f.mps = (struct mps_facts){.why = "everybody can write"};
	expect(&f, "mps", FINDING_NOTE, "can't be trusted: everybody can write", NULL);
}

static void sbeetd_that_is_not_reached_has_a_reason(void **state) {
	struct facts f = unreached(CTL_EXIT_NOT_RUNNING);

	expect(&f, "sbeetd", FINDING_MISSING, "nothing listens at /run/sbeet/control.sock",
	       "sudo systemctl restart sbeetd");
	f.daemon.control.exists = false;
	expect(&f, "sbeetd", FINDING_MISSING, "no socket /run/sbeet/control.sock",
	       "sudo systemctl enable --now sbeetd.socket");
	f.system.has_unit = false;
	expect(&f, "sbeetd", FINDING_MISSING, "no socket", "sbeetd &");
	strcpy(f.system.container, "docker");
	expect(&f, "sbeetd", FINDING_MISSING, "no socket",
	       "docker run --gpus all $(sbeetctl cdi --docker) IMAGE");
	f = unreached(CTL_EXIT_TIMEOUT);
	expect(&f, "sbeetd", FINDING_MISSING, "does not answer", "sudo systemctl restart sbeetd");
	strcpy(f.daemon.control.path, "/run/user/1000/sbeet/control.sock");
	expect(&f, "sbeetd", FINDING_MISSING, "does not answer", "pgrep -a sbeetd");
	f = unreached(CTL_EXIT_FAILED);
	expect(&f, "sbeetd", FINDING_MISSING, "no answer", NULL);
}

static void sbeetd_needs_the_socket_of_programs_too(void **state) {
	struct facts f = healthy();

	f.daemon.shim.writable = false;
	f.rights.is_member = f.rights.is_listed = false;
	expect(&f, "sbeetd", FINDING_MISSING, "programs of this user may not connect to",
	       "sudo usermod -aG sbeet alice");
	expect(&f, "group", FINDING_MISSING, "not in group", "sudo usermod -aG sbeet alice");
	f.daemon.shim.exists = false;
	expect(&f, "sbeetd", FINDING_MISSING, "no socket /run/sbeet/shim.sock",
	       "sudo systemctl enable --now sbeetd.socket");
	f = healthy();
	strcpy(f.daemon.version, "0.9");
	expect(&f, "sbeetd", FINDING_NOTE, "sbeetd 0.9 answers at",
	       "sudo systemctl restart sbeetd");
}

static void group_is_told_apart_from_its_use(void **state) {
	struct facts f = unreached(CTL_EXIT_DENIED);

	f.rights.is_member = false;
	expect(&f, "group", FINDING_MISSING, "was added to group 'sbeet' after this login",
	       "newgrp sbeet");
	expect(&f, "sbeetd", FINDING_MISSING, "may not connect", "newgrp sbeet");
	f.rights.is_listed = false;
	expect(&f, "group", FINDING_MISSING, "'alice' is not in group 'sbeet'",
	       "sudo usermod -aG sbeet alice");
	strcpy(f.system.container, "docker");
	expect(&f, "group", FINDING_MISSING, "",
	       "docker run --group-add $(getent group sbeet | cut -d: -f3) ...");
	f = unreached(CTL_EXIT_DENIED);
	expect(&f, "group", FINDING_MISSING, "all the same", "ls -l /run/sbeet");
	f = unreached(CTL_EXIT_NOT_RUNNING);
	f.rights.is_member = f.rights.is_listed = f.rights.has_group = false;
	expect(&f, "group", FINDING_MISSING, "there is no group 'sbeet'", "sudo systemd-sysusers");
	f.system.has_unit = f.daemon.control.exists = false;
	expect(&f, "group", FINDING_OK, "sbeetd of your own", NULL);
	f = healthy();
	f.rights.is_member = f.rights.is_listed = false;
	expect(&f, "group", FINDING_OK, "open to this user", NULL);
	f.rights.uid = 0;
	expect(&f, "group", FINDING_OK, "root needs no group", NULL);
}

static void start_is_needed_only_where_nothing_runs(void **state) {
	struct facts f = healthy();

	f.system.is_enabled = false;
	expect(&f, "start", FINDING_NOTE, "not enabled",
	       "sudo systemctl enable --now sbeetd.socket");
	f.system.has_unit = false;
	expect(&f, "start", FINDING_NOTE, "not installed", NULL);
	f.system.systemd = false;
	expect(&f, "start", FINDING_NOTE, "no systemd", NULL);
	f = unreached(CTL_EXIT_NOT_RUNNING);
	f.system.is_enabled = false;
	expect(&f, "start", FINDING_MISSING, "not enabled",
	       "sudo systemctl enable --now sbeetd.socket");
	f = healthy();
	f.system.is_enabled = false;
	strcpy(f.daemon.control.path, "/run/user/1000/sbeet/control.sock");
	expect(&f, "start", FINDING_OK, "not the machine's service", NULL);
}

static void policy_that_plans_needs_profiles(void **state) {
	struct facts f = healthy();

	strcpy(f.daemon.policy, "lookahead");
	f.daemon.plans = true;
	expect(&f, "policy", FINDING_NOTE, "'lookahead' plans by profiles, and sbeetd has none",
	       "sbeetctl policy steer");
	expect(&f, "profiles", FINDING_NOTE, "none in /etc/sbeet/profiles",
	       "sbeetctl profile run --task=TASK -- PROGRAM");
	f.daemon.n_profiles = 3;
	expect(&f, "policy", FINDING_OK, "'lookahead', which plans by profiles", NULL);
	expect(&f, "profiles", FINDING_OK, "3 in /etc/sbeet/profiles", NULL);
	strcpy(f.daemon.unplanned, "camera, lidar");
	expect(&f, "profiles", FINDING_NOTE, "none for camera, lidar",
	       "sbeetctl profile run --task=TASK -- PROGRAM");
	f.profiles.n_changed = 1;
	expect(&f, "profiles", FINDING_NOTE, "1 file in /etc/sbeet/profiles changed after",
	       "sudo systemctl restart sbeetd");
	f = healthy();
	f.profiles.exists = true;
	expect(&f, "profiles", FINDING_OK, "this user can't read /etc/sbeet/profiles", NULL);
}

static void preload_that_fails_says_why(void **state) {
	struct facts f = healthy();

	strcpy(f.preload.said, "cannot be preloaded");
	expect(&f, "preload", FINDING_MISSING, "does not load it: cannot be preloaded", NULL);
	strcpy(f.preload.glibc, "2.27");
	expect(&f, "preload", FINDING_MISSING, "glibc 2.27 is too old", NULL);
	f.preload.other_machine = true;
	expect(&f, "library", FINDING_MISSING, "built for another machine", NULL);
	f.preload = (struct preload_facts){.why = "cannot find libsbeet.so"};
	expect(&f, "library", FINDING_MISSING, "cannot find libsbeet.so", NULL);
	expect(&f, "preload", FINDING_MISSING, "not tried", NULL);
	strcpy(f.system.container, "docker");
	expect(&f, "container", FINDING_MISSING, "libsbeet.so is not mounted",
	       "docker run --gpus all $(sbeetctl cdi --docker) IMAGE");
	f.daemon.shim.exists = false;
	expect(&f, "container", FINDING_MISSING, "sockets are not mounted",
	       "docker run --gpus all $(sbeetctl cdi --docker) IMAGE");
}

static void environment_that_is_in_the_way_is_unset(void **state) {
	struct facts f = healthy();

	strcpy(f.environment.wrong, "bad period");
	strcpy(f.environment.wrong_variable, "SBEET_PERIOD");
	expect(&f, "environment", FINDING_MISSING, "bad period", "unset SBEET_PERIOD");
	f.environment.not_found = true;
	expect(&f, "environment", FINDING_MISSING, "in no folder where the dynamic linker looks",
	       "export LD_PRELOAD=/usr/lib/libsbeet.so");
	strcpy(f.environment.other_shim, "/opt/libsbeet.so");
	expect(&f, "environment", FINDING_MISSING, "/opt/libsbeet.so", "unset LD_PRELOAD");
	f.environment.disabled = true;
	expect(&f, "environment", FINDING_MISSING, "SBEET_DISABLE=1", "unset SBEET_DISABLE");
}

static void processes_without_the_library_are_named(void **state) {
	struct facts f = healthy();
	struct stray_facts *s = f.strays.first;

	expect(&f, "processes", FINDING_OK, "none that declares a task", NULL);
	f.strays.n = 1;
	s[0] = (struct stray_facts){.pid = 71, .name = "detect", .variable = "SBEET_TASK"};
	expect(&f, "processes", FINDING_MISSING,
	       "1 on a GPU without libsbeet.so: process 71 (detect): SBEET_TASK is set, but "
	       "LD_PRELOAD does not name it",
	       "sbeetctl run -- PROGRAM");
	strcpy(s[0].entry, "/opt/libsbeet.so");
	expect(&f, "processes", FINDING_MISSING, "did not load /opt/libsbeet.so",
	       "sbeetctl run -- PROGRAM");
	s[0].absent = true;
	expect(&f, "processes", FINDING_MISSING, "/opt/libsbeet.so, which is not there",
	       "sbeetctl run -- PROGRAM");
	s[0].unmanaged = "it is statically linked";
	expect(&f, "processes", FINDING_MISSING, "(detect): it is statically linked",
	       "sbeetctl run -- PROGRAM");
	s[0] = (struct stray_facts){.pid = 71, .name = "detect", .entry = "libsbeet.so"};
	expect(&f, "processes", FINDING_MISSING, "names it without a folder",
	       "sbeetctl run -- PROGRAM");

	/* Text that is longer than a finding ends with it. */
	f.strays.n = FACTS_STRAYS_MAX + 3;
	for (unsigned i = 0; i < FACTS_STRAYS_MAX; i++) {
		s[i] = (struct stray_facts){.pid = 71, .name = "detect"};
		memset(s[i].entry, 'x', sizeof(s[i].entry) - 1);
		s[i].entry[0] = '/';
	}
	expect(&f, "processes", FINDING_MISSING, "7 on a GPU without libsbeet.so",
	       "sbeetctl run -- PROGRAM");
}

static void program_is_judged_where_one_is_given(void **state) {
	struct facts f = healthy();

	f.program = (struct program_facts){.given = true, .name = "detect"};
	expect(&f, "program", FINDING_OK, "'detect' can be managed", NULL);
	f.program.has_runtime = true;
	expect(&f, "program", FINDING_OK, "'detect' can be managed", NULL);
	strcpy(f.program.stands_in, "/opt/libtracer.so");
	expect(&f, "program", FINDING_NOTE, "/opt/libtracer.so stands in for functions", NULL);
	f.gpu.simulated = true;
	expect(&f, "program", FINDING_MISSING, "simulated GPU", "nvcc -cudart shared ...");
	strcpy(f.program.lacks, "libcudart.so.12");
	expect(&f, "program", FINDING_MISSING, "does not start: no libcudart.so.12", NULL);
	f.program.unmanaged = "it is statically linked";
	expect(&f, "program", FINDING_MISSING, "can't be managed: it is statically linked", NULL);
	f.program.error = ENOENT;
	expect(&f, "program", FINDING_MISSING, "No such file", NULL);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_is_ok_when_all_is_there),
		cmocka_unit_test(no_facts_make_no_finding_ok_that_is_needed),
		cmocka_unit_test(driver_says_how_it_is_installed),
		cmocka_unit_test(driver_needs_what_sbeetd_finds_gpus_by),
		cmocka_unit_test(gpu_says_what_cuda_says),
		cmocka_unit_test(mps_that_runs_is_judged_by_whom_it_serves),
		cmocka_unit_test(mps_that_is_absent_is_replaced_by_preemption),
		cmocka_unit_test(mps_is_looked_for_without_sbeetd),
		cmocka_unit_test(sbeetd_that_is_not_reached_has_a_reason),
		cmocka_unit_test(sbeetd_needs_the_socket_of_programs_too),
		cmocka_unit_test(group_is_told_apart_from_its_use),
		cmocka_unit_test(start_is_needed_only_where_nothing_runs),
		cmocka_unit_test(policy_that_plans_needs_profiles),
		cmocka_unit_test(preload_that_fails_says_why),
		cmocka_unit_test(environment_that_is_in_the_way_is_unset),
		cmocka_unit_test(processes_without_the_library_are_named),
		cmocka_unit_test(program_is_judged_where_one_is_given),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
