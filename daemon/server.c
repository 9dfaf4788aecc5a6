/*
 * server.c: sockets, sessions and their end. See server.h.
 */
#include "daemon/server.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "daemon/base/awake.h"
#include "daemon/base/client-socket.h"
#include "daemon/base/gate.h"
#include "daemon/base/listener.h"
#include "daemon/base/log.h"
#include "daemon/base/quota.h"
#include "daemon/base/timer.h"
#include "daemon/base/util.h"
#include "daemon/config/reload.h"
#include "daemon/control/control.h"
#include "daemon/control/subscriber.h"
#include "daemon/engine/engine.h"
#include "daemon/gpu/inventory.h"
#include "daemon/gpu/table-file.h"
#include "daemon/mps/mps.h"
#include "daemon/session/allocations.h"
#include "daemon/session/handover.h"
#include "daemon/session/hold.h"
#include "daemon/session/ledger.h"
#include "daemon/session/means.h"
#include "daemon/session/resume.h"
#include "daemon/session/session-mps.h"
#include "daemon/session/session-say.h"
#include "daemon/session/session.h"
#include "daemon/session/steer.h"
#include "daemon/watch/account.h"
#include "daemon/watch/history-session.h"
#include "daemon/watch/late.h"
#include "daemon/watch/metrics-http.h"
#include "daemon/watch/metrics.h"
#include "daemon/watch/miss-log.h"
#include "daemon/watch/report.h"
#include "daemon/watch/watched.h"
#include "proto/packet.h"

struct server {
	struct server_parts parts; /* but for the sockets, which the listeners own */
	/* Owned. */
	struct engine *engine;
	struct allocations *allocations;
	struct quota *quota;
	struct gate *gate;
	struct metrics *metrics;	     /* NULL: off */
	struct metrics_http *metrics_http;   /* by the settings; NULL: off, or not started */
	struct metrics_http *metrics_passed; /* at the socket that was passed; NULL: none */
	struct listener *shim_listener, *control_listener;
	void *buffer; /* PROTO_PACKET_MAX: every packet is received here and unpacked at once */

	struct sessions sessions;
	struct hold hold;
	struct steer steer;
	struct timer look; /* at engine_next_look() */
	nsec_t look_at;	   /* when that is due; 0: it is not set */
	struct totals totals;
	struct watched watched; /* pointers to what is here */
	struct account account; /* of energy */
	struct report report;	/* what happens, for the subscribers */
	struct late late;	/* part of that */
	struct subscribers subscribers;
	struct control control;

	struct log_budget refused; /* lines about connections whose user is not known */
	nsec_t started;
};

/* Frees what has ended, and accepts again if that was stopped. */
static void reap(struct server *server) {
	if (TAILQ_EMPTY(&server->sessions.ended) && TAILQ_EMPTY(&server->control.ended)) {
		return;
	}
	sessions_reap(&server->sessions);
	control_reap(&server->control);
	if (!server->sessions.stopping) {
		listener_resume(server->shim_listener);
		listener_resume(server->control_listener);
	}
}

static struct allocation_totals *totals_of(struct server *server, const struct job *job) {
	return allocations_totals(server->allocations, job->session->allocation);
}

/* Its session and allocation are told what energy it has used. */
static void end_account(struct server *server, struct job *job) {
	struct allocation_totals *totals = totals_of(server, job);
	uint64_t before = job->session->counters.energy_mj;

	account_job_ends(&server->account, job, server->parts.now());
	if (totals) {
		totals->energy_mj += job->session->counters.energy_mj - before;
	}
}

static void count_allocated(struct server *server, const struct job *job, bool missed) {
	struct allocation_totals *totals = totals_of(server, job);
	nsec_t since = job->record.granted;

	if (totals) {
		totals->jobs++;
		totals->misses += missed;
		totals->launches += job->launches;
		totals->gpu += job->ran + (job->finished > since ? job->finished - since : 0);
	}
}

static void count_abandoned(struct server *server, const struct job *job) {
	struct allocation_totals *totals = totals_of(server, job);

	if (totals && !server->sessions.stopping) {
		totals->abandoned++;
		totals->launches += job->launches;
	}
}

static void on_job_done(struct server *server, struct job *job) {
	struct metrics_times times = {
		.started_late = job_started_late(job),
		.wait = job_waited(job, job->finished),
		.response = job->finished > job->release ? job->finished - job->release : 0,
	};
	bool missed = job->record.deadline && job->finished > job->record.deadline;

	server->totals.launches += job->launches;
	server->totals.misses += missed;
	metrics_job(server->metrics, job->session->task.name, &times, missed);
	report_job_done(&server->report, job);
	end_account(server, job);
	count_allocated(server, job, missed);
	history_session_job(server->parts.history, job, &times, missed);
	if (missed) {
		miss_log(job, server->parts.now());
	}
}

#define KIND(name) SBEET__CONTROL__EVENT_KIND__EVENT_KIND_##name

/* Passes on what sessions tell. */
static void on_session_event(void *userdata, enum session_event event, struct session *s,
			     struct job *job) {
	struct server *server = userdata;

	switch (event) {
	case SESSION_EVENT_START:
		s->record_ops = subscribers_watch_ops(&server->subscribers, s);
		history_session_starts(server->parts.history, s);
		report_session(&server->report, s, KIND(SESSION_START));
		break;
	case SESSION_EVENT_WELCOME:
		steer_welcome(&server->steer, s);
		break;
	case SESSION_EVENT_END:
		history_session_ends(server->parts.history, s);
		report_session(&server->report, s, KIND(SESSION_END));
		steer_session_changed(&server->steer, s);
		break;
	case SESSION_EVENT_TERMS:
		steer_session_changed(&server->steer, s);
		break;
	case SESSION_EVENT_PLACE:
		preempting_need_place(s);
		break;
	case SESSION_EVENT_GONE:
		control_session_gone(&server->control, s);
		break;
	case SESSION_EVENT_FAULT:
		server->totals.protocol_errors++;
		break;
	case SESSION_EVENT_UNREPORTED:
		server->totals.unreported = server->sessions.unreported;
		break;
	case SESSION_EVENT_REQUEST:
		report_job(&server->report, job, KIND(JOB_REQUEST));
		break;
	case SESSION_EVENT_RESUME:
		report_job(&server->report, job, KIND(JOB_RESUME));
		/* fall through */
	case SESSION_EVENT_GRANT:
		report_job(&server->report, job, KIND(JOB_GRANT));
		account_job_begins(&server->account, engine_sched(server->engine), job,
				   server->parts.now());
		break;
	case SESSION_EVENT_REVOKE:
		report_job(&server->report, job, KIND(JOB_REVOKE));
		break;
	case SESSION_EVENT_STOP:
		report_job(&server->report, job, KIND(JOB_STOP));
		end_account(server, job);
		break;
	case SESSION_EVENT_DONE:
		on_job_done(server, job);
		break;
	case SESSION_EVENT_ABANDON:
		report_job(&server->report, job, KIND(JOB_ABANDON));
		end_account(server, job);
		count_abandoned(server, job);
		server->totals.launches += job->launches;
		history_session_abandons(server->parts.history, job);
		break;
	case SESSION_EVENT_LEAVE:
		control_job_gone(&server->control, job);
		break;
	}
}

static void on_session_ops(void *userdata, struct session *s, const Sbeet__OpBatch *batch) {
	struct server *server = userdata;

	subscribers_take_ops(&server->subscribers, s, batch);
}

static void on_look(evutil_socket_t fd, short what, void *userdata);

static bool on_shim(void *userdata, int fd) {
	struct server *server = userdata;
	struct session *s;
	int r = session_new(&s, &server->sessions, server->sessions.next_id, fd, ADMISSION_PROGRAM);

	if (r) {
		if (r < 0) {
			log_client(&server->refused, LOG_LEVEL_WARNING,
				   "A program's connection is refused: %s", strerror(-r));
			session_say_exhausted(fd, r);
		}
		client_socket_hang_up(fd); /* its Hello may be there already */
		return r < 0;
	}
	server->sessions.next_id++;
	return true;
}

static bool on_control(void *userdata, int fd) {
	struct server *server = userdata;
	int r = control_accept(&server->control, fd);

	if (r) {
		if (r < 0) {
			log_client(&server->refused, LOG_LEVEL_WARNING,
				   "A control connection is refused: %s", strerror(-r));
		}
		client_socket_hang_up(fd);
		return r < 0;
	}
	return true;
}

static int make_allocations(struct server *server, const char *runtime) {
	char why[PROTO_TEXT_MAX];
	int r = allocations_new(&server->allocations, server->engine, runtime, why, sizeof(why));

	if (r == 0 && *why) {
		log_warning("%s", why);
	}
	return r;
}

/* Return: 0 or negative errno, logged. */
static int set_table(struct server *server, const struct server_parts *parts) {
	const struct settings *settings = &parts->reload->config->settings;
	char why[PROTO_TEXT_MAX];
	int r;

	if (!parts->table && settings->policy->by_table) {
		log_error(
			"Can't start: policy '%s' needs a table, 'table = FILE' in sbeetd.conf; "
			"'sbeetctl plan --table' makes one",
			settings->policy->name);
		return -EINVAL;
	}
	if (!parts->table) {
		return 0;
	}
	r = engine_set_timetable(server->engine, table_file_table(parts->table), why, sizeof(why));
	if (r < 0) {
		log_error("Can't follow the table '%s' on these GPUs: %s", settings->table, why);
	}
	return r;
}

/* Each session takes two descriptors; so many are for GPUs, files and sockets of our own. */
#define DESCRIPTORS_OF_A_SESSION 2
#define OWN_DESCRIPTORS_MAX	 128

/* What all users have together. */
static void set_rooms(struct quota *quota) {
	struct rlimit limit;

	quota_set_room(quota, QUOTA_JOBS, ENGINE_JOBS_MAX);
	quota_set_room(quota, QUOTA_SUBSCRIPTIONS, SUBSCRIBERS_MAX);
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
		rlim_t own = limit.rlim_cur / 4 < OWN_DESCRIPTORS_MAX ? limit.rlim_cur / 4
								      : OWN_DESCRIPTORS_MAX;

		quota_set_room(quota, QUOTA_SESSIONS,
			       (limit.rlim_cur - own) / DESCRIPTORS_OF_A_SESSION);
	}
}

/* Return: 0 or negative errno; then free_owned() frees what there is. */
static int make_owned(struct server *server, const struct server_parts *parts) {
	const struct settings *settings = &parts->reload->config->settings;
	int r;

	server->buffer = malloc(PROTO_PACKET_MAX);
	r = server->buffer ? report_init(&server->report, &server->watched, subscribers_wake,
					 &server->subscribers)
			   : -ENOMEM;
	if (r == 0) {
		/* Each connection tells its user's. */
		r = quota_new(&server->quota, &(struct quota_limits){0});
	}
	if (r == 0) {
		set_rooms(server->quota);
		r = gate_new(&server->gate);
	}
	if (r == 0) {
		r = engine_new(&server->engine, settings->policy, parts->now, means_granted,
			       means_stop);
	}
	if (r == 0) {
		engine_set_policy(
			server->engine, settings->policy,
			&policies_find(&parts->reload->config->policies, settings->policy->name)
				 ->params);
		r = engine_add_gpus(server->engine, parts->inventory, parts->profiles);
	}
	if (r == 0) {
		r = make_allocations(server, parts->runtime);
	}
	if (r == 0) {
		r = set_table(server, parts);
	}
	if (r == 0 && (strcmp(settings->metrics, "off") != 0 || parts->metrics_fd >= 0)) {
		r = metrics_new(&server->metrics, &server->watched);
	}
	return r;
}

static struct server *free_owned(struct server *server) {
	metrics_http_free(server->metrics_http);
	metrics_http_free(server->metrics_passed);
	metrics_free(server->metrics);
	listener_free(server->shim_listener);
	listener_free(server->control_listener);
	report_deinit(&server->report);
	allocations_free(server->allocations);
	engine_free(server->engine);
	quota_free(server->quota);
	gate_free(server->gate);
	util_closep(&server->parts.metrics_fd);
	free(server->buffer);
	free(server);
	return NULL;
}

static void init_sessions(struct server *server, const struct server_parts *parts) {
	const struct settings *settings = &parts->reload->config->settings;

	server->sessions = (struct sessions){
		.base = parts->base,
		.now = parts->now,
		.engine = server->engine,
		.inventory = parts->inventory,
		.profiles = parts->profiles,
		.table = parts->table,
		.ledger = parts->ledger,
		.allocations = server->allocations,
		.learn = parts->learn,
		.mps = parts->mps,
		.reload = parts->reload,
		.quota = server->quota,
		.gate = server->gate,
		.awake = parts->awake,
		.buffer = server->buffer,
		.tell = on_session_event,
		.tell_ops = on_session_ops,
		.userdata = server,
		.linger = settings->linger,
		.drain = settings->drain,
		.spin = settings->spin,
	};
	sessions_init(&server->sessions);
	steer_init(&server->steer, &server->sessions, parts->base, settings->steer_window,
		   settings->preempt, settings->turn, parts->state);
	hold_init(&server->hold, &server->sessions, settings->max_hold);
}

static void init_watchers(struct server *server, const struct server_parts *parts) {
	server->watched = (struct watched){
		.base = parts->base,
		.now = parts->now,
		.started = server->started,
		.engine = server->engine,
		.inventory = parts->inventory,
		.sessions = &server->sessions.list,
		.totals = &server->totals,
	};
	late_init(&server->late, &server->watched, &server->report);
	account_start(&server->account, parts->inventory, engine_sched(server->engine),
		      server->started);
}

static void init_control(struct server *server, const struct server_parts *parts) {
	server->control = (struct control){
		.base = parts->base,
		.now = parts->now,
		.engine = server->engine,
		.inventory = parts->inventory,
		.mps = parts->mps,
		.reload = parts->reload,
		.gate = server->gate,
		.sessions = &server->sessions,
		.steer = &server->steer,
		.account = &server->account,
		.history = parts->history,
		.watched = &server->watched,
		.report = &server->report,
		.subscribers = &server->subscribers,
		.totals = &server->totals,
		.buffer = server->buffer,
	};
	control_init(&server->control);
	subscribers_init(&server->subscribers, &server->watched, &server->report, &server->late,
			 &server->totals);
}

int server_new(struct server **ret, const struct server_parts *parts) {
	_cleanup_close_ int shim_fd = parts->shim_fd, control_fd = parts->control_fd;
	_cleanup_close_ int metrics_fd = parts->metrics_fd;
	struct server *server = calloc(1, sizeof(*server));
	int r;

	if (!server) {
		return -ENOMEM;
	}
	server->parts = *parts;
	server->parts.metrics_fd = -1; /* until it is ours */
	server->started = server->parts.now();
	server->refused.uid = LOG_NO_USER;
	timer_init(&server->look, parts->base, on_look, server);
	r = make_owned(server, parts);
	if (r == 0) {
		r = listener_new(&server->shim_listener, parts->base, shim_fd, on_shim, server);
	}
	if (r == 0) {
		TAKE_FD(shim_fd);
		r = listener_new(&server->control_listener, parts->base, control_fd, on_control,
				 server);
	}
	if (r < 0) {
		free_owned(server);
		return r;
	}
	TAKE_FD(control_fd);
	server->parts.metrics_fd = TAKE_FD(metrics_fd);
	init_sessions(server, parts);
	init_watchers(server, parts);
	init_control(server, parts);
	awake_set(server->parts.awake, server->sessions.spin);
	*ret = server;
	return 0;
}

void server_listen_at(struct server *server, const char *name, int fd) {
	listener_replace(
		strcmp(name, "shim") == 0 ? server->shim_listener : server->control_listener, fd);
}

struct server *server_free(struct server *server) {
	if (server) {
		server_stop(server);
		timer_stop(&server->look);
		steer_deinit(&server->steer);
		hold_deinit(&server->hold);
		late_deinit(&server->late);
		control_deinit(&server->control);
		subscribers_deinit(&server->subscribers);
		free_owned(server);
	}
	return NULL;
}

/* Sets the timer to the next time at which the engine has to look. One that is set too early does
 * no harm: it looks, and is set again. */
static void watch_time(struct server *server) {
	nsec_t next = engine_next_look(server->engine), now;

	if (next == 0 || (server->look_at && server->look_at <= next)) {
		return;
	}
	now = server->parts.now();
	timer_set(&server->look, (next > now ? next - now : 0) + 1);
	server->look_at = next;
}

static void on_look(evutil_socket_t fd, short what, void *userdata) {
	struct server *server = userdata;

	server->look_at = 0;
	engine_look(server->engine);
	late_look(&server->late);
}

void server_describe(const struct server *server, char *text, size_t size) {
	size_t n_gpus = inventory_n_gpus(server->parts.inventory), sessions = 0, waiting = 0,
	       running = 0;
	const struct sched *sched = engine_sched(server->engine);
	enum mps_state mps = mps_info(server->parts.mps).state;
	const struct session *s;
	const struct job *job;

	TAILQ_FOREACH(s, &server->sessions.list, link) {
		sessions += s->fd >= 0;
		TAILQ_FOREACH(job, &s->jobs, link) {
			bool waits = job->state == JOB_WAITING || job->state == JOB_STOPPED;

			waiting += waits;
			running += !waits;
		}
	}
	snprintf(text, size, "%zu GPUs, policy '%s', %zu programs, %zu jobs run, %zu wait%s%s",
		 n_gpus, sched_get_policy(sched)->name, sessions, running, waiting,
		 mps > MPS_ABSENT ? ", MPS " : "", mps > MPS_ABSENT ? mps_state_name(mps) : "");
}

static void decide_measured(struct server *server) {
	const struct engine_counters *counters = engine_counters(server->engine);
	uint64_t before = counters->decisions;
	nsec_t began = server->parts.now(), now;

	engine_run(server->engine);
	now = server->parts.now();
	if (counters->decisions != before) {
		metrics_decision(server->metrics, now - began);
		for (size_t i = 0; i < sched_n_gpus(engine_sched(server->engine)); i++) {
			struct smset busy = engine_sms_busy(server->engine, i);

			metrics_occupancy(server->metrics, i, smset_count(&busy), now);
		}
	}
}

/* What was set by `sbeetctl policy` stays, unless the file says something new. */
static void configure_policy(struct server *server, const struct settings *old,
			     const struct settings *settings) {
	const struct sched *sched = engine_sched(server->engine);
	const struct sched_policy *policy = settings_differ(old, settings, SETTING_POLICY)
						    ? settings->policy
						    : sched_get_policy(sched);
	const struct policy_values *values;

	if (policy->by_table && !server->parts.table) {
		log_warning("Policy '%s' needs 'table = FILE' and a restart, ignoring",
			    policy->name);
		policy = sched_get_policy(sched);
	}
	values = policies_find(&server->parts.reload->config->policies, policy->name);
	if (policy != sched_get_policy(sched) ||
	    !sched_params_equal(&values->params, engine_params(server->engine))) {
		engine_set_policy(server->engine, policy, &values->params);
		report_policy(&server->report);
	}
}

void server_configure(void *userdata, const struct settings *old, const struct settings *settings) {
	struct server *server = userdata;

	server->sessions.linger = settings->linger;
	server->sessions.drain = settings->drain;
	server->hold.limit = settings->max_hold;
	server->steer.window = settings->steer_window;
	if (settings_differ(old, settings, SETTING_SPIN)) {
		server->sessions.spin = settings->spin;
		awake_set(server->parts.awake, settings->spin);
	}
	configure_policy(server, old, settings);
	report_config(&server->report);
}

void server_follow_mps(struct server *server) {
	const struct sched *sched = engine_sched(server->engine);
	bool changed = false;

	for (size_t i = 0; i < sched_n_gpus(sched); i++) {
		const struct inventory_gpu *gpu = inventory_gpu(server->parts.inventory, i);

		if (gpu->sharing == sched_gpu(sched, i)->sharing) {
			continue;
		}
		engine_set_sharing(server->engine, i, gpu);
		log_info("GPU %zu is %s", i,
			 gpu->sharing == SCHED_SHARING_MPS
				 ? "shared through MPS now"
				 : "exclusive now: one program at a time");
		report_gpu(&server->report, i);
		changed = true;
	}
	if (changed) {
		allocations_gpus_changed(server->allocations);
	}
	session_mps_changed(&server->sessions);
	steer_changed(&server->steer);
}

void server_decide(void *userdata) {
	struct server *server = userdata;

	if (server->metrics) {
		decide_measured(server);
	} else {
		engine_run(server->engine);
	}
	steer_look(&server->steer);
	watch_time(server);
	hold_watch(&server->hold);
	late_watch(&server->late);
	reap(server);
}

static int start_metrics(struct server *server) {
	const struct server_parts *parts = &server->parts;
	const char *where = parts->reload->config->settings.metrics;
	char why[PROTO_TEXT_MAX] = "no memory";
	int r = 0;

	if (parts->metrics_fd >= 0) {
		r = metrics_http_new_passed(&server->metrics_passed, parts->base, parts->now,
					    server->metrics, TAKE_FD(server->parts.metrics_fd));
	}
	if (r == 0 && strcmp(where, "off") != 0) {
		r = metrics_http_new(&server->metrics_http, parts->base, parts->now,
				     server->metrics, where, why, sizeof(why));
	}
	if (r < 0) {
		log_error("%s", why);
	}
	return r;
}

int server_start(struct server *server) {
	struct sessions *sessions = &server->sessions;
	struct handover *handover = handover_begin(sessions);
	int r;

	if (!resume_absent(sessions) || ledger_past(sessions->ledger) == LEDGER_PAST_UNKNOWN) {
		r = resume_trust(sessions);
		if (r < 0) {
			return r; /* the list of jobs is still there for the next one */
		}
	}
	handover_finish(handover);
	ledger_commit(sessions->ledger);
	listener_resume(server->shim_listener);
	listener_resume(server->control_listener);
	return start_metrics(server);
}

bool server_is_used(const struct server *server) {
	return !TAILQ_EMPTY(&server->sessions.list);
}

void server_stop(struct server *server) {
	struct session *s;

	server->sessions.stopping = true;
	engine_stop(server->engine);
	handover_save(&server->sessions);
	while ((s = TAILQ_FIRST(&server->sessions.list))) {
		session_goodbye(s, "sbeetd stops");
	}
	control_stop(&server->control);
	reap(server);
}
