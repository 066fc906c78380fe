#include "CRelayFile.h"

#include <sys/stat.h>

static int properties(int result, const struct stat *status, struct crelay_file *file) {
    if (result != 0) return -1;
    file->is_regular = S_ISREG(status->st_mode);
    file->is_folder = S_ISDIR(status->st_mode);
    file->permissions = status->st_mode & 0777;
    file->owner = status->st_uid;
    file->inode = status->st_ino;
    file->size = status->st_size;
#if defined(__APPLE__)
    file->seconds = status->st_mtimespec.tv_sec;
    file->nanoseconds = status->st_mtimespec.tv_nsec;
#else
    file->seconds = status->st_mtim.tv_sec;
    file->nanoseconds = status->st_mtim.tv_nsec;
#endif
    return 0;
}

int crelay_stat(const char *path, struct crelay_file *file) {
    struct stat status;
    return properties(stat(path, &status), &status, file);
}

int crelay_lstat(const char *path, struct crelay_file *file) {
    struct stat status;
    return properties(lstat(path, &status), &status, file);
}

int crelay_fstat(int descriptor, struct crelay_file *file) {
    struct stat status;
    return properties(fstat(descriptor, &status), &status, file);
}
