/* hostile.c: see hostile.h. */
#include "hostile.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "proto/units.h"

#define DEPTH_MAX 4
#define TEXT_MAX  1100

/* What a message of the packet is made of; all of it goes when the packet is packed. */
struct parts {
	struct part {
		struct part *next;
		max_align_t data[];
	} * first;
};

static void *part(struct parts *parts, size_t bytes) {
	struct part *p = calloc(1, sizeof(*p) + bytes + 1);

	if (!p) {
		abort();
	}
	p->next = parts->first;
	parts->first = p;
	return p->data;
}

static void parts_free(struct parts *parts) {
	while (parts->first) {
		struct part *p = parts->first;

		parts->first = p->next;
		free(p);
	}
}

/* splitmix64 */
static uint64_t draw(struct hostile *h) {
	uint64_t z = h->random += 0x9E3779B97F4A7C15ull;

	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
	z = (z ^ z >> 27) * 0x94D049BB133111EBull;
	return z ^ z >> 31;
}

uint64_t hostile_below(struct hostile *h, uint64_t n) {
	return draw(h) % n;
}

/* Limits, what is just beyond them, and anything. */
static uint64_t draw_number(struct hostile *h) {
	static const uint64_t edges[] = {
		0,
		1,
		2,
		3,
		255,
		256,
		INT32_MAX,
		1ull << 31,
		UINT32_MAX,
		1ull << 32,
		INT64_MAX,
		1ull << 63,
		UINT64_MAX,
		1000000000ull,
		86400000000000,
		86400000000001,
		16,
		64,
	};

	return hostile_below(h, 2) ? edges[hostile_below(h, sizeof(edges) / sizeof(*edges))]
				   : draw(h) >> hostile_below(h, 64);
}

/* Whether this value is one that a real client may send. */
static bool is_careful(struct hostile *h) {
	return h->careful && hostile_below(h, 20) > 0;
}

/* Of few jobs, kernels and so on, so that messages speak of the same ones. */
static uint64_t draw_careful(struct hostile *h, const char *name) {
	size_t n = strlen(name);

	if (n > 3 && strcmp(name + n - 3, "_ns") == 0) {
		return hostile_below(h, 3) ? nsec_now() - hostile_below(h, 10 * NSEC_PER_MSEC) : 0;
	}
	return strstr(name, "mask") ? UINT32_C(0x1f) : hostile_below(h, 8);
}

static uint64_t draw_value(struct hostile *h, const char *name) {
	return is_careful(h) ? draw_careful(h, name) : draw_number(h);
}

static char *draw_text(struct hostile *h, struct parts *parts) {
	static const char *const texts[] = {
		"",	   "a",	       "camera", "a b",	   "../..",	 "%s%n",
		"\033[0m", "\xc3\xa9", "ping",	 "secret", "counts",	 "terms",
		"copies",  "preempt",  "stop",	 "level",  "any-gpu",	 "\x80",
		"-x",	   "t1",       "steer",	 "even",   "choose-gpu", "\n",
	};
	size_t n = hostile_below(h, 20) ? 0 : hostile_below(h, TEXT_MAX);
	char *text;

	if (is_careful(h)) {
		return (char *)"a";
	}

	if (n == 0) {
		return (char *)texts[hostile_below(h, sizeof(texts) / sizeof(*texts))];
	}
	text = part(parts, n);
	memset(text, 'x', n);
	return text;
}

/* The UUIDs of the GPUs of --gpus are a number and zeros. */
static ProtobufCBinaryData draw_bytes(struct hostile *h, struct parts *parts) {
	static const size_t sizes[] = {0, 1, 15, 16, 16, 16, 16, 17, 32, 33, 64, 255};
	ProtobufCBinaryData bytes = {
		.len = sizes[hostile_below(h, sizeof(sizes) / sizeof(*sizes))],
	};
	bool gpu;

	bytes.len = is_careful(h) ? PROTO_UUID_BYTES : bytes.len;
	gpu = bytes.len == PROTO_UUID_BYTES && hostile_below(h, 4);

	bytes.data = part(parts, bytes.len);
	for (size_t i = 0; i < bytes.len && !gpu; i++) {
		bytes.data[i] = (uint8_t)draw(h);
	}
	if (gpu) {
		bytes.data[0] = (uint8_t)(1 + hostile_below(h, 3));
	}
	return bytes;
}

static ProtobufCMessage *make_message(struct hostile *h, struct parts *parts,
				      const ProtobufCMessageDescriptor *type, unsigned depth);

static size_t size_of(const ProtobufCFieldDescriptor *field) {
	switch (field->type) {
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_SINT64:
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_FIXED64:
	case PROTOBUF_C_TYPE_SFIXED64:
	case PROTOBUF_C_TYPE_DOUBLE:
		return sizeof(uint64_t);
	case PROTOBUF_C_TYPE_STRING:
	case PROTOBUF_C_TYPE_MESSAGE:
		return sizeof(void *);
	case PROTOBUF_C_TYPE_BYTES:
		return sizeof(ProtobufCBinaryData);
	default:
		return sizeof(uint32_t);
	}
}

/* One value of @field, at @to. */
static void fill_value(struct hostile *h, struct parts *parts,
		       const ProtobufCFieldDescriptor *field, void *to, unsigned depth) {
	switch (field->type) {
	case PROTOBUF_C_TYPE_STRING:
		*(char **)to = draw_text(h, parts);
		break;
	case PROTOBUF_C_TYPE_BYTES:
		*(ProtobufCBinaryData *)to = draw_bytes(h, parts);
		break;
	case PROTOBUF_C_TYPE_MESSAGE:
		*(ProtobufCMessage **)to = make_message(h, parts, field->descriptor, depth + 1);
		break;
	case PROTOBUF_C_TYPE_BOOL:
		*(protobuf_c_boolean *)to = (protobuf_c_boolean)hostile_below(h, 2);
		break;
	case PROTOBUF_C_TYPE_ENUM:
		*(uint32_t *)to =
			(uint32_t)(is_careful(h) || hostile_below(h, 8) ? hostile_below(h, 5)
									: draw_number(h));
		break;
	default:
		if (size_of(field) == sizeof(uint64_t)) {
			*(uint64_t *)to = draw_value(h, field->name);
		} else {
			*(uint32_t *)to = (uint32_t)draw_value(h, field->name);
		}
		break;
	}
}

static void fill_list(struct hostile *h, struct parts *parts, const ProtobufCFieldDescriptor *field,
		      uint8_t *message, unsigned depth) {
	size_t n = hostile_below(h, 40) ? hostile_below(h, 4) : hostile_below(h, 300);
	uint8_t *list = part(parts, n * size_of(field));

	for (size_t i = 0; i < n; i++) {
		fill_value(h, parts, field, list + i * size_of(field), depth);
	}
	*(void **)(message + field->offset) = list;
	*(size_t *)(message + field->quantifier_offset) = n;
}

static bool is_oneof(const ProtobufCFieldDescriptor *field) {
	return field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF;
}

static void fill_oneof(struct hostile *h, struct parts *parts,
		       const ProtobufCMessageDescriptor *type, uint8_t *message, unsigned depth) {
	const ProtobufCFieldDescriptor *field = NULL;
	uint64_t n = 0;

	for (unsigned i = 0; i < type->n_fields; i++) {
		if (is_oneof(&type->fields[i]) && hostile_below(h, ++n) == 0) {
			field = &type->fields[i];
		}
	}
	if (field) {
		*(uint32_t *)(message + field->quantifier_offset) = field->id;
		fill_value(h, parts, field, message + field->offset, depth);
	}
}

static ProtobufCMessage *make_message(struct hostile *h, struct parts *parts,
				      const ProtobufCMessageDescriptor *type, unsigned depth) {
	uint8_t *message = part(parts, type->sizeof_message);

	type->message_init((ProtobufCMessage *)message);
	for (unsigned i = 0; i < type->n_fields; i++) {
		const ProtobufCFieldDescriptor *field = &type->fields[i];
		bool deep = field->type == PROTOBUF_C_TYPE_MESSAGE && depth >= DEPTH_MAX;

		if (is_oneof(field) || deep || hostile_below(h, 4) == 0) {
			continue;
		}
		if (field->label == PROTOBUF_C_LABEL_REPEATED) {
			fill_list(h, parts, field, message, depth);
		} else {
			fill_value(h, parts, field, message + field->offset, depth);
		}
	}
	fill_oneof(h, parts, type, message, depth);
	return (ProtobufCMessage *)message;
}

void hostile_make(struct hostile *h, const ProtobufCMessageDescriptor *type) {
	struct parts parts = {NULL};
	ProtobufCMessage *m = make_message(h, &parts, type, 0);
	size_t n = protobuf_c_message_get_packed_size(m);

	h->n = 0;
	if (n <= sizeof(h->packet)) {
		h->n = protobuf_c_message_pack(m, h->packet);
	}
	parts_free(&parts);
}

static void move_rest(struct hostile *h, size_t from, size_t to) {
	size_t n = h->n - from;

	if (to + n <= sizeof(h->packet)) {
		memmove(h->packet + to, h->packet + from, n);
		h->n = to + n;
	}
}

void hostile_break(struct hostile *h) {
	for (uint64_t k = 1 + hostile_below(h, 5); k > 0 && h->n > 0; k--) {
		size_t at = hostile_below(h, h->n), n = 1 + hostile_below(h, 20);

		switch (hostile_below(h, 5)) {
		case 0:
			h->packet[at] ^= (uint8_t)(1u << hostile_below(h, 8));
			break;
		case 1:
			h->packet[at] = (uint8_t)draw(h);
			break;
		case 2:
			move_rest(h, at, at + n);
			break;
		case 3:
			move_rest(h, at + n < h->n ? at + n : h->n, at);
			break;
		default:
			h->n = at;
			break;
		}
	}
}
