/*
 * api-attribute.c: what a program sets of streams for all that it launches there. Values are kept
 * and told, and change nothing. A thread's own default streams of all contexts share one set.
 */
#include <stddef.h>

#include "tests/simgpu/driver.h"

static const CUstreamAttrID known[STREAM_ATTRIBUTES] = {
	CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW,
	CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY,
	CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP,
	CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN,
};

static _Thread_local struct stream_attributes of_thread;

static CUresult attributes_of(CUstream stream, bool per_thread, struct stream_attributes **ret) {
	struct target t;
	CUresult r = stream_ask_about(stream, per_thread, &t);

	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (!stream_is_default(stream)) {
		*ret = &stream->attributes;
	} else if (t.stream == t.context->null_stream) {
		*ret = &t.context->attributes;
	} else {
		*ret = &of_thread;
	}
	return CUDA_SUCCESS;
}

static CUresult value_of(CUstream stream, bool per_thread, CUstreamAttrID which,
			 CUstreamAttrValue **ret) {
	struct stream_attributes *attributes = NULL;
	CUresult r = attributes_of(stream, per_thread, &attributes);

	for (size_t i = 0; r == CUDA_SUCCESS && i < STREAM_ATTRIBUTES; i++) {
		if (known[i] == which) {
			*ret = &attributes->values[i];
			return CUDA_SUCCESS;
		}
	}
	return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
}

static CUresult attribute_get(CUstream stream, bool per_thread, CUstreamAttrID which,
			      CUstreamAttrValue *ret) {
	CUstreamAttrValue *value;
	CUresult r = ret ? value_of(stream, per_thread, which, &value) : CUDA_ERROR_INVALID_VALUE;

	if (r == CUDA_SUCCESS) {
		*ret = *value;
	}
	return r;
}

static CUresult attribute_set(CUstream stream, bool per_thread, CUstreamAttrID which,
			      const CUstreamAttrValue *value) {
	CUstreamAttrValue *to;
	CUresult r = value ? value_of(stream, per_thread, which, &to) : CUDA_ERROR_INVALID_VALUE;

	if (r == CUDA_SUCCESS) {
		*to = *value;
	}
	return r;
}

static CUresult attributes_copy(CUstream to, CUstream from, bool per_thread) {
	struct stream_attributes *target, *source;
	CUresult r = attributes_of(to, per_thread, &target);

	if (r == CUDA_SUCCESS) {
		r = attributes_of(from, per_thread, &source);
	}
	if (r == CUDA_SUCCESS) {
		*target = *source;
	}
	return r;
}

EXPORT CUresult CUDAAPI cuStreamGetAttribute(CUstream hStream, CUstreamAttrID attr,
					     CUstreamAttrValue *value_out) {
	return attribute_get(hStream, false, attr, value_out);
}

EXPORT typeof(cuStreamGetAttribute) cuStreamGetAttribute_ptsz;
EXPORT CUresult CUDAAPI cuStreamGetAttribute_ptsz(CUstream hStream, CUstreamAttrID attr,
						  CUstreamAttrValue *value_out) {
	return attribute_get(hStream, true, attr, value_out);
}

EXPORT CUresult CUDAAPI cuStreamSetAttribute(CUstream hStream, CUstreamAttrID attr,
					     const CUstreamAttrValue *value) {
	return attribute_set(hStream, false, attr, value);
}

EXPORT typeof(cuStreamSetAttribute) cuStreamSetAttribute_ptsz;
EXPORT CUresult CUDAAPI cuStreamSetAttribute_ptsz(CUstream hStream, CUstreamAttrID attr,
						  const CUstreamAttrValue *value) {
	return attribute_set(hStream, true, attr, value);
}

EXPORT CUresult CUDAAPI cuStreamCopyAttributes(CUstream dst, CUstream src) {
	return attributes_copy(dst, src, false);
}

EXPORT typeof(cuStreamCopyAttributes) cuStreamCopyAttributes_ptsz;
EXPORT CUresult CUDAAPI cuStreamCopyAttributes_ptsz(CUstream dst, CUstream src) {
	return attributes_copy(dst, src, true);
}
