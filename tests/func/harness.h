/*
 * harness.h: a real sbeetd in a directory of its own, and scripted clients that talk to it.
 *
 * All waits are for events, with a deadline that only a hang can reach; then the test fails.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "control.pb-c.h"
#include "proto/board.h"
#include "proto/limits.h"
#include "proto/smset.h"
#include "proto/terms.h"
#include "proto/units.h"
#include "sbeet.pb-c.h"

#define HARNESS_ARGS_MAX   16
#define HARNESS_PASSED_MAX 16

struct harness {
	char directory[64]; /* temporary; $SBEET_RUNTIME_DIR and $SBEET_CONFIG_DIR too */
	pid_t pid;	    /* of sbeetd; 0: stopped */

	int log_fd; /* a file that takes what sbeetd says; 0: it goes where ours does */

	/* Sockets passed as a service manager does, as descriptors from 3 on; none if n_passed is
	 * 0. */
	int passed[HARNESS_PASSED_MAX];
	int n_passed;
	const char *passed_names; /* LISTEN_FDNAMES */
};

/* Makes the directory. harness_start() does it too; to be called before where more goes into it. */
void harness_prepare(struct harness *h);

/* The same, with a folder of profiles, which has @text in a file: for --profile-dir. Return: the
 * folder, until the next call. */
const char *harness_write_profiles(struct harness *h, const char *text);

/* Starts sbeetd with these arguments, terminated by NULL, and waits until it listens. */
void harness_start(struct harness *h, const char *const *args);

/* The same for an sbeetd that may fail: waits until it says that it is ready or has ended with 1 or
 * 2: then false. After harness_listen(), whose memory begins anew. */
bool harness_try_start(struct harness *h, const char *const *args);

/* Runs sbeetd with these arguments to its end, in the same directory. Returns its exit code; what
 * it wrote to stderr is in @errors. */
int harness_run(struct harness *h, const char *const *args, char *errors, size_t size);

/* From now on what sbeetd says is kept in memory, and harness_said() counts how often it has said
 * @text. */
void harness_listen(struct harness *h);
unsigned harness_said(const struct harness *h, const char *text);

/* Sends the signal; waits for the end; returns the exit code, or 128 + signal. */
int harness_stop(struct harness *h, int signal_number);

/* Ends an sbeetd that must still work: it grants a job, and exits with 0. */
void harness_finish(struct harness *h);

/* Waits for the end alone. */
int harness_wait(struct harness *h);

/* Kills what runs and removes the directory. */
void harness_clean(struct harness *h);

/* --- the shim's side ------------------------------------------------------------------------ */

#define MASK_WHOLE (1u << SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE)
#define MASK_ALL                                                   \
	(MASK_WHOLE | 1u << SBEET__ENFORCEMENT__ENFORCEMENT_SMID | \
	 1u << SBEET__ENFORCEMENT__ENFORCEMENT_COUNT)

struct shim {
	int fd;
	uint64_t session;
};

int shim_connect(void); /* returns the descriptor */
void shim_send(int fd, const Sbeet__ToDaemon *m);

/* A kernel; it can be confined unless @refusal says why not (""). */
/* Without a refusal it is launched as a dependent kernel, too. */
void shim_declare(int fd, uint32_t id, const char *name, const char *refusal);

/* What a kernel's launches are by now, in blocks of 64 threads. */
void shim_count(int fd, uint32_t id, uint64_t launches, uint64_t blocks);

/* The next message; the caller frees it with packet_free(). NULL: the daemon has closed. */
Sbeet__ToShim *shim_receive(int fd);

/* Returns when the daemon has dealt with everything that was sent before. (Packets of different
 * sockets are otherwise handled in any order.) */
void harness_settle(void);

/* Settles; fails the test if a message is there then. */
void shim_expect_silence(int fd);

void shim_hello(int fd, const char *program, const Sbeet__TaskSpec *task, uint32_t mask);

/* Connects, says hello, checks the welcome. */
struct shim shim_open(const char *program, uint32_t mask);

/* The same for a program of @task (NULL: none), whose library has the first @n of @features, and no
 * other. */
struct shim shim_open_with(const char *program, const Sbeet__TaskSpec *task,
			   const char *const *features, size_t n, uint32_t mask);
void shim_close(struct shim *s);

void shim_request(int fd, uint64_t job, unsigned gpu, uint32_t mask);
void shim_done(int fd, uint64_t job);

/* The same with the times that the client claims; the job's thread is @tid. */
void shim_request_at(int fd, uint64_t job, nsec_t at, uint32_t tid);
void shim_done_at(int fd, uint64_t job, nsec_t at);
void shim_cancel(int fd, uint64_t job);

/* Waits for a grant of this job, checks it, and returns what it gives. */
struct grant {
	struct smset sms;
	Sbeet__Enforcement enforcement;
	unsigned slot, gpu_sms;
	uint64_t sequence, deadline_ns;
};
struct grant shim_granted(int fd, uint64_t job);

/* A client that reads terms. */
struct steered {
	int fd;
	uint64_t session;
	int page_fd;
	const struct terms_page *page; /* mapped */
};

/* Connects, says hello, maps the page of the welcome. Closed with steered_close(). */
struct steered steered_open(const char *program, const Sbeet__TaskSpec *task, uint32_t mask);
void steered_close(struct steered *s);

/* The same after a goodbye, of which sbeetd has heard when it is closed. */
void steered_leave(struct steered *s);

/* The same for a program that takes a board of copies. The board comes as soon as its copies are
 * held: maps it; the caller's to unmap. */
struct steered steered_open_taking_boards(const char *program, const Sbeet__TaskSpec *task,
					  uint32_t mask);
struct board *steered_board(struct steered *s, unsigned *ret_slot);

/* The welcome with a page: of a further one too, once the page before is not used any more. */
void steered_welcome(struct steered *s);

/* What its page says. */
struct terms steered_terms(const struct steered *s, unsigned gpu);

/* What a job consisted of. */
struct work {
	uint64_t launches, waves, copies;
};

/* Tells of a job that runs under terms. */
struct began {
	uint64_t job, terms;
	nsec_t release, finished; /* finished 0: it runs */
	nsec_t marked, own_deadline;
	const struct work *work; /* NULL: three launches, waves not known */
	uint64_t dropped;	 /* jobs before it of which nothing is told */
	bool cold;
};
void steered_began(const struct steered *s, unsigned gpu, const struct began *b);

/* Over @fd, asks for a job on the first GPU of @s's page. */
void steered_request(int fd, const struct steered *s, uint64_t job);

/* The secret that clients show: that of the last Welcome, so all clients of a test are one program
 * to sbeetd; or none, until the next Welcome; or this one. */
void shim_forget_secret(void);
void shim_show_secret(const uint8_t shown[static PROTO_SECRET_BYTES]);

/* Copies the one that is shown. */
void shim_keep_secret(uint8_t ret[static PROTO_SECRET_BYTES]);

/* A running job as a Hello tells the next daemon of it. */
struct claim {
	Sbeet__Held held; /* points into the claim itself, which must stay where it is */
	uint8_t uuid[PROTO_UUID_BYTES], sms[sizeof(struct smset)];
};
void claim_init(struct claim *c, uint64_t job, unsigned gpu, const struct grant *g);

/* Connects again, as libsbeet.so does when the connection is gone, and names the @n claims. Checks
 * the welcome; returns the descriptor. */
#define CLAIMS_MAX 4
int shim_come_back(const char *program, struct claim *claims, size_t n);

/* The same without any claims, but with the news that @job has ended. */
int shim_come_back_ended(const char *program, uint64_t job);

/* Waits for an error with this code and job. */
void shim_error(int fd, uint64_t job, Sbeet__ErrorCode code);

/* Waits for the end of the connection; nothing else may come. */
void shim_closed(int fd);

/* --- sbeetctl's side ------------------------------------------------------------------------ */

/* All packets of a status answer, merged. Freed with status_free(). */
Sbeet__Control__Status *status_get(void);
void status_free(Sbeet__Control__Status *status);

/* Asks on a connection of its own; the first packet of the answer, freed with packet_free(). */
Sbeet__Control__Reply *control_ask(Sbeet__Control__Request *request);

/* The same, and it is done. */
void control_do(Sbeet__Control__Request *request);

/* The same in two steps: the connection, which control_end() closes. */
int control_begin(Sbeet__Control__Request *request);
Sbeet__Control__Reply *control_end(int fd);

/* Sets the policy; expects this error, or ERROR_CODE_NONE. */
void policy_set(const char *name, Sbeet__ErrorCode error);

/* Asks for status until @holds, for what the daemon learns by itself (that a process has died).
 * Fails the test if it never does. */
void status_until(bool (*holds)(const Sbeet__Control__Status *status, void *data), void *data);
