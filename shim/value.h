/*
 * value.h: streams that wait for values in memory, and write some.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <cuda.h>

/* Whether streams can wait for values, and write them, as far as is known. @per_thread: stream 0 is
 * the thread's own, here and below. */
bool value_can_wait(bool per_thread);

/* What comes next in @stream waits until the 4 bytes at @at are at least 1. Return: false if the
 * driver can't: then value_can_wait() is false from now on. */
bool value_wait(CUstream stream, bool per_thread, CUdeviceptr at);

/* Behind what is in @stream by now @value is written to the 4 bytes at @at. Return: whether. */
bool value_write(CUstream stream, bool per_thread, CUdeviceptr at, uint32_t value);
