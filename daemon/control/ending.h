/*
 * ending.h: the end of sessions and programs, as sbeetctl asks for it.
 *
 * A program that dies in the middle of a kernel can take its neighbours on a GPU with it, and under
 * MPS those that start within the next seconds too. So whoever wants to end one can have it made
 * quiet before: what waits, or is asked for from now on, is withheld; what runs is revoked and may
 * end. That lasts as long as the connection that asked. Where something runs after the given time
 * still, MPS is asked to end the program as a client. Signals are the asking side's.
 */
#pragma once

#include "daemon/control/client.h"

void ending_kill_session(struct control_client *client, const Sbeet__Control__Request *request);

/* It asks no more: what it wanted quiet goes on. */
void ending_client_gone(struct control_client *client);
