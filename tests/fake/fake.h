/*
 * fake.h: what a test may ask the fake driver for, next to the functions of cuda.h.
 *
 * The fake driver (libcuda.so.1) computes nothing. It has contexts, streams, events, captures,
 * memory and modules as far as the shim looks at them, and 2 GPUs whose sizes and UUIDs are those
 * of `sbeetd
 * --gpus 80,40`.
 */
#pragma once

#include <stdbool.h>

#include <cuda.h>

#define FAKE_EXPORT __attribute__((visibility("default")))

/* A gate before copies from the device and before events are made: while it is closed, who comes
 * stays there. */
FAKE_EXPORT void fake_gate(bool closed);

/* Waits until somebody stands at the gate. */
FAKE_EXPORT void fake_gate_wait(void);

/* Contexts that were taken down while somebody stood at the gate, in the middle of a call. */
FAKE_EXPORT unsigned fake_trampled(void);

/* While held, nothing that was handed over completes. */
FAKE_EXPORT void fake_hold(bool held);

/* Launches that reached the driver, of all kernels but FAKE_TWIN. */
FAKE_EXPORT unsigned fake_launches(void);

/* Questions about or records on a stream while it was being captured: spoils the capture. */
FAKE_EXPORT unsigned fake_spoiled(void);

/* The kernel of the program's modules, and that of the modules which the shim loads beside them. */
#define FAKE_KERNEL ((CUfunction)0x200)
#define FAKE_TWIN   ((CUfunction)0x210)

/* Launches of FAKE_TWIN. */
FAKE_EXPORT unsigned fake_twin_launches(void);

/* Launches of FAKE_KERNEL as a dependent one, and those of them whose module was made of a text in
 * which it does not wait first of all. */
FAKE_EXPORT unsigned fake_dependent_launches(void);
FAKE_EXPORT unsigned fake_careless_launches(void);

/* What the driver does not take: texts with kernels that wait, dependent launches. */
FAKE_EXPORT void fake_refuse(bool waits, bool dependent);

/* From now on no two answers of cuFuncGetAttribute() about @attribute are the same; -1: all are. */
FAKE_EXPORT void fake_vary(int attribute);

/* CU_JIT_MAX_REGISTERS of the last module that the shim loaded; 0: not given. */
FAKE_EXPORT unsigned fake_twin_registers(void);

/* Waits until somebody has asked about an event; events that were made, and not destroyed one by
 * one. */
FAKE_EXPORT void fake_events_wait(void);
FAKE_EXPORT unsigned fake_events(void);

/* Questions that reached the driver whether work is complete, by anybody. */
FAKE_EXPORT unsigned fake_questions(void);

/* With FAKE_CODES=1 every function does nothing but return its own number: this plus its place in
 * hooks.def. */
#define FAKE_CODE 10000

/* What cuGetProcAddress of the driver itself answers, whoever stands in front of it. */
FAKE_EXPORT CUresult fake_find(const char *symbol, void **function, int version, cuuint64_t flags);
