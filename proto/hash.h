/*
 * hash.h: FNV-1a of 64 bits, for tables and against data that is cut or scribbled over. No help
 * against malice.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define HASH_EMPTY 0xcbf29ce484222325u

/* The hash of what @hash is the hash of, followed by @n bytes; HASH_EMPTY: of nothing. */
static inline uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n) {
	const unsigned char *p = bytes;

	for (size_t i = 0; i < n; i++) {
		hash = (hash ^ p[i]) * 0x100000001b3u;
	}
	return hash;
}
