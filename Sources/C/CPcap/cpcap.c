#include "CPcap.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

/// The names of the library: Debian and its descendants, other distributions, installations for developers, macOS.
static const char *const names[] = {
#if defined(__APPLE__)
    "/usr/lib/libpcap.A.dylib", "libpcap.dylib",
#else
    "libpcap.so.0.8", "libpcap.so.1", "libpcap.so",
#endif
};

/// The names of the functions in the order of `struct cpcap_functions`.
static const char *const functionNames[] = {
    "pcap_create", "pcap_set_snaplen", "pcap_set_promisc", "pcap_set_timeout", "pcap_set_immediate_mode",
    "pcap_set_buffer_size", "pcap_set_tstamp_precision", "pcap_get_tstamp_precision", "pcap_activate", "pcap_geterr",
    "pcap_close", "pcap_compile", "pcap_setfilter", "pcap_freecode", "pcap_datalink", "pcap_next_ex", "pcap_breakloop",
    "pcap_stats", "pcap_dump_open", "pcap_dump", "pcap_dump_flush", "pcap_dump_close", "pcap_findalldevs",
    "pcap_freealldevs", "pcap_lib_version",
};

enum { functionCount = sizeof(functionNames) / sizeof(functionNames[0]) };

_Static_assert(
    sizeof(struct cpcap_functions) == functionCount * sizeof(void *), "a function has no name, or a name has no function");

static void copyError(char *error, size_t size) {
    const char *text = dlerror();
    snprintf(error, size, "%s", text ? text : "unknown error");
}

int cpcap_load(struct cpcap_functions *functions, char *error, size_t size) {
    void *library = NULL;
    for (size_t i = 0; !library && i < sizeof(names) / sizeof(names[0]); i++) {
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        // The first name is the most common one, so the text of its error is the most useful one.
        if (!library && i == 0) copyError(error, size);
    }
    if (!library) return -1;
    for (size_t i = 0; i < functionCount; i++) {
        void *function = dlsym(library, functionNames[i]);
        if (!function) {
            copyError(error, size);
            return -1;
        }
        memcpy((char *)functions + i * sizeof(void *), &function, sizeof(void *));
    }
    return 0;
}
