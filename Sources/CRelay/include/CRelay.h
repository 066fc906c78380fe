// The system calls of Linux that the Swift module of the C library does not have. What is done with them is
// ProxyServer's business. Elsewhere there is nothing here.
#ifndef CRELAY_H
#define CRELAY_H

#if defined(__linux__)

#include <stddef.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/types.h>

/// prctl(2), PR_SET_NAME: what this thread is called in `top -H`, up to 15 bytes.
void crelay_name_thread(const char *name);

/// accept4(2): a connection that does not block and is closed by exec.
int crelay_accept(int listener);

/// pipe2(2): a pipe that does not block and is closed by exec, for `size` bytes if the system allows so many. Gives how many it
/// holds, or -1.
int crelay_pipe(int ends[2], int size);

/// splice(2): moves bytes from a socket to a pipe or from a pipe to a socket, without blocking.
ssize_t crelay_splice(int from, int to, size_t count);

/// ioctl(2), SIOCOUTQ: bytes that a socket's peer has not acknowledged.
int crelay_unacknowledged(int socket);

#endif

#endif
