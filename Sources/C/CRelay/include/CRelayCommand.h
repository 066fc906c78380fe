// The start of a command whose calls of connect(2) this process decides: fork(2), which Swift cannot call, and the
// notifications of seccomp(2) (Linux 5.9 or later on x86-64 and arm64).
#ifndef CRELAY_COMMAND_H
#define CRELAY_COMMAND_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/// The steps of a start that can fail.
#define CRELAY_STEP_FORK 1
#define CRELAY_STEP_FILTER 2
#define CRELAY_STEP_EXEC 3

/// A failure of a start: the step and its errno.
struct crelay_failure {
    int32_t step;
    int32_t code;
};

/// Starts a command in the process group of this process, with the default action of all signals except those that are
/// ignored. Returns its process identifier, or -1 with the failure.
///
/// - `arguments`: ended by NULL; the first one is a path or a name that is searched in PATH. If `arguments` is NULL, the new
///   process connects a blocking socket to port 9 of 192.0.2.1, an address for documentation, and its exit status is the
///   errno of connect(2).
/// - `variables`: NAME=VALUE in place of this process's variables of the same names, ended by NULL.
/// - `files`: the soft limit of open files.
/// - `calls`: NULL, or it receives a descriptor of which crelay_call_receive() returns the command's calls of connect(2).
pid_t crelay_start(
    char *const *arguments, char *const *variables, uint64_t files, int *calls, struct crelay_failure *failure);

#if defined(__linux__)

/// A call of connect(2) that waits for a decision.
struct crelay_call {
    uint64_t id;
    /// The calling thread.
    pid_t thread;
    /// The arguments.
    int socket;
    uint64_t address;
    uint64_t length;
};

/// Receives a call. Returns 0, or -1 with ENOENT if the caller has gone.
int crelay_call_receive(int calls, struct crelay_call *call);

/// Returns whether the caller of a call still waits.
int crelay_call_is_valid(int calls, uint64_t id);

/// Ends a call with an errno, or with success if it is 0.
void crelay_call_end(int calls, uint64_t id, int code);

/// Lets the kernel execute a call.
void crelay_call_continue(int calls, uint64_t id);

/// process_vm_readv(2): copies memory of a thread. Returns the number of bytes, or -1.
ssize_t crelay_read_memory(pid_t thread, uint64_t address, void *bytes, size_t count);

/// pidfd_open(2): returns a descriptor of a thread, or of its process on kernels before 6.9; or -1.
int crelay_open_thread(pid_t thread);

/// pidfd_getfd(2): returns a copy of a descriptor of an open thread, or -1.
int crelay_copy_descriptor(int thread, int descriptor);

/// The properties of a socket that decide the treatment of connect(2).
struct crelay_socket {
    int is_ipv6;
    int is_stream;
    int is_datagram;
    /// Whether it neither listens nor has a connection or an attempt; only for streams.
    int is_unconnected;
};

/// Reads the properties of a socket of the internet families. Returns 0, or -1 for other descriptors.
int crelay_socket_properties(int socket, struct crelay_socket *properties);

/// Binds an unbound TCP socket to a free port of the loopback interface. Returns the socket's port, or -1.
int crelay_bind_loopback(int socket, int is_ipv6);

/// Begins to connect a socket to a port of 127.0.0.1. Returns 0, EINPROGRESS or another errno.
int crelay_connect_loopback(int socket, int is_ipv6, int port);

/// Returns whether a socket is non-blocking.
int crelay_is_nonblocking(int socket);

#endif

#endif
