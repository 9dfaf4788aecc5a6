/*
 * session-internal.h: what the files that handle requests share: session.c (objects, waits, GPUs,
 * contexts), session-memory.c (memory, modules), session-work.c (streams, events, operations).
 */
#pragma once

#include <cuda.h>

#include "tests/simgpu/server.h"

/* The client's object of that type, or NULL. */
void *session_object(const struct client *c, uint32_t handle, enum object_type type);
/* Return: the handle, or 0 when out of memory. */
uint32_t session_add(struct client *c, enum object_type type, void *p);
void session_drop(struct client *c, uint32_t handle);
/* Replies when @wait is over, perhaps at once. Takes the reference of wait->event. */
void session_wait(struct client *c, const struct wait *wait);
void session_reply_values(struct client *c, uint32_t id, uint64_t a, uint64_t b, uint64_t d);
/* Zeroed, with @data_size bytes of data; NULL. */
struct op *session_op_new(struct context *ctx, enum device_op_kind kind, size_t data_size);

/* Handlers: @packet is at least as long as session.c's table says. @fd: came along, or -1; is
 * closed by the caller. */
void session_memory_alloc(struct client *c, const void *packet, size_t n, int fd);
void session_memory_free(struct client *c, const void *packet, size_t n, int fd);
void session_memory_range(struct client *c, const void *packet, size_t n, int fd);
void session_host_map(struct client *c, const void *packet, size_t n, int fd);
void session_host_unmap(struct client *c, const void *packet, size_t n, int fd);
void session_module_load(struct client *c, const void *packet, size_t n, int fd);
void session_module_free(struct client *c, const void *packet, size_t n, int fd);
void session_kernel_find(struct client *c, const void *packet, size_t n, int fd);
void session_global_find(struct client *c, const void *packet, size_t n, int fd);
void session_part_new(struct client *c, const void *packet, size_t n, int fd);
void session_part_free(struct client *c, const void *packet, size_t n, int fd);
void session_stream_new(struct client *c, const void *packet, size_t n, int fd);
void session_stream_free(struct client *c, const void *packet, size_t n, int fd);
void session_stream_sync(struct client *c, const void *packet, size_t n, int fd);
void session_stream_query(struct client *c, const void *packet, size_t n, int fd);
void session_event_new(struct client *c, const void *packet, size_t n, int fd);
void session_event_free(struct client *c, const void *packet, size_t n, int fd);
void session_event_record(struct client *c, const void *packet, size_t n, int fd);
void session_event_record_all(struct client *c, const void *packet, size_t n, int fd);
void session_event_wait(struct client *c, const void *packet, size_t n, int fd);
void session_event_sync(struct client *c, const void *packet, size_t n, int fd);
void session_event_query(struct client *c, const void *packet, size_t n, int fd);
void session_value_wait(struct client *c, const void *packet, size_t n, int fd);
void session_value_write(struct client *c, const void *packet, size_t n, int fd);
void session_launch(struct client *c, const void *packet, size_t n, int fd);
void session_copy(struct client *c, const void *packet, size_t n, int fd);
void session_fill(struct client *c, const void *packet, size_t n, int fd);
void session_batch(struct client *c, const void *packet, size_t n, int fd);
void session_host_function(struct client *c, const void *packet, size_t n, int fd);
void session_host_next(struct client *c, const void *packet, size_t n, int fd);
void session_host_done(struct client *c, const void *packet, size_t n, int fd);
