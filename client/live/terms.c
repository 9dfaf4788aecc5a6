/*
 * terms.c: see terms.h.
 */
#include "client/live/terms.h"

#include <stdio.h>

#include "proto/terms.h"

/* Return: whether @word steers on this GPU. */
static bool read_word(uint64_t word, unsigned gpu_sms, struct terms *ret, struct smset *ret_sms) {
	*ret = terms_unpack(word);
	return gpu_sms > 0 && terms_sms(ret, gpu_sms, ret_sms) == 0;
}

void terms_print_sms(uint64_t word, unsigned gpu_sms, char text[TERMS_TEXT_MAX]) {
	struct smset sms;
	struct terms t;

	text[0] = '\0';
	if (!read_word(word, gpu_sms, &t, &sms)) {
		return;
	}
	if (t.n == 0) {
		snprintf(text, TERMS_TEXT_MAX, "all");
	} else {
		smset_print(&sms, text, TERMS_TEXT_MAX);
	}
}

void terms_print(uint64_t word, unsigned gpu_sms, char text[TERMS_TEXT_MAX]) {
	struct terms t = terms_unpack(word);
	char sms[TERMS_TEXT_MAX], marks[TERMS_MARKS_MAX];

	terms_print_sms(word, gpu_sms, sms);
	if (!*sms) {
		snprintf(text, TERMS_TEXT_MAX, "asks for each job");
		return;
	}
	terms_print_marks(&t, marks);
	snprintf(text, TERMS_TEXT_MAX, "%s%.*s%s, level %u%s", t.n == 0 ? "" : "SMs ",
		 SMSET_TEXT_MAX, sms, t.n == 0 ? " SMs" : "", t.level, marks);
}

json_t *terms_json(uint64_t word, unsigned gpu_sms) {
	char text[SMSET_TEXT_MAX];
	struct smset sms;
	struct terms t;

	if (!read_word(word, gpu_sms, &t, &sms)) {
		return json_null();
	}
	smset_print(&sms, text, sizeof(text));
	return json_pack("{s:s, s:o, s:b, s:o, s:s, s:b, s:b, s:b, s:b, s:o}", "sms", text, "n_sms",
			 json_u64(smset_count(&sms)), "whole", t.n == 0, "level", json_u64(t.level),
			 "copies", terms_copies_name(t.copies), "awaited", t.awaited, "guarded",
			 t.guarded, "yields", t.yields, "back_by_kernel", t.back_by_kernel, "epoch",
			 json_u64(t.epoch));
}
