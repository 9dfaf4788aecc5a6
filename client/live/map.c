/*
 * map.c: see map.h.
 */
#include "client/live/map.h"

#include "client/live/letters.h"

char map_letter(const struct snapshot *s, size_t i) {
	char letter = s->letters[i];

	if (letter < 'A' || letter > 'Z') {
		return LETTER_NONE;
	}
	return (char)(job_is_exact(s->jobs[i]) ? letter : letter - 'A' + 'a');
}

ssize_t map_holder(const struct snapshot *s, unsigned gpu, unsigned first, unsigned n) {
	struct smset part = smset_range(first, n);
	ssize_t holder = -1;
	unsigned most = 0;

	for (size_t i = 0; i < s->n_jobs; i++) {
		const Sbeet__Control__Job *job = s->jobs[i];
		struct smset sms = job_sms(job);
		struct smset here = smset_and(&sms, &part);

		if (job_is_running(job) && job->gpu == gpu && smset_count(&here) > most) {
			most = smset_count(&here);
			holder = (ssize_t)i;
		}
	}
	return holder;
}

char map_free(const Sbeet__Control__Gpu *gpu) {
	return gpu->drained ? '-' : '.';
}

struct map map_plan(unsigned n_sms, unsigned room) {
	struct map m = {.per_letter = 1};

	room = room < MAP_MIN ? MAP_MIN : room;
	if (n_sms > room) {
		m.per_letter = (n_sms + room - 1) / room;
	}
	m.n_letters = (n_sms + m.per_letter - 1) / m.per_letter;
	return m;
}

void map_print(const struct snapshot *s, const Sbeet__Control__Gpu *gpu, struct map map,
	       char text[MAP_TEXT]) {
	size_t n = 0;

	text[n++] = '[';
	for (unsigned i = 0; i < map.n_letters; i++) {
		ssize_t holder = map_holder(s, gpu->index, i * map.per_letter, map.per_letter);

		text[n++] = holder >= 0 ? map_letter(s, (size_t)holder) : map_free(gpu);
	}
	text[n++] = ']';
	text[n] = '\0';
}
