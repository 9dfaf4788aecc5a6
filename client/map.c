/*
 * map.c: see map.h.
 */
#include "client/map.h"

char map_letter(size_t n, const Sbeet__Control__Job *job) {
	if (n >= 26) {
		return '+';
	}
	return (char)((job_is_exact(job) ? 'A' : 'a') + n);
}

const Sbeet__Control__Job *map_holder(const struct snapshot *s, unsigned gpu, unsigned first,
				      unsigned n, size_t *ret_running) {
	struct smset part = smset_range(first, n);
	const Sbeet__Control__Job *holder = NULL;
	unsigned most = 0;
	size_t running = 0;

	for (size_t i = 0; i < s->n_jobs; i++) {
		const Sbeet__Control__Job *job = s->jobs[i];
		struct smset sms = job_sms(job);
		struct smset here = smset_and(&sms, &part);

		if (!job_is_running(job)) {
			continue;
		}
		if (job->gpu == gpu && smset_count(&here) > most) {
			most = smset_count(&here);
			holder = job;
			*ret_running = running;
		}
		running++;
	}
	return holder;
}

struct map map_plan(unsigned n_sms, unsigned room) {
	struct map m = {.per_letter = 1, .n_lines = 1};

	if (room < MAP_MIN) {
		m.per_letter = (n_sms + MAP_MIN - 1) / MAP_MIN;
		m.per_line = MAP_MIN;
		return m;
	}
	room = room > MAP_MAX ? MAP_MAX : room;
	m.n_lines = n_sms > room ? (n_sms + room - 1) / room : 1;
	/* Lines of one length, but for the last. */
	m.per_line = (n_sms + m.n_lines - 1) / m.n_lines;
	return m;
}

struct map map_plan_line(unsigned n_sms) {
	unsigned per_letter = (n_sms + MAP_MAX - 1) / MAP_MAX;

	per_letter = per_letter ? per_letter : 1;
	return (struct map){.per_letter = per_letter, .per_line = MAP_MAX, .n_lines = 1};
}

void map_print(const struct snapshot *s, const Sbeet__Control__Gpu *gpu, struct map map,
	       unsigned line, char text[MAP_TEXT]) {
	unsigned sm = line * map.per_line * map.per_letter;
	size_t n = 0, running;

	text[n++] = line == 0 ? '[' : ' ';
	for (unsigned i = 0; i < map.per_line && sm < gpu->sms; i++, sm += map.per_letter) {
		unsigned rest = gpu->sms - sm;
		const Sbeet__Control__Job *holder = map_holder(
			s, gpu->index, sm, rest < map.per_letter ? rest : map.per_letter, &running);

		text[n++] = holder ? map_letter(running, holder) : '.';
	}
	if (sm >= gpu->sms) {
		text[n++] = ']';
	}
	text[n] = '\0';
}
