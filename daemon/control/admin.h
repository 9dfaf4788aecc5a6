/*
 * admin.h: requests of sbeetctl that change something, or that tell of the configuration; but for
 * the end of sessions, which is in ending.h, and for tasks, which are in admin-task.h.
 *
 * control.c has checked their form; who may is decided here.
 */
#pragma once

#include "daemon/control/client.h"

struct session;

/* Whether the peer may change what is others'; as of now: a reload may have changed it. */
bool admin_may(const struct control_client *client);

/* Whether this session is the peer's own user's, or may be changed by it anyway. */
bool admin_may_change(const struct control_client *client, const struct session *s);

/* For log_change(): whose budget pays for the line about a change by this peer; NULL: an admin's. */
struct log_budget *admin_log(const struct control_client *client);

/* Answers: what was done, or why it was not. */
void admin_reply(struct control_client *client, uint32_t id, Sbeet__Control__Done *done);
__attribute__((format(printf, 4, 5))) void admin_refuse(struct control_client *client, uint32_t id,
							Sbeet__ErrorCode code, const char *format,
							...);

void admin_config(struct control_client *client, const Sbeet__Control__Request *request);

void admin_drain_gpu(struct control_client *client, const Sbeet__Control__Request *request);
