/*
 * plain-driver.h: the driver as kernel.c and enforce.c see it, for programs that link them without
 * the rest of the shim: libcuda.so.1 itself, with nothing in front of it. Defines real_get() and
 * what else they need.
 */
#pragma once

#include <stdbool.h>

#include "shim/real.h"

extern struct real plain_driver;

/* Return: false if there is no driver, or no GPU that it knows. */
bool plain_driver_load(void);
