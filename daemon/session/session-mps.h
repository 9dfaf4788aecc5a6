/*
 * session-mps.h: what MPS means to one program: where it is, whether there is room for one more,
 * and what the program is told when there is not.
 */
#pragma once

#include "daemon/session/session.h"

struct inventory_gpu;
struct sessions;

struct session_mps {
	const char *pipe_directory, *log_directory; /* "": not for this one */
	char notice[PROTO_TEXT_MAX / 4];	    /* "": nothing to be told */
};

/*
 * At its Hello. @chosen: the GPU it is told to use, or NULL: any. A program is told and not
 * refused: what sbeetd counts are programs, what the driver counts are contexts, and it alone knows
 * what it refuses.
 */
void session_mps_welcome(struct session *s, const struct inventory_gpu *chosen,
			 struct session_mps *ret);

/* Programs that use this GPU, or that can use no other. */
unsigned session_mps_programs(const struct sessions *all, size_t gpu);
