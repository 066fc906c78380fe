#if defined(__linux__)

#define _GNU_SOURCE
#include "CRelay.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

/// The longest message of segments: an IPv4 packet without its headers.
#define MESSAGE_MAX 65507

static const uint64_t mapped_prefix = 0xFFFF00000000u;

static uint64_t read_number(const uint8_t *bytes) {
    uint64_t number = 0;
    for (int index = 0; index < 8; index++) number = number << 8 | bytes[index];
    return number;
}

static void write_number(uint64_t number, uint8_t *bytes) {
    for (int index = 7; index >= 0; index--, number >>= 8) bytes[index] = (uint8_t)number;
}

static int is_mapped(const struct crelay_address *address) {
    return address->high == 0 && address->low >> 32 == mapped_prefix >> 32;
}

static int is_wildcard(const struct crelay_address *address) {
    return address->high == 0 && (address->low == 0 || address->low == mapped_prefix);
}

static void set_ipv4(struct crelay_address *address, struct in_addr ipv4) {
    address->high = 0;
    address->low = mapped_prefix | ntohl(ipv4.s_addr);
}

static void set_ipv6(struct crelay_address *address, const struct in6_addr *ipv6) {
    address->high = read_number(ipv6->s6_addr);
    address->low = read_number(ipv6->s6_addr + 8);
}

static struct in6_addr ipv6_of(const struct crelay_address *address) {
    struct in6_addr ipv6;
    write_number(address->high, ipv6.s6_addr);
    write_number(address->low, ipv6.s6_addr + 8);
    return ipv6;
}

int crelay_address_from(const struct sockaddr *socket_address, struct crelay_address *address) {
    memset(address, 0, sizeof *address);
    if (socket_address->sa_family == AF_INET) {
        struct sockaddr_in ipv4;
        memcpy(&ipv4, socket_address, sizeof ipv4);
        set_ipv4(address, ipv4.sin_addr);
        address->port = ntohs(ipv4.sin_port);
        address->is_ipv4 = 1;
        return 0;
    }
    if (socket_address->sa_family != AF_INET6) return -1;
    struct sockaddr_in6 ipv6;
    memcpy(&ipv6, socket_address, sizeof ipv6);
    set_ipv6(address, &ipv6.sin6_addr);
    address->zone = ipv6.sin6_scope_id;
    address->port = ntohs(ipv6.sin6_port);
    return 0;
}

static socklen_t to_socket_address(const struct crelay_address *address, struct sockaddr_storage *storage) {
    memset(storage, 0, sizeof *storage);
    if (address->is_ipv4) {
        struct sockaddr_in *ipv4 = (struct sockaddr_in *)storage;
        ipv4->sin_family = AF_INET;
        ipv4->sin_port = htons(address->port);
        ipv4->sin_addr.s_addr = htonl((uint32_t)address->low);
        return sizeof *ipv4;
    }
    struct sockaddr_in6 *ipv6 = (struct sockaddr_in6 *)storage;
    ipv6->sin6_family = AF_INET6;
    ipv6->sin6_port = htons(address->port);
    ipv6->sin6_scope_id = address->zone;
    ipv6->sin6_addr = ipv6_of(address);
    return sizeof *ipv6;
}

static int fail(int descriptor) {
    int code = errno;
    if (descriptor >= 0) close(descriptor);
    return -code;
}

/// Opens a socket with its options.
static int open_socket(const struct crelay_address *address, int receive_bytes) {
    int family = address->is_ipv4 ? AF_INET : AF_INET6;
    int descriptor = socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (descriptor < 0) return fail(-1);
    int yes = 1, no = 0;
    setsockopt(descriptor, SOL_SOCKET, SO_RXQ_OVFL, &yes, sizeof yes);
    // Beyond net.core.rmem_max only with CAP_NET_ADMIN.
    if (setsockopt(descriptor, SOL_SOCKET, SO_RCVBUFFORCE, &receive_bytes, sizeof receive_bytes) != 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    if (family == AF_INET6) setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
    return descriptor;
}

static int local_port(int descriptor, uint16_t *port) {
    struct sockaddr_storage storage;
    struct crelay_address address;
    socklen_t length = sizeof storage;
    if (getsockname(descriptor, (struct sockaddr *)&storage, &length) != 0) return -1;
    if (crelay_address_from((struct sockaddr *)&storage, &address) != 0) return -1;
    *port = address.port;
    return 0;
}

int crelay_open_datagram_port(struct crelay_address *address, int receive_bytes) {
    // A port that the kernel has chosen would be lost when crelay_admit_datagrams() disconnects the socket. It is bound
    // again by its number; another process may be faster.
    int descriptor = -1;
    for (int attempt = 0; attempt < 16; attempt++) {
        struct crelay_address wanted = *address;
        struct sockaddr_storage storage;
        if (address->port == 0) {
            int probe = open_socket(address, receive_bytes);
            if (probe < 0) return probe;
            socklen_t length = to_socket_address(address, &storage);
            if (bind(probe, (struct sockaddr *)&storage, length) != 0 || local_port(probe, &wanted.port) != 0)
                return fail(probe);
            close(probe);
        }
        descriptor = open_socket(address, receive_bytes);
        if (descriptor < 0) return descriptor;
        socklen_t length = to_socket_address(&wanted, &storage);
        if (bind(descriptor, (struct sockaddr *)&storage, length) == 0) {
            *address = wanted;
            break;
        }
        if (errno != EADDRINUSE || address->port != 0) return fail(descriptor);
        close(descriptor);
        descriptor = -1;
    }
    if (descriptor < 0) return -EADDRINUSE;
    if (is_wildcard(address)) {
        int yes = 1;
        if (address->is_ipv4)
            setsockopt(descriptor, IPPROTO_IP, IP_PKTINFO, &yes, sizeof yes);
        else
            setsockopt(descriptor, IPPROTO_IPV6, IPV6_RECVPKTINFO, &yes, sizeof yes);
    }
    return descriptor;
}

int crelay_open_datagram_session(const struct crelay_address *server, int receive_bytes, uint16_t *port) {
    int descriptor = open_socket(server, receive_bytes);
    if (descriptor < 0) return descriptor;
    struct sockaddr_storage storage;
    socklen_t length = to_socket_address(server, &storage);
    if (connect(descriptor, (struct sockaddr *)&storage, length) != 0 || local_port(descriptor, port) != 0)
        return fail(descriptor);
    return descriptor;
}

/// The room for the control messages of a datagram: the address of this machine, and the count of overflows.
union control {
    char bytes[CMSG_SPACE(sizeof(struct in6_pktinfo)) + CMSG_SPACE(sizeof(struct in_pktinfo)) + CMSG_SPACE(sizeof(uint32_t))];
    struct cmsghdr alignment;
};

int crelay_receive_datagrams(
    int socket, char *buffer, struct crelay_datagram *datagrams, int count, uint32_t *overflows) {
    struct mmsghdr messages[CRELAY_DATAGRAMS_MAX];
    struct iovec pieces[CRELAY_DATAGRAMS_MAX];
    struct sockaddr_storage peers[CRELAY_DATAGRAMS_MAX];
    union control controls[CRELAY_DATAGRAMS_MAX];
    if (count > CRELAY_DATAGRAMS_MAX) count = CRELAY_DATAGRAMS_MAX;
    for (int index = 0; index < count; index++) {
        pieces[index] = (struct iovec){buffer + (size_t)index * CRELAY_DATAGRAM_ROOM, CRELAY_DATAGRAM_ROOM};
        messages[index].msg_hdr = (struct msghdr){
            .msg_name = &peers[index],
            .msg_namelen = sizeof peers[index],
            .msg_iov = &pieces[index],
            .msg_iovlen = 1,
            .msg_control = &controls[index],
            .msg_controllen = sizeof controls[index],
        };
    }
    int received = recvmmsg(socket, messages, (unsigned)count, MSG_DONTWAIT, NULL);
    if (received < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? 0 : -errno;
    for (int index = 0; index < received; index++) {
        struct crelay_datagram *datagram = &datagrams[index];
        struct msghdr *message = &messages[index].msg_hdr;
        datagram->length = messages[index].msg_len;
        memset(&datagram->local, 0, sizeof datagram->local);
        memset(&datagram->peer, 0, sizeof datagram->peer);
        if (message->msg_namelen > 0) crelay_address_from((struct sockaddr *)&peers[index], &datagram->peer);
        for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part != NULL; part = CMSG_NXTHDR(message, part)) {
            if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SO_RXQ_OVFL) {
                memcpy(overflows, CMSG_DATA(part), sizeof *overflows);
            } else if (part->cmsg_level == IPPROTO_IP && part->cmsg_type == IP_PKTINFO) {
                struct in_pktinfo information;
                memcpy(&information, CMSG_DATA(part), sizeof information);
                set_ipv4(&datagram->local, information.ipi_addr);
                datagram->local.is_ipv4 = 1;
            } else if (part->cmsg_level == IPPROTO_IPV6 && part->cmsg_type == IPV6_PKTINFO) {
                struct in6_pktinfo information;
                memcpy(&information, CMSG_DATA(part), sizeof information);
                set_ipv6(&datagram->local, &information.ipi6_addr);
            }
        }
    }
    return received;
}

/// Sends a message. An error of an earlier datagram, which the kernel reports instead of sending, is stored.
static ssize_t send_message(int socket, const struct msghdr *message, int *code) {
    ssize_t sent = sendmsg(socket, message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && (errno == ECONNREFUSED || errno == EINTR)) {
        if (errno == ECONNREFUSED) *code = errno;
        sent = sendmsg(socket, message, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    if (sent < 0) *code = errno;
    return sent;
}

/// Sends pieces as one message: one datagram, or segments of the length of the first.
static ssize_t send_pieces(
    int socket, const struct crelay_address *peer, const struct crelay_address *local, struct iovec *pieces, int count,
    int *code) {
    struct sockaddr_storage storage;
    union {
        char bytes[CMSG_SPACE(sizeof(struct in6_pktinfo)) + CMSG_SPACE(sizeof(uint16_t))];
        struct cmsghdr alignment;
    } control;
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = (size_t)count, .msg_control = &control};
    if (peer != NULL) {
        message.msg_name = &storage;
        message.msg_namelen = to_socket_address(peer, &storage);
    }
    message.msg_controllen = sizeof control;
    memset(&control, 0, sizeof control);
    struct cmsghdr *part = CMSG_FIRSTHDR(&message);
    size_t used = 0;
    if (local != NULL && local->is_ipv4) {
        struct in_pktinfo information = {.ipi_spec_dst.s_addr = htonl((uint32_t)local->low)};
        *part = (struct cmsghdr){CMSG_LEN(sizeof information), IPPROTO_IP, IP_PKTINFO};
        memcpy(CMSG_DATA(part), &information, sizeof information);
        used += CMSG_SPACE(sizeof information);
    } else if (local != NULL) {
        struct in6_pktinfo information = {.ipi6_addr = ipv6_of(local)};
        *part = (struct cmsghdr){CMSG_LEN(sizeof information), IPPROTO_IPV6, IPV6_PKTINFO};
        memcpy(CMSG_DATA(part), &information, sizeof information);
        used += CMSG_SPACE(sizeof information);
    }
    if (count > 1) {
        uint16_t length = (uint16_t)pieces[0].iov_len;
        part = (struct cmsghdr *)(control.bytes + used);
        *part = (struct cmsghdr){CMSG_LEN(sizeof length), IPPROTO_UDP, UDP_SEGMENT};
        memcpy(CMSG_DATA(part), &length, sizeof length);
        used += CMSG_SPACE(sizeof length);
    }
    message.msg_controllen = used;
    if (used == 0) message.msg_control = NULL;
    return send_message(socket, &message, code);
}

int crelay_send_datagram(
    int socket, const struct crelay_address *peer, const struct crelay_address *local, const void *bytes, size_t length,
    int *code) {
    struct iovec piece = {(void *)bytes, length};
    return send_pieces(socket, peer, local, &piece, 1, code) >= 0;
}

int crelay_send_datagrams(
    int socket, const struct crelay_address *peer, const struct crelay_address *local, const char *buffer,
    const struct crelay_datagram *datagrams, const int32_t *indices, int count, int *code) {
    int sent = 0;
    int position = 0;
    while (position < count) {
        struct iovec pieces[CRELAY_DATAGRAMS_MAX];
        size_t total = 0;
        int run = 0;
        while (position + run < count && run < CRELAY_DATAGRAMS_MAX) {
            int index = indices[position + run];
            size_t length = datagrams[index].length;
            // All segments have the length of the first; only the last may be shorter, and none is empty.
            if (run > 0 && (length == 0 || length > pieces[0].iov_len || total + length > MESSAGE_MAX)) break;
            pieces[run++] = (struct iovec){(void *)(buffer + (size_t)index * CRELAY_DATAGRAM_ROOM), length};
            total += length;
            if (length < pieces[0].iov_len || length == 0) break;
        }
        position += run;
        if (send_pieces(socket, peer, local, pieces, run, code) >= 0) {
            sent += run;
        } else if (run > 1 && *code != EAGAIN && *code != EWOULDBLOCK && *code != ENOBUFS) {
            // The route or the kernel has no segmentation, or a segment does not fit into a packet of the route.
            for (int piece = 0; piece < run; piece++) sent += send_pieces(socket, peer, local, &pieces[piece], 1, code) >= 0;
        }
    }
    return sent;
}

int crelay_refuse_datagrams(int socket, const struct crelay_address *address) {
    struct crelay_address own = *address;
    if (is_wildcard(address)) own.low = address->is_ipv4 ? mapped_prefix | INADDR_LOOPBACK : 1;
    struct sockaddr_storage storage;
    socklen_t length = to_socket_address(&own, &storage);
    return connect(socket, (struct sockaddr *)&storage, length) == 0 ? 0 : errno;
}

int crelay_admit_datagrams(int socket) {
    struct sockaddr nothing = {.sa_family = AF_UNSPEC};
    return connect(socket, &nothing, sizeof nothing) == 0 ? 0 : errno;
}

static uint16_t checksum(const uint8_t *bytes, size_t length) {
    uint32_t sum = 0;
    for (size_t index = 0; index + 1 < length; index += 2) sum += (uint32_t)bytes[index] << 8 | bytes[index + 1];
    while (sum > 0xFFFF) sum = (sum & 0xFFFF) + (sum >> 16);
    return htons((uint16_t)~sum);
}

int crelay_send_unreachable(const struct crelay_address *client, const struct crelay_address *server) {
    int is_ipv4 = is_mapped(client);
    // The ICMP header, then the headers of the client's datagram (RFC 792, RFC 4443).
    uint8_t message[8 + 40 + 8] = {0};
    uint8_t *packet = message + 8;
    uint8_t *udp = packet + (is_ipv4 ? 20 : 40);
    size_t length = (size_t)(udp + 8 - message);
    uint16_t ports[4] = {htons(client->port), htons(server->port), htons(8), 0};
    memcpy(udp, ports, sizeof ports);
    if (is_ipv4) {
        uint32_t addresses[2] = {htonl((uint32_t)client->low), htonl((uint32_t)server->low)};
        uint8_t header[20] = {0x45, 0, 0, 28, 0, 0, 0x40, 0, 64, IPPROTO_UDP};
        memcpy(header + 12, addresses, sizeof addresses);
        uint16_t sum = checksum(header, sizeof header);
        memcpy(header + 10, &sum, sizeof sum);
        memcpy(packet, header, sizeof header);
        message[0] = 3;
        message[1] = 3;
        sum = checksum(message, length);
        memcpy(message + 2, &sum, sizeof sum);
    } else {
        struct in6_addr addresses[2] = {ipv6_of(client), ipv6_of(server)};
        packet[0] = 0x60;
        packet[5] = 8;
        packet[6] = IPPROTO_UDP;
        packet[7] = 64;
        memcpy(packet + 8, addresses, sizeof addresses);
        // The kernel adds the checksum.
        message[0] = 1;
        message[1] = 4;
    }
    int protocol = is_ipv4 ? (int)IPPROTO_ICMP : (int)IPPROTO_ICMPV6;
    int descriptor = socket(is_ipv4 ? AF_INET : AF_INET6, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol);
    if (descriptor < 0) return errno;
    struct crelay_address from = *server, to = *client;
    from.is_ipv4 = to.is_ipv4 = (uint16_t)is_ipv4;
    from.port = to.port = 0;
    struct sockaddr_storage storage;
    socklen_t size = to_socket_address(&from, &storage);
    int result = bind(descriptor, (struct sockaddr *)&storage, size);
    size = to_socket_address(&to, &storage);
    if (result == 0 && sendto(descriptor, message, length, 0, (struct sockaddr *)&storage, size) < 0) result = -1;
    int code = result == 0 ? 0 : errno;
    close(descriptor);
    return code;
}

int crelay_epoll_watch_once(int epoll, int descriptor, uint64_t token, int is_new) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data = {.u64 = token}};
    return epoll_ctl(epoll, is_new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, descriptor, &event);
}

#endif
