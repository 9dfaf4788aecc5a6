/*
 * session-mps.h: what MPS means to one program: where it is, whether the program is a client of it,
 * whether there is room for one more, and what the program is told when there is not.
 *
 * A program is a client from its start to its end, or is none: CUDA looks for MPS once. MPS may
 * come and go meanwhile, and the sharing of GPUs with it. On a GPU that is shared because MPS is
 * up, a program that is no client of that MPS is apart: it runs jobs while others don't, and asks
 * for them.
 */
#pragma once

#include "daemon/session/session.h"

struct inventory_gpu;
struct sessions;

struct session_mps {
	const char *pipe_directory, *log_directory; /* "": not for this one */
	char notice[PROTO_TEXT_MAX / 4];	    /* "": nothing to be told */
};

/* At its Hello, before anything depends on it: whether it is, or will be, a client. */
void session_mps_hello(struct session *s, const Sbeet__Hello *hello);

/* The GPUs, a mask, where it is apart. */
uint32_t session_mps_apart(const struct session *s);

/* MPS has come or gone, or the sharing of GPUs has changed: it is found out anew who is apart. */
void session_mps_changed(struct sessions *all);

/* "client", "none", "lost"; empty: not known. */
const char *session_mps_name(const struct session *s);

/*
 * At its Hello. @chosen: the GPU it is told to use, or NULL: any. A program is told and not
 * refused: what sbeetd counts are programs, what the driver counts are contexts, and it alone knows
 * what it refuses.
 */
void session_mps_welcome(struct session *s, const struct inventory_gpu *chosen,
			 struct session_mps *ret);

/* Programs that use this GPU, or that can use no other. */
unsigned session_mps_programs(const struct sessions *all, size_t gpu);
