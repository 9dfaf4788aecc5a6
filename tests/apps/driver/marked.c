/*
 * marked.c: an example of marks: adds two vectors twice, one job a frame. It waits after each time,
 * so without --job=marks a frame is two jobs.
 */
#include "common.h"
#include "shim/sbeet.h"
#include "vectors.h"

static struct vectors my;

static void marked_open(const struct app_options *options) {
	vectors_open(&my, options->gpu, options->size);
}

static void marked_frame(struct app_lane *lane, uint64_t seed) {
	uint64_t release = app_now_ns(); /* the camera's time, say */

	vectors_draw(&my, seed);
	sbeet_job_begin(release);
	for (int i = 0; i < 2; i++) {
		vectors_add(&my, lane);
	}
	sbeet_job_end();
}

static void marked_close(void) {
	vectors_close(&my);
}

static const struct app marked_app = {
	.name = "marked",
	.summary = "Adds two vectors twice, and marks that as a job.",
	.size_meaning = "elements",
	.size_default = 40000,
	.size_min = 1,
	.size_max = 1u << 28,
	.open = marked_open,
	.frame = marked_frame,
	.close = marked_close,
};

int main(int argc, char **argv) {
	return app_main(&marked_app, argc, argv);
}
