/*
 * test-wire.c: proto/wire.c against libprotobuf-c, for every message of sbeet there is: what one
 * writes the other reads, with the same bytes and values. And bytes that neither would write.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "control.pb-c.h"
#include "libprotobuf-c.h"
#include "proto/wire.h"
#include "sbeet.pb-c.h"
#include "state.pb-c.h"

#define ROUNDS	  200
#define MANY	  4 /* most elements of a list, letters of a text */
#define DEPTH_MAX 8

/* All others hang on these. */
static const ProtobufCMessageDescriptor *const envelopes[] = {
	&sbeet__to_daemon__descriptor,	      &sbeet__to_shim__descriptor,
	&sbeet__control__request__descriptor, &sbeet__control__reply__descriptor,
	&sbeet__state__record__descriptor,
};
#define ENVELOPES (sizeof(envelopes) / sizeof(envelopes[0]))

static bool is_known(const ProtobufCFieldDescriptor *f) {
	bool number = true, known = true;

	switch (f->type) {
	case PROTOBUF_C_TYPE_INT32:
	case PROTOBUF_C_TYPE_UINT32:
	case PROTOBUF_C_TYPE_ENUM:
	case PROTOBUF_C_TYPE_BOOL:
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_SINT64:
	case PROTOBUF_C_TYPE_DOUBLE:
		break;
	case PROTOBUF_C_TYPE_STRING:
	case PROTOBUF_C_TYPE_BYTES:
	case PROTOBUF_C_TYPE_MESSAGE:
		number = false;
		break;
	default:
		known = false;
	}
	return known && (f->label == PROTOBUF_C_LABEL_NONE ||
			 (f->label == PROTOBUF_C_LABEL_REPEATED && !number));
}

static void look_through(const ProtobufCMessageDescriptor *type, unsigned depth) {
	if (depth > DEPTH_MAX) {
		fail_msg("%s holds itself, or is nested deeper than %d: proto/wire.c has no bound",
			 type->name, DEPTH_MAX);
	}
	for (unsigned i = 0; i < type->n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &type->fields[i];

		if (!is_known(f)) {
			fail_msg(
				"%s.%s is of a kind that proto/wire.c does not know (its type, "
				"`optional`, or repeated numbers): teach it that, or choose "
				"another kind",
				type->name, f->name);
		}
		if (f->type == PROTOBUF_C_TYPE_MESSAGE) {
			look_through(f->descriptor, depth + 1);
		}
	}
}

static void wire_knows_every_field_of_sbeet(void **state) {
	for (size_t i = 0; i < ENVELOPES; i++) {
		look_through(envelopes[i], 0);
	}
}

/* Memory of a message that was made up, freed at once. */
static struct {
	void *parts[100000];
	size_t n;
} made;

static void *make(size_t n) {
	void *p = calloc(1, n);

	assert_non_null(p);
	assert_true(made.n < sizeof(made.parts) / sizeof(made.parts[0]));
	made.parts[made.n++] = p;
	return p;
}

static void free_made(void) {
	while (made.n > 0) {
		free(made.parts[--made.n]);
	}
}

/* Of any size that a varint can have, 0 and the largest now and then. */
static uint64_t any_number(void) {
	uint64_t number = (uint64_t)rand() << 42 ^ (uint64_t)rand() << 21 ^ (uint64_t)rand();
	unsigned bits = (unsigned)rand() % 66;

	return bits == 0 ? 0 : bits == 65 ? UINT64_MAX : number >> (64 - bits);
}

static ProtobufCMessage *make_up(const ProtobufCMessageDescriptor *type);

static void make_up_value(const ProtobufCFieldDescriptor *f, void *member) {
	size_t n = (size_t)(rand() % (MANY + 1));
	char *text;

	switch (f->type) {
	case PROTOBUF_C_TYPE_MESSAGE:
		*(ProtobufCMessage **)member = make_up(f->descriptor);
		return;
	case PROTOBUF_C_TYPE_STRING:
		text = make(n + 1);
		memset(text, 'a' + rand() % 26, n);
		*(char **)member = text;
		return;
	case PROTOBUF_C_TYPE_BYTES:
		*(ProtobufCBinaryData *)member =
			(ProtobufCBinaryData){.len = n, .data = n ? make(n) : NULL};
		return;
	case PROTOBUF_C_TYPE_BOOL:
		*(protobuf_c_boolean *)member = rand() % 2;
		return;
	case PROTOBUF_C_TYPE_DOUBLE:
		*(double *)member = (double)any_number() / 3;
		return;
	case PROTOBUF_C_TYPE_INT32:
	case PROTOBUF_C_TYPE_UINT32:
	case PROTOBUF_C_TYPE_ENUM:
		*(uint32_t *)member = (uint32_t)any_number();
		return;
	default:
		*(uint64_t *)member = any_number();
	}
}

static size_t size_of(ProtobufCType type) {
	return type == PROTOBUF_C_TYPE_BYTES ? sizeof(ProtobufCBinaryData) : sizeof(void *);
}

static ProtobufCMessage *make_up(const ProtobufCMessageDescriptor *type) {
	ProtobufCMessage *m = make(type->sizeof_message);
	uint8_t *base = (uint8_t *)m;

	type->message_init(m);
	for (unsigned i = 0; i < type->n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &type->fields[i];
		bool oneof = f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF;

		if (f->label == PROTOBUF_C_LABEL_REPEATED) {
			size_t n = (size_t)(rand() % MANY);
			uint8_t *list = make(n * size_of(f->type) + 1);

			for (size_t j = 0; j < n; j++) {
				make_up_value(f, list + j * size_of(f->type));
			}
			*(size_t *)(base + f->quantifier_offset) = n;
			*(void **)(base + f->offset) = list;
		} else if (rand() % (oneof ? (int)type->n_fields : 3)) {
			if (!oneof) {
				make_up_value(f, base + f->offset);
			}
		} else if (oneof) {
			*(uint32_t *)(base + f->quantifier_offset) = f->id;
			make_up_value(f, base + f->offset);
		}
	}
	return m;
}

/* Return: its length. @ret is freed by the caller. */
static size_t packed(const ProtobufCMessage *m, uint8_t **ret) {
	const struct libprotobuf_c *other = libprotobuf_c();
	size_t n = protobuf_c_message_get_packed_size(m);
	uint8_t *theirs = malloc(n + 1);

	*ret = malloc(n + 1);
	assert_true(theirs && *ret);
	assert_int_equal(other->size(m), n);
	assert_int_equal(protobuf_c_message_pack(m, *ret), n);
	assert_int_equal(other->pack(m, theirs), n);
	assert_memory_equal(*ret, theirs, n);
	free(theirs);
	return n;
}

static void wire_writes_and_reads_as_libprotobuf_c_does(void **state) {
	const struct libprotobuf_c *other = libprotobuf_c();

	srand(1);
	for (int i = 0; i < ROUNDS * (int)ENVELOPES; i++) {
		const ProtobufCMessageDescriptor *type = envelopes[(size_t)i % ENVELOPES];
		ProtobufCMessage *ours, *theirs;
		uint8_t *bytes, *again;
		size_t n = packed(make_up(type), &bytes);

		ours = protobuf_c_message_unpack(type, NULL, n, bytes);
		theirs = other->unpack(type, NULL, n, bytes);
		assert_true(ours && theirs);
		for (int j = 0; j < 2; j++) {
			assert_int_equal(packed(j ? ours : theirs, &again), n);
			assert_memory_equal(again, bytes, n);
			free(again);
		}
		protobuf_c_message_free_unpacked(ours, NULL);
		other->free(theirs, NULL);
		free(bytes);
		free_made();
	}
}

/* In a oneof 0 is a value like any other. */
static void wire_writes_a_chosen_zero(void **state) {
	Sbeet__Control__Gpu gpu = SBEET__CONTROL__GPU__INIT, *read;
	uint8_t *bytes;
	size_t n;

	gpu.utilization_case = SBEET__CONTROL__GPU__UTILIZATION_UTILIZATION_PERCENT;
	n = packed(&gpu.base, &bytes);
	assert_int_equal(n, 3);
	read = (Sbeet__Control__Gpu *)protobuf_c_message_unpack(gpu.base.descriptor, NULL, n,
								bytes);
	assert_non_null(read);
	assert_int_equal(read->utilization_case, gpu.utilization_case);
	assert_int_equal(read->memory_used_case, 0);
	protobuf_c_message_free_unpacked(&read->base, NULL);
	free(bytes);
}

static void wire_pack_says_what_does_not_fit(void **state) {
	Sbeet__Goodbye goodbye = SBEET__GOODBYE__INIT;
	char reason[] = "abc", buffer[] = "--------";

	goodbye.reason = reason;
	assert_int_equal(wire_pack(&goodbye.base, buffer, 8), 5);
	assert_memory_equal(buffer,
			    "---\x0a\x03"
			    "abc",
			    8);
	for (size_t size = 0; size < 5; size++) {
		memset(buffer, '-', 8);
		assert_int_equal(wire_pack(&goodbye.base, buffer + 1, size), 5);
		assert_int_equal(buffer[0], '-');
		assert_int_equal(buffer[1 + size], '-');
	}
}

static void assert_reads(const ProtobufCMessageDescriptor *type, const char *bytes, size_t n,
			 bool expected) {
	ProtobufCMessage *m = protobuf_c_message_unpack(type, NULL, n, (const uint8_t *)bytes);

	assert_int_equal(m != NULL, expected);
	if (m) {
		protobuf_c_message_free_unpacked(m, NULL);
	}
}

#define READS(type, bytes) \
	assert_reads(&sbeet__##type##__descriptor, bytes, sizeof(bytes) - 1, true)
#define REFUSES(type, bytes) \
	assert_reads(&sbeet__##type##__descriptor, bytes, sizeof(bytes) - 1, false)

static void wire_refuses_what_nobody_writes(void **state) {
	READS(ping, "");
	READS(ping, "\x08\x01");
	READS(ping, "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
	REFUSES(ping, "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02");	   /* 65 bits */
	REFUSES(ping, "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"); /* 11 bytes */
	REFUSES(ping, "\x08\x80");
	REFUSES(ping, "\x08");
	REFUSES(ping, "\x0a\x01x");		       /* a text for a number */
	REFUSES(ping, "\x00\x01");		       /* field 0 */
	REFUSES(ping, "\x88\x80\x80\x80\x80\x00\x01"); /* a key of 6 bytes */
	REFUSES(ping, "\x0b\x0c");		       /* groups are none */
	READS(ping,
	      "\x10\x01\x1a\x01x\x25"
	      "abcd"
	      "\x29"
	      "abcdefgh"); /* unknown */
	REFUSES(ping, "\x1a\x02x");
	REFUSES(ping,
		"\x25"
		"abc");
	REFUSES(ping, "\x1a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01x");
	READS(goodbye,
	      "\x0a\x03"
	      "abc"
	      "\x0a\x01x");
	READS(to_daemon, "\x42\x02\x08\x01");
	REFUSES(to_daemon, "\x42\x02\x08");
	REFUSES(to_daemon, "\x42\x00\x42\x00"); /* ping twice */
	REFUSES(to_daemon, "\x42\x00\x3a\x00"); /* ping and pong */
	READS(hello, "\x22\x00");
	REFUSES(hello, "\x22\x00\x22\x00"); /* two tasks */
}

/* Unknown fields, texts given again: what is allocated is what the packet says, in one piece. */
static size_t allocated;

static void *count_alloc(void *data, size_t n) {
	allocated += n;
	++*(unsigned *)data;
	return malloc(n);
}

static void count_free(void *data, void *p) {
	--*(unsigned *)data;
	free(p);
}

static void wire_allocates_once(void **state) {
	static const char hello[] =
		"\x12\x01"
		"a"
		"\x12\x01"
		"b"
		"\x22\x00\xa2\x06\x03"
		"abc";
	unsigned blocks = 0;
	ProtobufCAllocator allocator = {count_alloc, count_free, &blocks};
	Sbeet__Hello *m = (Sbeet__Hello *)protobuf_c_message_unpack(
		&sbeet__hello__descriptor, &allocator, sizeof(hello) - 1, (const uint8_t *)hello);

	assert_non_null(m);
	assert_int_equal(blocks, 1);
	assert_int_equal(allocated,
			 sizeof(Sbeet__Hello) + sizeof(Sbeet__TaskSpec) + 2 * (sizeof(char *) + 8));
	assert_int_equal(m->n_features, 2);
	assert_string_equal(m->features[1], "b");
	assert_int_equal(m->base.n_unknown_fields, 0);
	protobuf_c_message_free_unpacked(&m->base, &allocator);
	assert_int_equal(blocks, 0);
}

/* By enough for packet_unpack()'s bound to tell. */
static void *no_alloc(void *data, size_t n) {
	return NULL;
}

static void wire_gives_up_without_memory(void **state) {
	ProtobufCAllocator allocator = {no_alloc, count_free, NULL};

	assert_null(protobuf_c_message_unpack(&sbeet__ping__descriptor, &allocator, 2,
					      (const uint8_t *)"\x08\x01"));
}

static void wire_looks_up(void **state) {
	const ProtobufCFieldDescriptor *f = protobuf_c_message_descriptor_get_field_by_name(
		&sbeet__request__descriptor, "kernel");

	assert_non_null(f);
	assert_int_equal(f->id, 6);
	assert_null(protobuf_c_message_descriptor_get_field_by_name(&sbeet__request__descriptor,
								    "kernels"));
	assert_int_equal(
		protobuf_c_enum_descriptor_get_value(&sbeet__enforcement__descriptor, 4)->value, 4);
	assert_null(protobuf_c_enum_descriptor_get_value(&sbeet__enforcement__descriptor, -1));
	assert_null(protobuf_c_enum_descriptor_get_value(&sbeet__enforcement__descriptor, 999));
}

struct collected {
	ProtobufCBuffer base;
	uint8_t bytes[16];
	size_t n;
};

static void collect(ProtobufCBuffer *buffer, size_t n, const uint8_t *bytes) {
	struct collected *c = (struct collected *)buffer;

	assert_true(c->n + n <= sizeof(c->bytes));
	memcpy(c->bytes + c->n, bytes, n);
	c->n += n;
}

static void wire_packs_to_a_buffer(void **state) {
	struct collected c = {.base = {collect}};
	Sbeet__Ping ping = SBEET__PING__INIT;

	ping.number = 300;
	assert_int_equal(sbeet__ping__pack_to_buffer(&ping, &c.base), 3);
	assert_int_equal(c.n, 3);
	assert_memory_equal(c.bytes, "\x08\xac\x02", 3);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wire_knows_every_field_of_sbeet),
		cmocka_unit_test(wire_writes_and_reads_as_libprotobuf_c_does),
		cmocka_unit_test(wire_writes_a_chosen_zero),
		cmocka_unit_test(wire_pack_says_what_does_not_fit),
		cmocka_unit_test(wire_refuses_what_nobody_writes),
		cmocka_unit_test(wire_allocates_once),
		cmocka_unit_test(wire_gives_up_without_memory),
		cmocka_unit_test(wire_looks_up),
		cmocka_unit_test(wire_packs_to_a_buffer),
	};

	return cmocka_run_group_tests_name("wire", tests, NULL, NULL);
}
