"""The Python wheel: the program, and the pytest plugin of Integrations/pytest (binary distribution format, PEP 427)."""
import base64
import hashlib
import io
import os
import zipfile

#: The name on the Python index: `slowlane` is another project there.
DISTRIBUTION = "slowlane-proxy"

_METADATA = """Metadata-Version: 2.1
Name: %s
Version: %s
Summary: A network-condition simulator and chaos proxy: the program slowlane, and its pytest plugin
License: Apache-2.0
Keywords: testing,network,latency,proxy,toxiproxy,pytest,chaos
Classifier: Framework :: Pytest
Classifier: Environment :: Console
Classifier: Topic :: Software Development :: Testing
Requires-Python: >=3.9
Provides-Extra: pytest
Requires-Dist: pytest>=7 ; extra == 'pytest'
Description-Content-Type: text/markdown

"""


def _digest(data):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def wheel(root, binary, version, tag, time):
    """Returns the file name and the bytes of the wheel.

    - root: the folder of the repository.
    - version: a version of PEP 440.
    - tag: the platform's tag, such as "manylinux_2_34_x86_64".
    - time: the date of all entries as the six numbers of zipfile.

    The plugin has the import name and the entry point of the distribution slowlane-pytest: pytest loads an entry point's name once,
    so that both can be installed.
    """
    name = "%s-%s" % (DISTRIBUTION.replace("-", "_"), version)
    info = name + ".dist-info/"
    source = os.path.join(root, "Integrations", "pytest", "src", "slowlane_pytest")
    files = {}
    for file in sorted(os.listdir(source)):
        if file.endswith(".py"):
            with open(os.path.join(source, file), "rb") as opened:
                files["slowlane_pytest/" + file] = opened.read()
    with open(binary, "rb") as opened:
        files[name + ".data/scripts/slowlane"] = opened.read()
    with open(os.path.join(root, "LICENSE"), "rb") as opened:
        files[info + "LICENSE"] = opened.read()
    with open(os.path.join(root, "scripts", "lib", "release", "wheel.md"), encoding="utf-8") as opened:
        files[info + "METADATA"] = (_METADATA % (DISTRIBUTION, version) + opened.read()).encode()
    files[info + "WHEEL"] = ("Wheel-Version: 1.0\nGenerator: slowlane\nRoot-Is-Purelib: false\nTag: py3-none-%s\n" % tag).encode()
    files[info + "entry_points.txt"] = b"[pytest11]\nslowlane_pytest = slowlane_pytest\n"
    record = ["%s,%s,%d" % (path, _digest(data), len(data)) for path, data in files.items()] + [info + "RECORD,,"]
    files[info + "RECORD"] = ("\n".join(record) + "\n").encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path, data in files.items():
            entry = zipfile.ZipInfo(path, time)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3
            entry.external_attr = (0o100755 if path.endswith("/scripts/slowlane") else 0o100644) << 16
            archive.writestr(entry, data)
    return "%s-py3-none-%s.whl" % (name, tag), buffer.getvalue()
