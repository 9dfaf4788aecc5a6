/*
 * control.h: simgpud's side of nvidiactl: open files, and the objects that programs allocate on
 * them by ioctl (rm.h). A channel group of the graphics engine stands for a context's turns on the
 * GPU and can be preempted; the others exist, and that is all.
 *
 * A file lives as long as any process has a descriptor of it. The memory of a context whose process
 * has died is kept until then, as on a real GPU; its work is not.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct context;
struct server;

struct control_object;

struct control_file {
	struct control_file *next;	/* in server->files */
	struct server *server;		/* borrowed */
	int fd;				/* owned */
	int pid;			/* who opened it */
	bool broken;			/* to be freed by the loop */
	struct control_object *objects; /* owned */
	struct context *orphans; /* owned: contexts of the dead process, for their memory's sake */
};

/* A program has opened the file: @fd is taken, also when out of memory. */
void control_open(struct server *s, int fd, int pid);
struct control_file *control_free(struct control_file *f);
/* Answers one ioctl, if there is one. */
void control_receive(struct control_file *f);

/* The context is gone: its group stays, and preempting that does nothing. */
void control_forget(struct server *s, const struct context *ctx);
/* Takes over the memory of a context whose process has died. Return: false if it has no file. */
bool control_adopt(struct server *s, struct context *ctx);
