/*
 * subscriber.c: see subscriber.h.
 */
#include "daemon/control/subscriber.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/quota.h"
#include "daemon/base/util.h"
#include "daemon/control/admin.h"
#include "daemon/control/ops-packet.h"
#include "daemon/engine/engine.h"
#include "daemon/gpu/inventory.h"
#include "daemon/session/session-job.h"
#include "daemon/session/session.h"
#include "daemon/watch/late.h"
#include "daemon/watch/report.h"
#include "daemon/watch/watched.h"
#include "proto/packet.h"

/* Of those that there may be: so admins can always look. */
#define SUBSCRIBERS_FOR_ADMINS 8

/* Of at most some 350 bytes each: a packet has room for these. */
#define EVENTS_PER_PACKET 128

/* From the first event to the packet that has it. With PACKETS_PER_SEND this is 100,000 events a
 * second for each subscriber, more than there are at 20,000 jobs a second. */
#define SEND_AFTER	 (10 * NSEC_PER_MSEC)
#define PACKETS_PER_SEND 8

/* Between two readings of power while somebody watches. */
#define POWER_EVERY (1100 * NSEC_PER_MSEC)

struct subscriber {
	TAILQ_ENTRY(subscriber) link;
	struct subscribers *all;       /* borrowed, outlives us */
	struct control_client *client; /* borrowed, owns us */
	struct feed_reader reader;
	uint32_t id;
	bool ops; /* it is told of operations */
	struct ops_reader ops_reader;
	bool full; /* its socket was: control_client tells when there is room */
};

/* A packet in the making. */
struct batch {
	Sbeet__Control__Events events;
	Sbeet__Control__Event list[EVENTS_PER_PACKET], *pointers[EVENTS_PER_PACKET];
	struct feed_event copies[EVENTS_PER_PACKET];
	uint8_t sms[EVENTS_PER_PACKET][32];
};

static void batch_init(struct batch *b) {
	sbeet__control__events__init(&b->events);
	b->events.events = b->pointers;
}

static void batch_add(struct batch *b, const struct feed_event *event) {
	size_t n = b->events.n_events++;
	struct feed_event *e = &b->copies[n];
	Sbeet__Control__Event *m = &b->list[n];

	*e = *event;
	b->pointers[n] = m;
	sbeet__control__event__init(m);
	m->kind = e->kind;
	m->time_ns = e->time;
	m->before = e->before;
	m->session = e->session;
	m->job = e->job.number;
	m->task = e->task;
	m->gpu = e->gpu;
	m->slot = e->job.slot;
	m->sms.data = b->sms[n];
	m->sms.len = smset_to_bytes(&e->job.sms, b->sms[n]);
	m->enforcement = (Sbeet__Enforcement)e->job.enforcement;
	m->release_ns = e->release;
	m->requested_ns = e->job.requested;
	m->deadline_ns = e->job.deadline;
	m->granted_ns = e->job.granted;
	m->launched_ns = e->launched;
	m->kernel_end_ns = e->kernel_end;
	m->finished_ns = e->finished;
	m->predicted_finish_ns = e->predicted_finish;
	m->launches = e->launches;
	m->terms = e->terms;
	m->pid = e->pid;
	m->uid = e->uid;
	m->tid = e->job.tid;
	m->task_class = e->task_class;
	m->period_ns = e->period;
	m->gpu_sms = e->gpu_sms;
	m->sharing = e->sharing ? (char *)e->sharing : m->sharing;
	m->power_mw = e->power_mw;
	m->energy_mj = e->energy_mj;
	m->text = e->text;
}

static void reply_init(Sbeet__Control__Reply *reply, uint32_t id, struct batch *b) {
	sbeet__control__reply__init(reply);
	reply->id = id;
	reply->body_case = SBEET__CONTROL__REPLY__BODY_EVENTS;
	reply->events = &b->events;
}

/* Part of the description of what there is: like any answer, it waits until the peer reads. */
static void describe(struct control_client *client, uint32_t id, struct batch *b,
		     const struct feed_event *event) {
	Sbeet__Control__Reply reply;

	if (event) {
		client->n_told++;
		batch_add(b, event);
		b->copies[b->events.n_events - 1].before = true;
		b->list[b->events.n_events - 1].before = true;
	}
	if (b->events.n_events == EVENTS_PER_PACKET || !event) {
		reply_init(&reply, id, b);
		control_client_send(client, &reply);
		b->events.start = NULL;
		b->events.n_events = 0;
	}
}

/* May end @client, and its subscription with it. */
static void describe_all(const struct subscribers *all, struct control_client *client, uint32_t id,
			 struct batch *b) {
	const struct watched *watched = all->watched;
	nsec_t now = watched->now();
	struct feed_event event;
	struct session *session;
	struct job *job;

	for (size_t i = 0; i < inventory_n_gpus(watched->inventory); i++) {
		report_fill_gpu(all->report, i, &event);
		describe(client, id, b, &event);
	}
	TAILQ_FOREACH(session, watched->sessions, link) {
		if (session->state == SESSION_NEW) {
			continue; /* its Hello will be told of */
		}
		report_fill_session(session, &event);
		describe(client, id, b, &event);
		TAILQ_FOREACH(job, &session->jobs, link) {
			report_fill_job(all->report, job, &event);
			describe(client, id, b, &event);
			if (late_is_late(job, now)) {
				event.kind = SBEET__CONTROL__EVENT_KIND__EVENT_KIND_JOB_LATE;
				event.time = job->record.deadline;
				describe(client, id, b, &event);
			}
		}
	}
	describe(client, id, b, NULL);
}

static int64_t wall_offset(nsec_t now) {
	return util_wall_now() - (int64_t)now;
}

/* After packet_send() to @s, which returned @r. Return: whether it was sent. */
static bool was_sent(struct subscriber *s, int r) {
	if (r == -EAGAIN || r == -ENOMEM) {
		s->full = true;
		control_client_wait_writable(s->client); /* which may end it, and @s with it */
	} else if (r < 0) {
		control_client_end(s->client); /* the same */
	}
	return r == 0;
}

/* Takes up to a packet's worth from the ring and sends it. Return: whether there may be more. */
static bool send_packet(struct subscriber *s, struct batch *b) {
	const struct feed_event *event;
	struct feed_reader before = s->reader;
	Sbeet__Control__Reply reply;
	int r;

	batch_init(b);
	while (b->events.n_events < EVENTS_PER_PACKET &&
	       (event = feed_read(&s->all->report->feed, &s->reader))) {
		batch_add(b, event);
	}
	if (b->events.n_events == 0) {
		return false;
	}
	b->events.lost = feed_take_lost(&s->reader);
	reply_init(&reply, s->id, b);
	r = packet_send(s->client->fd, &reply.base, -1);
	if (r == -EAGAIN || r == -ENOMEM) {
		/* Nothing was sent: these are still to be read, unless they are overwritten first.
		 */
		s->reader = before;
	}
	if (!was_sent(s, r)) {
		return false;
	}
	s->all->totals->events_lost += b->events.lost;
	return b->events.n_events == EVENTS_PER_PACKET;
}

/* The same with operations. */
static bool send_ops(struct subscriber *s) {
	static struct ops_packet p;
	Sbeet__Control__Events events = SBEET__CONTROL__EVENTS__INIT;
	Sbeet__Control__Reply reply = SBEET__CONTROL__REPLY__INIT;
	struct ops_reader before = s->ops_reader;
	bool more = ops_packet_fill(&p, &s->all->ops, &s->ops_reader, admin_may(s->client),
				    s->client->cred.uid);
	int r;

	if (p.list.n_ops == 0 && p.list.lost == 0) {
		return more;
	}
	events.ops = &p.list;
	reply.id = s->id;
	reply.body_case = SBEET__CONTROL__REPLY__BODY_EVENTS;
	reply.events = &events;
	r = packet_send(s->client->fd, &reply.base, -1);
	if (r == -EAGAIN || r == -ENOMEM) {
		s->ops_reader = before;
	}
	if (!was_sent(s, r)) {
		return false;
	}
	s->all->totals->events_lost += p.list.lost;
	return more;
}

/* Return: whether there may be more to send, when others have had their turn. May end @s. */
static bool send_some(struct subscriber *s) {
	struct control_client *client = s->client;
	bool events = true, ops = s->ops;
	struct batch b;

	for (int i = 0; i < PACKETS_PER_SEND && (events || ops); i++) {
		if (!control_client_is_idle(client) || s->full) {
			return false;
		}
		events = events && send_packet(s, &b);
		if (ops && control_client_is_idle(client) && !s->full) {
			ops = send_ops(s);
		}
	}
	return events || ops;
}

static void on_send(evutil_socket_t fd, short what, void *userdata) {
	struct subscribers *all = userdata;
	struct subscriber *s, *next;
	bool more = false;

	feed_rest(&all->report->feed);
	all->ops_awake = false;
	for (s = TAILQ_FIRST(&all->list); s; s = next) {
		next = TAILQ_NEXT(s, link);
		more |= send_some(s);
	}
	if (more) {
		timer_set(&all->send, SEND_AFTER);
	}
}

void subscribers_wake(void *userdata) {
	struct subscribers *all = userdata;

	timer_set(&all->send, SEND_AFTER);
}

/* Reports the readings that have come since the last time, and asks for the next ones. */
static void on_power(evutil_socket_t fd, short what, void *userdata) {
	struct subscribers *all = userdata;
	struct inventory *inventory = all->watched->inventory;
	nsec_t now = all->watched->now();

	for (size_t i = 0; i < inventory_n_gpus(inventory); i++) {
		if (inventory_gpu(inventory, i)->read_at > all->power_seen) {
			report_gpu(all->report, i);
		}
	}
	all->power_seen = now;
	inventory_refresh(inventory, now);
	if (all->n > 0) {
		timer_set(&all->power, POWER_EVERY);
	}
}

void subscribers_init(struct subscribers *all, const struct watched *watched, struct report *report,
		      struct late *late, struct totals *totals) {
	*all = (struct subscribers){
		.watched = watched, .report = report, .late = late, .totals = totals};
	TAILQ_INIT(&all->list);
	timer_init(&all->send, watched->base, on_send, all);
	timer_init(&all->power, watched->base, on_power, all);
}

void subscribers_deinit(struct subscribers *all) {
	timer_stop(&all->send);
	timer_stop(&all->power);
}

bool subscribers_watch_ops(const struct subscribers *all, const struct session *session) {
	struct subscriber *s;

	TAILQ_FOREACH(s, &all->list, link) {
		if (s->ops && admin_may_change(s->client, session)) {
			return true;
		}
	}
	return false;
}

/* Somebody has begun to watch operations, or does so no longer: programs are told. */
static void tell_programs(const struct subscribers *all) {
	struct session *session, *next;

	for (session = TAILQ_FIRST(all->watched->sessions); session; session = next) {
		bool on = subscribers_watch_ops(all, session);

		next = TAILQ_NEXT(session, link);
		if (on != session->record_ops) {
			session_job_record_ops(session, on); /* may end it */
		}
	}
}

void subscribers_take_ops(struct subscribers *all, const struct session *session,
			  const Sbeet__OpBatch *batch) {
	if (ops_write(&all->ops, session, batch) && !all->ops_awake) {
		all->ops_awake = true;
		timer_set(&all->send, SEND_AFTER);
	}
}

static int watch_ops(struct subscriber *s) {
	int r = ops_attach(&s->all->ops, &s->ops_reader);

	if (r == 0) {
		s->ops = true;
	}
	return r;
}

int subscriber_new(struct subscriber **ret, struct subscribers *all, struct control_client *client,
		   uint32_t id, bool ops) {
	const struct watched *watched = all->watched;
	Sbeet__Control__EventsStart start = SBEET__CONTROL__EVENTS_START__INIT;
	struct subscriber *s;
	struct batch b;

	if (all->n >= SUBSCRIBERS_MAX - (admin_may(client) ? 0 : SUBSCRIBERS_FOR_ADMINS)) {
		return SUBSCRIBER_E_TOO_MANY;
	}
	if (quota_work_owed(client->user, watched->now()) > 0) {
		return SUBSCRIBER_E_TOO_FAST;
	}
	if (quota_charge(client->user, QUOTA_SUBSCRIPTIONS, 1)) {
		return SUBSCRIBER_E_QUOTA;
	}
	s = calloc(1, sizeof(*s));
	if (!s) {
		quota_release(client->user, QUOTA_SUBSCRIPTIONS, 1);
		return -ENOMEM;
	}
	s->all = all;
	s->client = client;
	s->id = id;
	if (ops && watch_ops(s) < 0) {
		quota_release(client->user, QUOTA_SUBSCRIPTIONS, 1);
		free(s);
		return -ENOMEM;
	}
	start.now_ns = watched->now();
	start.wall_offset_ns = wall_offset(start.now_ns);
	start.version = (char *)SBEET_VERSION;
	start.policy = (char *)sched_get_policy(engine_sched(watched->engine))->name;
	batch_init(&b);
	b.events.start = &start;
	/* What nobody watched becoming late is told below, as it was before. */
	late_look(all->late);
	feed_attach(&all->report->feed, &s->reader);
	late_look(all->late);
	TAILQ_INSERT_TAIL(&all->list, s, link);
	if (all->n++ == 0) {
		all->power_seen = start.now_ns;
		timer_set(&all->power, POWER_EVERY);
	}
	*ret = s;
	if (ops) {
		tell_programs(all);
	}
	describe_all(all, client, id, &b);
	quota_work(client->user, 0, client->n_told, watched->now());
	return 0;
}

struct subscriber *subscriber_free(struct subscriber *s) {
	if (s) {
		feed_detach(&s->all->report->feed, &s->reader);
		TAILQ_REMOVE(&s->all->list, s, link);
		s->all->n--;
		if (s->ops) {
			ops_detach(&s->all->ops, &s->ops_reader);
			tell_programs(s->all);
		}
		quota_release(s->client->user, QUOTA_SUBSCRIPTIONS, 1);
		free(s);
	}
	return NULL;
}

void subscriber_resume(struct subscriber *s) {
	s->full = false;
	if (send_some(s)) {
		timer_set(&s->all->send, SEND_AFTER);
	}
}
