/*
 * text.h: text from outside (a message, a file, a file's name), checked or escaped before it is
 * shown. Pure.
 *
 * Printable is a valid UTF-8 character that a terminal only displays: no control character (C0, DEL
 * and C1, so no escape sequence), and none that changes the direction or the line of the text
 * around it (U+061C, U+200E, U+200F, U+2028 to U+202E, U+2066 to U+2069).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/limits.h"

/* Length in bytes of the character at @p; 0: it is not printable, or the end of the text. Reads no
 * byte behind a NUL. */
size_t text_printable(const char *p);

/*
 * Copies @text into @ret of @size bytes (from 1), NUL included, with "\xNN" for each byte of what
 * is not printable. What does not fit is cut off between two characters. @text and @ret don't
 * overlap. Returns @ret.
 */
char *text_escape(const char *text, char *ret, size_t size);

/* "GPU-" and 32 hexadecimal digits in groups, as NVIDIA's tools write it; terminated. */
#define TEXT_GPU_UUID_BYTES 41
void text_gpu_uuid(const uint8_t uuid[static PROTO_UUID_BYTES],
		   char ret[static TEXT_GPU_UUID_BYTES]);
