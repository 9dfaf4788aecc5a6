/*
 * validate.h: ranges, enums, strings and presence of every field that comes from another process.
 *
 * The only place that judges messages; handlers rely on it and check nothing twice. Pure.
 */
#pragma once

#include <stddef.h>

#include "control.pb-c.h"
#include "sbeet.pb-c.h"

/*
 * Return: 0 or -EBADMSG; then @why (if not NULL) tells field, value and what was expected in at
 * most @size bytes. An empty oneof is -ENOMSG: a message type that this build does not know.
 */
int validate_to_daemon(const Sbeet__ToDaemon *m, char *why, size_t size);
int validate_to_shim(const Sbeet__ToShim *m, char *why, size_t size);
int validate_control_request(const Sbeet__Control__Request *m, char *why, size_t size);
int validate_control_reply(const Sbeet__Control__Reply *m, char *why, size_t size);

/* Printable UTF-8 (see text.h) of at most @max bytes, as all texts are. Return: 0 or -EBADMSG. */
int validate_text(const char *text, size_t max);

/* Task names: 1 to PROTO_NAME_MAX of [A-Za-z0-9._@:+-], not starting with '.' or '-'. */
int validate_name(const char *name);
