#define _GNU_SOURCE
#include "CRelayCommand.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__linux__)
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#if defined(__x86_64__)
#define NATIVE_ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

// Since Linux 5.19: a signal that does not end the caller waits for the decision.
#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif
// Since Linux 6.9: a descriptor of a thread.
#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif

#endif

extern char **environ;

#if defined(__linux__)
#define CHANNEL_TYPE (SOCK_STREAM | SOCK_CLOEXEC)
#else
#define CHANNEL_TYPE SOCK_STREAM
#endif

// Functions with the prefix "child" run between fork(2) and execve(2), where only async-signal-safe calls are possible.

/// Sends the number of a failed step with its errno, or a descriptor.
static void child_send(int channel, struct crelay_failure failure, int descriptor) {
    struct iovec bytes = {.iov_base = &failure, .iov_len = sizeof failure};
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};
    if (descriptor >= 0) {
        memset(&control, 0, sizeof control);
        message.msg_control = &control;
        message.msg_controllen = sizeof control.space;
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(&control.header), &descriptor, sizeof descriptor);
    }
    while (sendmsg(channel, &message, 0) < 0 && errno == EINTR) {}
}

static void child_fail(int channel, int step) {
    child_send(channel, (struct crelay_failure){.step = step, .code = errno}, -1);
    _exit(127);
}

/// Restores the default action of signals that have a handler, which would write to a pipe of the parent.
static void child_reset_signals(void) {
    for (int number = 1; number < NSIG; number++) {
        struct sigaction action;
        if (sigaction(number, NULL, &action) != 0) continue;
        // Ignored by SwiftNIO, and not by the caller of the program.
        if (action.sa_handler == SIG_IGN && number != SIGPIPE) continue;
        if (action.sa_handler != SIG_DFL) signal(number, SIG_DFL);
    }
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/// Installs a filter that notifies calls of connect(2). Returns the descriptor of the notifications, or -1.
static int child_watch_connections(void) {
#if defined(NATIVE_ARCHITECTURE)
    struct sock_filter instructions[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCHITECTURE, 0, 2),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_connect, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
    };
    struct sock_fprog program = {.len = sizeof instructions / sizeof *instructions, .filter = instructions};
    // Without privileges, a filter needs this. It also makes setuid programs run without theirs.
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
    unsigned long flags = SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    int calls = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
    if (calls < 0 && errno == EINVAL) {
        flags = SECCOMP_FILTER_FLAG_NEW_LISTENER;
        calls = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
    }
    return calls;
#else
    errno = ENOSYS;
    return -1;
#endif
}

static void child_connect(int channel) {
    close(channel);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(9)};
    address.sin_addr.s_addr = htonl(0xC0000201);
    int descriptor = socket(AF_INET, SOCK_STREAM, 0);
    _exit(descriptor >= 0 && connect(descriptor, (struct sockaddr *)&address, sizeof address) == 0 ? 0 : errno);
}

static void child_run(
    int channel, char *const *arguments, char **environment, uint64_t files, int is_watched) {
    child_reset_signals();
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = files;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    if (is_watched) {
        int calls = child_watch_connections();
        if (calls < 0) child_fail(channel, CRELAY_STEP_FILTER);
        child_send(channel, (struct crelay_failure){0, 0}, calls);
        close(calls);
    }
    if (arguments == NULL) child_connect(channel);
    environ = environment;
    execvp(arguments[0], arguments);
    child_fail(channel, CRELAY_STEP_EXEC);
}

/// Receives what the new process sends until it closes the channel, usually by execve(2).
static struct crelay_failure receive_start(int channel, int *calls) {
    struct crelay_failure failure = {0, 0};
    while (1) {
        struct crelay_failure part;
        struct iovec bytes = {.iov_base = &part, .iov_len = sizeof part};
        union {
            struct cmsghdr header;
            char space[CMSG_SPACE(sizeof(int))];
        } control;
        struct msghdr message = {
            .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control.space};
#if defined(__linux__)
        ssize_t count = recvmsg(channel, &message, MSG_CMSG_CLOEXEC);
#else
        ssize_t count = recvmsg(channel, &message, 0);
#endif
        if (count < 0 && errno == EINTR) continue;
        if (count != sizeof part) return failure;
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        if (header != NULL && header->cmsg_type == SCM_RIGHTS && calls != NULL) {
            memcpy(calls, CMSG_DATA(header), sizeof *calls);
        }
        if (part.step != 0) failure = part;
    }
}

/// Returns whether a variable is in a list: whether the texts are equal up to the first equals sign.
static int contains(char *const *variables, const char *variable) {
    size_t length = strcspn(variable, "=") + 1;
    for (; *variables != NULL; variables++) {
        if (strncmp(*variables, variable, length) == 0) return 1;
    }
    return 0;
}

/// Returns the variables of this process with replacements.
static char **environment_with(char *const *variables) {
    size_t count = 1;
    for (char **variable = environ; *variable != NULL; variable++) count++;
    for (char *const *variable = variables; *variable != NULL; variable++) count++;
    char **environment = malloc(count * sizeof *environment);
    if (environment == NULL) return NULL;
    char **next = environment;
    for (char **variable = environ; *variable != NULL; variable++) {
        if (!contains(variables, *variable)) *next++ = *variable;
    }
    for (char *const *variable = variables; *variable != NULL; variable++) *next++ = *variable;
    *next = NULL;
    return environment;
}

pid_t crelay_start(
    char *const *arguments, char *const *variables, uint64_t files, int *calls, struct crelay_failure *failure) {
    int channel[2];
    *failure = (struct crelay_failure){CRELAY_STEP_FORK, 0};
    if (calls != NULL) *calls = -1;
    char **environment = environment_with(variables);
    if (environment == NULL || socketpair(AF_UNIX, CHANNEL_TYPE, 0, channel) != 0) {
        failure->code = errno;
        free(environment);
        return -1;
    }
    for (int end = 0; end < 2; end++) fcntl(channel[end], F_SETFD, FD_CLOEXEC);
    // A handler of this process must not run in the new one.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t process = fork();
    if (process == 0) child_run(channel[1], arguments, environment, files, calls != NULL);
    failure->code = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    free(environment);
    close(channel[1]);
    if (process > 0) *failure = receive_start(channel[0], calls);
    close(channel[0]);
    if (process < 0) return -1;
    if (failure->step == 0) return process;
    while (waitpid(process, NULL, 0) < 0 && errno == EINTR) {}
    if (calls != NULL && *calls >= 0) close(*calls);
    return -1;
}

#if defined(__linux__)

int crelay_call_receive(int calls, struct crelay_call *call) {
    struct seccomp_notif notification;
    // The kernel demands zeros.
    memset(&notification, 0, sizeof notification);
    if (ioctl(calls, SECCOMP_IOCTL_NOTIF_RECV, &notification) != 0) return -1;
    *call = (struct crelay_call){
        .id = notification.id,
        .thread = (pid_t)notification.pid,
        .socket = (int)notification.data.args[0],
        .address = notification.data.args[1],
        .length = notification.data.args[2],
    };
    return 0;
}

int crelay_call_is_valid(int calls, uint64_t id) {
    // Kernels before 5.17 do not know this number of the request.
    return ioctl(calls, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0 || errno != ENOENT;
}

static void respond(int calls, struct seccomp_notif_resp response) {
    // Fails if the caller has gone.
    ioctl(calls, SECCOMP_IOCTL_NOTIF_SEND, &response);
}

void crelay_call_end(int calls, uint64_t id, int code) {
    respond(calls, (struct seccomp_notif_resp){.id = id, .error = -code});
}

void crelay_call_continue(int calls, uint64_t id) {
    respond(calls, (struct seccomp_notif_resp){.id = id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE});
}

ssize_t crelay_read_memory(pid_t thread, uint64_t address, void *bytes, size_t count) {
    struct iovec to = {.iov_base = bytes, .iov_len = count};
    struct iovec from = {.iov_base = (void *)(uintptr_t)address, .iov_len = count};
    return process_vm_readv(thread, &to, 1, &from, 1, 0);
}

/// Returns the process of a thread, or -1.
static pid_t process_of(pid_t thread) {
    char path[40], text[2048];
    snprintf(path, sizeof path, "/proc/%d/status", (int)thread);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return -1;
    ssize_t count = read(file, text, sizeof text - 1);
    close(file);
    text[count < 0 ? 0 : count] = 0;
    const char *line = strstr(text, "\nTgid:");
    return line == NULL ? -1 : (pid_t)atoi(line + strlen("\nTgid:"));
}

int crelay_open_thread(pid_t thread) {
    int descriptor = (int)syscall(SYS_pidfd_open, thread, PIDFD_THREAD);
    if (descriptor >= 0 || errno != EINVAL) return descriptor;
    pid_t process = process_of(thread);
    return process < 0 ? -1 : (int)syscall(SYS_pidfd_open, process, 0);
}

int crelay_copy_descriptor(int thread, int descriptor) {
    return (int)syscall(SYS_pidfd_getfd, thread, descriptor, 0);
}

static int option(int socket, int level, int name) {
    int value = -1;
    socklen_t length = sizeof value;
    return getsockopt(socket, level, name, &value, &length) == 0 ? value : -1;
}

int crelay_socket_properties(int socket, struct crelay_socket *properties) {
    int domain = option(socket, SOL_SOCKET, SO_DOMAIN);
    int type = option(socket, SOL_SOCKET, SO_TYPE);
    if (domain != AF_INET && domain != AF_INET6) return -1;
    struct tcp_info information;
    socklen_t length = sizeof information;
    *properties = (struct crelay_socket){
        .is_ipv6 = domain == AF_INET6,
        .is_datagram = type == SOCK_DGRAM,
        .is_stream = type == SOCK_STREAM
            && getsockopt(socket, IPPROTO_TCP, TCP_INFO, &information, &length) == 0,
    };
    properties->is_unconnected = properties->is_stream && information.tcpi_state == TCP_CLOSE;
    return 0;
}

/// Fills in a port of the loopback interface. IPv6 sockets reach IPv4 by mapped addresses.
static socklen_t loopback(struct sockaddr_storage *address, int is_ipv6, int port) {
    memset(address, 0, sizeof *address);
    if (is_ipv6) {
        struct sockaddr_in6 *ipv6 = (struct sockaddr_in6 *)address;
        ipv6->sin6_family = AF_INET6;
        ipv6->sin6_port = htons((uint16_t)port);
        static const unsigned char mapped[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 127, 0, 0, 1};
        memcpy(&ipv6->sin6_addr, mapped, sizeof mapped);
        return sizeof *ipv6;
    }
    struct sockaddr_in *ipv4 = (struct sockaddr_in *)address;
    ipv4->sin_family = AF_INET;
    ipv4->sin_port = htons((uint16_t)port);
    ipv4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return sizeof *ipv4;
}

static int local_port(int socket) {
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    if (getsockname(socket, (struct sockaddr *)&address, &length) != 0) return -1;
    // sin_port and sin6_port have the same offset.
    return ntohs(((struct sockaddr_in *)&address)->sin_port);
}

int crelay_bind_loopback(int socket, int is_ipv6) {
    const int off = 0;
    // Possible while the socket has no port: mapped addresses, and a port now instead of at connect(2).
    if (is_ipv6) setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    setsockopt(socket, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &off, sizeof off);
    struct sockaddr_storage address;
    socklen_t length = loopback(&address, is_ipv6, 0);
    // EINVAL: the socket has a port. getsockname(2) cannot tell: after a refused connection, it reports the port that the
    // socket had.
    if (bind(socket, (struct sockaddr *)&address, length) != 0 && errno != EINVAL) return -1;
    return local_port(socket);
}

int crelay_connect_loopback(int socket, int is_ipv6, int port) {
    struct sockaddr_storage address;
    socklen_t length = loopback(&address, is_ipv6, port);
    int flags = fcntl(socket, F_GETFL);
    // The flags belong to the caller's socket too; the caller is in connect(2).
    if ((flags & O_NONBLOCK) == 0) fcntl(socket, F_SETFL, flags | O_NONBLOCK);
    int code = connect(socket, (struct sockaddr *)&address, length) == 0 ? 0 : errno;
    if ((flags & O_NONBLOCK) == 0) fcntl(socket, F_SETFL, flags);
    return code;
}

int crelay_is_nonblocking(int socket) { return (fcntl(socket, F_GETFL) & O_NONBLOCK) != 0; }

#endif
