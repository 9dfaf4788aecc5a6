/*
 * server.h: the daemon as a whole: listens on both sockets, owns sessions, control clients, engine
 * and quotas, and frees what has ended.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "proto/units.h"

struct awake;
struct event_base;
struct inventory;
struct learn;
struct mps;
struct ledger;
struct profiles;
struct reload;
struct settings;
struct table_file;

/* What a server is made of: the GPUs are known. Borrowed, outlives it, but for the sockets. */
struct server_parts {
	struct event_base *base;
	clock_fn now; /* the clock of all that it owns */
	struct awake *awake;
	struct reload *reload; /* has the settings in force */
	struct inventory *inventory;
	const struct profiles *profiles;
	struct table_file *table; /* NULL: none */
	struct ledger *ledger;
	struct mps *mps;
	struct history *history;
	struct learn *learn;	 /* NULL: off */
	const char *state;	 /* directory to keep things in; copied */
	const char *runtime;	 /* likewise, until the next boot */
	int shim_fd, control_fd; /* listening */
	int metrics_fd;		 /* likewise; -1: none was passed */
};

struct server;

/* All of it is there from then on, but it accepts nobody before server_start(). Takes over both
 * sockets, even if it fails. Return: 0 or negative errno. */
int server_new(struct server **ret, const struct server_parts *parts);

/* What the ledger and the service manager keep of the daemon before is taken over, and connections
 * are accepted. Once. Return: 0 or negative errno. */
int server_start(struct server *server);

/* The listening @fd, which it takes over, stands in place of the socket @name ("shim", "control").
 */
void server_listen_at(struct server *server, const char *name, int fd);

/* Takes NULL. */
struct server *server_free(struct server *server);

/* The configuration has changed: see reload.h. @userdata: the server. */
void server_configure(void *userdata, const struct settings *old, const struct settings *settings);

/* MPS has come or gone, and inventory_set_mps() was told: what is granted follows. */
void server_follow_mps(struct server *server);

/* One line of live numbers, for the service manager. */
void server_describe(const struct server *server, char *text, size_t size);

/* The loop calls this after each turn, see awake_dispatch(): the engine decides, once for all that
 * has changed, the timers that depend on it are set, and what has ended is freed. No event handler
 * calls it.
 * @userdata: the server. */
void server_decide(void *userdata);

/* Whether programs are connected, or run jobs still. */
bool server_is_used(const struct server *server);

/* Grants nothing more, says goodbye to everybody and closes all. */
void server_stop(struct server *server);
