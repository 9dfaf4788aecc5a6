/*
 * mini.h: a daemon that a test plays by hand, and a guest program that it tells what to do.
 *
 * Everything that waits gives up after MINI_TIMEOUT_MS and fails the test: long enough for any
 * machine, never part of what is tested.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "proto/terms.h"
#include "proto/units.h"
#include "sbeet.pb-c.h"

#define MINI_TIMEOUT_MS 60000

#define MINI_ANSWER_MAX 128

/* What a grant may confine a job to. */
#define WHOLE SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE
#define COUNT SBEET__ENFORCEMENT__ENFORCEMENT_COUNT

/* How long a quiet program keeps its job. Long: only its own waits end a job, however slow the
 * machine is. Short: the tracker ends it; such a test holds the driver while the job is to stay. */
#define MINI_LINGER_LONG_NS  (3600ull * 1000000000ull)
#define MINI_LINGER_SHORT_NS 100000ull

struct mini {
	char directory[64]; /* owned: of the socket and the guest's standard error */
	char socket[96];
	int listener;	    /* -1: nobody listens */
	uint64_t linger_ns; /* that Welcome tells */
	uint64_t spin_ns;   /* likewise */
	unsigned n_welcomes; /* of this guest; each has another secret, which the next Hello must
			      * show, and the first one none */
	bool pings;	    /* Welcome has the feature "ping" */
	bool counts;	    /* Welcome has the feature "counts"; else all operations are told */
	bool dependent;	    /* Welcome has the feature "dependent" */
	bool resumes;	    /* Welcome has the feature "resume"; else it is an older daemon's */
	struct terms_page
		*terms; /* mapped here as well; NULL: no page of terms comes with Welcome */
	int terms_fd;	/* of that, or anything else that comes along; -1: nothing does */
	pid_t guest;
	int to_guest, from_guest;
	const char *const *run; /* the guest is started by `sbeetctl run` with these options; NULL:
				 * it is preloaded */
};

/* Environments of guests: nothing is set; each thread has jobs of its own. */
extern const char *const mini_plain[], *const mini_by_thread[];

/* The fixture of a test case: @state becomes a struct mini, which is initialized. */
int mini_setup(void **state);
int mini_teardown(void **state);
#define MINI_CASE(name) cmocka_unit_test_setup_teardown(name, mini_setup, mini_teardown)

/* Makes the directory. Nobody listens yet. */
void mini_init(struct mini *m);

/* Ends the guest, which must exit with 0. Another one may be started then. */
void mini_end(struct mini *m);

/* The same, and removes everything. */
void mini_deinit(struct mini *m);

/* From the next Welcome on a page of terms comes along, sealed if @sealed. They don't steer yet. */
void mini_make_page(struct mini *m, bool sealed);
void mini_drop_page(struct mini *m);

/* The whole GPU 0 at @level from now on; below 0: the program asks. */
void mini_steer(struct mini *m, int level);

/* The next message, which must be a Began, with the terms that the page says. Jobs of which only
 * the begin is told have *ret_launches 0. Return: the number of the job. */
uint64_t mini_began(struct mini *m, int fd, uint64_t *ret_launches);

void mini_listen(struct mini *m);
void mini_unlisten(struct mini *m);

/* Starts the guest. @environment: "NAME=VALUE" strings, ends with NULL. */
void mini_start(struct mini *m, const char *const *environment);
void mini_tell(struct mini *m, const char *line);
void mini_answers(struct mini *m, const char *line);
void mini_answer(struct mini *m, char answer[static MINI_ANSWER_MAX]); /* whatever it is */

/* Waits until the guest has answered something, or said something to the daemon. Return: is it an
 * answer? */
bool mini_wait(struct mini *m, int fd);

/* Both: "@T COMMAND" and its answer "T COMMAND RESULT" with @result. */
void mini_do(struct mini *m, const char *line, int result);

/* "@T gate 0", which also lets another thread go on: it answers @other, before T or after it. */
void mini_open_gate(struct mini *m, const char *line, const char *other);

/* How often @text stands in what the guest wrote to standard error so far. */
unsigned mini_said(struct mini *m, const char *text);

/* Sends a Welcome: also what a daemon says that takes the connection of @fd over. */
void mini_welcome(struct mini *m, int fd);

/* A new connection of the guest, Hello read and Welcome sent. */
int mini_accept(struct mini *m);
/* The same; the Hello must name @job, and no other, as held. 0: none. */
int mini_accept_held(struct mini *m, uint64_t job);
/* The same; it must name @job, and no other, as ended, with one launch, and none as held. */
int mini_accept_ended(struct mini *m, uint64_t job);
/* The same without any answer. */
int mini_accept_only(struct mini *m);
bool mini_is_called(struct mini *m); /* somebody is waiting to be accepted */

/* A guest with a connection and, in thread 0, a current context. Returns the connection. */
int mini_begin(struct mini *m, const char *const *environment);

/* Thread 0's launch opens a job, which is granted. Returns its number. */
uint64_t mini_open_job(struct mini *m, int fd);
/* The same by the command @line, "@T COMMAND", with a grant of @enforcement. */
uint64_t mini_open_job_by(struct mini *m, int fd, const char *line, Sbeet__Enforcement enforcement);

/* Grants the job that the guest asks for next, and waits until the guest answers something. With
 * MINI_LINGER_SHORT_NS and on a busy machine the tracker may end the job before its first operation
 * is in it, which then asks again. Returns the job that it got into. */
uint64_t mini_let_in(struct mini *m, int fd, Sbeet__Enforcement enforcement);

/* The next message, to be freed by mini_free(). NULL: the guest has closed the connection. */
Sbeet__ToDaemon *mini_next(int fd);

/* The next message but for kernels and sums, which come by the way, and which must be a @body; to be
 * freed by mini_free(). */
Sbeet__ToDaemon *mini_expect(int fd, Sbeet__ToDaemon__BodyCase body);
void mini_free(Sbeet__ToDaemon *m);
void mini_expect_end(int fd); /* the guest has closed */
bool mini_is_quiet(int fd);   /* nothing has arrived so far */

/* Waits for a Request and returns its number and mask (may be NULL). */
uint64_t mini_request(int fd, uint32_t *ret_mask);
/* The same, and when its operation was called. */
uint64_t mini_request_at(int fd, uint32_t *ret_mask, nsec_t *ret_called);
void mini_grant(int fd, uint64_t job, Sbeet__Enforcement enforcement);
/* Return: false if the guest has closed the connection. */
bool mini_try_grant(int fd, uint64_t job, Sbeet__Enforcement enforcement);
/* An Error about @job, or, if it is 0, about the session. */
void mini_error(int fd, uint64_t job, Sbeet__ErrorCode code, const char *why);
void mini_send(int fd, const Sbeet__ToShim *m);

/* Reads records until the JobDone of @job, and checks that the batches hold what it sums up. Jobs
 * of other numbers must not be mentioned. */
struct mini_sums {
	uint64_t launches, copies;
	uint64_t elsewhere; /* launches that may have been told over another connection */
	bool cancelled;
	nsec_t finished_ns;
};
struct mini_sums mini_done(int fd, uint64_t job);

/* One message of those, added to @sums. Return: was it the JobDone? */
bool mini_read(int fd, uint64_t job, struct mini_sums *sums);
/* The same, when up to @before launches may have been told over another connection. */
struct mini_sums mini_done_after(int fd, uint64_t job, uint64_t before);
