/*
 * ranges.c: a program that knows nothing of sbeet and tells profilers where its frames are, by
 * ranges of NVTX: adds two vectors twice a frame, and waits after each time.
 *
 * RANGES in the environment says how: "push" (if not set), "start" (ended by another thread),
 * "domain" (camera, with registered names), "wide", "numbered" (frame 0, frame 1, ...), "odd" (pops
 * without a push, and a thread that pushes only), "none".
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nvtx3/nvToolsExt.h>

#include "common.h"
#include "vectors.h"

static struct vectors my;
static const char *how = "push";
static nvtxDomainHandle_t camera;
static nvtxStringHandle_t registered;
static nvtxRangeId_t started;

static bool is(const char *what) {
	return strcmp(how, what) == 0;
}

static void *end_range(void *unused) {
	nvtxRangeEnd(started);
	return NULL;
}

static void *push_only(void *unused) {
	nvtxRangePushA("frame");
	return NULL;
}

static void run_thread(void *(*run)(void *)) {
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, NULL) == 0) {
		pthread_join(thread, NULL);
	}
}

static nvtxEventAttributes_t by_handle(void) {
	nvtxEventAttributes_t a;

	memset(&a, 0, sizeof(a));
	a.version = NVTX_VERSION;
	a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
	a.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
	a.message.registered = registered;
	return a;
}

static void ranges_open(const struct app_options *options) {
	const char *text = getenv("RANGES");

	how = text ? text : how;
	vectors_open(&my, options->gpu, options->size);
	if (is("domain")) {
		camera = nvtxDomainCreateA("camera");
		registered = nvtxDomainRegisterStringA(camera, "frame");
	}
}

static void begin(unsigned frame) {
	nvtxEventAttributes_t a = by_handle();
	char name[32];

	if (is("push") || is("odd")) {
		nvtxRangePushA("frame");
	} else if (is("wide")) {
		nvtxRangePushW(L"frame");
	} else if (is("start")) {
		started = nvtxRangeStartA("frame");
	} else if (is("domain")) {
		nvtxDomainRangePushEx(camera, &a);
	} else if (is("numbered")) {
		snprintf(name, sizeof(name), "frame %u", frame);
		nvtxRangePushA(name);
	}
}

static void end(void) {
	if (is("push") || is("wide") || is("numbered")) {
		nvtxRangePop();
	} else if (is("start")) {
		run_thread(end_range);
	} else if (is("domain")) {
		nvtxDomainRangePop(camera);
	} else if (is("odd")) {
		nvtxRangePop();
		nvtxRangePop();
		nvtxRangePop();
		run_thread(push_only);
	}
}

static void ranges_frame(struct app_lane *lane, uint64_t seed) {
	vectors_draw(&my, seed);
	begin(lane->frame);
	for (int i = 0; i < 2; i++) {
		vectors_add(&my, lane);
	}
	end();
}

static void ranges_close(void) {
	vectors_close(&my);
}

static const struct app ranges_app = {
	.name = "ranges",
	.summary = "Adds two vectors twice, in a range of NVTX.",
	.size_meaning = "elements",
	.size_default = 40000,
	.size_min = 1,
	.size_max = 1u << 28,
	.open = ranges_open,
	.frame = ranges_frame,
	.close = ranges_close,
};

int main(int argc, char **argv) {
	return app_main(&ranges_app, argc, argv);
}
