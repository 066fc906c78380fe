#if defined(__linux__)

#define _GNU_SOURCE
#include "CRelay.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/sockios.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

_Static_assert(CRELAY_EPOLLIN == EPOLLIN && CRELAY_EPOLLPRI == EPOLLPRI && CRELAY_EPOLLOUT == EPOLLOUT, "epoll events");
_Static_assert(
    CRELAY_EPOLLERR == EPOLLERR && CRELAY_EPOLLHUP == EPOLLHUP && CRELAY_EPOLLRDHUP == EPOLLRDHUP, "epoll events");
_Static_assert(sizeof(struct crelay_event) == sizeof(struct epoll_event), "struct epoll_event");
_Static_assert(offsetof(struct crelay_event, token) == offsetof(struct epoll_event, data), "struct epoll_event");

void crelay_name_thread(const char *name) { prctl(PR_SET_NAME, name, 0, 0, 0); }

int crelay_processors(void) {
    cpu_set_t processors;
    return sched_getaffinity(0, sizeof processors, &processors) == 0 ? CPU_COUNT(&processors) : INT_MAX;
}

int crelay_accept(int listener) { return accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC); }

int crelay_pipe(int ends[2], int size) {
    if (pipe2(ends, O_NONBLOCK | O_CLOEXEC) != 0) return -1;
    int set = fcntl(ends[1], F_SETPIPE_SZ, size);
    return set > 0 ? set : fcntl(ends[1], F_GETPIPE_SZ);
}

ssize_t crelay_splice(int from, int to, size_t count) {
    return splice(from, NULL, to, NULL, count, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
}

int crelay_unacknowledged(int socket) {
    int count = 0;
    return ioctl(socket, SIOCOUTQ, &count) == 0 ? count : 0;
}

int crelay_eventfd(void) { return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); }

void crelay_eventfd_signal(int descriptor) { eventfd_write(descriptor, 1); }

int crelay_epoll_create(void) { return epoll_create1(EPOLL_CLOEXEC); }

int crelay_epoll_add(int epoll, int descriptor, uint32_t events, uint64_t token) {
    struct epoll_event event = {.events = events | EPOLLET, .data = {.u64 = token}};
    return epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event);
}

int crelay_epoll_remove(int epoll, int descriptor) { return epoll_ctl(epoll, EPOLL_CTL_DEL, descriptor, NULL); }

int crelay_epoll_wait(int epoll, struct crelay_event *events, int count, int milliseconds) {
    return epoll_wait(epoll, (struct epoll_event *)events, count, milliseconds);
}

#endif
