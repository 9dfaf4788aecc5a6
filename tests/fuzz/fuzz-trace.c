/*
 * fuzz-trace.c: any file gives a trace that can be exported, or a refusal.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/live/trace-export.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
	FILE *in = size ? fmemopen((void *)(uintptr_t)bytes, size, "r") : NULL, *out;
	struct trace t = {0};
	char error[512];

	if (!in) {
		return 0;
	}
	if (trace_read(&t, in, error, sizeof(error)) == 0) {
		out = fopen("/dev/null", "w");
		if (out) {
			trace_export_csv(&t, out);
			trace_export_chrome(&t, out);
			trace_export_html(&t, "fuzz", out);
			fclose(out);
		}
	}
	trace_deinit(&t);
	fclose(in);
	return 0;
}
