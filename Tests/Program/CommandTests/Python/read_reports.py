"""Reads a JUnit XML file and a TAP file with the packages that others use, and prints what they contain as JSON."""

import json
import sys

import junitparser
from tap.parser import Parser

junit_path, tap_path = sys.argv[1:]
cases = []
for suite in junitparser.JUnitXml.fromfile(junit_path):
    for case in suite:
        cases.append(
            {
                "class": case.classname,
                "name": case.name,
                "results": [type(result).__name__ + " " + str(result.type) for result in case.result],
                "properties": sorted(
                    item.name for items in case.iterchildren(junitparser.Properties) for item in items
                ),
            }
        )
points = []
plan = None
for line in Parser().parse_file(tap_path):
    if line.category == "test":
        points.append({"ok": line.ok, "number": line.number, "severity": (line.yaml_block or {}).get("severity")})
    elif line.category == "plan":
        plan = line.expected_tests
    elif line.category == "unknown":
        raise SystemExit(f"not TAP: {line}")
totals = junitparser.JUnitXml.fromfile(junit_path)
print(
    json.dumps(
        {
            "cases": cases,
            "points": points,
            "plan": plan,
            "totals": [totals.tests, totals.failures, totals.errors, totals.skipped],
        }
    )
)
