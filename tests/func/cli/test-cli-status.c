/*
 * test-cli-status.c: `sbeetctl status` against a double of sbeetd that answers right and wrong.
 */
#include <pty.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "double.h"
#include "spawn.h"

static const char *sbeetctl;

static void assert_contains(const char *text, const char *part) {
	if (!strstr(text, part)) {
		fail_msg("expected '%s' in:\n%s", part, text);
	}
}

static void assert_lacks(const char *text, const char *part) {
	if (strstr(text, part)) {
		fail_msg("did not expect '%s' in:\n%s", part, text);
	}
}

/* sbeetctl with up to four arguments against a double of @kind. */
static struct spawned against(enum double_kind kind, const char *a, const char *b, const char *c,
			      const char *d) {
	struct control_double server = double_start(kind);
	char folder[128];
	struct spawned s;

	snprintf(folder, sizeof(folder), "SBEET_RUNTIME_DIR=%s", server.folder);
	s = spawn(ARGS(sbeetctl, a, b, c, d), ARGS(folder, "SBEET_TIMEOUT=30s", "TERM=xterm"));
	double_stop(&server);
	return s;
}

/* The same on a terminal of @columns by @rows: all that it was sent. NULL: no terminal to be had.
 */
static char *on_terminal(enum double_kind kind, unsigned columns, unsigned rows, const char *option,
			 int *ret_code) {
	struct winsize size = {.ws_col = (unsigned short)columns, .ws_row = (unsigned short)rows};
	struct control_double server = double_start(kind);
	size_t used = 0, room = 1 << 20;
	char *text = calloc(1, room);
	ssize_t n;
	int terminal, status;
	pid_t pid;

	assert_non_null(text);
	pid = forkpty(&terminal, NULL, NULL, &size);
	if (pid == 0) {
		setenv("SBEET_RUNTIME_DIR", server.folder, 1);
		setenv("TERM", "xterm", 1);
		setenv("NO_COLOR", "1", 1);
		alarm(60);
		execl(sbeetctl, sbeetctl, "status", option, NULL);
		_exit(99);
	}
	if (pid < 0) {
		free(text);
		double_stop(&server);
		return NULL;
	}
	while (used < room - 1 && (n = read(terminal, text + used, room - 1 - used)) > 0) {
		used += (size_t)n;
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	*ret_code = WEXITSTATUS(status);
	close(terminal);
	double_stop(&server);
	/* A terminal makes "\r\n" of each line feed. */
	for (size_t i = 0, k = 0; i <= used; i++) {
		if (text[i] != '\r') {
			text[k++] = text[i];
		}
	}
	return text;
}

static char *on_terminal_or_skip(enum double_kind kind, unsigned columns, unsigned rows,
				 const char *option, int *ret_code) {
	char *text = on_terminal(kind, columns, rows, option, ret_code);

	if (!text) {
		print_message("no pseudo-terminal to be had here\n");
		skip();
	}
	return text;
}

static size_t longest_line(const char *text) {
	size_t longest = 0;

	while (*text) {
		size_t n = strcspn(text, "\n");

		longest = n > longest ? n : longest;
		text += n + (text[n] == '\n');
	}
	return longest;
}

static json_t *json_of(struct spawned *s) {
	json_error_t error;
	json_t *object;

	assert_int_equal(s->code, 0);
	assert_string_equal(s->err, "");
	object = json_loads(s->out, JSON_REJECT_DUPLICATES, &error);
	if (!object) {
		fail_msg("%s in:\n%s", error.text, s->out);
	}
	spawned_deinit(s);
	return object;
}

static json_t *item(const json_t *object, const char *list, size_t i, const char *key) {
	json_t *value = json_object_get(json_array_get(json_object_get(object, list), i), key);

	assert_non_null(value);
	return value;
}

static void status_shows_everything_on_one_screen(void **state) {
	struct spawned s = against(DOUBLE_RIGHT, "status", NULL, NULL, NULL);

	assert_int_equal(s.code, 0);
	assert_string_equal(s.err, "");
	assert_contains(s.out, "sbeetd 0.1.0, pid 4242, up 3min 2s, policy even\n");
	assert_contains(s.out, "37 jobs done, 0 too late, 1 abandoned, 1234 launches, 0 protocol errors\n");
	assert_contains(s.out,
			"NVIDIA RTX 3070 (simulated)  mps        active   46    46  120.3/220  "
			"[cccccccccccccccccccccccttttttttttttttttttttttt]\n");
	assert_contains(s.out,
			"NVIDIA H200                  exclusive  active  132    66          -  "
			"[PPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPP"
			"..................................................................]\n");
	assert_contains(s.out, "2 GPUs.\n");
	assert_contains(s.out, "3 sessions.\n");
	assert_contains(s.out, "4 jobs.\n");
	assert_contains(s.out, "EXACT  STARTED LATE ms  WAITED ms  RUN ms");
	assert_contains(s.out, "no                 1.6        0.4     3.0");
	assert_contains(s.out, "realtime");
	assert_contains(s.out, "21.5");
	spawned_deinit(&s);
}

static void status_is_what_sbeetctl_does_alone(void **state) {
	struct spawned s = against(DOUBLE_RIGHT, NULL, NULL, NULL, NULL);
	struct spawned t = against(DOUBLE_RIGHT, "status", NULL, NULL, NULL);

	assert_int_equal(s.code, 0);
	assert_string_equal(s.out, t.out);
	spawned_deinit(&s);
	spawned_deinit(&t);
}

static void status_names_only_sms_that_are_enforced(void **state) {
	struct spawned s = against(DOUBLE_RIGHT, "status", NULL, NULL, NULL);

	assert_contains(s.out, "any 23  count    no ");
	assert_contains(s.out, "0-65    smid     yes");
	assert_lacks(s.out, "0-22");
	assert_lacks(s.out, "23-45");
	spawned_deinit(&s);
}

static void status_believes_no_exact_count(void **state) {
	struct spawned s = against(DOUBLE_LYING, "status", NULL, NULL, NULL);
	json_t *o;

	assert_lacks(s.out, "0-22");
	spawned_deinit(&s);

	s = against(DOUBLE_LYING, "status", "--json", NULL, NULL);
	o = json_of(&s);
	assert_true(json_is_false(item(o, "jobs", 0, "exact")));
	json_decref(o);
}

static void status_promises_nothing_where_nothing_holds(void **state) {
	struct spawned s = against(DOUBLE_UNHELD, "status", NULL, NULL, NULL);

	assert_contains(s.out, "all     none     no ");
	assert_lacks(s.out, "23-45");
	assert_lacks(s.out, "any 23  none");
	spawned_deinit(&s);
}

static void status_json_has_all_of_it(void **state) {
	struct spawned s = against(DOUBLE_RIGHT, "--json", "status", NULL, NULL);
	json_t *o = json_of(&s);
	json_t *service = json_object_get(o, "service");

	assert_int_equal(json_integer_value(json_object_get(service, "pid")), 4242);
	assert_string_equal(json_string_value(json_object_get(service, "policy")), "even");
	assert_int_equal(json_array_size(json_object_get(o, "gpus")), 2);
	assert_string_equal(json_string_value(item(o, "gpus", 0, "uuid")),
			    "GPU-01000000-0000-0000-0000-000000000000");
	assert_int_equal(json_integer_value(item(o, "gpus", 0, "power_mw")), 120345);
	assert_int_equal(json_integer_value(item(o, "gpus", 0, "power_limit_mw")), 220000);
	assert_int_equal(json_integer_value(item(o, "gpus", 0, "memory_used_bytes")), 3221225472);
	assert_true(json_is_integer(item(o, "gpus", 0, "utilization_percent"))); /* 0 is known */
	assert_int_equal(json_integer_value(item(o, "gpus", 0, "temperature_celsius")), 61);
	assert_true(json_is_null(item(o, "gpus", 1, "memory_used_bytes")));
	assert_true(json_is_null(item(o, "gpus", 1, "utilization_percent")));
	assert_true(json_is_null(item(o, "gpus", 1, "temperature_celsius")));
	assert_true(json_is_false(item(o, "gpus", 0, "drained")));
	assert_true(json_is_null(item(o, "gpus", 1, "power_mw")));
	assert_true(json_is_null(item(o, "gpus", 1, "power_limit_mw")));
	assert_string_equal(json_string_value(item(o, "gpus", 1, "sms_busy")), "0-65");
	assert_int_equal(json_array_size(json_object_get(o, "sessions")), 3);
	assert_string_equal(json_string_value(item(o, "sessions", 0, "class")), "realtime");
	assert_int_equal(json_integer_value(item(o, "sessions", 0, "deadline_ns")), 20000000);
	assert_int_equal(json_integer_value(item(o, "sessions", 0, "last_response_ns")), 7500000);
	assert_true(json_is_null(item(o, "sessions", 1, "last_response_ns")));
	assert_true(json_is_null(item(o, "sessions", 1, "deadline_ns")));
	assert_string_equal(json_string_value(item(o, "sessions", 2, "scope")), "thread");
	assert_int_equal(json_array_size(json_object_get(o, "jobs")), 4);
	assert_string_equal(json_string_value(item(o, "jobs", 0, "id")), "1.31");
	assert_string_equal(json_string_value(item(o, "jobs", 0, "sms")), "0-22");
	assert_string_equal(json_string_value(item(o, "jobs", 1, "sms")), "23-45");
	assert_int_equal(json_integer_value(item(o, "jobs", 1, "n_sms")), 23);
	assert_string_equal(json_string_value(item(o, "jobs", 1, "enforcement")), "count");
	assert_true(json_is_false(item(o, "jobs", 1, "exact")));
	assert_true(json_is_true(item(o, "jobs", 2, "exact")));
	assert_int_equal(json_integer_value(item(o, "jobs", 2, "tid")), 77);
	assert_true(json_is_null(item(o, "jobs", 3, "sms")));
	assert_true(json_is_null(item(o, "jobs", 3, "gpu")));
	assert_true(json_is_null(item(o, "jobs", 3, "exact")));
	json_decref(o);
}

/* From release to request, and from there to the grant, or until now. */
static void a_late_start_and_a_wait_are_two_figures(void **state) {
	struct spawned s = against(DOUBLE_RIGHT, "status", "--json", NULL, NULL);
	static const struct {
		const char *which;
		json_int_t started_late, waited;
	} jobs[] = {{"the first", 1600000, 400000},
		    {"of an older sbeetd", 0, 4000000},
		    {"another", 0, 4000000},
		    {"one that waits", 3000000, 2000000}};
	json_t *o = json_of(&s);

	for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
		json_int_t release = json_integer_value(item(o, "jobs", i, "release_ns"));

		assert_int_equal(json_integer_value(item(o, "jobs", i, "requested_ns")),
				 release + jobs[i].started_late);
		assert_int_equal(json_integer_value(item(o, "jobs", i, "started_late_ns")),
				 jobs[i].started_late);
		assert_int_equal(json_integer_value(item(o, "jobs", i, "waited_ns")),
				 jobs[i].waited);
	}
	assert_int_equal(json_integer_value(item(o, "sessions", 0, "max_started_late_ns")),
			 1600000);
	assert_int_equal(json_integer_value(item(o, "sessions", 0, "max_wait_ns")), 400000);
	json_decref(o);

	s = against(DOUBLE_RIGHT, "task", "list", "--columns=task,max_started_late,max_wait", NULL);
	assert_contains(s.out, "camera                   1.6          0.4");
	spawned_deinit(&s);
}

static void status_joins_an_answer_of_many_packets(void **state) {
	struct spawned whole = against(DOUBLE_RIGHT, "status", "--json=short", NULL, NULL);
	struct spawned parts = against(DOUBLE_PARTS, "status", "--json=short", NULL, NULL);
	struct spawned many = against(DOUBLE_MANY, "status", "--json=short", NULL, NULL);
	json_t *o;

	assert_string_equal(whole.out, parts.out);
	spawned_deinit(&whole);
	spawned_deinit(&parts);
	o = json_of(&many);
	assert_int_equal(json_array_size(json_object_get(o, "sessions")), 3000);
	json_decref(o);
}

static void status_json_has_a_short_and_a_pretty_form(void **state) {
	struct spawned s = against(DOUBLE_RIGHT, "-j", NULL, NULL, NULL);
	struct spawned p = against(DOUBLE_RIGHT, "status", "--json=pretty", NULL, NULL);
	struct spawned off = against(DOUBLE_RIGHT, "status", "--json", "--json=off", NULL);
	json_t *a, *b;

	assert_ptr_equal(strchr(s.out, '\n'), s.out + strlen(s.out) - 1);
	assert_contains(p.out, "\n  \"service\": {\n");
	assert_contains(off.out, "2 GPUs.\n");
	spawned_deinit(&off);
	a = json_of(&s);
	b = json_of(&p);
	assert_true(json_equal(a, b));
	json_decref(a);
	json_decref(b);
}

static void status_without_legend_has_only_rows(void **state) {
	struct spawned s = against(DOUBLE_RIGHT, "status", "--no-legend", NULL, NULL);

	assert_lacks(s.out, "SHARING");
	assert_lacks(s.out, "3 sessions");
	assert_contains(s.out, "any 23");
	spawned_deinit(&s);
}

static void status_has_colour_only_when_asked(void **state) {
	struct spawned s = against(DOUBLE_RIGHT, "status", NULL, NULL, NULL);
	struct spawned c = against(DOUBLE_RIGHT, "status", "--color=always", NULL, NULL);

	assert_lacks(s.out, "\033");
	assert_contains(c.out, "\033[1m");
	spawned_deinit(&s);
	spawned_deinit(&c);
}

static void status_tells_when_there_is_nothing(void **state) {
	struct spawned s = against(DOUBLE_IDLE, "status", NULL, NULL, NULL);

	assert_int_equal(s.code, 0);
	assert_contains(s.out, "No programs connected; start one with 'sbeetctl run'.\n");
	spawned_deinit(&s);
	s = against(DOUBLE_NO_GPU, "status", NULL, NULL, NULL);
	assert_int_equal(s.code, 0);
	assert_contains(s.out, "No GPU found.\n");
	spawned_deinit(&s);
}

static void status_watch_goes_on_until_the_daemon_leaves(void **state) {
	struct spawned s = against(DOUBLE_TWICE, "status", "--watch=0.1", "--json", NULL);
	const char *second = strchr(s.out, '\n');

	assert_int_equal(s.code, 3);
	assert_contains(s.err, "closed the connection");
	assert_non_null(second);
	assert_ptr_equal(strchr(second + 1, '\n'), s.out + strlen(s.out) - 1);
	spawned_deinit(&s);

	s = against(DOUBLE_TWICE, "--watch=100ms", "status", NULL, NULL);
	assert_int_equal(s.code, 3);
	assert_contains(s.out, "\n-- ");
	assert_lacks(s.out, "\033");
	spawned_deinit(&s);
}

static void status_fits_every_terminal(void **state) {
	static const enum double_kind kinds[] = {DOUBLE_RIGHT, DOUBLE_LONG};

	for (size_t i = 0; i < 2; i++) {
		for (unsigned columns = 40; columns <= 160; columns += 7) {
			int code;
			char *text = on_terminal_or_skip(kinds[i], columns, 50, NULL, &code);

			assert_int_equal(code, 0);
			if (longest_line(text) > columns) {
				fail_msg("wider than %u columns:\n%s", columns, text);
			}
			/* What is asked most is there on the narrowest. */
			assert_contains(text, "SESSION  TASK");
			assert_contains(text, "MISSES");
			assert_contains(text, "3 sessions.\n");
			assert_contains(text, "SM MAP");
			/* A GPU is one line, its map too. */
			assert_non_null(strchr(text, '['));
			assert_int_equal(strcspn(strchr(text, '['), "]") <
						 strcspn(strchr(text, '['), "\n"),
					 1);
			free(text);
		}
	}
}

static void status_cuts_nothing_without_a_terminal(void **state) {
	struct spawned s = against(DOUBLE_LONG, "status", NULL, NULL, NULL);

	assert_contains(s.out, "A GPU whose makers could not agree on a name and took all");
	assert_contains(s.out, "front-camera-of-the-left-arm-while-nobody-is-in-the-cell");
	assert_contains(s.out, "detect-with-a-model-that-is-much-too-large");
	assert_contains(s.out, "  120.3/220 (1min 15s old)  ");
	spawned_deinit(&s);
}

/* Without a terminal each SM has its letter, on one line. */
static void status_draws_256_sms_one_by_one(void **state) {
	struct spawned s = against(DOUBLE_LONG, "status", NULL, NULL, NULL);
	const char *map = strchr(s.out, '[');
	size_t letters[256] = {0};

	assert_non_null(map);
	for (map++; *map != ']'; map++) {
		assert_true(*map && *map != '\n');
		letters[(unsigned char)*map]++;
	}
	assert_int_equal(letters['f'], 23);
	assert_int_equal(letters['t'], 23);
	assert_int_equal(letters['-'], 256 - 46); /* it is drained */
	assert_contains(s.out, "  drained  ");
	spawned_deinit(&s);
}

static void status_watch_keeps_to_the_screen(void **state) {
	static const unsigned rows[] = {5, 24, 60};

	for (size_t i = 0; i < 3; i++) {
		int code;
		char *text = on_terminal_or_skip(DOUBLE_CROWD, 100, rows[i], "--watch=0.1", &code);
		char *first = strstr(text, "\033[H"), *second, *end;
		size_t lines = 0;

		assert_int_equal(code, 3);
		assert_non_null(first);
		second = strstr(first + 1, "\033[H");
		assert_non_null(second);
		end = strstr(second, "sbeetctl: ");
		assert_non_null(end);
		/* Nothing has changed between the two. */
		assert_int_equal(end - second >= second - first, 1);
		assert_memory_equal(first, second, second - first);
		*second = '\0';
		/* No line feed more than the screen can take: it would scroll. */
		for (const char *c = first; *c; c++) {
			lines += *c == '\n';
		}
		assert_in_range(lines, 1, rows[i] - 1);
		if (rows[i] >= 24) {
			/* Who is at work comes first, and the jobs are on the screen. */
			assert_contains(first, "1000 sessions, ");
			assert_contains(first, "4 jobs");
			assert_contains(first, "\033[K      3  train");
		}
		free(text);
	}
}

static void status_keeps_1000_sessions_in_line(void **state) {
	struct spawned s = against(DOUBLE_CROWD, "status", "--no-legend", NULL, NULL);
	const char *line = strstr(s.out, "1000  train");
	size_t width;

	assert_non_null(line);
	width = strcspn(line, "\n");
	for (unsigned i = 0; i < 1000; i++) {
		assert_int_equal(strcspn(line, "\n"), width);
		line += width + 1;
	}
	assert_int_equal(s.code, 0);
	spawned_deinit(&s);
}

static void status_lets_no_name_steer_the_terminal(void **state) {
	struct spawned s = against(DOUBLE_CONTROL, "status", NULL, NULL, NULL);

	assert_lacks(s.out, "\033");
	assert_lacks(s.err, "\033");
	spawned_deinit(&s);
}

static void status_says_what_went_wrong_and_what_to_do(void **state) {
	static const struct {
		enum double_kind kind;
		int code;
		const char *what, *next;
	} cases[] = {
		{DOUBLE_OTHER_VERSION, 1, "speaks protocol 2, this sbeetctl 1", "install the same"},
		{DOUBLE_REFUSES, 1, "sbeetd refuses: too many clients", ""},
		{DOUBLE_STOPPING, 3, "sbeetd refuses: stopping", ""},
		{DOUBLE_UNKNOWN, 1, "does not know this request", "install the same"},
		{DOUBLE_HANGS_UP, 3, "closed the connection", "journalctl"},
		{DOUBLE_GARBAGE, 1, "does not parse", ""},
		{DOUBLE_EMPTY, 1, "does not understand", "install the same"},
		{DOUBLE_WRONG_ID, 1, "answered request 9 when asked for 2", ""},
		{DOUBLE_NO_SERVICE, 1, "not complete", ""},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct spawned s = against(cases[i].kind, "status", NULL, NULL, NULL);

		assert_int_equal(s.code, cases[i].code);
		assert_string_equal(s.out, "");
		assert_contains(s.err, cases[i].what);
		assert_contains(s.err, cases[i].next);
		/* one line */
		assert_ptr_equal(strchr(s.err, '\n'), s.err + strlen(s.err) - 1);
		spawned_deinit(&s);
	}
}

static void status_gives_up_on_a_silent_daemon(void **state) {
	struct control_double server = double_start(DOUBLE_SILENT);
	char folder[128];
	struct spawned s;

	snprintf(folder, sizeof(folder), "SBEET_RUNTIME_DIR=%s", server.folder);
	s = spawn(ARGS(sbeetctl), ARGS(folder, "SBEET_TIMEOUT=50ms"));
	assert_int_equal(s.code, 6);
	assert_contains(s.err, "did not answer within 50ms");
	spawned_deinit(&s);
	s = spawn(ARGS(sbeetctl), ARGS(folder, "SBEET_TIMEOUT=50"));
	assert_int_equal(s.code, 2);
	assert_contains(s.err, "bad SBEET_TIMEOUT");
	spawned_deinit(&s);
	double_stop(&server);
}

static void status_says_that_no_daemon_runs(void **state) {
	char folder[] = "/tmp/sbeet-cli-XXXXXX", variable[128], path[128];
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct spawned s;
	int fd;

	assert_non_null(mkdtemp(folder));
	snprintf(variable, sizeof(variable), "SBEET_RUNTIME_DIR=%s", folder);
	s = spawn(ARGS(sbeetctl, "status"), ARGS(variable));
	assert_int_equal(s.code, 3);
	assert_contains(s.err, "no such socket; start it with 'systemctl start sbeetd', or run");
	spawned_deinit(&s);

	/* a socket that its daemon left behind */
	snprintf(path, sizeof(path), "%s/control.sock", folder);
	memcpy(address.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
	s = spawn(ARGS(sbeetctl, "status"), ARGS(variable));
	assert_int_equal(s.code, 3);
	assert_contains(s.err, "nothing is listening there");
	spawned_deinit(&s);
	unlink(path);
	rmdir(folder);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(status_shows_everything_on_one_screen),
		cmocka_unit_test(status_is_what_sbeetctl_does_alone),
		cmocka_unit_test(status_names_only_sms_that_are_enforced),
		cmocka_unit_test(status_believes_no_exact_count),
		cmocka_unit_test(status_promises_nothing_where_nothing_holds),
		cmocka_unit_test(status_json_has_all_of_it),
		cmocka_unit_test(a_late_start_and_a_wait_are_two_figures),
		cmocka_unit_test(status_joins_an_answer_of_many_packets),
		cmocka_unit_test(status_json_has_a_short_and_a_pretty_form),
		cmocka_unit_test(status_without_legend_has_only_rows),
		cmocka_unit_test(status_has_colour_only_when_asked),
		cmocka_unit_test(status_tells_when_there_is_nothing),
		cmocka_unit_test(status_watch_goes_on_until_the_daemon_leaves),
		cmocka_unit_test(status_fits_every_terminal),
		cmocka_unit_test(status_cuts_nothing_without_a_terminal),
		cmocka_unit_test(status_draws_256_sms_one_by_one),
		cmocka_unit_test(status_watch_keeps_to_the_screen),
		cmocka_unit_test(status_keeps_1000_sessions_in_line),
		cmocka_unit_test(status_lets_no_name_steer_the_terminal),
		cmocka_unit_test(status_says_what_went_wrong_and_what_to_do),
		cmocka_unit_test(status_gives_up_on_a_silent_daemon),
		cmocka_unit_test(status_says_that_no_daemon_runs),
	};

	sbeetctl = getenv("SBEETCTL");
	if (!sbeetctl) {
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
