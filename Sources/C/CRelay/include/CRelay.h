// Linux system calls that the Swift overlay of the C library does not import, or that other C modules also define, so
// that the order of imports would select the definition. Other systems have only the start of commands
// and the properties of files.
#ifndef CRELAY_H
#define CRELAY_H

#include "CRelayCommand.h"
#include "CRelayDatagrams.h"
#include "CRelayFile.h"

#if defined(__linux__)

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/// prctl(2), PR_SET_NAME: sets the calling thread's name, up to 15 bytes, as shown by `top -H`.
void crelay_name_thread(const char *name);

/// Returns the number of processors on which this process may run; INT_MAX if the system does not say.
int crelay_processors(void);

/// accept4(2): returns a connection with SOCK_NONBLOCK and SOCK_CLOEXEC, or -1.
int crelay_accept(int listener);

/// pipe2(2): creates a pipe with O_NONBLOCK and O_CLOEXEC, with a capacity of `size` bytes if the kernel allows it.
/// Returns the capacity, or -1.
int crelay_pipe(int ends[2], int size);

/// splice(2): moves bytes from a socket to a pipe or from a pipe to a socket, without blocking.
ssize_t crelay_splice(int from, int to, size_t count);

/// ioctl(2), SIOCOUTQ: returns the number of bytes that a socket's peer has not acknowledged; 0 on failure.
int crelay_unacknowledged(int socket);

/// eventfd(2): returns a descriptor with EFD_NONBLOCK and EFD_CLOEXEC, or -1.
int crelay_eventfd(void);

/// eventfd(2): makes the descriptor readable.
void crelay_eventfd_signal(int descriptor);

/// The events of epoll_ctl(2).
#define CRELAY_EPOLLIN 0x001u
#define CRELAY_EPOLLPRI 0x002u
#define CRELAY_EPOLLOUT 0x004u
#define CRELAY_EPOLLERR 0x008u
#define CRELAY_EPOLLHUP 0x010u
#define CRELAY_EPOLLRDHUP 0x2000u

/// struct epoll_event.
struct crelay_event {
    uint32_t events;
    uint64_t token;
}
#if defined(__x86_64__)
__attribute__((packed))
#endif
;

/// epoll_create1(2): returns a descriptor with EPOLL_CLOEXEC, or -1.
int crelay_epoll_create(void);

/// epoll_ctl(2), EPOLL_CTL_ADD: registers a descriptor, edge-triggered. Returns 0, or -1.
int crelay_epoll_add(int epoll, int descriptor, uint32_t events, uint64_t token);

/// epoll_ctl(2), EPOLL_CTL_DEL: removes a descriptor. Returns 0, or -1.
int crelay_epoll_remove(int epoll, int descriptor);

/// epoll_wait(2): returns the number of events, or -1.
int crelay_epoll_wait(int epoll, struct crelay_event *events, int count, int milliseconds);

#endif

#endif
