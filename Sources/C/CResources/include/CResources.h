#pragma once

// The files of this repository that the program contains, and nothing else. They are in C because `#embed` compiles at once; as
// array literals of Swift (`.embedInCode` of SwiftPM) they delay every build.

struct cresources_file {
    /// The path in the repository; none in the entry after the last.
    const char *path;
    /// The text, which ends with a NUL.
    const char *text;
};

/// Returns the entry of a file: 0 is the first. There is no entry after the one without a path.
const struct cresources_file *cresources_file_at(long index);
