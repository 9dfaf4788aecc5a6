/*
 * admin.h: requests of sbeetctl that change something, or that tell of the configuration.
 *
 * control.c has checked their form; who may is decided here.
 */
#pragma once

#include "daemon/control.h"

/* Whether the peer may change what is others'; as of now: a reload may have changed it. */
bool admin_may(const struct control_client *client);

void admin_config(struct control_client *client, const Sbeet__Control__Request *request);

/* Of all sessions of a task that the peer may change: its own user's, or everybody's for admins. */
void admin_change_task(struct control_client *client, const Sbeet__Control__Request *request);
void admin_kill_session(struct control_client *client, const Sbeet__Control__Request *request);
void admin_drain_gpu(struct control_client *client, const Sbeet__Control__Request *request);
