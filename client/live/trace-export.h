/*
 * trace-export.h: a trace for other eyes: tables, Chrome's viewer and Perfetto, and our own page.
 *
 * Errors of the stream are left to whoever closes it. Return: 0 or -ENOMEM.
 */
#pragma once

#include "client/live/trace.h"

/* A line a job, with a header. */
int trace_export_csv(const struct trace *t, FILE *out);

/* The Trace Event Format: a process for each GPU with a track for each group of SMs, and one with a
 * track for each task. */
int trace_export_chrome(const struct trace *t, FILE *out);

/* One page that needs nothing else. @title: the file's name, say. */
int trace_export_html(const struct trace *t, const char *title, FILE *out);
