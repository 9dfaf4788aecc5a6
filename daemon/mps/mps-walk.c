/*
 * mps-walk.c: see mps-walk.h.
 *
 *	SERVERS --> STATUS --> CLIENTS (of each server) --> PERCENT
 *	                            \--> TERMINATE, where the client is found
 *
 * What the real one says was seen of driver 580: terminate_client prints "0" where it succeeds, and
 * why not and "1" where it does not; all questions end with exit code 0, whatever the answer.
 */
#include "daemon/mps/mps-walk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/util.h"

#define CLIENTS_MAX 512
#define PID_MAX	    (1 << 22) /* Linux's own limit */

/* What the program says, whatever its exit code, while a control daemon ends or has ended. */
#define UNREACHED "Cannot find MPS control daemon"

enum step {
	STEP_SERVERS,
	STEP_STATUS,
	STEP_CLIENTS,
	STEP_PERCENT,
	STEP_TERMINATE,
};

struct mps_walk {
	struct event_base *base;		   /* borrowed, outlives us */
	const struct mps_directories *directories; /* likewise */
	pid_t terminate;
	nsec_t limit;
	mps_walked_fn done;
	void *userdata;

	enum step step;
	struct mps_ask *ask; /* owned */
	pid_t servers[MPS_SERVERS_MAX];
	unsigned at; /* the server that is asked about */
	struct mps_result result;
};

/*
 * Process ids, one a line; blank lines are none. Return: how many there are, or -EINVAL: something
 * else is there; -E2BIG: more than @max.
 */
static int parse_pids(const char *text, pid_t *ret, int max) {
	int n = 0;

	while (*text) {
		size_t length = strcspn(text, "\n");
		long pid = 0;

		for (size_t i = 0; i < length; i++) {
			if (text[i] < '0' || text[i] > '9') {
				return -EINVAL;
			}
			pid = pid * 10 + (text[i] - '0');
			if (pid > PID_MAX) {
				return -EINVAL;
			}
		}
		if (length > 0) {
			if (pid == 0) {
				return -EINVAL;
			}
			if (n == max) {
				return -E2BIG;
			}
			ret[n++] = (pid_t)pid;
		}
		text += length + (text[length] == '\n');
	}
	return n;
}

static void on_answer(void *userdata, int error, const char *text);

static int ask(struct mps_walk *walk, enum step step, const char *command) {
	walk->step = step;
	walk->ask = mps_ask_free(walk->ask);
	return mps_ask_new(&walk->ask, walk->base, walk->directories, command, walk->limit,
			   on_answer, walk);
}

static void finish(struct mps_walk *walk, int error) {
	walk->done(walk->userdata, error, &walk->result);
}

static int ask_server(struct mps_walk *walk, enum step step, const char *what) {
	char command[64];

	snprintf(command, sizeof(command), "%s %d", what, walk->servers[walk->at]);
	return ask(walk, step, command);
}

/* The server that is at hand, or what follows them all. */
static int go_on(struct mps_walk *walk) {
	if (walk->at < walk->result.n_servers) {
		return ask_server(walk, STEP_STATUS, "get_server_status");
	}
	if (walk->terminate) {
		snprintf(walk->result.why, sizeof(walk->result.why),
			 "process %d is no client of MPS", walk->terminate);
		finish(walk, 0);
		return 0;
	}
	return ask(walk, STEP_PERCENT, "get_default_active_thread_percentage");
}

/* It has ended since it was listed. */
static bool is_gone(const char *text) {
	return strncmp(text, "Server ", 7) == 0 && strstr(text, " not found");
}

static int take_servers(struct mps_walk *walk, const char *text) {
	int n = parse_pids(text, walk->servers, MPS_SERVERS_MAX);

	if (n < 0) {
		return n;
	}
	walk->result.n_servers = (unsigned)n;
	return go_on(walk);
}

/* "ACTIVE", "FAULT", "INITIALIZING". Older ones know no such question: then nothing is known. */
static int take_status(struct mps_walk *walk, const char *text) {
	walk->result.n_faulty += strncmp(text, "FAULT", 5) == 0;
	return ask_server(walk, STEP_CLIENTS, "get_client_list");
}

static int take_clients(struct mps_walk *walk, const char *text) {
	pid_t clients[CLIENTS_MAX];
	int n = is_gone(text) ? 0 : parse_pids(text, clients, CLIENTS_MAX);
	char command[64];

	if (n < 0) {
		return n;
	}
	walk->result.n_clients += (unsigned)n;
	for (int i = 0; i < n && walk->terminate; i++) {
		if (clients[i] == walk->terminate) {
			snprintf(command, sizeof(command), "terminate_client %d %d",
				 walk->servers[walk->at], walk->terminate);
			return ask(walk, STEP_TERMINATE, command);
		}
	}
	walk->at++;
	return go_on(walk);
}

/* "100.0". Older ones know no such question: then it is not known. */
static void take_percent(struct mps_walk *walk, const char *text) {
	unsigned percent = 0;

	for (; *text >= '0' && *text <= '9' && percent <= 100; text++) {
		percent = percent * 10 + (unsigned)(*text - '0');
	}
	walk->result.thread_percent = percent <= 100 ? percent : 0;
	finish(walk, 0);
}

/* Why an answer can't be used, its first line included. */
static void complain(struct mps_walk *walk, int error, const char *text) {
	int length = (int)strcspn(text, "\n");

	if (error == -ETIMEDOUT) {
		snprintf(walk->result.why, sizeof(walk->result.why), "it does not answer");
	} else if (length > 0) {
		snprintf(walk->result.why, sizeof(walk->result.why), "it says '%.*s'",
			 length < 100 ? length : 100, text);
	} else {
		snprintf(walk->result.why, sizeof(walk->result.why),
			 MPS_CONTROL_PROGRAM " fails without a word");
	}
}

static void on_answer(void *userdata, int error, const char *text) {
	struct mps_walk *walk = userdata;
	char copy[MPS_ANSWER_MAX + 1];
	int r = 0;

	/* The question, and its text with it, goes when the next one is put. */
	memcpy(copy, text, strlen(text) + 1);
	if (strncmp(copy, UNREACHED, strlen(UNREACHED)) == 0) {
		error = -ECONNREFUSED;
	}
	if (error < 0) {
		complain(walk, error, copy);
		finish(walk, error == -ETIMEDOUT || error == -ECONNREFUSED ? error : -EIO);
		return;
	}
	switch (walk->step) {
	case STEP_SERVERS:
		r = take_servers(walk, copy);
		break;
	case STEP_STATUS:
		r = take_status(walk, copy);
		break;
	case STEP_CLIENTS:
		r = take_clients(walk, copy);
		break;
	case STEP_PERCENT:
		take_percent(walk, copy);
		break;
	case STEP_TERMINATE:
		walk->result.terminated = copy[strspn(copy, "0 \n")] == '\0';
		if (!walk->result.terminated) {
			complain(walk, 0, copy);
		}
		finish(walk, 0);
		break;
	}
	if (r < 0) {
		complain(walk, 0, copy);
		finish(walk, -EIO);
	}
}

int mps_walk_new(struct mps_walk **ret, struct event_base *base,
		 const struct mps_directories *directories, pid_t terminate, nsec_t limit,
		 mps_walked_fn done, void *userdata) {
	struct mps_walk *walk = calloc(1, sizeof(*walk));
	int r;

	if (!walk) {
		return -ENOMEM;
	}
	walk->base = base;
	walk->directories = directories;
	walk->terminate = terminate;
	walk->limit = limit;
	walk->done = done;
	walk->userdata = userdata;
	r = ask(walk, STEP_SERVERS, "get_server_list");
	if (r < 0) {
		free(walk);
		return r;
	}
	*ret = walk;
	return 0;
}

struct mps_walk *mps_walk_free(struct mps_walk *walk) {
	if (walk) {
		mps_ask_free(walk->ask);
		free(walk);
	}
	return NULL;
}
