/*
 * server.h: the daemon as a whole: listens on both sockets, owns sessions, control clients, engine
 * and quotas, and frees what has ended.
 */
#pragma once

#include "daemon/base/awake.h"
#include "daemon/base/listener.h"
#include "daemon/base/log.h"
#include "daemon/control/control.h"
#include "daemon/control/subscriber.h"
#include "daemon/session/absent.h"
#include "daemon/session/session.h"
#include "daemon/watch/account.h"
#include "daemon/watch/late.h"
#include "daemon/watch/report.h"
#include "daemon/watch/watched.h"

struct engine;
struct gate;
struct inventory;
struct metrics;
struct learn;
struct mps;
struct ledger;
struct profiles;
struct quota;
struct reload;
struct settings;
struct task_save;

struct server {
	struct event_base *base;			   /* borrowed, outlives us */
	clock_fn now;					   /* the clock of all that we own */
	struct inventory *inventory;			   /* borrowed, outlives us */
	struct engine *engine;				   /* owned */
	const struct profiles *profiles;		   /* borrowed, outlive us */
	struct metrics *metrics;			   /* borrowed, outlives us; NULL: off */
	struct reload *reload;				   /* borrowed, outlives us */
	struct mps *mps;				   /* borrowed, outlives us; NULL: off */
	struct ledger *ledger;				   /* borrowed, outlives us */
	struct learn *learn;				   /* borrowed, outlives us; NULL: off */
	struct quota *quota;				   /* owned */
	struct gate *gate;				   /* owned */
	struct task_save *task_save;			   /* owned; NULL: no task is being saved */
	struct listener *shim_listener, *control_listener; /* owned */

	struct session_list sessions, ended_sessions;
	session_event_fn on_session_event;
	struct absent_table absent; /* of those sessions */
	struct control_list clients, ended_clients;
	struct answer_list answers; /* of clients, which own them */
	struct event hold;	    /* see hold.h */
	nsec_t hold_looked;	    /* last */
	nsec_t hold_awake;	    /* since then it has looked all the time */
	struct event look;	    /* at engine_next_look() */
	nsec_t look_at;		    /* when that is due; 0: it is not set */
	struct event reap, trusted;
	struct totals totals;
	struct watched watched; /* pointers to what is here */
	struct account account; /* of energy */
	struct report report;	/* what happens, for the subscribers */
	struct late late;	/* part of that */
	struct subscribers subscribers;
	uint64_t next_session;

	struct log_budget refused; /* lines about connections whose user is not known */
	nsec_t started;
	nsec_t linger;	 /* told to every shim */
	nsec_t max_hold; /* see hold.h; 0: no limit */
	nsec_t spin;	 /* told to every shim */
	struct awake awake;
	nsec_t drain;  /* how long SMs stay with a process that hung up while it runs jobs */
	bool trusting; /* nobody knows who held what: programs are asked, and nothing is granted */
	bool stopping;

	void *buffer; /* owned, PROTO_PACKET_MAX: every packet is received here and unpacked at once
		       */
};

/* Takes over both listening sockets, even if it fails. Accepts nobody before server_start(). */
int server_new(struct server **ret, struct event_base *base, clock_fn now,
	       const struct sched_policy *policy, nsec_t linger, nsec_t drain, int shim,
	       int control);

/* The listening @fd, which it takes over, stands in place of the socket @name ("shim", "control").
 */
void server_listen_at(struct server *server, const char *name, int fd);

/* Takes NULL. */
struct server *server_free(struct server *server);

/* How long we stay awake after a job, and a program for its grant. */
void server_set_spin(struct server *server, nsec_t spin);

/* The configuration has changed: see reload.h. @userdata: the server. */
void server_configure(void *userdata, const struct settings *old, const struct settings *settings);

/* The GPUs are known: what @ledger says of the daemon before is taken over, and connections are
 * accepted. Return: 0 or negative errno. */
int server_start(struct server *server, struct inventory *inventory,
		 const struct profiles *profiles, struct ledger *ledger);

/* One line of live numbers, for the service manager. */
void server_describe(const struct server *server, char *text, size_t size);

/* The loop calls this after each turn, see awake_dispatch(): the engine decides, once for all that
 * has changed, and the timers that depend on it are set. No event handler calls it.
 * @userdata: the server. */
void server_decide(void *userdata);

/* Grants nothing more, says goodbye to everybody and closes all. */
void server_stop(struct server *server);

/* @client has ended: free it when no callback of it runs, and accept again if that was stopped. */
void server_client_ended(struct server *server, struct control_client *client);
