/*
 * declare.h: the kernels that sbeetd was told of over the present connection.
 *
 * conn.c's own, under its lock.
 */
#pragma once

#include <stdint.h>

#include "sbeet.pb-c.h"
#include "shim/enforce/kernel.h"

/* Sends @k with @send, which returns 0 or negative errno, if that was not done yet. Return: the
 * number to name it by; 0 if @k is NULL or beyond the limits, or it could not be sent. */
uint32_t declare_kernel(const struct kernel *k, int (*send)(const Sbeet__ToDaemon *message));

/* There is a new connection. */
void declare_forget(void);
