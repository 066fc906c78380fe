// The part of libpcap that captures use. The library is loaded when a capture starts, so that programs that capture nothing
// need neither the library nor its headers.
//
// Structures, functions and values are those of pcap(3PCAP), which are stable since libpcap 1.5 (2013). Functions return 0 or
// a positive number on success, and one of the CPCAP_ERROR values otherwise, unless stated.
#ifndef CPCAP_H
#define CPCAP_H

#include <stdint.h>
#include <stdio.h>
#include <sys/time.h>

/// The size of a buffer for an error text, PCAP_ERRBUF_SIZE.
#define CPCAP_ERROR_BYTES 256
#define CPCAP_ERROR_BREAK (-2)
#define CPCAP_ERROR_NO_SUCH_DEVICE (-5)
#define CPCAP_ERROR_PERM_DENIED (-8)
#define CPCAP_ERROR_PROMISC_PERM_DENIED (-11)
/// PCAP_TSTAMP_PRECISION_NANO: the fractional part of times is in nanoseconds.
#define CPCAP_PRECISION_NANO 1
/// PCAP_NETMASK_UNKNOWN.
#define CPCAP_NETMASK_UNKNOWN 0xffffffffu

/// pcap_t.
typedef struct cpcap_handle cpcap_handle;
/// pcap_dumper_t.
typedef struct cpcap_dumper cpcap_dumper;

/// struct pcap_pkthdr: the time of a packet, and the numbers of its captured and of all its bytes.
struct cpcap_header {
    struct timeval time;
    uint32_t captured_bytes;
    uint32_t bytes;
};

/// struct pcap_stat: the numbers of packets that were received, dropped by the kernel and dropped by the interface.
struct cpcap_counts {
    unsigned int received;
    unsigned int dropped;
    unsigned int dropped_by_interface;
};

/// struct bpf_program: a compiled filter.
struct cpcap_program {
    unsigned int length;
    void *instructions;
};

/// struct pcap_if: an entry of the list of interfaces.
struct cpcap_interface {
    struct cpcap_interface *next;
    char *name;
    char *description;
    void *addresses;
    uint32_t flags;
};

/// The functions of a loaded libpcap: `create` is pcap_create(3PCAP), and so on.
struct cpcap_functions {
    cpcap_handle *(*create)(const char *interface, char *error);
    int (*set_snaplen)(cpcap_handle *, int bytes);
    int (*set_promisc)(cpcap_handle *, int is_promiscuous);
    int (*set_timeout)(cpcap_handle *, int milliseconds);
    int (*set_immediate_mode)(cpcap_handle *, int is_immediate);
    int (*set_buffer_size)(cpcap_handle *, int bytes);
    int (*set_tstamp_precision)(cpcap_handle *, int precision);
    int (*get_tstamp_precision)(cpcap_handle *);
    int (*activate)(cpcap_handle *);
    char *(*geterr)(cpcap_handle *);
    void (*close)(cpcap_handle *);
    int (*compile)(cpcap_handle *, struct cpcap_program *, const char *filter, int optimizes, uint32_t netmask);
    int (*setfilter)(cpcap_handle *, struct cpcap_program *);
    void (*freecode)(struct cpcap_program *);
    int (*datalink)(cpcap_handle *);
    /// Returns 1 for a packet, 0 if none came before the time-out.
    int (*next_ex)(cpcap_handle *, struct cpcap_header **, const uint8_t **bytes);
    void (*breakloop)(cpcap_handle *);
    int (*stats)(cpcap_handle *, struct cpcap_counts *);
    /// Returns a null pointer on failure.
    cpcap_dumper *(*dump_open)(cpcap_handle *, const char *path);
    void (*dump)(uint8_t *dumper, const struct cpcap_header *, const uint8_t *bytes);
    int (*dump_flush)(cpcap_dumper *);
    void (*dump_close)(cpcap_dumper *);
    int (*findalldevs)(struct cpcap_interface **, char *error);
    void (*freealldevs)(struct cpcap_interface *);
    const char *(*lib_version)(void);
};

/// Loads libpcap and finds its functions. The library stays loaded; further calls are cheap.
///
/// - `error`: On failure, receives a text in the words of dlopen(3) or dlsym(3), ended by zero; `size` is its size in bytes.
///
/// Returns 0, or -1 if the library is not installed or lacks a function.
int cpcap_load(struct cpcap_functions *functions, char *error, size_t size);

#endif
