"""Manual pages in mdoc(7), from the help that the program prints for tools (`--experimental-dump-help`)."""
import json
import re


def _escaped(text):
    """Returns a text as mdoc shows it: backslashes and hyphens are literal, and no line begins with a control character."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join("\\&" + line if line[:1] in (".", "'") else line for line in text.split("\n"))


def _discussion(text):
    """Yields the lines of a discussion: indented lines keep their form, others are filled."""
    for part in re.findall(r"(?:^ +\S.*\n?|^\s*\n)+|(?:^\S.*\n?)+", text.strip("\n"), re.MULTILINE):
        if not part.strip():
            yield ".Pp"
        elif part.lstrip("\n").startswith(" "):
            yield from [".Bd -literal -offset 2n", _escaped(part.strip("\n")), ".Ed", ".Pp"]
        else:
            yield _escaped(part.rstrip("\n"))


def _names(argument):
    for name in argument.get("names", []):
        yield ("-" if name["kind"] == "short" else "--" if name["kind"] == "long" else "-") + name["name"]


def _arguments(command):
    """Yields the list of a command's arguments, under the titles of the help."""
    titles = {}
    for argument in command.get("arguments", []):
        if argument["shouldDisplay"]:
            titles.setdefault(argument.get("sectionTitle") or "", []).append(argument)
    for title, arguments in titles.items():
        if title:
            yield ".Ss " + _escaped(title)
        yield ".Bl -tag -width 6n"
        for argument in arguments:
            value = "<%s>" % argument.get("valueName", "value")
            if argument["kind"] == "positional":
                head = value
            else:
                head = ", ".join(_names(argument)) + (" " + value if argument["kind"] == "option" else "")
            yield ".It " + _escaped(head).replace('"', "\\(dq")
            notes = []
            if argument.get("isRepeating") and argument["kind"] != "positional" and "repeatable" not in argument.get("abstract", ""):
                notes.append("repeatable")
            if argument.get("defaultValue"):
                notes.append("default: " + argument["defaultValue"])
            text = argument.get("abstract", "") + (" (%s)" % "; ".join(notes) if notes else "")
            yield _escaped(text or "No description.")
        yield ".El"


def _synopsis(name, command):
    parts = []
    for argument in command.get("arguments", []):
        if argument["kind"] == "positional" and argument["shouldDisplay"]:
            value = "<%s>" % argument.get("valueName", "value") + ("..." if argument.get("isRepeating") else "")
            parts.append("[%s]" % value if argument["isOptional"] else value)
    commands = [entry for entry in command.get("subcommands", []) if entry["commandName"] != "help"]
    return " ".join([name, "[options]"] + parts + (["<command>"] if commands else []))


def _page(names, command, date, version, others):
    """Returns the text of one page; `names` are the words of the command, `others` the names of further pages."""
    page, name = "-".join(names), " ".join(names)
    lines = [
        ".Dd " + date, ".Dt %s 1" % page.upper(), ".Os slowlane " + version,
        ".Sh NAME", ".Nm " + page, ".Nd " + _escaped(command.get("abstract", "").rstrip(".") or "a command of slowlane"),
        ".Sh SYNOPSIS", _escaped(_synopsis(name, command)),
    ]
    if command.get("discussion"):
        lines += [".Sh DESCRIPTION", *_discussion(command["discussion"])]
    arguments = list(_arguments(command))
    if arguments:
        lines += [".Sh OPTIONS", *arguments]
    commands = [entry for entry in command.get("subcommands", []) if entry["commandName"] != "help" and entry["shouldDisplay"]]
    if commands and len(names) == 1:
        lines += [".Sh COMMANDS", ".Bl -tag -width 6n"]
        for entry in commands:
            lines += [".It " + _escaped(entry["commandName"]), _escaped(entry.get("abstract", "No description."))]
        lines += [".El"]
    elif commands:
        lines += [".Sh COMMANDS"]
        for entry in commands:
            lines += [".Ss " + _escaped(_synopsis(name + " " + entry["commandName"], entry)), _escaped(entry.get("abstract", ""))]
            if entry.get("discussion"):
                lines += [".Pp", *_discussion(entry["discussion"])]
            lines += list(_arguments(entry))
    lines += [".Sh SEE ALSO", " ,\n".join(".Xr %s 1" % other for other in others)]
    # A paragraph before a section or a list, or two in a row, have no effect and are warnings.
    text = "\n".join(lines) + "\n"
    text = re.sub(r"(?:\.Pp\n)+(?=\.(?:Pp|Sh|Ss|Bl)\b)", "", text)
    return re.sub(r"(\.S[hs] .*\n)(?:\.Pp\n)+", r"\1", text)


def pages(dump, date, version):
    """Returns the pages by their file names, one of the program and one for each command.

    `dump` is the program's JSON, `date` the date of the pages, such as "November 26, 2026".
    """
    tool = json.loads(dump)
    if tool.get("serializationVersion") != 0:
        raise ValueError("the dump of the help has version %r, not 0" % tool.get("serializationVersion"))
    root = tool["command"]
    commands = [entry for entry in root["subcommands"] if entry["commandName"] != "help" and entry["shouldDisplay"]]
    program = root["commandName"]
    result = {program + ".1": _page([program], root, date, version, ["%s-%s" % (program, entry["commandName"]) for entry in commands])}
    for entry in commands:
        result["%s-%s.1" % (program, entry["commandName"])] = _page([program, entry["commandName"]], entry, date, version, [program])
    return result
