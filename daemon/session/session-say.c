/*
 * session-say.c: see session-say.h.
 */
#include "daemon/session/session-say.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/gate.h"
#include "daemon/base/log.h"
#include "daemon/base/quota.h"
#include "daemon/engine/engine.h"
#include "daemon/gpu/inventory.h"
#include "daemon/session/session-mps.h"
#include "daemon/session/session.h"
#include "proto/packet.h"

/* Ends the session if the peer does not take the packet: nobody is waited for. @passed_fd: goes
 * along, stays the caller's; or -1. */
static void say_passing(struct session *s, Sbeet__ToShim *m, int passed_fd) {
	int r;

	if (s->fd < 0) {
		return;
	}
	s->said = s->all->now();
	r = packet_send(s->fd, &m->base, passed_fd);
	if (r < 0) {
		log_client(quota_log(s->user), LOG_LEVEL_INFO,
			   "session %llu (pid %d, '%s') %s, disconnecting",
			   (unsigned long long)s->id, s->cred.pid, s->task.name,
			   r == -EAGAIN ? "does not read its answers" : strerror(-r));
		session_hang_up(s);
	}
}

static void say(struct session *s, Sbeet__ToShim *m) {
	say_passing(s, m, -1);
}

__attribute__((format(printf, 4, 0))) static void say_verror(struct session *s, uint64_t job,
							     Sbeet__ErrorCode code,
							     const char *format, va_list args) {
	Sbeet__Error error = SBEET__ERROR__INIT;
	Sbeet__ToShim m = SBEET__TO_SHIM__INIT;
	char text[PROTO_TEXT_MAX / 2];

	vsnprintf(text, sizeof(text), format, args);
	log_event(quota_log(s->user), LOG_LEVEL_WARNING,
		  &(struct log_about){.id = LOG_ID_PEER,
				      .task = *s->task.name ? s->task.name : NULL,
				      .gpu = -1,
				      .job = job,
				      .uid = s->cred.uid},
		  "session %llu (pid %d, '%s'): %s", (unsigned long long)s->id, s->cred.pid,
		  s->task.name, text);
	s->mistaken = true;
	s->penance = gate_mistake(s->all->gate, &s->cred, s->all->now());
	error.code = code;
	error.text = text;
	error.job = job;
	m.body_case = SBEET__TO_SHIM__BODY_ERROR;
	m.error = &error;
	say(s, &m);
}

void session_say_error(struct session *s, uint64_t job, Sbeet__ErrorCode code, const char *format,
		       ...) {
	va_list args;

	va_start(args, format);
	say_verror(s, job, code, format, args);
	va_end(args);
}

void session_fail(struct session *s, Sbeet__ErrorCode code, const char *format, ...) {
	va_list args;

	session_tell(s, SESSION_EVENT_FAULT, NULL);
	s->faulty = true;
	va_start(args, format);
	say_verror(s, 0, code, format, args);
	va_end(args);
	session_hang_up(s);
}

/* What a program that is planned with had better have ready. One that reads terms is told there
 * which parts it needs. Return: how many. */
static size_t fill_rows(const struct session *s, Sbeet__GreenRows *rows) {
	const struct inventory *inventory = s->all->inventory;
	size_t n = 0;

	for (size_t i = 0; s->sched_task != SCHED_TASK_NONE && i < inventory_n_gpus(inventory);
	     i++) {
		struct engine_rows own;
		unsigned group;

		if (s->terms.page && engine_steers(s->all->engine, i, &group)) {
			continue;
		}
		if (engine_rows(s->all->engine, i, &own)) {
			sbeet__green_rows__init(&rows[n]);
			rows[n].gpu_uuid.data = (uint8_t *)inventory_gpu(inventory, i)->uuid;
			rows[n].gpu_uuid.len = PROTO_UUID_BYTES;
			rows[n].group = own.group;
			rows[n].last_group = own.last_group;
			rows[n++].anywhere = own.anywhere;
		}
	}
	return n;
}

static bool is_dependent(const struct session *s) {
	const struct sched *sched = engine_sched(s->all->engine);

	return s->task.dependent ||
	       (sched_get_policy(sched)->steers && sched_get_params(sched)->dependent);
}

void session_say_welcome(struct session *s, const struct inventory_gpu *gpu, int page_fd) {
	Sbeet__GreenRows rows[SCHED_GPUS_MAX], *row_list[SCHED_GPUS_MAX];
	char *features[6] = {(char *)PROTO_FEATURE_RESUME, (char *)PROTO_FEATURE_PING,
			     (char *)PROTO_FEATURE_COUNTS};
	Sbeet__Welcome welcome = SBEET__WELCOME__INIT;
	Sbeet__ToShim m = SBEET__TO_SHIM__INIT;
	struct session_mps mps;

	welcome.version = PROTO_VERSION;
	welcome.session = s->id;
	welcome.task = s->task.name;
	welcome.linger_ns = s->all->linger;
	welcome.spin_ns = s->all->spin;
	welcome.features = features;
	welcome.n_features = 3;
	if (engine_cuts_green(s->all->engine)) {
		features[welcome.n_features++] = (char *)"green";
	}
	if (is_dependent(s)) {
		features[welcome.n_features++] = (char *)PROTO_FEATURE_DEPENDENT;
	}
	if (page_fd >= 0) {
		features[welcome.n_features++] = (char *)PROTO_FEATURE_TERMS;
	}
	welcome.n_rows = fill_rows(s, rows);
	welcome.rows = row_list;
	for (size_t i = 0; i < welcome.n_rows; i++) {
		row_list[i] = &rows[i];
	}
	if (identity_has_secret(&s->identity)) {
		welcome.secret.data = s->identity.secret;
		welcome.secret.len = sizeof(s->identity.secret);
	}
	session_mps_welcome(s, gpu, &mps);
	welcome.mps_pipe_directory = (char *)mps.pipe_directory;
	welcome.mps_log_directory = (char *)mps.log_directory;
	welcome.notice = mps.notice;
	if (gpu) {
		welcome.gpu_uuid.data = (uint8_t *)gpu->uuid;
		welcome.gpu_uuid.len = sizeof(gpu->uuid);
	}
	m.body_case = SBEET__TO_SHIM__BODY_WELCOME;
	m.welcome = &welcome;
	say_passing(s, &m, page_fd);
}

void session_say_goodbye(struct session *s, const char *reason) {
	Sbeet__Goodbye goodbye = SBEET__GOODBYE__INIT;
	Sbeet__ToShim m = SBEET__TO_SHIM__INIT;

	goodbye.reason = (char *)reason;
	m.body_case = SBEET__TO_SHIM__BODY_GOODBYE;
	m.goodbye = &goodbye;
	say(s, &m);
}

void session_say_grant(const struct job *job) {
	struct session *s = job->session;
	const struct inventory_gpu *gpu = inventory_gpu(s->all->inventory, job->gpu);
	Sbeet__Grant grant = SBEET__GRANT__INIT;
	Sbeet__ToShim m = SBEET__TO_SHIM__INIT;
	uint8_t sms[sizeof(struct smset)];

	grant.job = job->record.number;
	grant.gpu_uuid.data = (uint8_t *)gpu->uuid;
	grant.gpu_uuid.len = sizeof(gpu->uuid);
	grant.slot = job->record.slot;
	grant.sms.data = sms;
	grant.sms.len = smset_to_bytes(&job->record.sms, sms);
	grant.enforcement = job->record.enforcement;
	grant.sequence = job->record.sequence;
	grant.gpu_sms = gpu->n_sms;
	grant.deadline_ns = job->record.deadline;
	grant.record_ops = job->records_ops;
	grant.whole_job = engine_whole_jobs(s->all->engine);
	grant.level = job->level;
	m.body_case = SBEET__TO_SHIM__BODY_GRANT;
	m.grant = &grant;
	say(s, &m);
}

void session_say_ping(struct session *s) {
	Sbeet__Ping ping = SBEET__PING__INIT;
	Sbeet__ToShim m = SBEET__TO_SHIM__INIT;

	ping.number = s->pinged;
	m.body_case = SBEET__TO_SHIM__BODY_PING;
	m.ping = &ping;
	say(s, &m);
}

void session_say_pong(struct session *s, uint64_t number) {
	Sbeet__Pong pong = SBEET__PONG__INIT;
	Sbeet__ToShim m = SBEET__TO_SHIM__INIT;

	pong.number = number;
	m.body_case = SBEET__TO_SHIM__BODY_PONG;
	m.pong = &pong;
	say(s, &m);
}

void session_say_present(struct session *s) {
	Sbeet__Pong pong = SBEET__PONG__INIT;
	Sbeet__ToShim m = SBEET__TO_SHIM__INIT;

	m.body_case = SBEET__TO_SHIM__BODY_PONG;
	m.pong = &pong;
	s->said = s->all->now();
	packet_send(s->fd, &m.base, -1);
}

void session_say_record_ops(struct session *s, uint64_t job, bool on) {
	Sbeet__RecordOps record = SBEET__RECORD_OPS__INIT;
	Sbeet__ToShim m = SBEET__TO_SHIM__INIT;

	record.job = job;
	record.on = on;
	m.body_case = SBEET__TO_SHIM__BODY_RECORD_OPS;
	m.record_ops = &record;
	say(s, &m);
}

void session_say_board(struct session *s) {
	Sbeet__Board board = SBEET__BOARD__INIT;
	Sbeet__ToShim m = SBEET__TO_SHIM__INIT;

	board.slot = s->seat.slot;
	m.body_case = SBEET__TO_SHIM__BODY_BOARD;
	m.board = &board;
	say_passing(s, &m, board_fd(&s->seat));
}

void session_say_want_groups(struct session *s, bool turns) {
	Sbeet__WantGroups want = SBEET__WANT_GROUPS__INIT;
	Sbeet__ToShim m = SBEET__TO_SHIM__INIT;

	want.turns = turns;
	m.body_case = SBEET__TO_SHIM__BODY_WANT_GROUPS;
	m.want_groups = &want;
	say(s, &m);
}

void session_say_revoke(struct session *s, uint64_t job, bool stop, const char *reason) {
	Sbeet__Revoke revoke = SBEET__REVOKE__INIT;
	Sbeet__ToShim m = SBEET__TO_SHIM__INIT;

	revoke.job = job;
	revoke.reason = (char *)reason;
	revoke.stop = stop;
	m.body_case = SBEET__TO_SHIM__BODY_REVOKE;
	m.revoke = &revoke;
	say(s, &m);
}

void session_say_refusal(int fd, const char *text) {
	Sbeet__Error error = SBEET__ERROR__INIT;
	Sbeet__ToShim m = SBEET__TO_SHIM__INIT;

	error.code = SBEET__ERROR_CODE__ERROR_CODE_QUOTA;
	error.text = (char *)text;
	m.body_case = SBEET__TO_SHIM__BODY_ERROR;
	m.error = &error;
	packet_send(fd, &m.base, -1);
}

void session_say_exhausted(int fd, int error) {
	char text[128];

	snprintf(text, sizeof(text), "sbeetd has no room for another program now: %s",
		 strerror(-error));
	session_say_refusal(fd, text);
}
