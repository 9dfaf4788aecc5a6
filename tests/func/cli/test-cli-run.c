/*
 * test-cli-run.c: `sbeetctl run`, help and usage errors: what users type, what they get.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pty.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <utmp.h>

#include <cmocka.h>

#include "client/verb.h"
#include "spawn.h"

static const char *sbeetctl;
static const char *shim;    /* path of a libsbeet.so */
static char use_shim[512];  /* "SBEET_SHIM=that" */
static char preloaded[512]; /* "LD_PRELOAD=that" */

static void assert_contains(const char *text, const char *part) {
	if (!strstr(text, part)) {
		fail_msg("expected '%s' in:\n%s", part, text);
	}
}

static void assert_one_line(const char *text) {
	assert_true(*text != '\0');
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

/* sbeetctl run -- sh -c @script */
static struct spawned run_shell(const char *script) {
	return spawn(ARGS(sbeetctl, "run", "--", "/bin/sh", "-c", script),
		     ARGS(use_shim, "LD_PRELOAD", "SBEET_TASK"));
}

static void run_passes_the_exit_code(void **state) {
	static const int codes[] = {0, 1, 3, 7, 126, 127, 255};

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		char script[32];
		struct spawned s;

		snprintf(script, sizeof(script), "exit %d", codes[i]);
		s = run_shell(script);
		assert_int_equal(s.code, codes[i]);
		assert_string_equal(s.out, "");
		assert_string_equal(s.err, "");
		spawned_deinit(&s);
	}
}

static void run_passes_the_signal_that_ends_the_program(void **state) {
	struct spawned s = run_shell("kill -TERM $$");

	assert_int_equal(s.signal, SIGTERM);
	spawned_deinit(&s);
	s = run_shell("kill -KILL $$");
	assert_int_equal(s.signal, SIGKILL);
	spawned_deinit(&s);
}

/* Same process: every signal, limit and descriptor is the program's own. */
static void run_becomes_the_program(void **state) {
	struct spawned s = run_shell("echo $$; ls /proc/self/fd | wc -l");
	struct spawned bare = spawn(ARGS("/bin/sh", "-c", "ls /proc/self/fd | wc -l"), NULL);
	char *rest;

	assert_int_equal(strtol(s.out, &rest, 10), s.pid);
	assert_string_equal(rest + 1, bare.out);
	spawned_deinit(&s);
	spawned_deinit(&bare);
}

static void run_sets_the_environment_and_nothing_else(void **state) {
	static const char script[] = "env | grep -v ^_= | sort";
	struct spawned bare = spawn(ARGS("/bin/sh", "-c", script), ARGS(use_shim, preloaded));
	struct spawned s = run_shell(script);

	assert_string_equal(s.out, bare.out);
	spawned_deinit(&bare);
	spawned_deinit(&s);

	s = spawn(ARGS(sbeetctl, "run", "--shim", shim, "--task", "camera", "--period=33ms",
		       "--deadline", "20ms", "--offset=1ms", "--priority", "-10", "--scope=thread",
		       "--job=marks", "--mark=nvtx:a b@c", "--whole", "--any-gpu", "--require",
		       "--log=debug", "--", "/bin/sh", "-c", "env | grep ^SBEET_ | sort"),
		  ARGS("SBEET_SHIM", "SBEET_TASK=other", "SBEET_EXTRA=kept"));
	assert_string_equal(
		s.out,
		"SBEET_ANY_GPU=1\nSBEET_DEADLINE=20ms\nSBEET_EXTRA=kept\nSBEET_JOB=marks\n"
		"SBEET_LOG=debug\nSBEET_MARK=nvtx:a b@c\nSBEET_OFFSET=1ms\nSBEET_PERIOD=33ms\n"
		"SBEET_PRIORITY=-10\nSBEET_REQUIRE=1\nSBEET_SCOPE=thread\n"
		"SBEET_TASK=camera\nSBEET_WHOLE=1\n");
	spawned_deinit(&s);
}

static void run_warns_of_a_deadline_without_a_claim(void **state) {
	static const char warning[] = "sbeetctl: warning: a task of class best-effort has no claim";
	struct spawned s = spawn(
		ARGS(sbeetctl, "run", "--class=best-effort", "--deadline=20ms", "--", "/bin/true"),
		ARGS(use_shim));

	assert_int_equal(s.code, 0);
	assert_contains(s.err, warning);
	assert_one_line(s.err);
	spawned_deinit(&s);
	s = spawn(ARGS(sbeetctl, "run", "--deadline=20ms", "--", "/bin/true"),
		  ARGS(use_shim, "SBEET_CLASS=best-effort"));
	assert_contains(s.err, warning);
	spawned_deinit(&s);
	s = spawn(ARGS(sbeetctl, "run", "--deadline=20ms", "--", "/bin/true"), ARGS(use_shim));
	assert_string_equal(s.err, "");
	spawned_deinit(&s);
}

static void run_adds_to_ld_preload(void **state) {
	char other[600], value[1200], expected[1300];
	struct spawned s;

	snprintf(other, sizeof(other), "%s.other.so", shim);
	unlink(other);
	assert_int_equal(symlink(shim, other), 0);

	/* another library stays, and stays first */
	snprintf(value, sizeof(value), "LD_PRELOAD=%s", getenv("TEST_OTHER"));
	s = spawn(ARGS(sbeetctl, "run", "/bin/sh", "-c", "printf %s \"$LD_PRELOAD\""),
		  ARGS(use_shim, value));
	snprintf(expected, sizeof(expected), "%s:%s", getenv("TEST_OTHER"), shim);
	assert_string_equal(s.out, expected);
	spawned_deinit(&s);

	/* the same file is not added again, whatever its name */
	snprintf(value, sizeof(value), "LD_PRELOAD=%s", other);
	s = spawn(ARGS(sbeetctl, "run", "/bin/sh", "-c", "printf %s \"$LD_PRELOAD\""),
		  ARGS(use_shim, value));
	assert_string_equal(s.out, other);
	spawned_deinit(&s);
	unlink(other);

	/* the name alone is the library that is to be loaded, and keeps its place; the C library's
	 * stands for one that must come first */
	s = spawn(ARGS(sbeetctl, "run", "/bin/sh", "-c", "printf %s \"$LD_PRELOAD\""),
		  ARGS(use_shim, "LD_PRELOAD=libsbeet.so libc.so.6"));
	assert_int_equal(s.code, 0);
	snprintf(expected, sizeof(expected), "%s:libc.so.6", shim);
	assert_string_equal(s.out, expected);
	spawned_deinit(&s);
}

/* Else its runtime ends the program at once. */
static void run_loads_the_sanitizer_first(void **state) {
	const char *program = getenv("TEST_ASAN");
	char expected[600], value[600];
	struct spawned s;

	if (!program || !*program) {
		skip();
	}
	s = spawn(ARGS(sbeetctl, "run", program), ARGS(use_shim));
	assert_int_equal(s.code, 0);
	assert_string_equal(s.err, "");
	assert_int_equal(strncmp(s.out, "libasan.so", strlen("libasan.so")), 0);
	snprintf(expected, sizeof(expected), ":%s\n", shim);
	assert_non_null(strstr(s.out, expected));

	/* what is there already is not named again */
	s.out[strcspn(s.out, ":\n")] = '\0';
	snprintf(value, sizeof(value), "LD_PRELOAD=%s", s.out);
	snprintf(expected, sizeof(expected), "%s:%s\n", s.out, shim);
	spawned_deinit(&s);
	s = spawn(ARGS(sbeetctl, "run", program), ARGS(use_shim, value));
	assert_int_equal(s.code, 0);
	assert_string_equal(s.out, expected);
	spawned_deinit(&s);
}

static void run_refuses_two_different_shims(void **state) {
	struct spawned s = spawn(ARGS(sbeetctl, "run", "/bin/true"),
				 ARGS(use_shim, "LD_PRELOAD=/nonexistent/libsbeet.so"));

	assert_int_equal(s.code, 1);
	assert_contains(s.err,
			"LD_PRELOAD names another libsbeet.so already "
			"(/nonexistent/libsbeet.so)");
	spawned_deinit(&s);
}

static void run_leaves_the_terminal_alone(void **state) {
	struct termios before, after;
	int terminal, program, status;
	char out[256];
	size_t n = 0;
	ssize_t got;
	pid_t pid;

	if (openpty(&terminal, &program, NULL, NULL, NULL) < 0) {
		print_message("no pseudo-terminal to be had here: %s\n", strerror(errno));
		skip();
	}
	memset(&before, 0, sizeof(before)); /* what tcgetattr() leaves out must be the same too */
	memset(&after, 0, sizeof(after));
	assert_int_equal(tcgetattr(program, &before), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		close(terminal);
		login_tty(program);
		putenv(use_shim);
		execl(sbeetctl, sbeetctl, "run", "/bin/sh", "-c",
		      "test -t 0 && test -t 1 && test -t 2 && read x && echo got $x && exit 9",
		      NULL);
		_exit(99);
	}
	assert_int_equal(write(terminal, "hello\n", 6), 6);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 9);
	assert_int_equal(tcgetattr(program, &after), 0);
	assert_memory_equal(&before, &after, sizeof(before));
	close(program);
	while (n < sizeof(out) - 1 && (got = read(terminal, out + n, sizeof(out) - 1 - n)) > 0) {
		n += (size_t)got;
	}
	out[n] = '\0';
	assert_contains(out, "got hello");
	close(terminal);
}

static void run_says_that_a_program_cannot_be_started(void **state) {
	char plain[] = "/tmp/sbeet-cli-XXXXXX";
	struct spawned s;
	int fd = mkstemp(plain);

	assert_true(fd >= 0);
	close(fd);
	s = spawn(ARGS(sbeetctl, "run", "no-such-program-here"), ARGS(use_shim));
	assert_int_equal(s.code, 127);
	assert_string_equal(s.err,
			    "sbeetctl: cannot find the program 'no-such-program-here' in PATH\n");
	spawned_deinit(&s);
	s = spawn(ARGS(sbeetctl, "run", "/no/such/program"), ARGS(use_shim));
	assert_int_equal(s.code, 127);
	assert_string_equal(s.err, "sbeetctl: cannot find the program '/no/such/program'\n");
	spawned_deinit(&s);
	s = spawn(ARGS(sbeetctl, "run", ""), ARGS(use_shim));
	assert_int_equal(s.code, 127);
	spawned_deinit(&s);
	s = spawn(ARGS(sbeetctl, "run", "/tmp"), ARGS(use_shim));
	assert_int_equal(s.code, 126);
	assert_string_equal(s.err, "sbeetctl: cannot execute '/tmp': Permission denied\n");
	spawned_deinit(&s);
	s = spawn(ARGS(sbeetctl, "run", plain), ARGS(use_shim));
	assert_int_equal(s.code, 126);
	spawned_deinit(&s);
	unlink(plain);
}

#define GLIBC "/lib64/ld-linux-x86-64.so.2" /* on any machine: only the name counts */

/* An executable file with the head of an ELF program, enough to be looked at, never run. @loader:
 * the dynamic linker that it asks for; NULL: none. */
static void write_elf(const char *path, uint8_t class, uint16_t machine, const char *loader) {
	struct {
		Elf64_Ehdr header;
		Elf64_Phdr program;
		char loader[64];
	} elf = {.header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, class, ELFDATA2LSB},
			    .e_type = ET_EXEC,
			    .e_machine = machine,
			    .e_phoff = sizeof(Elf64_Ehdr),
			    .e_phentsize = sizeof(Elf64_Phdr),
			    .e_phnum = 1},
		 .program = {.p_type = loader ? PT_INTERP : PT_LOAD,
			     .p_offset = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr)}};
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0755);

	snprintf(elf.loader, sizeof(elf.loader), "%s", loader ? loader : "");
	elf.program.p_filesz = strlen(elf.loader) + 1;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, &elf, sizeof(elf)), sizeof(elf));
	close(fd);
}

static void expect_other_libc(const char *path, const char *loader) {
	char preload[] = "LD_PRELOAD=/a.so:/b/libsbeet.so", preload_left[96];
	uint16_t machine;
	struct spawned s;
	int fd = open(sbeetctl, O_RDONLY);

	assert_int_equal(pread(fd, &machine, 2, offsetof(Elf64_Ehdr, e_machine)), 2);
	close(fd);
	write_elf(path, ELFCLASS64, machine, loader);
	s = spawn(ARGS(sbeetctl, "run", "-n", path), ARGS(use_shim));
	assert_int_equal(s.code, 0);
	assert_contains(s.err, "will run unmanaged: its C library is not glibc");
	assert_null(strstr(s.out, "LD_PRELOAD"));
	spawned_deinit(&s);
	s = spawn(ARGS(sbeetctl, "run", "-n", path), ARGS(use_shim, preload));
	snprintf(preload_left, sizeof(preload_left), "LD_PRELOAD=/a.so %s\n", path);
	assert_string_equal(s.out, preload_left);
	spawned_deinit(&s);
	s = spawn(ARGS(sbeetctl, "run", "-n", "--require", path), ARGS(use_shim));
	assert_int_equal(s.code, 1);
	assert_contains(s.err, "cannot be managed: its C library is not glibc");
	spawned_deinit(&s);
}

/* With the shim, such a program ends with an error of its dynamic linker. */
static void run_leaves_the_shim_out_for_another_c_library(void **state) {
	char folder[] = "/tmp/sbeet-cli-XXXXXX", path[64], script[64], text[96];
	struct spawned s;
	int fd;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/program", folder);
	snprintf(script, sizeof(script), "%s/script", folder);
	expect_other_libc(path, "/lib/ld-musl-x86_64.so.1");
	expect_other_libc(path, "/system/bin/linker64");
	expect_other_libc(path, "/lib/ld64-uClibc.so.0");

	fd = open(script, O_WRONLY | O_CREAT, 0755);
	snprintf(text, sizeof(text), "#! %s\n", path);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	s = spawn(ARGS(sbeetctl, "run", "-n", script), ARGS(use_shim));
	assert_contains(s.err, "its C library is not glibc");
	assert_null(strstr(s.out, "LD_PRELOAD"));
	spawned_deinit(&s);

	unlink(script);
	unlink(path);
	rmdir(folder);
}

static void run_warns_when_the_shim_cannot_be_loaded(void **state) {
	char folder[] = "/tmp/sbeet-cli-XXXXXX", path[64], script[64], text[96];
	uint16_t machine;
	struct spawned s;
	int fd;

	fd = open(sbeetctl, O_RDONLY);
	assert_int_equal(pread(fd, &machine, 2, offsetof(Elf64_Ehdr, e_machine)), 2);
	close(fd);
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/program", folder);
	snprintf(script, sizeof(script), "%s/script", folder);

	write_elf(path, ELFCLASS64, machine, NULL);
	s = spawn(ARGS(sbeetctl, "run", "-n", path), ARGS(use_shim));
	assert_int_equal(s.code, 0);
	assert_contains(s.err, "will run unmanaged: it is statically linked");
	assert_one_line(s.err);
	spawned_deinit(&s);
	s = spawn(ARGS(sbeetctl, "run", "-q", "-n", path), ARGS(use_shim));
	assert_string_equal(s.err, "");
	spawned_deinit(&s);
	s = spawn(ARGS(sbeetctl, "run", "-n", "--require", path), ARGS(use_shim));
	assert_int_equal(s.code, 1);
	assert_contains(s.err, "cannot be managed: it is statically linked");
	spawned_deinit(&s);

	/* through the interpreter of a script */
	fd = open(script, O_WRONLY | O_CREAT, 0755);
	snprintf(text, sizeof(text), "#! %s -x\n", path);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	s = spawn(ARGS(sbeetctl, "run", "-n", script), ARGS(use_shim));
	assert_contains(s.err, "it is statically linked");
	spawned_deinit(&s);

	write_elf(path, ELFCLASS64, EM_PPC64, GLIBC);
	s = spawn(ARGS(sbeetctl, "run", "-n", path), ARGS(use_shim));
	assert_contains(s.err, "it is built for another machine or word size than the shim");
	spawned_deinit(&s);

	write_elf(path, ELFCLASS64, machine, GLIBC);
	s = spawn(ARGS(sbeetctl, "run", "-n", path), ARGS(use_shim, "SBEET_DISABLE"));
	assert_string_equal(s.err, "");
	spawned_deinit(&s);
	s = spawn(ARGS(sbeetctl, "run", "-n", path), ARGS(use_shim, "SBEET_DISABLE=1"));
	assert_contains(s.err, "SBEET_DISABLE=1 is set");
	spawned_deinit(&s);

	if (geteuid() == 0) { /* only root can give a file away */
		assert_int_equal(chown(path, 65534, 65534), 0);
		assert_int_equal(chmod(path, 04755), 0);
		s = spawn(ARGS(sbeetctl, "run", "-n", path), ARGS(use_shim));
		assert_contains(s.err, "it gains rights when it starts");
		spawned_deinit(&s);
	}
	unlink(path);
	unlink(script);
	rmdir(folder);
}

static void run_shows_its_plan(void **state) {
	char expected[700];
	struct spawned s = spawn(ARGS(sbeetctl, "run", "--dry-run", "--task=t", "/bin/echo", "a b",
				      "it's", "", "$x"),
				 ARGS(use_shim, "LD_PRELOAD"));

	snprintf(expected, sizeof(expected),
		 "SBEET_TASK=t LD_PRELOAD=%s /bin/echo 'a b' 'it'\\''s' '' '$x'\n", shim);
	assert_int_equal(s.code, 0);
	assert_string_equal(s.out, expected);
	spawned_deinit(&s);
}

static void run_says_that_there_is_no_shim(void **state) {
	struct spawned s =
		spawn(ARGS(sbeetctl, "run", "--shim=/no/libsbeet.so", "/bin/true"), NULL);

	assert_int_equal(s.code, 1);
	assert_contains(s.err, "cannot use the shim '/no/libsbeet.so': No such file");
	spawned_deinit(&s);
	s = spawn(ARGS(sbeetctl, "run", "--shim=/tmp", "/bin/true"), NULL);
	assert_int_equal(s.code, 1);
	assert_contains(s.err, "not a readable file");
	spawned_deinit(&s);
}

/* A program whose settings sbeetd would refuse does not start, wherever they come from. */
static void run_says_which_settings_are_wrong(void **state) {
	static const struct {
		const char *option, *variable, *message;
	} cases[] = {
		{"--deadline=50ms", "SBEET_PERIOD=33ms",
		 "--deadline=50ms is longer than SBEET_PERIOD=33ms"},
		{"--period=33ms", "SBEET_DEADLINE=50ms",
		 "SBEET_DEADLINE=50ms is longer than --period=33ms"},
		{"--max-sms=10", "SBEET_MIN_SMS=20", "SBEET_MIN_SMS=20 is more than --max-sms=10"},
		{"--period=50ms", "SBEET_DEADLINE=50ms", NULL},
		{"--period=33ms", "SBEET_DEADLINE=50",
		 "bad value '50' of SBEET_DEADLINE: expected "},
		{"--period=33ms", "SBEET_DEADLINE=", NULL},
		{"--priority=3", "SBEET_CLASS=fast", "bad value 'fast' of SBEET_CLASS: expected "},
		{"--class=realtime", "SBEET_CLASS=fast", NULL}, /* the option beats it */
		{"--task=t", "SBEET_OFFSET=5ms", "SBEET_OFFSET=5ms needs a period"},
		{"--offset=5ms", "SBEET_PERIOD=33ms", NULL},
		{"--max-sms=20", "SBEET_MIN_SMS=20", NULL},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct spawned s = spawn(
			ARGS(sbeetctl, "run", cases[i].option, "/bin/sh", "-c", "echo started"),
			ARGS(use_shim, cases[i].variable));

		assert_int_equal(s.code, cases[i].message ? 2 : 0);
		assert_string_equal(s.out, cases[i].message ? "" : "started\n");
		if (cases[i].message) {
			assert_one_line(s.err);
			assert_contains(s.err, cases[i].message);
		}
		spawned_deinit(&s);
	}
}

/* Waiting for sbeetd would not help. */
static void run_says_at_once_that_permission_is_denied(void **state) {
	char path[] = "/tmp/test-cli-run.XXXXXX", variable[64];
	int fd = mkstemp(path);
	struct spawned s;

	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, 0), 0);
	close(fd);
	if (geteuid() == 0) { /* passes over modes with it */
		assert_int_equal(prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE), 0);
	}
	snprintf(variable, sizeof(variable), "SBEET_SOCKET=%s", path);
	for (int by_variable = 0; by_variable < 2; by_variable++) {
		s = by_variable ? spawn(ARGS(sbeetctl, "run", "/bin/sh", "-c", "echo started"),
					ARGS(use_shim, variable, "SBEET_REQUIRE=2s"))
				: spawn(ARGS(sbeetctl, "run", "--require", "/bin/sh", "-c",
					     "echo started"),
					ARGS(use_shim, variable));
		assert_int_equal(s.code, 5);
		assert_string_equal(s.out, "");
		assert_one_line(s.err);
		assert_contains(s.err, "permission denied");
		assert_contains(s.err, "usermod -aG sbeet");
		spawned_deinit(&s);
	}
	unlink(path);
}

static void usage_errors_are_one_line_and_code_2(void **state) {
	static const char *const lines[][5] = {
		{"frobnicate"},
		{"stauts"},
		{"--nope"},
		{"status", "extra"},
		{"status", "--task=x"},
		{"status", "--watch=0"},
		{"status", "--watch=-1"},
		{"status", "--watch=soon"},
		{"status", "--json=xml"},
		{"run"},
		{"run", "--"},
		{"run", "--period=33", "true"},
		{"run", "--period=33fortnights", "true"},
		{"run", "--period=0ms", "true"},
		{"run", "--period=-5ms", "true"},
		{"run", "--period=", "true"},
		{"run", "--deadline=48h", "true"},
		{"run", "--offset=5ms", "true"},
		{"run", "--period=33ms", "--deadline=50ms", "true"},
		{"run", "--min-sms=20", "--max-sms=10", "true"},
		{"run", "--priority=1001", "true"},
		{"run", "--priority=high", "true"},
		{"run", "--class=urgent", "true"},
		{"run", "--scope=stream", "true"},
		{"run", "--job=frames", "true"},
		{"run", "--log=loud", "true"},
		{"run", "--task=", "true"},
		{"run", "--task=../x", "true"},
		{"run", "--task=a b", "true"},
		{"run", "--task=-x", "true"},
		{"run", "--task=\033[2J", "true"},
		{"run", "--json", "true"},
		{"version", "x"},
		{"help", "nothing"},
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct spawned s =
			spawn(ARGS(sbeetctl, lines[i][0], lines[i][1], lines[i][2], lines[i][3]),
			      ARGS(use_shim, "SBEET_PERIOD"));

		if (s.code != 2) {
			fail_msg("%s %s: exit code %d", lines[i][0], lines[i][1], s.code);
		}
		assert_string_equal(s.out, "");
		assert_one_line(s.err);
		assert_null(strchr(s.err, '\033'));
		spawned_deinit(&s);
	}
}

static void every_verb_has_help(void **state) {
	for (const struct verb *const *v = verbs; *v; v++) {
		struct spawned s = spawn(ARGS(sbeetctl, (*v)->name, "--help"), NULL);
		struct spawned t = spawn(ARGS(sbeetctl, "help", (*v)->name), NULL);
		char usage[64];

		snprintf(usage, sizeof(usage), "Usage: sbeetctl %s ", (*v)->name);
		assert_int_equal(s.code, 0);
		assert_string_equal(s.err, "");
		assert_int_equal(strncmp(s.out, usage, strlen(usage)), 0);
		assert_string_equal(s.out, t.out);
		spawned_deinit(&s);
		spawned_deinit(&t);
	}
}

static void help_lists_every_verb(void **state) {
	struct spawned s = spawn(ARGS(sbeetctl, "--help"), NULL);

	assert_int_equal(s.code, 0);
	for (const struct verb *const *v = verbs; *v; v++) {
		assert_contains(s.out, (*v)->summary);
	}
	spawned_deinit(&s);
}

static void version_tells_version_and_protocol(void **state) {
	struct spawned s = spawn(ARGS(sbeetctl, "--version"), NULL);
	struct spawned t = spawn(ARGS(sbeetctl, "version"), NULL);

	assert_int_equal(s.code, 0);
	assert_contains(s.out, "sbeetctl 0.");
	assert_contains(s.out, "protocol 1\n");
	assert_string_equal(s.out, t.out);
	spawned_deinit(&s);
	spawned_deinit(&t);
}

static void full_output_is_an_error(void **state) {
	struct spawned s;
	char script[600];

	snprintf(script, sizeof(script), "exec %s --help > /dev/full", sbeetctl);
	s = spawn(ARGS("/bin/sh", "-c", script), NULL);
	assert_int_equal(s.code, 1);
	assert_contains(s.err, "cannot write to standard output: No space left on device");
	spawned_deinit(&s);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(run_passes_the_exit_code),
		cmocka_unit_test(run_passes_the_signal_that_ends_the_program),
		cmocka_unit_test(run_becomes_the_program),
		cmocka_unit_test(run_sets_the_environment_and_nothing_else),
		cmocka_unit_test(run_warns_of_a_deadline_without_a_claim),
		cmocka_unit_test(run_adds_to_ld_preload),
		cmocka_unit_test(run_loads_the_sanitizer_first),
		cmocka_unit_test(run_refuses_two_different_shims),
		cmocka_unit_test(run_leaves_the_terminal_alone),
		cmocka_unit_test(run_says_that_a_program_cannot_be_started),
		cmocka_unit_test(run_leaves_the_shim_out_for_another_c_library),
		cmocka_unit_test(run_warns_when_the_shim_cannot_be_loaded),
		cmocka_unit_test(run_shows_its_plan),
		cmocka_unit_test(run_says_that_there_is_no_shim),
		cmocka_unit_test(run_says_which_settings_are_wrong),
		cmocka_unit_test(run_says_at_once_that_permission_is_denied),
		cmocka_unit_test(usage_errors_are_one_line_and_code_2),
		cmocka_unit_test(every_verb_has_help),
		cmocka_unit_test(help_lists_every_verb),
		cmocka_unit_test(version_tells_version_and_protocol),
		cmocka_unit_test(full_output_is_an_error),
	};

	sbeetctl = getenv("SBEETCTL");
	shim = getenv("TEST_SHIM");
	if (!sbeetctl || !shim || !getenv("TEST_OTHER")) {
		return 77;
	}
	snprintf(use_shim, sizeof(use_shim), "SBEET_SHIM=%s", shim);
	snprintf(preloaded, sizeof(preloaded), "LD_PRELOAD=%s", shim);
	unsetenv("LD_PRELOAD");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
