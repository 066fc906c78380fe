"""Checks what scripts/release makes around a program: python3 check_release.py REPOSITORY PROGRAM."""
import base64
import csv
import datetime
import hashlib
import io
import json
import os
import re
import struct
import subprocess
import sys
import tarfile
import tempfile
import types
import zipfile

ROOT, PROGRAM = sys.argv[1:]
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "scripts", "lib", "release"))
import archives  # noqa: E402
import icu_data  # noqa: E402
import manual  # noqa: E402
import sbom  # noqa: E402


def equal(found, expected):
    if found != expected:
        raise AssertionError("expected %r, found %r" % (expected, found))


def run(*command, **more):
    return subprocess.run(command, check=True, capture_output=True, text=True, **more).stdout


def make_release(folder):
    """A release whose program is a short script."""
    binary = os.path.join(folder, "slowlane")
    with open(binary, "w", encoding="ascii") as file:
        file.write("#!/bin/sh\necho program\n")
    date = datetime.datetime(2026, 11, 26, 12, 30, 2, tzinfo=datetime.timezone.utc)
    return types.SimpleNamespace(
        root=ROOT, binary=binary, version="1.2.3", python_version="1.2.3", deb_version="1.2.3", system="linux-x86_64", machine="x86_64",
        node_cpu="x64", deb_architecture="amd64", date=date, time=int(date.timestamp()), glibc="2.35",
        manual={"slowlane.1": ".Dd x\n"}, completions={shell: "# %s\n" % shell for shell in ("bash", "zsh", "fish")})


def check_wheel(release):
    name, data = archives.python(release)
    equal(name, "slowlane_proxy-1.2.3-py3-none-manylinux_2_35_x86_64.whl")
    equal(archives.python(release)[1], data)
    archive = zipfile.ZipFile(io.BytesIO(data))
    equal(archive.testzip(), None)
    record = {row[0]: row[1:] for row in csv.reader(io.StringIO(archive.read("slowlane_proxy-1.2.3.dist-info/RECORD").decode()))}
    equal(set(record), set(archive.namelist()))
    for path, (digest, size) in record.items():
        if not path.endswith("/RECORD"):
            content = archive.read(path)
            equal(size, str(len(content)))
            equal(digest, "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode())
    equal(archive.getinfo("slowlane_proxy-1.2.3.data/scripts/slowlane").external_attr >> 16 & 0o777, 0o755)
    # The entry point has the name that the distribution slowlane-pytest uses, so that pytest loads one of both.
    with open(os.path.join(ROOT, "Integrations", "pytest", "pyproject.toml"), encoding="utf-8") as file:
        declared = re.search(r'pytest11\]\n(\w+) = "(\w+)"', file.read()).groups()
    entry = archive.read("slowlane_proxy-1.2.3.dist-info/entry_points.txt").decode()
    equal(re.search(r"pytest11\]\n(\w+) = (\w+)", entry).groups(), declared)
    equal("slowlane_pytest/__init__.py" in record, True)


def check_npm(release):
    name, data = archives.npm(release)
    equal(name, "slowlane-1.2.3-npm-linux-x64.tgz")
    equal(archives.npm(release)[1], data)
    archive = tarfile.open(fileobj=io.BytesIO(data))
    package = json.load(archive.extractfile("package/package.json"))
    equal((package["version"], package["bin"], package.get("dependencies")), ("1.2.3", {"slowlane": "bin/slowlane"}, None))
    equal(archive.getmember("package/bin/slowlane").mode, 0o755)
    names = set(archive.getnames())
    for entry in package["exports"].values():
        for path in entry.values() if isinstance(entry, dict) else [entry]:
            equal(path.replace("./", "package/", 1) in names, True)
    # What the modules require is in the package.
    for path in names:
        if path.endswith(".js"):
            for needed in re.findall(r"require\('(\.[^']+)'\)", archive.extractfile(path).read().decode()):
                equal(os.path.normpath(os.path.join(os.path.dirname(path), needed)) + ".js" in names, True)


def check_tarball_and_deb(release, folder):
    name, data = archives.tarball(release)
    equal(archives.tarball(release)[1], data)
    archive = tarfile.open(fileobj=io.BytesIO(data))
    equal({(entry.uid, entry.uname, entry.mtime) for entry in archive}, {(0, "", release.time)})
    equal(name[:-len(".tar.gz")] + "/bin/slowlane" in archive.getnames(), True)
    if os.path.exists("/usr/bin/dpkg-deb"):
        name, data = archives.deb(release, folder)
        equal(archives.deb(release, folder)[1], data)
        path = os.path.join(folder, name)
        equal(run("dpkg-deb", "--field", path, "Depends").strip(), "libc6 (>= 2.35)")
        listed = run("dpkg-deb", "--contents", path)
        equal("-rwxr-xr-x root/root" in listed and "./usr/lib/systemd/system/slowlane.service" in listed, True)


def check_manual():
    pages = manual.pages(run(PROGRAM, "--experimental-dump-help"), "November 26, 2026", "1.2.3")
    equal(len(pages) > 25 and "slowlane-proxy.1" in pages, True)
    for text in pages.values():
        # Each line that begins with a dot is a request that the pages use.
        requests = set(re.findall(r"^\.(\w+)", text, re.MULTILINE))
        equal(requests - {"Dd", "Dt", "Os", "Sh", "Ss", "Nm", "Nd", "Pp", "Bd", "Ed", "Bl", "El", "It", "Xr"}, set())
        equal(text.count("\n.Bl "), text.count("\n.El\n"))
    dump = {"serializationVersion": 0, "command": {"commandName": "x", "abstract": "A.", "discussion": ".TH a\\b\n\n  'code'", "subcommands": []}}
    text = manual.pages(json.dumps(dump), "d", "v")["x.1"]
    equal("\\&.TH a\\eb\n.Bd -literal -offset 2n\n  'code'\n.Ed" in text.replace(".Pp\n", ""), True)


def check_icu_data():
    def package(entries):
        header = struct.pack("<HBB", 32, 0xDA, 0x27) + bytes(8) + b"CmnD" + bytes(16)
        body, names = struct.pack("<I", len(entries)), b"".join(name + b"\0" for name, _ in entries)
        start = 4 + 8 * len(entries)
        data, contents = -(-(start + len(names)) // 16) * 16, b""
        for name, content in entries:
            body += struct.pack("<II", start, data + len(contents))
            start += len(name) + 1
            contents += content
        return header + (body + names).ljust(data, b"\0") + contents

    kept = [(b"icudt76l/coll/root.res", b"r" * 32), (b"icudt76l/en.res", b"e" * 16), (b"icudt76l/nfkc.nrm", b"n" * 5)]
    others = [(b"icudt76l/coll/de.res", b"d" * 16), (b"icudt76l/de.res", b"d" * 48), (b"icudt76l/ibm-949.cnv", b"c" * 16)]
    equal(icu_data.filtered(package(sorted(kept + others))), package(kept))
    try:
        icu_data.filtered(b"\x20\0\0\0" + bytes(60))
    except ValueError:
        return
    raise AssertionError("data without a header was accepted")


def check_sbom(release):
    tree = {"identity": "main", "dependencies": [
        {"identity": "a", "url": "https://example.com/o/a.git", "version": "1.0.0", "path": "/nowhere", "dependencies": []}]}
    text = sbom.document(tree, {"a": "abc"}, [("sqlite", "3", "blessing")], "1.2.3", "c", "2026-11-26T12:00:00Z", release.binary)
    document = json.loads(text)
    packages = {package["name"]: package for package in document["packages"]}
    equal(packages["a"]["downloadLocation"], "git+https://example.com/o/a.git@abc")
    equal(packages["a"]["externalRefs"][0]["referenceLocator"], "pkg:swift/example.com/o/a@1.0.0")
    known = {package["SPDXID"] for package in document["packages"]} | {"SPDXRef-DOCUMENT"}
    for relation in document["relationships"]:
        equal({relation["spdxElementId"], relation["relatedSpdxElement"]} - known, set())


with tempfile.TemporaryDirectory() as temporary:
    made = make_release(temporary)
    check_wheel(made)
    check_npm(made)
    check_tarball_and_deb(made, temporary)
    check_sbom(made)
check_manual()
check_icu_data()
run("bash", "-n", "-c", run(PROGRAM, "--generate-completion-script", "bash"))
print("ok")
