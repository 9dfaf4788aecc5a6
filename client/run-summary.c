/* run-summary.c: see run-summary.h. */
#include "client/run-summary.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client/live/runs.h"

/* So long we wait for sbeetd to be there, as its next one may be starting; and for it to notice the
 * end of the programs, of which some may go on. */
#define REACH_NS (3 * NSEC_PER_SEC)
#define END_NS	 (1 * NSEC_PER_SEC)
#define PAUSE_NS (20 * NSEC_PER_MSEC)

#define TOKEN_BYTES 16

struct summary {
	const struct ctl *ctl;
	char token[2 * TOKEN_BYTES + 1];
	int status; /* as waitpid() says */
	nsec_t duration;
};

/* ---- the program ---- */

static volatile pid_t child;

/* One from the terminal is the program's, too: it is in the same group. */
static void on_signal(int signal_number, siginfo_t *info, void *context) {
	int saved = errno;

	(void)context;
	if (info->si_code <= 0 && child > 0) {
		kill(child, signal_number);
	}
	errno = saved;
}

static const int passed_on[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

#define N_PASSED_ON (sizeof(passed_on) / sizeof(passed_on[0]))

/* One that is ignored, as under nohup, stays so. */
static void handle_signals(void) {
	struct sigaction ours = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
	struct sigaction before;

	for (size_t i = 0; i < N_PASSED_ON; i++) {
		if (sigaction(passed_on[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN) {
			sigaction(passed_on[i], &ours, NULL);
		}
	}
}

static int start_failed(const char *name) {
	ctl_error("cannot execute '%s': %s", name, strerror(errno));
	return errno == ENOENT ? CTL_EXIT_NOT_FOUND : CTL_EXIT_NOT_EXECUTABLE;
}

/* Return: the process, or -1 with errno. */
static pid_t start(char **argv) {
	sigset_t held, before;
	pid_t pid;

	sigemptyset(&held);
	for (size_t i = 0; i < N_PASSED_ON; i++) {
		sigaddset(&held, passed_on[i]);
	}
	sigprocmask(SIG_BLOCK, &held, &before);
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		sigprocmask(SIG_SETMASK, &before, NULL);
		execvp(argv[0], argv);
		_exit(start_failed(argv[0]));
	}
	if (pid > 0) {
		child = pid;
		handle_signals();
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	return pid;
}

/* What tells its processes from those of others. Return: 0 or negative errno. */
static int make_token(char token[static 2 * TOKEN_BYTES + 1]) {
	uint8_t bytes[TOKEN_BYTES];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes)) {
		return -errno;
	}
	for (size_t i = 0; i < TOKEN_BYTES; i++) {
		snprintf(token + 2 * i, 3, "%02x", bytes[i]);
	}
	return setenv("SBEET_RUN", token, 1) < 0 ? -errno : 0;
}

/* ---- what sbeetd says of it ---- */

static void rest(void) {
	nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
}

/* One that ended the program by a signal may have ended sbeetd's connection to it just now. Return:
 * an enum ctl_exit with one line in @error. */
static int ask(const struct summary *s, struct runs *ret, char *error, size_t size) {
	nsec_t began = nsec_now();
	struct control *control = NULL;
	int r;

	for (;;) {
		r = control ? 0 : control_open(&control, error, size);
		r = r == 0 ? runs_ask(control, "", s->token, ret, error, size) : r;
		if (r == 0 && (ret->n_connected == 0 || nsec_now() - began > END_NS)) {
			break;
		}
		if (r != 0 && (r != CTL_EXIT_NOT_RUNNING || nsec_now() - began > REACH_NS)) {
			break;
		}
		if (r == 0) {
			runs_deinit(ret);
		} else {
			control = control_close(control);
		}
		rest();
	}
	control_close(control);
	return r;
}

/* ---- how it is shown ---- */

__attribute__((format(printf, 4, 5))) static void print_figure(FILE *out, const char *value,
							       const char *name, const char *format,
							       ...) {
	char note[96];
	va_list args;

	va_start(args, format);
	vsnprintf(note, sizeof(note), format, args);
	va_end(args);
	if (*note) {
		fprintf(out, "%18s  %-14s # %s\n", value, name, note);
	} else {
		fprintf(out, "%18s  %s\n", value, name);
	}
}

static void print_number(FILE *out, uint64_t n, const char *name, const char *note, double value) {
	char text[32], notes[64] = "";

	snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
	if (note) {
		snprintf(notes, sizeof(notes), "%.2f %s", value, note);
	}
	print_figure(out, text, name, "%s", notes);
}

static void print_time(FILE *out, nsec_t t, const char *name, const char *note) {
	char text[32];

	snprintf(text, sizeof(text), "%.3f ms", (double)t / 1e6);
	print_figure(out, text, name, "%s", note);
}

static void print_run(FILE *out, const struct run *run, uint64_t now) {
	double seconds = (double)run_duration(run, now) / 1e9;
	char text[32];

	fprintf(out, "\n Task '%s', %u process%s:\n", run->task, run->n_processes,
		run->n_processes == 1 ? "" : "es");
	print_number(out, run->jobs, "jobs", "a second",
		     seconds > 0 ? (double)run->jobs / seconds : 0);
	print_number(out, run->misses, "misses", "% of the jobs",
		     run->jobs ? 100.0 * (double)run->misses / (double)run->jobs : 0);
	if (runs_split_frames(run->jobs, run->within_period)) {
		print_number(out, run->within_period, "within a period", "% of the jobs",
			     100.0 * (double)run->within_period / (double)run->jobs);
	}
	print_number(out, run->abandoned, "abandoned", NULL, 0);
	if (run->jobs > 0) {
		print_time(out, run->started_late / run->jobs, "started late", "mean");
		print_time(out, run->max_started_late, "started late", "max");
		print_time(out, run_percentile(run, 50), "response", "p50");
		print_time(out, run_percentile(run, 99), "response", "p99");
		print_time(out, run->max_response, "response", "max");
	}
	print_time(out, run->gpu, "GPU time", "all jobs together");
	if (run->energy_mj > 0) {
		snprintf(text, sizeof(text), "%.3f J", (double)run->energy_mj / 1e3);
		print_figure(out, text, "energy", "of its jobs, by its profile");
	}
	if (runs_split_frames(run->jobs, run->within_period)) {
		fprintf(out,
			"\n %llu of the %llu jobs began within the period of another "
			"one:\n " RUNS_SPLIT_FRAMES ".\n",
			(unsigned long long)run->within_period, (unsigned long long)run->jobs);
	}
	if (run->restarted) {
		fprintf(out,
			"\n sbeetd was started again meanwhile; jobs between are not counted.\n");
	}
}

static void print_text(FILE *out, const struct summary *s, const struct runs *runs) {
	fprintf(out, "\n '%s' ", s->ctl->args[0]);
	if (WIFSIGNALED(s->status)) {
		fprintf(out, "was ended by signal %d (%s)", WTERMSIG(s->status),
			strsignal(WTERMSIG(s->status)));
	} else {
		fprintf(out, "ended with %d", WEXITSTATUS(s->status));
	}
	fprintf(out, " after %.3f s.\n", (double)s->duration / 1e9);
	for (size_t i = 0; i < runs->n; i++) {
		print_run(out, &runs->list[i], runs_now());
	}
	if (runs->n == 0) {
		fprintf(out, " sbeetd knows of no job of it.\n");
	}
	if (runs->n_connected > 0) {
		fprintf(out, "\n %u of its processes still run.\n", runs->n_connected);
	}
	fputc('\n', out);
}

static json_t *to_json(const struct summary *s, const struct runs *runs) {
	json_t *command = json_array(), *tasks = json_array();
	bool killed = WIFSIGNALED(s->status);

	for (size_t i = 0; i < s->ctl->n_args; i++) {
		json_array_append_new(command, json_text(s->ctl->args[i]));
	}
	for (size_t i = 0; i < runs->n; i++) {
		json_array_append_new(tasks, run_json(&runs->list[i], runs_now()));
	}
	if (json_array_size(tasks) != runs->n) {
		json_decref(command);
		json_decref(tasks);
		return NULL;
	}
	return json_pack("{s:o, s:o, s:o, s:o, s:i, s:o}", "command", command, "exit_code",
			 killed ? json_null() : json_integer(WEXITSTATUS(s->status)), "signal",
			 killed ? json_integer(WTERMSIG(s->status)) : json_null(), "duration_ns",
			 json_u64(s->duration), "still_running", (int)runs->n_connected, "tasks",
			 tasks);
}

/* A summary that can't be had or written changes nothing of how the program ended. */
static void print(const struct summary *s, FILE *out, const char *file) {
	enum json_mode json = s->ctl->common.json;
	struct runs runs = {0};
	char error[512];
	int r = ask(s, &runs, error, sizeof(error));

	if (r != 0) {
		ctl_error("there is no summary: %s", error);
	} else {
		runs_merge_tasks(&runs);
		if (json == JSON_OFF) {
			print_text(out, s, &runs);
		} else {
			json_write(to_json(s, &runs), json, out);
		}
	}
	if (fflush(out) == EOF || ferror(out)) {
		ctl_error("cannot write the summary%s%s: %s", file ? " to " : "", file ? file : "",
			  strerror(errno));
	}
	runs_deinit(&runs);
}

/* As the program ended. */
static int end_as(int status) {
	if (WIFSIGNALED(status)) {
		prctl(PR_SET_DUMPABLE, 0); /* the program's core is the one that counts */
		fflush(NULL);
		signal(WTERMSIG(status), SIG_DFL);
		raise(WTERMSIG(status));
		return 128 + WTERMSIG(status);
	}
	return WEXITSTATUS(status);
}

int run_summary(const struct ctl *ctl, const char *file) {
	struct summary s = {.ctl = ctl};
	FILE *out = file ? fopen(file, "we") : stderr;
	nsec_t began = nsec_now();
	int r;

	if (!out) {
		ctl_error("cannot write '%s': %s", file, strerror(errno));
		return CTL_EXIT_FAILED;
	}
	r = make_token(s.token);
	if (r == 0 && start(ctl->args) < 0) {
		r = -errno;
	}
	if (r < 0) {
		ctl_error("cannot start '%s': %s", ctl->args[0], strerror(-r));
		if (file) {
			fclose(out);
		}
		return CTL_EXIT_FAILED;
	}
	while (waitpid(child, &s.status, 0) < 0 && errno == EINTR) {
	}
	child = 0;
	s.duration = nsec_now() - began;
	print(&s, out, file);
	if (file) {
		fclose(out);
	}
	return end_as(s.status);
}
