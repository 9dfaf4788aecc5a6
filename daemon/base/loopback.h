/*
 * loopback.h: the address of a listening socket that only this machine reaches.
 */
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

union loopback_address {
	struct sockaddr any;
	struct sockaddr_un un;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/* "unix:/PATH", "127.0.0.1:PORT", "[::1]:PORT". Return: 0, or -EINVAL: not of this form, or other
 * machines could reach it. */
int loopback_parse(const char *where, union loopback_address *ret, socklen_t *ret_size);
