"""The data of ICU that Foundation needs for languages and character sets that the program does not use, removed.

Foundation contains 34 MB of data of ICU, in one object file of its static library. A smaller one is linked in its place: it lacks the
names, formats and orders of all languages but English, converters of character sets (UTF-8, UTF-16 and Latin-1 need none), dictionaries
of words, and transliterations. A lookup of what is missing finds the data of the root of all languages, as with any unknown language.

Format: icu4c/source/tools/toolutil/package.cpp. A header, whose first two bytes are its length; then, at the base, the number of entries,
for each the offsets of its name and of its data from the base, sorted by name; the names; the data, aligned to 16 bytes.
"""
import os
import re
import struct
import subprocess

_KEPT_LANGUAGES = ("root", "en", "en_001", "en_US", "en_US_POSIX", "res_index", "pool")
#: Files of the base folder that are no language, such as metaZones.res.
_TABLES = (
    "currencyNumericCodes", "dayPeriods", "genderList", "grammaticalFeatures", "icustd", "icuver", "keyTypeData", "langInfo",
    "likelySubtags", "metaZones", "metadata", "numberingSystems", "pluralRanges", "plurals", "supplementalData", "timezoneTypes",
    "tzdbNames", "units", "windowsZones", "zoneinfo64")


def is_kept(name):
    """Returns whether an entry remains; `name` lacks the folder of the package, such as `coll/root.res`."""
    folder, _, file = name.rpartition("/")
    stem, _, kind = file.rpartition(".")
    if kind == "res":
        # Collations have tables of their own beside the languages, and units and time zones the supplement of the root.
        return stem in _KEPT_LANGUAGES or (not folder and stem in _TABLES) or stem in ("supplementalData", "tzdbNames")
    if kind == "brk":
        return bool(re.fullmatch(r"(char|word|line|sent|title)(_POSIX)?", stem))
    return kind not in ("cnv", "dict")


def filtered(data):
    """Returns the data with the entries that are kept. Throws a ValueError for data in another format."""
    if data[2:4] != b"\xda\x27" or data[12:16] != b"CmnD":
        raise ValueError("the data of ICU has an unknown format")
    base = struct.unpack_from("<H", data)[0]
    count = struct.unpack_from("<I", data, base)[0]
    toc = [struct.unpack_from("<II", data, base + 4 + 8 * index) for index in range(count)]
    ends = [offset for _, offset in toc[1:]] + [len(data) - base]
    entries = []
    for (name_offset, offset), end in zip(toc, ends):
        name = data[base + name_offset:data.index(b"\0", base + name_offset)]
        if not offset <= end <= len(data) - base:
            raise ValueError("the data of ICU has an entry at a wrong place")
        if is_kept(name.decode("ascii").partition("/")[2]):
            entries.append((name, data[base + offset:base + end]))
    names, position = [], 4 + 8 * len(entries)
    for name, _ in entries:
        names.append(position)
        position += len(name) + 1
    offsets = []
    for _, content in entries:
        position = -(-position // 16) * 16
        offsets.append(position)
        position += len(content)
    result = bytearray(position)
    struct.pack_into("<I", result, 0, len(entries))
    for index, (name, content) in enumerate(entries):
        struct.pack_into("<II", result, 4 + 8 * index, names[index], offsets[index])
        result[names[index]:names[index] + len(name)] = name
        result[offsets[index]:offsets[index] + len(content)] = content
    return data[:base] + bytes(result)


def object_file(library, folder):
    """Makes an object file with the filtered data of a static library, and returns the options with which the linker uses it.

    - library: lib_FoundationICU.a of the toolchain.
    - folder: where the file and its parts are written.

    The linker takes the data of the library too, because the library comes first; as nothing refers to it, it is removed.
    """
    member = "icu_packaged_data.cpp.o"
    subprocess.run(["ar", "x", library, member], cwd=folder, check=True)
    symbols = subprocess.run(["nm", "--defined-only", member], cwd=folder, check=True, capture_output=True, text=True).stdout.split()
    if len(symbols) != 3 or not re.fullmatch(r"icudt\d+_dat", symbols[2]):
        raise ValueError("%s defines other symbols than the data of ICU: %s" % (member, " ".join(symbols)))
    raw = os.path.join(folder, "icu.raw")
    subprocess.run(["objcopy", "-O", "binary", "--only-section=.rodata", member, raw], cwd=folder, check=True)
    with open(raw, "rb") as file:
        data = filtered(file.read())
    with open(os.path.join(folder, "icu.dat"), "wb") as file:
        file.write(data)
    name = "slowlane_" + symbols[2]
    with open(os.path.join(folder, "icu.s"), "w", encoding="ascii") as file:
        file.write('.section .rodata\n.balign 16\n.globl {0}\n.type {0},%object\n{0}:\n.incbin "icu.dat"\n.size {0},.-{0}\n'
                   '.section .note.GNU-stack,"",%progbits\n'.format(name))
    subprocess.run(["clang", "-c", "icu.s", "-o", "icu.o"], cwd=folder, check=True)
    return [os.path.join(folder, "icu.o"), "--defsym=%s=%s" % (symbols[2], name)]
