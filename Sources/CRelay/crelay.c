#if defined(__linux__)

#define _GNU_SOURCE
#include "CRelay.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

void crelay_name_thread(const char *name) { prctl(PR_SET_NAME, name, 0, 0, 0); }

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

#endif
