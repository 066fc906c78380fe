// Linux system calls that the Swift overlay of the C library does not import. Empty on other systems.
#ifndef CRELAY_H
#define CRELAY_H

#if defined(__linux__)

#include <stddef.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/types.h>

/// prctl(2), PR_SET_NAME: sets the calling thread's name, up to 15 bytes, as shown by `top -H`.
void crelay_name_thread(const char *name);

/// accept4(2): returns a connection with SOCK_NONBLOCK and SOCK_CLOEXEC, or -1.
int crelay_accept(int listener);

/// pipe2(2): creates a pipe with O_NONBLOCK and O_CLOEXEC, with a capacity of `size` bytes if the kernel allows it. Returns the
/// capacity, or -1.
int crelay_pipe(int ends[2], int size);

/// splice(2): moves bytes from a socket to a pipe or from a pipe to a socket, without blocking.
ssize_t crelay_splice(int from, int to, size_t count);

/// ioctl(2), SIOCOUTQ: returns the number of bytes that a socket's peer has not acknowledged; 0 on failure.
int crelay_unacknowledged(int socket);

#endif

#endif
