/*
 * wire.c: messages to bytes and back, by the tables that protoc-c generates.
 *
 * Implements what generated code and sbeet use of <protobuf-c/protobuf-c.h>, in place of
 * libprotobuf-c: libsbeet.so is loaded into programs on systems that lack that library or have
 * another version of it. All of it is hidden, so a program's own libprotobuf-c is not affected.
 *
 * Knows proto3 without `optional`, maps and repeated numbers; the test `wire` names a field that it
 * does not know. Unlike libprotobuf-c it
 * - unpacks into one block of memory: free_unpacked() frees that alone, so nothing in an unpacked
 *   message may be replaced by memory to be freed with it;
 * - drops unknown fields;
 * - refuses what no encoder writes: field number 0, numbers above 64 bits, a message or a oneof
 *   that is given twice.
 */
#include "proto/wire.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the wire is little-endian, as memory is");

/* How a type stands on the wire and how many bytes it takes in a struct; 0: not known here. */
static const struct kind {
	ProtobufCWireType wire;
	uint8_t size;
} kinds[] = {
	[PROTOBUF_C_TYPE_INT32] = {PROTOBUF_C_WIRE_TYPE_VARINT, sizeof(int32_t)},
	[PROTOBUF_C_TYPE_UINT32] = {PROTOBUF_C_WIRE_TYPE_VARINT, sizeof(uint32_t)},
	[PROTOBUF_C_TYPE_ENUM] = {PROTOBUF_C_WIRE_TYPE_VARINT, sizeof(int32_t)},
	[PROTOBUF_C_TYPE_BOOL] = {PROTOBUF_C_WIRE_TYPE_VARINT, sizeof(protobuf_c_boolean)},
	[PROTOBUF_C_TYPE_INT64] = {PROTOBUF_C_WIRE_TYPE_VARINT, sizeof(int64_t)},
	[PROTOBUF_C_TYPE_UINT64] = {PROTOBUF_C_WIRE_TYPE_VARINT, sizeof(uint64_t)},
	[PROTOBUF_C_TYPE_SINT64] = {PROTOBUF_C_WIRE_TYPE_VARINT, sizeof(int64_t)},
	[PROTOBUF_C_TYPE_DOUBLE] = {PROTOBUF_C_WIRE_TYPE_64BIT, sizeof(double)},
	[PROTOBUF_C_TYPE_STRING] = {PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED, sizeof(char *)},
	[PROTOBUF_C_TYPE_BYTES] = {PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED,
				   sizeof(ProtobufCBinaryData)},
	[PROTOBUF_C_TYPE_MESSAGE] = {PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED,
				     sizeof(ProtobufCMessage *)},
};

/* What an unset string points to. */
const char protobuf_c_empty_string[] = "";

/* Writing, from the end to the start: so the length of an inner message is known when it is due. */

struct writer {
	uint8_t *end;
	size_t size; /* room before @end */
	size_t n;    /* bytes so far, counted on where there is no room */
};

/* Return: where the next @n bytes go; NULL: there is no room. */
static uint8_t *make_room(struct writer *w, size_t n) {
	w->n += n;
	return w->n <= w->size ? w->end - w->n : NULL;
}

static void put_varint(struct writer *w, uint64_t number) {
	/* Seven bits a byte, at least one. */
	uint8_t *to = make_room(w, (70 - (size_t)__builtin_clzll(number | 1)) / 7);

	if (!to) {
		return;
	}
	while (number >= 0x80) {
		*to++ = (uint8_t)(number | 0x80);
		number >>= 7;
	}
	*to = (uint8_t)number;
}

static void put_key(struct writer *w, const ProtobufCFieldDescriptor *field) {
	put_varint(w, (uint64_t)field->id << 3 | kinds[field->type].wire);
}

static void put_raw(struct writer *w, const void *bytes, size_t n) {
	uint8_t *to = make_room(w, n);

	if (to && n > 0) {
		memcpy(to, bytes, n);
	}
}

static void put_bytes(struct writer *w, const ProtobufCFieldDescriptor *field, const void *bytes,
		      size_t n, bool always) {
	if (n > 0 || always) {
		put_raw(w, bytes, n);
		put_varint(w, n);
		put_key(w, field);
	}
}

static void put_number(struct writer *w, const ProtobufCFieldDescriptor *field, uint64_t number) {
	if (field->type == PROTOBUF_C_TYPE_DOUBLE) {
		put_raw(w, &number, sizeof(number));
	} else {
		put_varint(w, number);
	}
	put_key(w, field);
}

/* A number as its varint has it; a double by its bits. */
static uint64_t number_at(const void *member, ProtobufCType type) {
	int64_t number;

	switch (type) {
	case PROTOBUF_C_TYPE_INT32:
	case PROTOBUF_C_TYPE_ENUM:
		return (uint64_t)(int64_t) * (const int32_t *)member;
	case PROTOBUF_C_TYPE_UINT32:
		return *(const uint32_t *)member;
	case PROTOBUF_C_TYPE_BOOL:
		return *(const protobuf_c_boolean *)member != 0;
	case PROTOBUF_C_TYPE_SINT64: /* small where the value is near 0 on either side */
		number = *(const int64_t *)member;
		return (uint64_t)number << 1 ^ (uint64_t)(number >> 63);
	default:
		return *(const uint64_t *)member;
	}
}

static void put_message(struct writer *w, const ProtobufCMessage *m);

/* @m: NULL if there is none. */
static void put_inner(struct writer *w, const ProtobufCFieldDescriptor *field,
		      const ProtobufCMessage *m) {
	size_t before = w->n;

	if (m) {
		put_message(w, m);
		put_varint(w, w->n - before);
		put_key(w, field);
	}
}

/* Puts one value, or nothing if it is 0 or empty. @always: also then, as in a list and a
 * oneof. */
static void put_value(struct writer *w, const ProtobufCFieldDescriptor *field, const void *member,
		      bool always) {
	uint64_t number;

	switch (field->type) {
	case PROTOBUF_C_TYPE_STRING: {
		const char *text = *(char *const *)member;

		put_bytes(w, field, text, text ? strlen(text) : 0, always);
		return;
	}
	case PROTOBUF_C_TYPE_BYTES: {
		const ProtobufCBinaryData *bytes = member;

		put_bytes(w, field, bytes->data, bytes->len, always);
		return;
	}
	case PROTOBUF_C_TYPE_MESSAGE:
		put_inner(w, field, *(ProtobufCMessage *const *)member);
		return;
	default:
		number = number_at(member, field->type);
		if (number != 0 || always) {
			put_number(w, field, number);
		}
	}
}

static void put_field(struct writer *w, const ProtobufCMessage *m,
		      const ProtobufCFieldDescriptor *field) {
	const uint8_t *base = (const uint8_t *)m, *member = base + field->offset;

	if (field->label == PROTOBUF_C_LABEL_REPEATED) {
		const uint8_t *list = *(uint8_t *const *)member;
		size_t n = *(const size_t *)(base + field->quantifier_offset);

		while (n-- > 0) {
			put_value(w, field, list + n * kinds[field->type].size, true);
		}
	} else if (!(field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)) {
		put_value(w, field, member, false);
	} else if (*(const uint32_t *)(base + field->quantifier_offset) == field->id) {
		put_value(w, field, member, true);
	}
}

static void put_message(struct writer *w, const ProtobufCMessage *m) {
	for (unsigned i = m->descriptor->n_fields; i-- > 0;) {
		put_field(w, m, &m->descriptor->fields[i]);
	}
}

size_t wire_pack(const ProtobufCMessage *m, void *buffer, size_t size) {
	struct writer w = {.end = (uint8_t *)buffer + size, .size = size};

	put_message(&w, m);
	return w.n;
}

size_t protobuf_c_message_get_packed_size(const ProtobufCMessage *m) {
	uint8_t none;

	return wire_pack(m, &none, 0);
}

size_t protobuf_c_message_pack(const ProtobufCMessage *m, uint8_t *out) {
	return wire_pack(m, out, protobuf_c_message_get_packed_size(m));
}

/* Nobody here calls it, but generated code has a function for each message that does. */
size_t protobuf_c_message_pack_to_buffer(const ProtobufCMessage *m, ProtobufCBuffer *buffer) {
	size_t n = protobuf_c_message_get_packed_size(m);
	uint8_t *bytes = malloc(n + 1);

	if (!bytes) {
		return 0;
	}
	wire_pack(m, bytes, n);
	buffer->append(buffer, n, bytes);
	free(bytes);
	return n;
}

/* Reading. */

struct reader {
	const uint8_t *at, *end;
};

/* A field as it stands on the wire. */
struct field {
	const ProtobufCFieldDescriptor *type; /* NULL: unknown, a newer peer's */
	uint64_t number;		      /* a varint */
	struct reader bytes;		      /* all others */
};

/* Keys and lengths: 32 bits, seven a byte. */
#define VARINT32_BYTES_MAX 5

static bool read_varint(struct reader *r, uint64_t *ret) {
	uint64_t number = 0;

	for (unsigned shift = 0; shift < 64 && r->at < r->end; shift += 7) {
		uint8_t byte = *r->at++;

		if (shift == 63 && byte > 1) {
			return false;
		}
		number |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80) {
			*ret = number;
			return true;
		}
	}
	return false;
}

static bool read_varint32(struct reader *r, uint64_t *ret) {
	const uint8_t *begin = r->at;

	return read_varint(r, ret) && r->at - begin <= VARINT32_BYTES_MAX && *ret <= UINT32_MAX;
}

static const ProtobufCFieldDescriptor *find_field(const ProtobufCMessageDescriptor *type,
						  uint32_t id) {
	/* Most messages have no gaps in their numbers. */
	if (id <= type->n_fields && type->fields[id - 1].id == id) {
		return &type->fields[id - 1];
	}
	for (unsigned i = 0; i < type->n_fields; i++) {
		if (type->fields[i].id == id) {
			return &type->fields[i];
		}
	}
	return NULL;
}

static bool read_field(struct reader *r, const ProtobufCMessageDescriptor *type,
		       struct field *ret) {
	uint64_t key, n;

	if (!read_varint32(r, &key) || key >> 3 == 0) {
		return false;
	}
	ret->type = find_field(type, (uint32_t)(key >> 3));
	if (ret->type && kinds[ret->type->type].wire != (key & 7)) {
		return false;
	}
	switch (key & 7) {
	case PROTOBUF_C_WIRE_TYPE_VARINT:
		return read_varint(r, &ret->number);
	case PROTOBUF_C_WIRE_TYPE_64BIT:
		n = 8;
		break;
	case PROTOBUF_C_WIRE_TYPE_32BIT:
		n = 4;
		break;
	case PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED:
		if (!read_varint32(r, &n)) {
			return false;
		}
		break;
	default:
		return false;
	}
	if (n > (size_t)(r->end - r->at)) {
		return false;
	}
	ret->bytes = (struct reader){r->at, r->at + n};
	r->at += n;
	return true;
}

static size_t length(const struct field *f) {
	return (size_t)(f->bytes.end - f->bytes.at);
}

static bool is_repeated(const struct field *f) {
	return f->type->label == PROTOBUF_C_LABEL_REPEATED;
}

/* All parts of a message start at multiples of this. */
static size_t aligned(size_t n) {
	return (n + 7) & ~(size_t)7;
}

/* Adds what the message in @r takes in memory, with all that hangs on it. Returns whether it can be
 * parsed. */
static bool measure(const ProtobufCMessageDescriptor *type, struct reader r, size_t *size) {
	struct field f;

	*size += aligned(type->sizeof_message);
	while (r.at < r.end) {
		if (!read_field(&r, type, &f)) {
			return false;
		}
		if (!f.type) {
			continue;
		}
		if (is_repeated(&f)) {
			*size += kinds[f.type->type].size;
		}
		if (f.type->type == PROTOBUF_C_TYPE_STRING) {
			*size += aligned(length(&f) + 1);
		} else if (f.type->type == PROTOBUF_C_TYPE_BYTES) {
			*size += aligned(length(&f));
		} else if (f.type->type == PROTOBUF_C_TYPE_MESSAGE &&
			   !measure(f.type->descriptor, f.bytes, size)) {
			return false;
		}
	}
	return true;
}

/* @block: the room that is left, as measured. */
static void *take(uint8_t **block, size_t n) {
	void *taken = *block;

	*block += aligned(n);
	return taken;
}

/* Gives the repeated @field of @m its array, still empty. */
static void make_list(ProtobufCMessage *m, const ProtobufCFieldDescriptor *field, struct reader r,
		      uint8_t **block) {
	struct field f;
	size_t n = 0;

	while (r.at < r.end && read_field(&r, m->descriptor, &f)) {
		n += f.type == field;
	}
	if (n > 0) {
		*(void **)((uint8_t *)m + field->offset) = take(block, n * kinds[field->type].size);
	}
}

static void store_number(void *member, ProtobufCType type, uint64_t number) {
	switch (type) {
	case PROTOBUF_C_TYPE_INT32:
	case PROTOBUF_C_TYPE_ENUM:
	case PROTOBUF_C_TYPE_UINT32:
		*(uint32_t *)member = (uint32_t)number;
		return;
	case PROTOBUF_C_TYPE_BOOL:
		*(protobuf_c_boolean *)member = number != 0;
		return;
	case PROTOBUF_C_TYPE_SINT64:
		*(uint64_t *)member = number >> 1 ^ -(number & 1);
		return;
	default:
		*(uint64_t *)member = number;
	}
}

static bool fill(ProtobufCMessage *m, const ProtobufCMessageDescriptor *type, struct reader r,
		 uint8_t **block);

static bool store_value(void *member, const struct field *f, uint8_t **block) {
	switch (f->type->type) {
	case PROTOBUF_C_TYPE_STRING: {
		char *text = take(block, length(f) + 1);

		memcpy(text, f->bytes.at, length(f));
		text[length(f)] = '\0';
		*(char **)member = text;
		return true;
	}
	case PROTOBUF_C_TYPE_BYTES: {
		ProtobufCBinaryData *bytes = member;

		bytes->len = length(f);
		bytes->data = bytes->len ? take(block, bytes->len) : NULL;
		if (bytes->data) {
			memcpy(bytes->data, f->bytes.at, bytes->len);
		}
		return true;
	}
	case PROTOBUF_C_TYPE_MESSAGE: {
		const ProtobufCMessageDescriptor *type = f->type->descriptor;
		ProtobufCMessage *m = take(block, type->sizeof_message);

		*(ProtobufCMessage **)member = m;
		return fill(m, type, f->bytes, block);
	}
	case PROTOBUF_C_TYPE_DOUBLE:
		memcpy(member, f->bytes.at, sizeof(double));
		return true;
	default:
		store_number(member, f->type->type, f->number);
		return true;
	}
}

static bool store_field(ProtobufCMessage *m, const struct field *f, uint8_t **block) {
	uint8_t *base = (uint8_t *)m, *member = base + f->type->offset;

	if (is_repeated(f)) {
		size_t *n = (size_t *)(base + f->type->quantifier_offset);

		return store_value(*(uint8_t **)member + (*n)++ * kinds[f->type->type].size, f,
				   block);
	}
	if (f->type->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
		uint32_t *which = (uint32_t *)(base + f->type->quantifier_offset);

		if (*which) {
			return false;
		}
		*which = f->type->id;
	} else if (f->type->type == PROTOBUF_C_TYPE_MESSAGE && *(ProtobufCMessage **)member) {
		return false;
	}
	return store_value(member, f, block);
}

/* Only what measure() has passed. */
static bool fill(ProtobufCMessage *m, const ProtobufCMessageDescriptor *type, struct reader r,
		 uint8_t **block) {
	struct field f;

	type->message_init(m);
	for (unsigned i = 0; i < type->n_fields; i++) {
		if (type->fields[i].label == PROTOBUF_C_LABEL_REPEATED) {
			make_list(m, &type->fields[i], r, block);
		}
	}
	while (r.at < r.end) {
		if (!read_field(&r, type, &f) || (f.type && !store_field(m, &f, block))) {
			return false;
		}
	}
	return true;
}

ProtobufCMessage *protobuf_c_message_unpack(const ProtobufCMessageDescriptor *type,
					    ProtobufCAllocator *allocator, size_t n,
					    const uint8_t *packet) {
	struct reader r = {packet, packet + n};
	ProtobufCMessage *m;
	uint8_t *block;
	size_t size = 0;

	if (!measure(type, r, &size)) {
		return NULL;
	}
	block = allocator ? allocator->alloc(allocator->allocator_data, size) : malloc(size);
	if (!block) {
		return NULL;
	}
	m = take(&block, type->sizeof_message);
	if (!fill(m, type, r, &block)) {
		protobuf_c_message_free_unpacked(m, allocator);
		return NULL;
	}
	return m;
}

void protobuf_c_message_free_unpacked(ProtobufCMessage *m, ProtobufCAllocator *allocator) {
	if (allocator) {
		allocator->free(allocator->allocator_data, m);
	} else {
		free(m);
	}
}

/* Looking up. */

const ProtobufCEnumValue *protobuf_c_enum_descriptor_get_value(const ProtobufCEnumDescriptor *type,
							       int value) {
	for (unsigned i = 0; i < type->n_values; i++) {
		if (type->values[i].value == value) {
			return &type->values[i];
		}
	}
	return NULL;
}

const ProtobufCFieldDescriptor *protobuf_c_message_descriptor_get_field_by_name(
	const ProtobufCMessageDescriptor *type, const char *name) {
	for (unsigned i = 0; i < type->n_fields; i++) {
		if (strcmp(type->fields[i].name, name) == 0) {
			return &type->fields[i];
		}
	}
	return NULL;
}
