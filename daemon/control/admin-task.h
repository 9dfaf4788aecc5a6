/*
 * admin-task.h: `sbeetctl task set`: what a task is from now on: to programs that run, and, where
 * it is to be saved, in tasks.d/NAME.conf for those that come.
 */
#pragma once

#include "daemon/control/client.h"

struct task_save;

/* Of all sessions of a task that the peer may change: its own user's, or everybody's for admins,
 * who alone may save. All of it is done, or nothing. */
void admin_change_task(struct control_client *client, const Sbeet__Control__Request *request);

/* Nobody waits for the answer any more; what is being saved will be. */
void admin_task_client_gone(const struct control_client *client);

/* Takes NULL. Waits until it is on the disk. */
struct task_save *admin_task_save_free(struct task_save *save);
