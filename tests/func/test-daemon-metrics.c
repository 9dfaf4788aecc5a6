/*
 * test-daemon-metrics.c: what sbeetd serves as metrics is OpenMetrics to the letter, and is so.
 */
#include "harness.h"

#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "proto/packet.h"
#include "proto/text.h"
#include "proto/units.h"

#define BODY_MAX (1024 * 1024)

static struct harness harness;
static char body[BODY_MAX];

static int setup(void **state) {
	harness_prepare(&harness);
	return 0;
}

static int teardown(void **state) {
	harness_clean(&harness);
	return 0;
}

static void start(const char *where) {
	harness_start(&harness, (const char *const[]){"--gpus", "8", "--metrics", where, NULL});
	harness_settle(); /* its control socket is there before that of the metrics */
}

static void socket_path(char *path, size_t size) {
	snprintf(path, size, "%s/metrics.sock", harness.directory);
}

/* Connects, sends the request and reads the whole answer; returns the HTTP status, the body in
 * `body`. */
static int get_at(const void *address, socklen_t address_size, const char *request) {
	const struct sockaddr *to = address;
	struct timeval hang = {.tv_sec = 30};
	int fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0), status = 0;
	size_t n = 0;
	ssize_t got;
	char *end;

	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &hang, sizeof(hang));
	assert_int_equal(connect(fd, to, address_size), 0);
	assert_int_equal(write(fd, request, strlen(request)), (ssize_t)strlen(request));
	while (n < sizeof(body) - 1 && (got = read(fd, body + n, sizeof(body) - 1 - n)) > 0) {
		n += (size_t)got;
	}
	close(fd);
	body[n] = '\0';
	if (sscanf(body, "HTTP/1.%*d %d", &status) != 1) {
		return 0;
	}
	end = strstr(body, "\r\n\r\n");
	assert_non_null(end);
	assert_true(status != 200 || strstr(body,
					    "Content-Type: application/openmetrics-text; "
					    "version=1.0.0; charset=utf-8\r\n"));
	memmove(body, end + 4, strlen(end + 4) + 1);
	return status;
}

static int get(const char *request) {
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	socket_path(address.sun_path, sizeof(address.sun_path));
	return get_at(&address, sizeof(address), request);
}

static void scrape(void) {
	assert_int_equal(get("GET /metrics HTTP/1.0\r\n\r\n"), 200);
}

/* --- a strict reader of the format ---------------------------------------------------------- */

struct family {
	char name[128], type[16], unit[32];
	bool has_help, has_samples;
	double bucket, le; /* of the last one in this histogram */
	char labels[256];  /* of it, without le */
};

static bool is_name(const char *text, size_t n) {
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz_0123456789";

	return n > 0 && strspn(text, letters) >= n && (*text < '0' || *text > '9');
}

/* "# TYPE name type" and the like; a family's lines stand together, TYPE first. */
static void read_comment(struct family *f, const char *line) {
	char word[8], name[128];
	int n = 0;

	assert_int_equal(sscanf(line, "# %7s %127s %n", word, name, &n), 2);
	assert_true(n > 0 && line[n]);
	if (strcmp(word, "TYPE") == 0) {
		assert_string_not_equal(name, f->name);
		*f = (struct family){.bucket = -1};
		snprintf(f->name, sizeof(f->name), "%s", name);
		snprintf(f->type, sizeof(f->type), "%s", line + n);
		assert_true(strcmp(f->type, "counter") == 0 || strcmp(f->type, "gauge") == 0 ||
			    strcmp(f->type, "histogram") == 0 || strcmp(f->type, "info") == 0);
		return;
	}
	assert_string_equal(name, f->name);
	assert_false(f->has_samples);
	if (strcmp(word, "UNIT") == 0) {
		size_t at = strlen(name) - strlen(line + n);

		assert_true(at > 1 && name[at - 1] == '_');
		assert_string_equal(name + at, line + n); /* the name ends in its unit */
	} else {
		assert_string_equal(word, "HELP");
		assert_false(f->has_help);
		f->has_help = true;
	}
}

/* key="value",...: names and printable values without quotes. Copies all but le; returns le. */
static double read_labels(const char *text, size_t n, char *ret, size_t size) {
	const char *end = text + n;
	double le = -1;

	*ret = '\0';
	while (text < end) {
		size_t key = strcspn(text, "="), value = strcspn(text + key + 2, "\"\\\n");

		assert_true(is_name(text, key));
		assert_true(text[key + 1] == '"' && text[key + 2 + value] == '"');
		if (key == 2 && strncmp(text, "le", 2) == 0) {
			le = strtod(text + 4, NULL); /* "+Inf" too */
		} else {
			size_t used = strlen(ret);

			snprintf(ret + used, size - used, "%.*s;", (int)(key + value + 3), text);
		}
		text += key + 2 + value + 1;
		assert_true(text == end || *text == ',');
		text += text < end;
	}
	return le;
}

static void read_sample(struct family *f, const char *line) {
	size_t name = strcspn(line, "{ "), base = strlen(f->name), labels = 0;
	const char *suffix = line + base, *value;
	char text[256] = "", *end;
	double le = -1, number;

	assert_true(is_name(line, name) && strncmp(line, f->name, base) == 0 && name >= base);
	f->has_samples = true;
	value = line + name;
	if (*value == '{') {
		labels = strcspn(value, "}");
		le = read_labels(value + 1, labels - 1, text, sizeof(text));
		value += labels + 1;
	}
	assert_true(*value == ' ');
	number = strtod(value + 1, &end);
	assert_true(end > value + 1 && !*end && number >= 0);
	name -= base;
	if (strcmp(f->type, "counter") == 0) {
		assert_true(name == 6 && strncmp(suffix, "_total", 6) == 0);
	} else if (strcmp(f->type, "info") == 0) {
		assert_true(name == 5 && strncmp(suffix, "_info", 5) == 0 && number == 1);
	} else if (strcmp(f->type, "gauge") == 0) {
		assert_int_equal(name, 0);
	} else if (name == 7 && strncmp(suffix, "_bucket", 7) == 0) {
		bool first = strcmp(text, f->labels) != 0 || f->bucket < 0;

		assert_true(le >= 0 && (first || (number >= f->bucket && le > f->le)));
		f->bucket = number;
		f->le = le;
		snprintf(f->labels, sizeof(f->labels), "%s", text);
	} else if (name == 6 && strncmp(suffix, "_count", 6) == 0) {
		assert_true(f->le > 1e300 && number == f->bucket); /* after le="+Inf" */
		assert_string_equal(text, f->labels);
		f->bucket = -1;
	} else {
		assert_true(name == 4 && strncmp(suffix, "_sum", 4) == 0);
	}
}

/* Fails the test if `body` is no OpenMetrics text. */
static void read_strictly(void) {
	static char copy[BODY_MAX];
	struct family f = {0};
	bool ended = false;
	char *at = copy, *line;

	strcpy(copy, body);
	assert_true(strlen(copy) > 0 && copy[strlen(copy) - 1] == '\n');
	while ((line = strsep(&at, "\n")) && (*line || at)) {
		assert_false(ended);
		if (strcmp(line, "# EOF") == 0) {
			ended = true;
		} else if (*line == '#') {
			read_comment(&f, line);
		} else {
			read_sample(&f, line);
		}
	}
	assert_true(ended);
}

/* The number in the line that begins with @sample and a blank. */
static double value(const char *sample) {
	char text[256];
	const char *at;

	snprintf(text, sizeof(text), "\n%s ", sample);
	at = strstr(body, text);
	if (!at) {
		fail_msg("no sample '%s' in:\n%s", sample, body);
	}
	return strtod(at + strlen(text), NULL);
}

/* The same of GPU 0, whose uuid is told as well. */
static double gpu_value(const char *name) {
	char text[128];
	const char *at;

	snprintf(text, sizeof(text), "\n%s{gpu=\"0\",uuid=\"GPU-", name);
	at = strstr(body, text);
	if (!at) {
		fail_msg("no sample '%s' of GPU 0 in:\n%s", name, body);
	}
	at = strchr(at, '}');
	assert_true(at && at[1] == ' ');
	return strtod(at + 2, NULL);
}

/* As it has it in its status. */
static void expect_uuid(void) {
	Sbeet__Control__Status *status = status_get();
	char text[TEXT_GPU_UUID_BYTES], label[64];

	assert_int_equal(status->gpus[0]->uuid.len, PROTO_UUID_BYTES);
	text_gpu_uuid(status->gpus[0]->uuid.data, text);
	assert_int_equal(strlen(text), TEXT_GPU_UUID_BYTES - 1);
	snprintf(label, sizeof(label), "uuid=\"%s\"", text);
	assert_non_null(strstr(body, label));
	status_free(status);
}

/* --- cases ---------------------------------------------------------------------------------- */

static void run_job(const char *task, nsec_t deadline, bool late) {
	Sbeet__TaskSpec spec = SBEET__TASK_SPEC__INIT;
	int fd = shim_connect();

	spec.name = (char *)(uintptr_t)task;
	spec.deadline_ns = deadline;
	shim_hello(fd, "p", &spec, MASK_ALL);
	packet_free(&shim_receive(fd)->base);
	shim_request(fd, 1, 0, MASK_ALL);
	if (late) {
		nsec_t until = shim_granted(fd, 1).deadline_ns;

		while (nsec_now() <= until) {
			usleep(100);
		}
	} else {
		shim_granted(fd, 1);
	}
	shim_done(fd, 1);
	harness_settle();
	close(fd);
}

static void metrics_tell_what_is_so(void **state) {
	char where[128] = "unix:";

	socket_path(where + 5, sizeof(where) - 5);
	start(where);
	scrape();
	read_strictly();
	run_job("camera", NSEC_PER_MSEC, true);
	run_job("camera", 3600 * NSEC_PER_SEC, false);
	run_job("other", 0, false);
	scrape();
	read_strictly();
	assert_int_equal((int)value("sbeet_jobs_total{task=\"camera\"}"), 2);
	assert_int_equal((int)value("sbeet_jobs_total{task=\"other\"}"), 1);
	assert_int_equal((int)value("sbeet_deadline_misses_total{task=\"camera\"}"), 1);
	assert_int_equal((int)value("sbeet_job_wait_seconds_count{task=\"camera\"}"), 2);
	assert_true(value("sbeet_job_response_seconds_sum{task=\"camera\"}") > 0.001);
	assert_int_equal((int)value("sbeet_grants_total"), 3);
	assert_int_equal((int)gpu_value("sbeet_gpu_sms"), 8);
	assert_int_equal((int)gpu_value("sbeet_gpu_sms_busy"), 0);
	assert_true(gpu_value("sbeet_gpu_sm_seconds_total") > 0);
	assert_true(gpu_value("sbeet_gpu_energy_joules_total") >= 0);
	expect_uuid();
	assert_int_equal((int)value("sbeet_build_info{version=\"" VERSION "\",protocol=\"1\"}"), 1);
	assert_int_equal(
		(int)value("sbeet_job_response_seconds_bucket{task=\"other\",le=\"0.025000000\"}"),
		(int)value("sbeet_job_response_seconds_bucket{task=\"other\",le=\"0.033000000\"}"));
	assert_true(
		value("sbeet_job_response_seconds_bucket{task=\"camera\",le=\"0.040000000\"}") <=
		2);
	assert_true(value("sbeet_decision_seconds_count") >= 3);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void metrics_keep_their_number_of_series(void **state) {
	char where[128] = "unix:", name[16];

	socket_path(where + 5, sizeof(where) - 5);
	start(where);
	for (int i = 0; i < 70; i++) {
		snprintf(name, sizeof(name), "t%d", i);
		run_job(name, 0, false);
	}
	scrape();
	read_strictly();
	assert_int_equal((int)value("sbeet_jobs_total{task=\"t63\"}"), 1);
	assert_null(strstr(body, "\"t64\""));
	assert_int_equal((int)value("sbeet_jobs_total{task=\"*\"}"), 6);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void metrics_refuse_what_is_no_scrape(void **state) {
	static char long_header[16 * 1024];
	char where[128] = "unix:", errors[1024];

	socket_path(where + 5, sizeof(where) - 5);
	start(where);
	assert_int_equal(get("GET /other HTTP/1.0\r\n\r\n"), 404);
	assert_int_not_equal(get("POST /metrics HTTP/1.0\r\nContent-Length: 0\r\n\r\n"), 200);
	snprintf(long_header, sizeof(long_header), "GET /metrics HTTP/1.0\r\nX: %08000d\r\n\r\n",
		 1);
	assert_int_not_equal(get(long_header), 200);
	scrape();
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
	assert_int_not_equal(access(where + 5, F_OK), 0);

	/* For this machine alone. */
	assert_int_equal(harness_run(&harness,
				     (const char *const[]){"--metrics", "0.0.0.0:9400", NULL},
				     errors, sizeof(errors)),
			 2);
	assert_non_null(strstr(errors, "loopback"));
}

/* Who connects and says nothing, or half of it, is in nobody's way for long. */
static void metrics_are_served_beside_those_who_say_nothing(void **state) {
	enum { IDLE = 40, KEPT = 16 };
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char where[128] = "unix:";
	unsigned n_closed = 0;
	int fds[IDLE];

	socket_path(where + 5, sizeof(where) - 5);
	socket_path(address.sun_path, sizeof(address.sun_path));
	start(where);
	for (size_t i = 0; i < IDLE; i++) {
		fds[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_int_equal(connect(fds[i], (struct sockaddr *)&address, sizeof(address)), 0);
		if (i % 2) {
			assert_int_equal(write(fds[i], "GET /met", 8), 8);
		}
	}
	scrape();
	for (size_t i = 0; i < IDLE; i++) {
		struct pollfd p = {.fd = fds[i], .events = POLLIN};

		n_closed += poll(&p, 1, 0) == 1;
		close(fds[i]);
	}
	assert_true(n_closed >= IDLE - KEPT);
	assert_int_equal(get("HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n"), 200);
	assert_int_equal(get("GET /metrics?x=y HTTP/1.1\r\n\r\n"), 200);
	assert_int_equal(get("GET /metrics\r\n\r\n"), 400);
	assert_int_equal(get("\r\n\r\n"), 400);
	assert_int_equal(get("GET /metricsx HTTP/1.1\r\n\r\n"), 404);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* A port that was free just now. */
static struct sockaddr_in free_address(void) {
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t size = sizeof(address);

	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
	close(fd);
	return address;
}

static void metrics_are_served_over_loopback(void **state) {
	struct sockaddr_in address = free_address();
	char where[64];

	snprintf(where, sizeof(where), "127.0.0.1:%u", ntohs(address.sin_port));
	start(where);
	assert_int_equal(get_at(&address, sizeof(address), "GET /metrics HTTP/1.0\r\n\r\n"), 200);
	read_strictly();
	assert_int_equal((int)gpu_value("sbeet_gpu_sms"), 8);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static int listening_at(struct sockaddr_in *address) {
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t size = sizeof(*address);

	*address = (struct sockaddr_in){.sin_family = AF_INET,
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	assert_int_equal(bind(fd, (struct sockaddr *)address, sizeof(*address)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)address, &size), 0);
	assert_int_equal(listen(fd, 8), 0);
	return fd;
}

/* By a service manager, whose unit has no network: without a setting, or beside one. */
static void metrics_are_served_at_a_socket_that_is_passed(void **state) {
	char where[128] = "unix:", errors[1024];
	struct sockaddr_in address;

	if (!WITH_SYSTEMD) {
		skip();
	}
	harness.passed[0] = listening_at(&address);
	harness.n_passed = 1;
	harness.passed_names = "metrics";
	harness_start(&harness, (const char *const[]){"--gpus", "8", NULL});
	run_job("camera", 0, false);
	assert_int_equal(get_at(&address, sizeof(address), "GET /metrics HTTP/1.0\r\n\r\n"), 200);
	read_strictly();
	assert_int_equal((int)value("sbeet_jobs_total{task=\"camera\"}"), 1);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);

	socket_path(where + 5, sizeof(where) - 5);
	start(where);
	run_job("camera", 0, false);
	scrape();
	assert_int_equal((int)value("sbeet_jobs_total{task=\"camera\"}"), 1);
	assert_int_equal(get_at(&address, sizeof(address), "GET /metrics HTTP/1.0\r\n\r\n"), 200);
	assert_int_equal((int)value("sbeet_jobs_total{task=\"camera\"}"), 1);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);

	close(harness.passed[0]);
	harness.passed[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); /* does not listen */
	assert_int_equal(harness_run(&harness, (const char *const[]){"--gpus", "8", NULL}, errors,
				     sizeof(errors)),
			 1);
	assert_non_null(strstr(errors, "ListenStream="));
	close(harness.passed[0]);
	harness.n_passed = 0;
}

/* Each metric that the file asks for is served. */
static void expect_served(const char *path) {
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz_";
	char where[128] = "unix:", name[128], *text = NULL;
	FILE *f = fopen(path, "re");
	size_t size = 0;
	unsigned n = 0;

	assert_non_null(f);
	assert_true(getdelim(&text, &size, '\0', f) > 0);
	fclose(f);
	socket_path(where + 5, sizeof(where) - 5);
	start(where);
	run_job("camera", 3600 * NSEC_PER_SEC, false);
	scrape();
	for (const char *at = text; (at = strstr(at, "sbeet_")); at += strspn(at, letters)) {
		const char *found;
		int length = snprintf(name, sizeof(name), "\n%.*s", (int)strspn(at, letters), at);

		found = strstr(body, name);
		if (!found || !strchr("{ ", found[length])) {
			fail_msg("'%s' asks for '%s', which is not served", path, name + 1);
		}
		n++;
	}
	assert_true(n >= 5);
	free(text);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void dashboard_names_what_is_served(void **state) {
	expect_served(DASHBOARD);
}

static void alerts_name_what_is_served(void **state) {
	expect_served(ALERTS);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(metrics_tell_what_is_so),
		CASE(metrics_keep_their_number_of_series),
		CASE(metrics_refuse_what_is_no_scrape),
		CASE(metrics_are_served_beside_those_who_say_nothing),
		CASE(dashboard_names_what_is_served),
		CASE(alerts_name_what_is_served),
		CASE(metrics_are_served_at_a_socket_that_is_passed),
		CASE(metrics_are_served_over_loopback),
	};

	return cmocka_run_group_tests_name("daemon-metrics", tests, NULL, NULL);
}
