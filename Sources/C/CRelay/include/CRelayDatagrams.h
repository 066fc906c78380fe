// Sockets of datagrams: many datagrams per system call, and what the Swift overlay of the C library does not import.
#ifndef CRELAY_DATAGRAMS_H
#define CRELAY_DATAGRAMS_H

#if defined(__linux__)

#include <stdint.h>
#include <sys/socket.h>

/// The room for one datagram in a buffer: more than the longest payload of UDP.
#define CRELAY_DATAGRAM_ROOM 65536
/// The maximum number of datagrams of one call.
#define CRELAY_DATAGRAMS_MAX 64

/// An address and a port. The halves of the address are numbers in network byte order; an IPv4 address is mapped
/// (`::ffff:192.0.2.1`).
struct crelay_address {
    uint64_t high;
    uint64_t low;
    uint32_t zone;
    uint16_t port;
    /// Whether the socket is one of IPv4; an IPv6 socket may have mapped addresses.
    uint16_t is_ipv4;
};

/// A datagram that has been received.
struct crelay_datagram {
    /// The sender.
    struct crelay_address peer;
    /// The address of this machine to which it was sent, without a port; all zero if it is not known.
    struct crelay_address local;
    uint32_t length;
    /// For the caller.
    int32_t group;
};

/// Converts an address of the internet families. Returns 0, or -1 for others.
int crelay_address_from(const struct sockaddr *socket_address, struct crelay_address *address);

/// Opens a socket on an address, and stores its port. With port 0 the kernel chooses one. Returns the descriptor, or a
/// negative errno.
///
/// - `receive_bytes`: the size of the receive buffer, as far as the system permits it.
int crelay_open_datagram_port(struct crelay_address *address, int receive_bytes);

/// Opens a socket that exchanges datagrams with one server, and stores its own port. Returns the descriptor, or a negative
/// errno.
int crelay_open_datagram_session(const struct crelay_address *server, int receive_bytes, uint16_t *port);

/// Receives datagrams that have arrived, each at a multiple of CRELAY_DATAGRAM_ROOM of the buffer. Returns their number, 0 if
/// there is none, or a negative errno.
///
/// - `overflows`: receives the number of datagrams that the kernel has dropped because the socket's buffer was full, if the
///   kernel reports it.
int crelay_receive_datagrams(
    int socket, char *buffer, struct crelay_datagram *datagrams, int count, uint32_t *overflows);

/// Sends datagrams of a buffer; runs of equal length as segments of one message (UDP_SEGMENT). Returns the number of those
/// that the kernel has taken.
///
/// - `peer`: the receiver; NULL for a socket of one server.
/// - `local`: the address of the sender; NULL for the kernel's choice.
/// - `code`: the last errno; ECONNREFUSED also if an earlier datagram was refused and all of these were sent.
int crelay_send_datagrams(
    int socket, const struct crelay_address *peer, const struct crelay_address *local, const char *buffer,
    const struct crelay_datagram *datagrams, const int32_t *indices, int count, int *code);

/// Sends one datagram. Returns 1 if the kernel has taken it, and 0 otherwise.
int crelay_send_datagram(
    int socket, const struct crelay_address *peer, const struct crelay_address *local, const void *bytes, size_t length,
    int *code);

/// Makes the kernel respond to all datagrams for a socket with an ICMP port unreachable: the socket, connected to itself,
/// accepts no others. Returns 0 or an errno.
int crelay_refuse_datagrams(int socket, const struct crelay_address *address);

/// Ends the effect of crelay_refuse_datagrams(). Returns 0 or an errno.
int crelay_admit_datagrams(int socket);

/// Sends a client an ICMP port unreachable for the port of `server`, an address of this machine. Requires CAP_NET_RAW.
/// Returns 0 or an errno.
int crelay_send_unreachable(const struct crelay_address *client, const struct crelay_address *server);

/// epoll_ctl(2): reports once that a descriptor is readable. Returns 0, or -1.
int crelay_epoll_watch_once(int epoll, int descriptor, uint64_t token, int is_new);

#endif

#endif
