/*
 * run-summary.h: `sbeetctl run --summary`: runs the program as a child and says at its end what its
 * jobs came to, as sbeetd has counted them: those of all processes that it started, too.
 */
#pragma once

#include "client/base/ctl.h"

/*
 * Starts the command in ctl->args, with the environment as it is, and waits for its end. The
 * summary goes to standard error, or to @file (NULL: none), in the form that --json says. A signal
 * that only sbeetctl gets is passed on. Return: the program's exit code, or an enum ctl_exit if it
 * could not be started, after an error on stderr; ends by the same signal if one ended the program.
 */
int run_summary(const struct ctl *ctl, const char *file);
