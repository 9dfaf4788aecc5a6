/*
 * fake.h: what a test may ask the fake driver for, next to the functions of cuda.h.
 *
 * The fake driver (libcuda.so.1) computes nothing. It has contexts, streams, events and captures as
 * far as the shim looks at them, and 2 GPUs whose UUIDs are those of `sbeetd --gpus`.
 */
#pragma once

#include <stdbool.h>

#include <cuda.h>

#define FAKE_EXPORT __attribute__((visibility("default")))

/* While held, nothing that was handed over completes. */
FAKE_EXPORT void fake_hold(bool held);

/* Calls to kernel launch functions that reached the driver. */
FAKE_EXPORT unsigned fake_launches(void);

/* Questions about or records on a stream while it was being captured: spoils the capture. */
FAKE_EXPORT unsigned fake_spoiled(void);

/* With FAKE_CODES=1 every function does nothing but return its own number: this plus its place in
 * hooks.def. */
#define FAKE_CODE 10000

/* What cuGetProcAddress of the driver itself answers, whoever stands in front of it. */
FAKE_EXPORT CUresult fake_find(const char *symbol, void **function, int version, cuuint64_t flags);
