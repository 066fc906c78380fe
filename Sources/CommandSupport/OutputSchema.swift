/// The JSON Schema of what commands print with `--json`.
public enum OutputSchema {
    /// The schema (draft 2020-12): each line of output is an object that matches it.
    public static let json = #"""
        {
          "$schema": "https://json-schema.org/draft/2020-12/schema",
          "title": "Lines of JSON that slowlane prints, version 1",
          "description": "Keys may be added; a change of existing ones changes the version.",
          "anyOf": [
            { "$ref": "#/$defs/run" },
            { "$ref": "#/$defs/rejected" },
            { "$ref": "#/$defs/result" },
            { "$ref": "#/$defs/difference" },
            { "$ref": "#/$defs/interrupted" },
            { "$ref": "#/$defs/end" },
            { "$ref": "#/$defs/selftest" },
            { "$ref": "#/$defs/unmutated" },
            { "$ref": "#/$defs/mutant" },
            { "$ref": "#/$defs/selftest_end" },
            { "$ref": "#/$defs/shrunk" },
            { "$ref": "#/$defs/shrunk_mutant" },
            { "$ref": "#/$defs/measurement" },
            { "$ref": "#/$defs/doctor" },
            { "$ref": "#/$defs/note" },
            { "$ref": "#/$defs/conflict" },
            { "$ref": "#/$defs/attachment" }
          ],
          "$defs": {
            "run": {
              "description": "'slowlane run --json': the first line",
              "type": "object",
              "required": [ "type", "version", "slowlane", "planned" ],
              "properties": {
                "type": { "const": "run" },
                "version": { "const": 1 },
                "slowlane": { "type": "string" },
                "planned": { "type": "integer", "minimum": 0 }
              }
            },
            "rejected": {
              "description": "'slowlane run --json': a file that is not a valid scenario",
              "type": "object",
              "required": [ "type", "file", "line", "column", "message" ],
              "properties": {
                "type": { "const": "rejected" },
                "file": { "type": "string" },
                "line": {
                  "type": [ "integer", "null" ]
                },
                "column": {
                  "type": [ "integer", "null" ]
                },
                "message": { "type": "string" }
              }
            },
            "result": {
              "description": "'slowlane run --json': a run",
              "type": "object",
              "required": [
                "type",
                "scenario",
                "variant",
                "source",
                "world",
                "seed",
                "mutant",
                "result",
                "digest",
                "events",
                "duration_ns",
                "wall_ms",
                "reproducible",
                "checks",
                "errors",
                "replay"
              ],
              "properties": {
                "type": { "const": "result" },
                "scenario": { "type": "string" },
                "variant": {
                  "type": [ "string", "null" ]
                },
                "source": { "type": "string" },
                "world": {
                  "enum": [ "simulated", "live" ]
                },
                "seed": {
                  "type": "string",
                  "pattern": "^[0-9]+$"
                },
                "mutant": {
                  "type": [ "string", "null" ]
                },
                "result": {
                  "enum": [ "pass", "fail", "inconclusive", "error" ]
                },
                "digest": {
                  "type": [ "string", "null" ]
                },
                "events": { "type": "integer", "minimum": 0 },
                "duration_ns": { "type": "integer", "minimum": 0 },
                "wall_ms": { "type": "integer", "minimum": 0 },
                "reproducible": {
                  "type": [ "boolean", "null" ]
                },
                "checks": {
                  "type": "array",
                  "items": {
                    "type": "object",
                    "required": [
                      "check",
                      "outcome",
                      "reason",
                      "advice",
                      "time_ns",
                      "file",
                      "line",
                      "column"
                    ],
                    "properties": {
                      "check": { "type": "string" },
                      "outcome": {
                        "enum": [ "pass", "fail", "inconclusive" ]
                      },
                      "reason": {
                        "type": [ "string", "null" ]
                      },
                      "advice": {
                        "type": [ "string", "null" ]
                      },
                      "time_ns": {
                        "type": [ "integer", "null" ]
                      },
                      "file": { "type": "string" },
                      "line": {
                        "type": [ "integer", "null" ]
                      },
                      "column": {
                        "type": [ "integer", "null" ]
                      }
                    }
                  }
                },
                "errors": {
                  "type": "array",
                  "items": { "type": "string" }
                },
                "replay": {
                  "type": "array",
                  "items": { "type": "string" }
                }
              }
            },
            "difference": {
              "description": "'slowlane run --json': verdicts that differ between the worlds",
              "type": "object",
              "required": [ "type", "scenario", "source", "lines" ],
              "properties": {
                "type": { "const": "difference" },
                "scenario": { "type": "string" },
                "source": { "type": "string" },
                "lines": {
                  "type": "array",
                  "items": { "type": "string" }
                }
              }
            },
            "interrupted": {
              "description": "'slowlane run --json': the last line after Ctrl-C",
              "type": "object",
              "required": [ "type" ],
              "properties": {
                "type": { "const": "interrupted" }
              }
            },
            "end": {
              "description": "'slowlane run --json': the last line",
              "type": "object",
              "required": [
                "type",
                "passed",
                "failed",
                "inconclusive",
                "errors",
                "rejected",
                "differences",
                "exit_status"
              ],
              "properties": {
                "type": { "const": "end" },
                "passed": { "type": "integer", "minimum": 0 },
                "failed": { "type": "integer", "minimum": 0 },
                "inconclusive": { "type": "integer", "minimum": 0 },
                "errors": { "type": "integer", "minimum": 0 },
                "rejected": { "type": "integer", "minimum": 0 },
                "differences": { "type": "integer", "minimum": 0 },
                "exit_status": { "type": "integer", "minimum": 0, "maximum": 255 }
              }
            },
        \#(selfTest)
        \#(shrinking)
            "measurement": {
              "description": "'slowlane measure --json': a row",
              "type": "object",
              "required": [
                "type",
                "version",
                "profile",
                "bytes",
                "expected_ms",
                "measured_ms",
                "pass"
              ],
              "properties": {
                "type": { "const": "measurement" },
                "version": { "const": 1 },
                "profile": { "type": "string" },
                "bytes": { "type": "integer", "minimum": 0 },
                "expected_ms": { "type": "number" },
                "measured_ms": { "type": "number" },
                "pass": { "type": "boolean" }
              }
            },
            "doctor": {
              "description": "'slowlane doctor --json'",
              "type": "object",
              "required": [ "type", "version", "slowlane", "works", "checks" ],
              "properties": {
                "type": { "const": "doctor" },
                "version": { "const": 1 },
                "slowlane": { "type": "string" },
                "works": { "type": "boolean" },
                "checks": {
                  "type": "array",
                  "items": {
                    "type": "object",
                    "required": [ "result", "text", "remedy" ],
                    "properties": {
                      "result": {
                        "enum": [ "ok", "limitation", "failure" ]
                      },
                      "text": { "type": "string" },
                      "remedy": {
                        "type": [ "string", "null" ]
                      }
                    }
                  }
                }
              }
            },
            "note": {
              "description": "'slowlane notes list --json', a line per note; 'slowlane notes show --json' with all versions and pending changes",
              "type": "object",
              "required": [
                "type",
                "version",
                "note",
                "state",
                "deleted",
                "revision",
                "title",
                "text",
                "reason"
              ],
              "properties": {
                "type": { "const": "note" },
                "version": { "const": 1 },
                "note": { "type": "string" },
                "state": {
                  "enum": [ "synced", "pending", "conflict", "rejected" ]
                },
                "deleted": { "type": "boolean" },
                "revision": {
                  "type": [ "string", "null" ]
                },
                "title": {
                  "type": [ "string", "null" ]
                },
                "text": {
                  "type": [ "string", "null" ]
                },
                "reason": {
                  "type": [ "string", "null" ]
                },
                "base": {
                  "anyOf": [
                    { "type": "null" },
                    {
                      "type": "object",
                      "required": [ "revision", "title", "text" ],
                      "properties": {
                        "revision": {
                          "type": [ "string", "null" ]
                        },
                        "title": {
                          "type": [ "string", "null" ]
                        },
                        "text": {
                          "type": [ "string", "null" ]
                        }
                      }
                    }
                  ]
                },
                "mine": {
                  "anyOf": [
                    { "type": "null" },
                    {
                      "type": "object",
                      "required": [ "revision", "title", "text" ],
                      "properties": {
                        "revision": {
                          "type": [ "string", "null" ]
                        },
                        "title": {
                          "type": [ "string", "null" ]
                        },
                        "text": {
                          "type": [ "string", "null" ]
                        }
                      }
                    }
                  ]
                },
                "theirs": {
                  "anyOf": [
                    { "type": "null" },
                    {
                      "type": "object",
                      "required": [ "revision", "title", "text" ],
                      "properties": {
                        "revision": {
                          "type": [ "string", "null" ]
                        },
                        "title": {
                          "type": [ "string", "null" ]
                        },
                        "text": {
                          "type": [ "string", "null" ]
                        }
                      }
                    }
                  ]
                },
                "pending": {
                  "type": "array",
                  "items": {
                    "type": "object",
                    "required": [ "kind", "attempts", "may_be_committed", "reason" ],
                    "properties": {
                      "kind": { "type": "string" },
                      "attempts": { "type": "integer", "minimum": 0 },
                      "may_be_committed": { "type": "boolean" },
                      "reason": {
                        "type": [ "string", "null" ]
                      }
                    }
                  }
                },
                "attachments": {
                  "type": "array",
                  "items": {
                    "type": "object",
                    "required": [
                      "note",
                      "name",
                      "direction",
                      "size",
                      "state",
                      "reason"
                    ],
                    "properties": {
                      "note": { "type": "string" },
                      "name": { "type": "string" },
                      "direction": {
                        "enum": [ "upload", "download" ]
                      },
                      "size": {
                        "type": [ "integer", "null" ]
                      },
                      "state": {
                        "enum": [ "waiting", "sending", "done", "parked" ]
                      },
                      "reason": {
                        "type": [ "string", "null" ]
                      }
                    }
                  }
                }
              }
            },
            "conflict": {
              "description": "'slowlane notes conflicts --json': a note in conflict; null is a deletion",
              "type": "object",
              "required": [ "type", "version", "note", "base", "mine", "theirs" ],
              "properties": {
                "type": { "const": "conflict" },
                "version": { "const": 1 },
                "note": { "type": "string" },
                "base": {
                  "anyOf": [
                    { "type": "null" },
                    {
                      "type": "object",
                      "required": [ "revision", "title", "text" ],
                      "properties": {
                        "revision": {
                          "type": [ "string", "null" ]
                        },
                        "title": {
                          "type": [ "string", "null" ]
                        },
                        "text": {
                          "type": [ "string", "null" ]
                        }
                      }
                    }
                  ]
                },
                "mine": {
                  "anyOf": [
                    { "type": "null" },
                    {
                      "type": "object",
                      "required": [ "revision", "title", "text" ],
                      "properties": {
                        "revision": {
                          "type": [ "string", "null" ]
                        },
                        "title": {
                          "type": [ "string", "null" ]
                        },
                        "text": {
                          "type": [ "string", "null" ]
                        }
                      }
                    }
                  ]
                },
                "theirs": {
                  "anyOf": [
                    { "type": "null" },
                    {
                      "type": "object",
                      "required": [ "revision", "title", "text" ],
                      "properties": {
                        "revision": {
                          "type": [ "string", "null" ]
                        },
                        "title": {
                          "type": [ "string", "null" ]
                        },
                        "text": {
                          "type": [ "string", "null" ]
                        }
                      }
                    }
                  ]
                }
              }
            },
            "attachment": {
              "description": "'slowlane notes attachments --json': an attachment",
              "type": "object",
              "required": [
                "type",
                "version",
                "note",
                "name",
                "direction",
                "size",
                "state",
                "reason"
              ],
              "properties": {
                "type": { "const": "attachment" },
                "version": { "const": 1 },
                "note": { "type": "string" },
                "name": { "type": "string" },
                "direction": {
                  "enum": [ "upload", "download" ]
                },
                "size": {
                  "type": [ "integer", "null" ]
                },
                "state": {
                  "enum": [ "waiting", "sending", "done", "parked" ]
                },
                "reason": {
                  "type": [ "string", "null" ]
                }
              }
            }
          }
        }
        """#
}
