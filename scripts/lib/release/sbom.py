"""The software bill of materials: SPDX 2.3 as JSON (https://spdx.github.io/spdx-spec/v2.3/)."""
import hashlib
import json
import os
import re

# The first words by which the licence of a package is known.
_LICENCES = [("Apache License", "Apache-2.0"), ("Permission is hereby granted, free of charge", "MIT")]


def _licence(folder):
    """Returns the SPDX identifier of the licence file in a folder; NOASSERTION for an unknown one."""
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        if name.upper().startswith("LICEN"):
            with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                text = file.read()
            for words, identifier in _LICENCES:
                if words in text:
                    return identifier
    return "NOASSERTION"


def _identifier(name):
    return "SPDXRef-Package-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)


def _package(name, version, licence, location="NOASSERTION", supplier="NOASSERTION", purl=None):
    package = {
        "SPDXID": _identifier(name), "name": name, "versionInfo": version, "downloadLocation": location, "filesAnalyzed": False,
        "licenseConcluded": licence, "licenseDeclared": licence, "copyrightText": "NOASSERTION", "supplier": supplier,
    }
    if purl:
        package["externalRefs"] = [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}]
    return package


def document(tree, pins, system, version, commit, date, binary):
    """Returns the document as a text.

    - tree: the output of `swift package show-dependencies --format json`, decoded.
    - pins: the revision of each package by its identity, from Package.resolved.
    - system: what is linked statically and is no package, as triples of name, version and licence.
    - date: the time of the commit, such as "2026-11-26T12:00:00Z".
    - binary: the path of the program, whose digest the document has.
    """
    with open(binary, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    root = _package("slowlane", version, "Apache-2.0")
    root["checksums"] = [{"algorithm": "SHA256", "checksumValue": digest}]
    root["primaryPackagePurpose"] = "APPLICATION"
    packages, relations = {"slowlane": root}, set()

    def visit(entry, parent):
        for child in entry.get("dependencies", []):
            name = child["identity"]
            if name not in packages:
                url, revision = child["url"], pins.get(name, child["version"])
                path = re.sub(r"^https://|\.git$", "", url)
                packages[name] = _package(
                    name, child["version"], _licence(child["path"]), "git+%s@%s" % (url, revision),
                    purl="pkg:swift/%s@%s" % (path, child["version"]))
            relations.add((_identifier(parent), "DEPENDS_ON", _identifier(name)))
            visit(child, name)

    visit(tree, "slowlane")
    for name, found, licence in system:
        packages[name] = _package(name, found, licence)
        relations.add((_identifier("slowlane"), "STATIC_LINK", _identifier(name)))
    relations.add(("SPDXRef-DOCUMENT", "DESCRIBES", _identifier("slowlane")))
    return json.dumps({
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": "slowlane-" + version,
        # The namespace must be unique for each document: the program's digest is.
        "documentNamespace": "https://spdx.org/spdxdocs/slowlane-%s-%s" % (version, digest[:32]),
        "creationInfo": {"created": date, "creators": ["Tool: scripts/release"], "comment": "commit " + commit},
        "packages": [packages[name] for name in sorted(packages)],
        "relationships": [
            {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other} for one, kind, other in sorted(relations)],
    }, indent=2, sort_keys=True) + "\n"
