/*
 * double.c: see double.h.
 */
#include "double.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control.pb-c.h"
#include "proto/limits.h"
#include "proto/packet.h"
#include "proto/smset.h"

#define NOW 10000000000ull

static void check(int ok, const char *what) {
	if (!ok) {
		perror(what);
		abort();
	}
}

/* One endless pool: the process ends after one connection. */
static ProtobufCBinaryData sms(unsigned first, unsigned n) {
	struct smset set = smset_range(first, n);
	uint8_t *bytes = malloc(32);

	check(bytes != NULL, "malloc");
	return (ProtobufCBinaryData){.len = smset_to_bytes(&set, bytes), .data = bytes};
}

static ProtobufCBinaryData uuid(unsigned char first) {
	uint8_t *bytes = calloc(1, PROTO_UUID_BYTES);

	check(bytes != NULL, "calloc");
	bytes[0] = first;
	return (ProtobufCBinaryData){.len = PROTO_UUID_BYTES, .data = bytes};
}

static Sbeet__Control__Service service = {
	PROTOBUF_C_MESSAGE_INIT(&sbeet__control__service__descriptor),
	.version = (char *)"0.1.0",
	.protocol = PROTO_VERSION,
	.pid = 4242,
	.uptime_ns = 182500000000ull,
	.policy = (char *)"even",
	.grants = 40,
	.jobs_done = 37,
	.jobs_abandoned = 1,
	.launches = 1234,
	.now_ns = NOW,
};

static Sbeet__Control__Gpu gpus[] = {
	{PROTOBUF_C_MESSAGE_INIT(&sbeet__control__gpu__descriptor), .index = 0,
	 .name = (char *)"NVIDIA RTX 3070 (simulated)", .sms = 46, .sharing = (char *)"mps",
	 .power_mw = 120345, .power_limit_mw = 220000, .energy_mj = 77, .memory_bytes = 8589934592, .power_age_ns = 5,
	 .memory_used_case = SBEET__CONTROL__GPU__MEMORY_USED_MEMORY_USED_BYTES, .memory_used_bytes = 3221225472, 
	 .utilization_case = SBEET__CONTROL__GPU__UTILIZATION_UTILIZATION_PERCENT,
	 .temperature_case = SBEET__CONTROL__GPU__TEMPERATURE_TEMPERATURE_CELSIUS, .temperature_celsius = 61},
	{PROTOBUF_C_MESSAGE_INIT(&sbeet__control__gpu__descriptor), .index = 1,
	 .name = (char *)"NVIDIA H200", .sms = 132, .sharing = (char *)"exclusive"},
};

#define SESSION(number, its_task, its_class, ...)                                        \
	{                                                                                \
		PROTOBUF_C_MESSAGE_INIT(&sbeet__control__session__descriptor),           \
			.id = number, .pid = 1000 + number, .program = (char *)"detect", \
			.task = (char *)its_task, .task_class = its_class,               \
			.state = (char *)"active", __VA_ARGS__                           \
	}
static Sbeet__Control__Session sessions[] = {
	SESSION(1, "camera", SBEET__TASK_CLASS__TASK_CLASS_REALTIME, .period_ns = 33000000,
		.deadline_ns = 20000000, .priority = 10, .jobs = 30, .launches = 900, .misses = 2,
		.kernels = 7, .kernels_confinable = 6, .max_response_ns = 21500000,
		.last_response_ns = 7500000, .max_wait_ns = 400000, .max_started_late_ns = 1600000),
	SESSION(2, "train", SBEET__TASK_CLASS__TASK_CLASS_BEST_EFFORT, .jobs = 7, .launches = 334),
	SESSION(3, "planner", SBEET__TASK_CLASS__TASK_CLASS_BEST_EFFORT,
		.scope = SBEET__SCOPE__SCOPE_THREAD),
};

#define JOB(its_session, number, its_task, its_state, ...)                                   \
	{                                                                                    \
		PROTOBUF_C_MESSAGE_INIT(&sbeet__control__job__descriptor),                   \
			.session = its_session, .job = number, .task = (char *)its_task,     \
			.state = (char *)its_state, .release_ns = NOW - 5000000, __VA_ARGS__ \
	}
static Sbeet__Control__Job jobs[] = {
	JOB(1, 31, "camera", "running", .enforcement = SBEET__ENFORCEMENT__ENFORCEMENT_COUNT,
	    .requested_ns = NOW - 3400000, .granted_ns = NOW - 3000000,
	    .deadline_ns = NOW + 15000000, .launches = 4, .pid = 1001),
	JOB(2, 8, "train", "running", .enforcement = SBEET__ENFORCEMENT__ENFORCEMENT_COUNT,
	    .granted_ns = NOW - 1000000, .slot = 1, .deadline_ns = NOW - 1000000),
	JOB(3, 1, "planner", "running", .enforcement = SBEET__ENFORCEMENT__ENFORCEMENT_SMID,
	    .exact = 1, .granted_ns = NOW - 1000000, .gpu = 1, .tid = 77),
	JOB(3, 2, "planner", "waiting", .enforcement = SBEET__ENFORCEMENT__ENFORCEMENT_NONE,
	    .requested_ns = NOW - 2000000),
};

#define N(array) (sizeof(array) / sizeof((array)[0]))

static Sbeet__Control__Gpu *gpu_list[N(gpus)];
static Sbeet__Control__Session *session_list[N(sessions)];
static Sbeet__Control__Job *job_list[N(jobs)];

static void prepare(enum double_kind kind) {
	gpus[0].uuid = uuid(1);
	gpus[0].sms_busy = sms(0, 46);
	gpus[1].uuid = uuid(2);
	gpus[1].sms_busy = sms(0, 66);
	jobs[0].sms = sms(0, 23);
	jobs[1].sms = sms(23, 23);
	jobs[2].sms = sms(0, 66);
	if (kind == DOUBLE_LYING) {
		jobs[0].exact = 1;
	}
	if (kind == DOUBLE_UNHELD) {
		jobs[1].enforcement = SBEET__ENFORCEMENT__ENFORCEMENT_NONE;
	}
	if (kind == DOUBLE_LONG) {
		gpus[0].drained = 1;
		gpus[0].name = (char *)"A GPU whose makers could not agree on a name and took all";
		gpus[0].sms = 256;
		gpus[0].power_age_ns = 75000000000ull;
		sessions[0].task = jobs[0].task =
			(char *)"front-camera-of-the-left-arm-while-nobody-is-in-the-cell";
		sessions[0].program = (char *)"detect-with-a-model-that-is-much-too-large";
	}
	if (kind == DOUBLE_CONTROL) {

		gpus[0].name = (char *)"bad\033[2Jname";
	}
	for (size_t i = 0; i < N(gpus); i++) {
		gpu_list[i] = &gpus[i];
	}
	for (size_t i = 0; i < N(sessions); i++) {
		session_list[i] = &sessions[i];
	}
	for (size_t i = 0; i < N(jobs); i++) {
		job_list[i] = &jobs[i];
	}
}

static void reply_status(int fd, uint32_t id, Sbeet__Control__Status *status, bool last) {
	Sbeet__Control__Reply reply = SBEET__CONTROL__REPLY__INIT;

	reply.id = id;
	reply.last = last;
	reply.body_case = SBEET__CONTROL__REPLY__BODY_STATUS;
	reply.status = status;
	if (packet_send(fd, &reply.base, -1) < 0) {
		_exit(0); /* the client has seen enough */
	}
}

static void send_parts(int fd, uint32_t id) {
	Sbeet__Control__Status part = SBEET__CONTROL__STATUS__INIT;

	for (size_t i = 0; i < N(gpus); i++) {
		part.n_gpus = 1;
		part.gpus = &gpu_list[i];
		reply_status(fd, id, &part, false);
	}
	part.n_gpus = 0;
	for (size_t i = 0; i < N(sessions); i++) {
		part.n_sessions = 1;
		part.sessions = &session_list[i];
		reply_status(fd, id, &part, false);
	}
	part.n_sessions = 0;
	for (size_t i = 0; i < N(jobs); i++) {
		part.n_jobs = 1;
		part.jobs = &job_list[i];
		reply_status(fd, id, &part, false);
	}
	part.n_jobs = 0;
	part.service = &service;
	reply_status(fd, id, &part, true);
}

static void send_many(int fd, uint32_t id) {
	Sbeet__Control__Status part = SBEET__CONTROL__STATUS__INIT;
	Sbeet__Control__Session *list[50];

	for (size_t i = 0; i < N(list); i++) {
		list[i] = &sessions[0];
	}
	part.sessions = list;
	part.n_sessions = N(list);
	for (unsigned i = 0; i < 60; i++) {
		part.service = i == 0 ? &service : NULL;
		reply_status(fd, id, &part, i == 59);
	}
}

/* 1,000 sessions, the jobs with the last packet. */
static void send_crowd(int fd, uint32_t id) {
	Sbeet__Control__Status part = SBEET__CONTROL__STATUS__INIT;
	Sbeet__Control__Session *list[50], crowd[50];

	part.sessions = list;
	part.n_sessions = N(list);
	for (unsigned i = 0; i < 20; i++) {
		for (unsigned k = 0; k < N(list); k++) {
			crowd[k] = sessions[1];
			crowd[k].id = 1000 - (50 * i + k);
			list[k] = &crowd[k];
		}
		part.service = i == 0 ? &service : NULL;
		part.gpus = gpu_list;
		part.n_gpus = i == 0 ? N(gpus) : 0;
		part.jobs = job_list;
		part.n_jobs = i == 19 ? N(jobs) : 0;
		reply_status(fd, id, &part, i == 19);
	}
}

static void send_error(int fd, uint32_t id, Sbeet__ErrorCode code, const char *text) {
	Sbeet__Control__Reply reply = SBEET__CONTROL__REPLY__INIT;
	Sbeet__Error error = SBEET__ERROR__INIT;

	error.code = code;
	error.text = (char *)text;
	reply.id = id;
	reply.last = true;
	reply.body_case = SBEET__CONTROL__REPLY__BODY_ERROR;
	reply.error = &error;
	packet_send(fd, &reply.base, -1);
}

static void answer_status(int fd, uint32_t id, enum double_kind kind) {
	Sbeet__Control__Reply empty = SBEET__CONTROL__REPLY__INIT;
	Sbeet__Control__Status all = SBEET__CONTROL__STATUS__INIT;

	all.service = &service;
	all.gpus = gpu_list;
	all.n_gpus = kind == DOUBLE_NO_GPU ? 0 : kind == DOUBLE_IDLE ? 1 : N(gpus);
	all.sessions = session_list;
	all.jobs = job_list;
	if (kind != DOUBLE_IDLE && kind != DOUBLE_NO_GPU) {
		all.n_sessions = N(sessions);
		all.n_jobs = N(jobs);
	}
	switch (kind) {
	case DOUBLE_PARTS:
		send_parts(fd, id);
		break;
	case DOUBLE_MANY:
		send_many(fd, id);
		break;
	case DOUBLE_CROWD:
		send_crowd(fd, id);
		break;
	case DOUBLE_REFUSES:
		send_error(fd, id, SBEET__ERROR_CODE__ERROR_CODE_QUOTA, "too many clients");
		break;
	case DOUBLE_STOPPING:
		send_error(fd, id, SBEET__ERROR_CODE__ERROR_CODE_SHUTDOWN, "stopping");
		break;
	case DOUBLE_UNKNOWN:
		send_error(fd, id, SBEET__ERROR_CODE__ERROR_CODE_UNKNOWN, "status");
		break;
	case DOUBLE_GARBAGE:
		check(send(fd, "\xff\xff\xff\xff", 4, 0) == 4, "send");
		break;
	case DOUBLE_EMPTY:
		empty.id = id;
		empty.last = true;
		packet_send(fd, &empty.base, -1);
		break;
	case DOUBLE_WRONG_ID:
		reply_status(fd, id + 7, &all, true);
		break;
	case DOUBLE_NO_SERVICE:
		all.service = NULL;
		reply_status(fd, id, &all, true);
		break;
	default:
		reply_status(fd, id, &all, true);
		break;
	}
}

static void answer_hello(int fd, uint32_t id, enum double_kind kind) {
	Sbeet__Control__Reply reply = SBEET__CONTROL__REPLY__INIT;
	Sbeet__Control__Hello hello = SBEET__CONTROL__HELLO__INIT;

	hello.version = kind == DOUBLE_OTHER_VERSION ? PROTO_VERSION + 1 : PROTO_VERSION;
	reply.id = id;
	reply.last = true;
	reply.body_case = SBEET__CONTROL__REPLY__BODY_HELLO;
	reply.hello = &hello;
	check(packet_send(fd, &reply.base, -1) == 0, "packet_send");
}

static void serve(int listener, enum double_kind kind) {
	static uint8_t buffer[PROTO_PACKET_MAX];
	int fd = accept(listener, NULL, NULL);
	unsigned n_status = 0;

	check(fd >= 0, "accept");
	prepare(kind);
	for (;;) {
		ProtobufCMessage *message;
		Sbeet__Control__Request *request;
		int n = packet_receive(fd, buffer, NULL);

		if (n <= 0) {
			return;
		}
		check(packet_unpack(&sbeet__control__request__descriptor, buffer, (size_t)n,
				    &message) == 0,
		      "packet_unpack");
		request = (Sbeet__Control__Request *)message;
		if (kind == DOUBLE_SILENT) {
			/* reads on until the client leaves */
		} else if (request->body_case == SBEET__CONTROL__REQUEST__BODY_HELLO) {
			answer_hello(fd, request->id, kind);
			if (kind == DOUBLE_HANGS_UP) {
				return;
			}
		} else {
			answer_status(fd, request->id, kind);
			if ((kind == DOUBLE_TWICE || kind == DOUBLE_CROWD) && ++n_status == 2) {
				return;
			}
		}
		packet_free(message);
	}
}

struct control_double double_start(enum double_kind kind) {
	struct control_double d = {.folder = "/tmp/sbeet-cli-XXXXXX"};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd;

	check(mkdtemp(d.folder) != NULL, "mkdtemp");
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	check(fd >= 0, "socket");
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/control.sock", d.folder);
	check(bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0, "bind");
	check(listen(fd, 1) == 0, "listen");
	d.pid = fork();
	check(d.pid >= 0, "fork");
	if (d.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve(fd, kind);
		_exit(0);
	}
	close(fd);
	return d;
}

void double_stop(struct control_double *d) {
	char path[96];

	kill(d->pid, SIGKILL);
	waitpid(d->pid, NULL, 0);
	snprintf(path, sizeof(path), "%s/control.sock", d->folder);
	unlink(path);
	rmdir(d->folder);
}
