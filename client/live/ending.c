/* ending.c: see ending.h. */
#include "client/live/ending.h"

#include <stdio.h>
#include <string.h>

#include "client/base/ctl.h"
#include "proto/packet.h"

/* What sbeetd takes beyond the time that it was given: MPS is asked in several steps. */
#define ANSWER_MAX_NS (15 * NSEC_PER_SEC)

int ending_ask(struct control *control, uint64_t session, nsec_t drain, char *error, size_t size) {
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;
	Sbeet__Control__SessionKill kill = SBEET__CONTROL__SESSION_KILL__INIT;

	kill.session = session;
	kill.terminate = true;
	kill.drain_ns = drain;
	request.body_case = SBEET__CONTROL__REQUEST__BODY_SESSION_KILL;
	request.session_kill = &kill;
	return control_send(control, &request, error, size);
}

int ending_answer(struct control *control, nsec_t timeout, struct ending *ret, bool *ret_there,
		  char *error, size_t size) {
	Sbeet__Control__Reply *reply;
	int r = control_next(control, timeout, &reply, error, size);

	*ret_there = r == 0 && reply;
	if (!*ret_there) {
		return r;
	}
	if (reply->body_case == SBEET__CONTROL__REPLY__BODY_DONE) {
		*ret = (struct ending){.pid = reply->done->pid, .running = reply->done->running};
		snprintf(ret->note, sizeof(ret->note), "%s", reply->done->note);
	} else {
		snprintf(error, size, "sbeetd answered a different question");
		r = CTL_EXIT_FAILED;
	}
	packet_free(&reply->base);
	return r;
}

int ending_prepare(struct control *control, uint64_t session, nsec_t drain, struct ending *ret,
		   char *error, size_t size) {
	nsec_t until = nsec_now() + drain + ANSWER_MAX_NS, now;
	bool there = false;
	int r = ending_ask(control, session, drain, error, size);

	while (r == 0 && !there && (now = nsec_now()) < until) {
		r = ending_answer(control, until - now, ret, &there, error, size);
	}
	if (r == 0 && !there) {
		snprintf(error, size, "sbeetd does not answer");
		r = CTL_EXIT_TIMEOUT;
	}
	return r;
}
