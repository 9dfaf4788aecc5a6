/*
 * pdl.c: launches with attributes: kernels that begin before the one before them has ended,
 * clusters, priorities.
 */
#include <stdlib.h>

#include "gpu.h"

static CUresult launch_with(struct chain *c, CUstream stream, CUlaunchAttribute *attributes,
			    unsigned n) {
	struct chain_step s;
	CUlaunchConfig config = {0};

	chain_next(c, &s);
	config.gridDimX = s.blocks;
	config.blockDimX = s.threads;
	config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
	config.hStream = stream;
	config.attrs = attributes;
	config.numAttrs = n;
	return cuLaunchKernelEx(&config, gpu.step, s.params, NULL);
}

/* PTX without griddepcontrol: the dependent one waits at its begin. */
static void serialization(void) {
	CUlaunchAttribute a = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION};
	struct chain c;
	CUstream s;

	gpu_open();
	s = gpu_stream(CU_STREAM_NON_BLOCKING);
	c = chain_new(20000);
	for (unsigned i = 0; i < 40; i++) {
		a.value.programmaticStreamSerializationAllowed = i % 3 == 1;
		CU(launch_with(&c, s, &a, 1));
	}
	chain_tell("serialization", &c, s);
	for (unsigned i = 0; i < 20; i++) {
		chain_step(&c, s);
		a.value.programmaticStreamSerializationAllowed = 1;
		CU(launch_with(&c, s, &a, 1));
		CU(cuMemsetD32Async(c.p, 5, c.n, s));
		c.want = 5;
		CU(launch_with(&c, s, &a, 1));
	}
	chain_tell("beside others", &c, s);
}

static void attribute(const char *name, CUlaunchAttribute a) {
	struct chain c = chain_new(CHAIN_N);
	CUstream s = gpu_stream(CU_STREAM_NON_BLOCKING);
	CUresult r = launch_with(&c, s, &a, 1);

	gpu_tell(name, r);
	c.want = r == CUDA_SUCCESS ? c.want : 0;
	chain_step(&c, s);
	CU(launch_with(&c, s, NULL, 0));
	chain_tell(name, &c, s);
}

static void attributes(void) {
	gpu_open();
	attribute("ignore", (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_IGNORE});
	attribute("priority",
		  (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = -1});
	attribute("priority out of range",
		  (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = 3});
	attribute("cooperative", (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
						     .value.cooperative = 1});
	attribute("domain",
		  (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
				      .value.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE});
	attribute("cluster of 2", (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
						      .value.clusterDim = {2, 1, 1}});
	attribute("cluster of 4", (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
						      .value.clusterDim = {4, 1, 1}});
	attribute("cluster of 64", (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
						       .value.clusterDim = {64, 1, 1}});
}

static void all_at_once(void) {
	CUlaunchAttribute a[] = {
		{.id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = -2},
		{.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
		 .value.programmaticStreamSerializationAllowed = 1},
		{.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {2, 1, 1}},
		{.id = CU_LAUNCH_ATTRIBUTE_IGNORE},
	};
	struct chain c;
	CUstream s;

	gpu_open();
	s = gpu_stream(CU_STREAM_DEFAULT);
	c = chain_new(CHAIN_N);
	for (unsigned i = 0; i < 20; i++) {
		CU(launch_with(&c, s, a, 1 + i % 4));
	}
	chain_tell("all", &c, s);
}

/* A hundred attributes that say nothing: more than fit into a table of the usual size. */
static void many_attributes(void) {
	CUlaunchAttribute a[100];
	struct chain c;

	gpu_open();
	for (unsigned i = 0; i < 100; i++) {
		a[i] = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_IGNORE};
	}
	c = chain_new(CHAIN_N);
	for (unsigned i = 0; i < 10; i++) {
		CU(launch_with(&c, NULL, a, i * 11));
	}
	chain_tell("many", &c, NULL);
}

static void stream_attributes(void) {
	CUstreamAttrValue value = {0};
	struct chain c;
	CUstream s, t;

	gpu_open();
	GPU_NEEDS(cuStreamSetAttribute);
	GPU_NEEDS(cuStreamGetAttribute);
	GPU_NEEDS(cuStreamCopyAttributes);
	s = gpu_stream(CU_STREAM_NON_BLOCKING);
	t = gpu_stream(CU_STREAM_NON_BLOCKING);
	c = chain_new(CHAIN_N);
	value.syncPolicy = CU_SYNC_POLICY_YIELD;
	TELL_RESULT(cuStreamSetAttribute(s, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
	chain_step(&c, s);
	TELL_RESULT(cuStreamCopyAttributes(t, s));
	value.syncPolicy = 0;
	TELL_RESULT(cuStreamGetAttribute(t, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
	TELL("policy %d\n", (int)value.syncPolicy);
	chain_step(&c, s);
	chain_tell("attributes", &c, s);
}

static void programmatic_event(void) {
	CUlaunchAttribute a = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT};
	struct chain c;
	CUstream s, t;
	CUresult r;
	CUevent e;

	gpu_open();
	s = gpu_stream(CU_STREAM_NON_BLOCKING);
	t = gpu_stream(CU_STREAM_NON_BLOCKING);
	CU(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	c = chain_new(CHAIN_N);
	a.value.programmaticEvent.event = e;
	a.value.programmaticEvent.triggerAtBlockStart = 0;
	r = launch_with(&c, s, &a, 1);
	if (r == CUDA_ERROR_NOT_SUPPORTED) {
		guest_skip("the driver has no programmatic events");
	}
	CU(r);
	CU(cuStreamWaitEvent(t, e, 0));
	chain_step(&c, t);
	chain_tell("event", &c, t);
}

const struct guest guests[] = {
	{"serialization", serialization},
	{"attributes", attributes},
	{"all-at-once", all_at_once},
	{"many-attributes", many_attributes},
	{"stream-attributes", stream_attributes},
	{"programmatic-event", programmatic_event},
	{NULL, NULL},
};
