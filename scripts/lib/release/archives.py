"""The archives of a release. Equal files give equal archives: entries are sorted, and have the time of the commit, no owner and fixed modes."""
import gzip
import io
import json
import os
import shutil
import subprocess
import tarfile

from wheel import wheel

#: Where the files of the tarball and of the Debian package are, relative to the folder `share` of the tarball.
_COMPLETIONS = {
    "bash": ("completions/slowlane.bash", "usr/share/bash-completion/completions/slowlane"),
    "zsh": ("completions/_slowlane", "usr/share/zsh/vendor-completions/_slowlane"),
    "fish": ("completions/slowlane.fish", "usr/share/fish/vendor_completions.d/slowlane.fish"),
}

_INSTALL = """slowlane %s

bin/slowlane is the program; it needs no other file. To install everything for all users:

  sudo cp bin/slowlane /usr/local/bin/
  sudo mkdir -p /usr/local/share/man/man1 && sudo cp man/*.1 /usr/local/share/man/man1/

completions/ has scripts for bash, zsh and fish, systemd/ a service of 'slowlane server'. 'slowlane capture' needs libpcap.
"""


def _tar_gz(files, time):
    """Returns a tar.gz of files by path: pairs of content and mode."""
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", compresslevel=9, mtime=time) as zipped:
        with tarfile.open(fileobj=zipped, mode="w", format=tarfile.USTAR_FORMAT) as archive:
            for path in sorted(files):
                content, mode = files[path]
                entry = tarfile.TarInfo(path)
                entry.size, entry.mode, entry.mtime = len(content), mode, time
                archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def _read(*path):
    with open(os.path.join(*path), "rb") as file:
        return file.read()


def tarball(release):
    folder = "slowlane-%s-%s/" % (release.version, release.system)
    files = {
        "bin/slowlane": (_read(release.binary), 0o755), "LICENSE": (_read(release.root, "LICENSE"), 0o644),
        "CHANGELOG.md": (_read(release.root, "CHANGELOG.md"), 0o644), "INSTALL": ((_INSTALL % release.version).encode(), 0o644),
        "systemd/slowlane.service": (_read(release.root, "Integrations", "systemd", "slowlane.service"), 0o644),
    }
    for name, text in release.manual.items():
        files["man/" + name] = (text.encode(), 0o644)
    for shell, text in release.completions.items():
        files[_COMPLETIONS[shell][0]] = (text.encode(), 0o644)
    return folder[:-1] + ".tar.gz", _tar_gz({folder + path: entry for path, entry in files.items()}, release.time)


def npm(release):
    """The npm package with the program. npm needs one package for each platform."""
    source = os.path.join(release.root, "Integrations", "npm")
    package = json.loads(_read(source, "package.json"))
    package.update({"version": release.version, "os": ["linux"], "cpu": [release.node_cpu], "libc": ["glibc"], "bin": {"slowlane": "bin/slowlane"}})
    del package["scripts"]
    files = {"package/package.json": ((json.dumps(package, indent=2) + "\n").encode(), 0o644),
             "package/bin/slowlane": (_read(release.binary), 0o755), "package/LICENSE": (_read(release.root, "LICENSE"), 0o644)}
    for name in package["files"] + ["README.md"]:
        path = os.path.join(source, name)
        if os.path.isdir(path):
            files.update({"package/%s/%s" % (name, file): (_read(path, file), 0o644) for file in os.listdir(path)})
        elif name != "bin":
            files["package/" + name] = (_read(path), 0o644)
    return "slowlane-%s-npm-linux-%s.tgz" % (release.version, release.node_cpu), _tar_gz(files, release.time)


def python(release):
    return wheel(release.root, release.binary, release.python_version, "manylinux_%s_%s" % (release.glibc.replace(".", "_"), release.machine),
                 release.date.timetuple()[:6])


def deb(release, work):
    """The Debian package, made by dpkg-deb."""
    root = os.path.join(work, "deb")
    shutil.rmtree(root, ignore_errors=True)
    files = {
        "usr/bin/slowlane": (_read(release.binary), 0o755),
        "usr/lib/systemd/system/slowlane.service": (_read(release.root, "Integrations", "systemd", "slowlane.service"), 0o644),
        "usr/share/doc/slowlane/copyright": (_read(release.root, "LICENSE"), 0o644),
        "usr/share/doc/slowlane/changelog.gz": (gzip.compress(_read(release.root, "CHANGELOG.md"), 9, mtime=0), 0o644),
        "DEBIAN/postinst": (b"#!/bin/sh\nset -e\n[ ! -d /run/systemd/system ] || systemctl daemon-reload\n", 0o755),
        "DEBIAN/prerm": (b"#!/bin/sh\nset -e\n[ \"$1\" != remove ] || [ ! -d /run/systemd/system ] || systemctl disable --now slowlane || true\n", 0o755),
        "DEBIAN/postrm": (b"#!/bin/sh\nset -e\n[ ! -d /run/systemd/system ] || systemctl daemon-reload\n", 0o755),
    }
    for name, text in release.manual.items():
        files["usr/share/man/man1/%s.gz" % name] = (gzip.compress(text.encode(), 9, mtime=0), 0o644)
    for shell, text in release.completions.items():
        files[_COMPLETIONS[shell][1]] = (text.encode(), 0o644)
    size = sum(len(content) for content, _ in files.values()) // 1024
    control = (
        "Package: slowlane\nVersion: %s\nArchitecture: %s\nMaintainer: Slowlane contributors <slowlane@localhost>\nInstalled-Size: %d\n"
        "Depends: libc6 (>= %s)\nRecommends: libpcap0.8, ca-certificates\nSection: net\nPriority: optional\n"
        "Description: network-condition simulator and chaos proxy\n"
        " Tests how an app behaves on a bad network: a TCP proxy that models links and TCP,\n"
        " faults at exact points of HTTP exchanges, a server with Toxiproxy's API, and\n"
        " scenarios in virtual time.\n"
    ) % (release.deb_version, release.deb_architecture, size, release.glibc)
    files["DEBIAN/control"] = (control.encode(), 0o644)
    for path, (content, mode) in files.items():
        path = os.path.join(root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)
        os.chmod(path, mode)
    for folder, _, _ in os.walk(root):
        os.chmod(folder, 0o755)
    name = "slowlane_%s_%s.deb" % (release.deb_version, release.deb_architecture)
    target = os.path.join(work, name)
    # dpkg-deb sets times that are later than this one to it.
    environment = dict(os.environ, SOURCE_DATE_EPOCH=str(release.time))
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Zxz", "--build", root, target], check=True, env=environment, stdout=subprocess.DEVNULL)
    return name, _read(target)
