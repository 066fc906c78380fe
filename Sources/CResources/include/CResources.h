#pragma once

// The files of this repository that the program contains: `#embed` takes no time, and a literal of Swift a minute.

struct cresources_file {
    /// The path in the repository; none in the entry after the last.
    const char *path;
    /// The text, which ends with a NUL.
    const char *text;
};

/// Returns the entry of a file: 0 is the first. There is no entry after the one without a path.
const struct cresources_file *cresources_file_at(long index);
