/*
 * terms.h: how sbeetctl shows terms (proto/terms.h): where the work of a session runs without
 * asking. A word that means nothing on a GPU of @gpu_sms SMs is shown as one that does not steer.
 */
#pragma once

#include <stdint.h>

#include "client/base/json.h"
#include "proto/smset.h"
#include "proto/terms.h"

/* Longest text of terms_print(). */
#define TERMS_TEXT_MAX (SMSET_TEXT_MAX + TERMS_MARKS_MAX + 32)

/* "SMs 0-55, level 5", "all SMs, level 0, copies held"; "asks for each job". */
void terms_print(uint64_t word, unsigned gpu_sms, char text[TERMS_TEXT_MAX]);

/* The SMs alone: "0-55", "all"; "". */
void terms_print_sms(uint64_t word, unsigned gpu_sms, char text[TERMS_TEXT_MAX]);

/* The object that sbeetctl(1) documents, null where it does not steer; NULL if memory ran out. */
json_t *terms_json(uint64_t word, unsigned gpu_sms);
