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
            { "$ref": "#/$defs/mutation_test" },
            { "$ref": "#/$defs/unmutated" },
            { "$ref": "#/$defs/mutant" },
            { "$ref": "#/$defs/mutation_test_end" },
            { "$ref": "#/$defs/shrunk" },
            { "$ref": "#/$defs/shrunk_mutant" },
            { "$ref": "#/$defs/exploration" },
            { "$ref": "#/$defs/failure" },
            { "$ref": "#/$defs/seed_error" },
            { "$ref": "#/$defs/shrunk_failure" },
            { "$ref": "#/$defs/coverage" },
            { "$ref": "#/$defs/exploration_end" },
            { "$ref": "#/$defs/all_mutants" },
            { "$ref": "#/$defs/detection" },
            { "$ref": "#/$defs/all_mutants_end" },
            { "$ref": "#/$defs/measurement" },
            { "$ref": "#/$defs/doctor" },
            { "$ref": "#/$defs/note" },
            { "$ref": "#/$defs/conflict" },
            { "$ref": "#/$defs/attachment" }
          ],
          "$defs": {
        \#(runs)
        \#(selfTest)
        \#(shrinking)
        \#(exploration)
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
