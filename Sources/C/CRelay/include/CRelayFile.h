// The properties of files. Several C modules define `struct stat`, so that the order of imports would select the definition.
#ifndef CRELAY_FILE_H
#define CRELAY_FILE_H

#include <stdbool.h>
#include <stdint.h>

/// A part of struct stat.
struct crelay_file {
    bool is_regular;
    bool is_folder;
    /// The bits of `rwxrwxrwx`.
    uint32_t permissions;
    uint32_t owner;
    uint64_t inode;
    int64_t size;
    /// The time of the last change of the contents.
    int64_t seconds;
    int64_t nanoseconds;
};

/// stat(2). Returns 0, or -1.
int crelay_stat(const char *path, struct crelay_file *file);

/// lstat(2): of a symbolic link itself. Returns 0, or -1.
int crelay_lstat(const char *path, struct crelay_file *file);

/// fstat(2). Returns 0, or -1.
int crelay_fstat(int descriptor, struct crelay_file *file);

#endif
