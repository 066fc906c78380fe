extension OutputSchema {
    /// The lines of `slowlane run` and `slowlane merge-reports`.
    static let runs = #"""
            "run": {
              "description": "'slowlane run --json': the first line",
              "type": "object",
              "required": [ "type", "version", "slowlane", "planned", "shard" ],
              "properties": {
                "type": { "const": "run" },
                "version": { "const": 1 },
                "slowlane": { "type": "string" },
                "planned": { "type": "integer", "minimum": 0 },
                "shard": {
                  "type": [ "object", "null" ],
                  "required": [ "index", "count", "batch", "runs", "seeds", "files" ],
                  "properties": {
                    "index": { "type": "integer", "minimum": 1 },
                    "count": { "type": "integer", "minimum": 1 },
                    "batch": { "type": "string", "pattern": "^[0-9a-f]{16}$" },
                    "runs": { "type": "integer", "minimum": 0 },
                    "seeds": {
                      "type": "array",
                      "minItems": 2,
                      "maxItems": 2,
                      "items": { "type": "string", "pattern": "^[0-9]+$" }
                    },
                    "files": {
                      "type": "array",
                      "items": {
                        "type": "object",
                        "required": [ "source", "digest" ],
                        "properties": {
                          "source": { "type": "string" },
                          "digest": { "type": "string", "pattern": "^[0-9a-f]{16}$" }
                        }
                      }
                    }
                  }
                }
              }
            },
            "rejected": {
              "description": "'slowlane run --json': a file that is not a valid scenario",
              "type": "object",
              "required": [ "type", "file", "line", "column", "message", "description" ],
              "properties": {
                "type": { "const": "rejected" },
                "file": { "type": "string" },
                "line": {
                  "type": [ "integer", "null" ]
                },
                "column": {
                  "type": [ "integer", "null" ]
                },
                "message": { "type": "string" },
                "description": { "type": "string" }
              }
            },
            "result": {
              "description": "'slowlane run --json': a run",
              "type": "object",
              "required": [
                "type",
                "scenario",
                "name",
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
                "screen",
                "replay",
                "canary",
                "exit_status"
              ],
              "properties": {
                "type": { "const": "result" },
                "scenario": { "type": "string" },
                "name": { "type": "string" },
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
                "network": { "type": "string" },
                "contract": {
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
                "screen": {
                  "type": "array",
                  "items": { "type": "string" }
                },
                "replay": {
                  "type": "array",
                  "items": { "type": "string" }
                },
                "canary": { "type": "boolean" },
                "exit_status": { "type": "integer", "minimum": 0, "maximum": 255 }
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
        """#
}
