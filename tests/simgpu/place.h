/*
 * place.h: where simgpud's socket stands: in $SIMGPU_DIR, else $XDG_RUNTIME_DIR/simgpu, else
 * /tmp/simgpu-UID. Shared by simgpud and the client libraries.
 */
#pragma once

#include <stddef.h>
#include <sys/un.h>

/* Makes the folder (mode 0700) if it is missing. Return: 0; -ENAMETOOLONG; errno of mkdir; -EPERM
 * if it is another user's, and not root's, who may run GPUs for all. */
int place_dir(char *path, size_t size);

/* "DIR/NAME". Return: 0 or -ENAMETOOLONG, for what does not fit into a sockaddr_un either. */
int place_file(char *path, size_t size, const char *dir, const char *name);

/* @path must have come from place_file(). */
struct sockaddr_un place_address(const char *path);
