/*
 * handover.h: a planned restart: connections go on as if nothing had happened.
 *
 * The daemon that stops gives the service manager its clients' sockets and a memory file with what
 * belongs to them (its file-descriptor store: FDSTORE=1 in sd_notify(3)); the next one gets them
 * back. What was sent and not read yet is read by that one. The file is a list of the messages
 * that the clients would say themselves, and is judged as if they did; the jobs that hold SMs are
 * in the ledger too, which alone decides who holds SMs (resume.h). Whatever can't be kept (no
 * store, no room, another version, a damaged file) costs connections only: their programs connect
 * again.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Raised when the meaning of the file changes: another version's is not read. */
#define HANDOVER_VERSION 2

struct sessions;

/* Everybody stops to talk. Return: whether there is somebody who keeps the sockets: then those
 * sessions that could be handed over have ended without a word. */
bool handover_save(struct sessions *all);

/* Takes what is there from the service manager; to be called once, before the sessions of the
 * ledger are made, whose numbers then don't collide. */
struct handover;
struct handover *handover_begin(struct sessions *all);

/* The sessions are back; when the ledger's are there. Frees @h, which may be NULL. */
void handover_finish(struct handover *h);
