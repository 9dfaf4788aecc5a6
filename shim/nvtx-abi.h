/*
 * nvtx-abi.h: what of NVTX 3 a library has to know that programs' ranges are handed to: the
 * numbers, tables and structures of nvToolsExt.h and nvtxDetail/nvtxTypes.h, under names of our
 * own. They are fixed: each library of a program has its own copy of NVTX in it, of any version
 * from 3.0 on.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

/* What nvtxGetExportTable() is asked for. */
#define NVTX_ABI_CALLBACKS 1

/* Slots for functions that NVTX calls: groups, and the numbers in them. */
enum nvtx_abi_module {
	NVTX_ABI_CORE = 1,
	NVTX_ABI_CORE2 = 5,
};

enum {
	NVTX_ABI_RANGE_START_EX = 4,
	NVTX_ABI_RANGE_START_A = 5,
	NVTX_ABI_RANGE_START_W = 6,
	NVTX_ABI_RANGE_END = 7,
	NVTX_ABI_RANGE_PUSH_EX = 8,
	NVTX_ABI_RANGE_PUSH_A = 9,
	NVTX_ABI_RANGE_PUSH_W = 10,
	NVTX_ABI_RANGE_POP = 11,
};

enum {
	NVTX_ABI_DOMAIN_RANGE_START_EX = 2,
	NVTX_ABI_DOMAIN_RANGE_END = 3,
	NVTX_ABI_DOMAIN_RANGE_PUSH_EX = 4,
	NVTX_ABI_DOMAIN_RANGE_POP = 5,
	NVTX_ABI_DOMAIN_REGISTER_STRING_A = 10,
	NVTX_ABI_DOMAIN_REGISTER_STRING_W = 11,
	NVTX_ABI_DOMAIN_CREATE_A = 12,
	NVTX_ABI_DOMAIN_CREATE_W = 13,
};

typedef void (*nvtx_abi_function)(void);

struct nvtx_abi_callbacks {
	size_t size; /* of this structure */
	/* *ret_slots: addresses of slots, by number; *ret_n: how many. Return: 0: no such module.
	 */
	int (*get_slots)(enum nvtx_abi_module module, nvtx_abi_function ***ret_slots,
			 unsigned *ret_n);
};

typedef const void *(*nvtx_abi_get_table)(uint32_t table);

/* What a range is called. */
enum {
	NVTX_ABI_NAME_NARROW = 1,
	NVTX_ABI_NAME_WIDE = 2,
	NVTX_ABI_NAME_REGISTERED = 3,
};

struct nvtx_abi_attributes {
	uint16_t version;
	uint16_t size; /* of this structure, later versions append to it */
	uint32_t category;
	int32_t color_type;
	uint32_t color;
	int32_t payload_type;
	int32_t reserved;
	uint64_t payload;
	int32_t name_type;
	union {
		const char *narrow;
		const wchar_t *wide;
		const void *registered; /* what registering a string has returned */
	} name;
};

/* What nvtxRangePush and nvtxRangePop return where nobody counts levels. */
#define NVTX_ABI_NO_LEVELS (-2)
