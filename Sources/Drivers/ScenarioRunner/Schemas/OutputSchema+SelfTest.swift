extension OutputSchema {
    /// The definitions of what `slowlane selftest` prints.
    static let selfTest = #"""
            "selftest": {
              "description": "'slowlane selftest --json': the first line",
              "type": "object",
              "required": [ "type", "version", "slowlane", "scenarios", "runs", "mutants" ],
              "properties": {
                "type": { "const": "selftest" },
                "version": { "const": 1 },
                "slowlane": { "type": "string" },
                "scenarios": { "type": "integer", "minimum": 0 },
                "runs": { "type": "integer", "minimum": 0 },
                "mutants": { "type": "integer", "minimum": 0 }
              }
            },
            "unmutated": {
              "description": "'slowlane selftest --json': the runs without mutants",
              "type": "object",
              "required": [ "type", "runs", "failures", "wall_ms" ],
              "properties": {
                "type": { "const": "unmutated" },
                "runs": { "type": "integer", "minimum": 0 },
                "failures": {
                  "type": "array",
                  "items": { "type": "string" }
                },
                "wall_ms": { "type": "integer", "minimum": 0 }
              }
            },
            "mutant": {
              "description": "'slowlane selftest --json': a mutant with its runs; with '--list' without",
              "type": "object",
              "required": [ "type", "version", "mutant", "side", "defect", "origin", "detector" ],
              "properties": {
                "type": { "const": "mutant" },
                "version": { "const": 1 },
                "mutant": { "type": "string" },
                "side": {
                  "enum": [ "client", "server" ]
                },
                "defect": { "type": "string" },
                "origin": { "type": "string" },
                "detector": { "type": "string" },
                "proven": { "type": "boolean" },
                "problem": {
                  "type": [ "string", "null" ]
                },
                "scenarios": { "type": "integer", "minimum": 0 },
                "runs": { "type": "integer", "minimum": 0 },
                "detections": {
                  "type": "array",
                  "items": {
                    "type": "object",
                    "required": [ "run", "check", "expected", "file", "line", "column" ],
                    "properties": {
                      "run": { "type": "string" },
                      "check": { "type": "string" },
                      "expected": { "type": "boolean" },
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
                "wall_ms": { "type": "integer", "minimum": 0 }
              }
            },
            "selftest_end": {
              "description": "'slowlane selftest --json': the last line",
              "type": "object",
              "required": [
                "type",
                "proven",
                "mutants",
                "unmutated_failures",
                "runs",
                "wall_ms",
                "exit_status"
              ],
              "properties": {
                "type": { "const": "selftest_end" },
                "proven": { "type": "integer", "minimum": 0 },
                "mutants": { "type": "integer", "minimum": 0 },
                "unmutated_failures": { "type": "integer", "minimum": 0 },
                "runs": { "type": "integer", "minimum": 0 },
                "wall_ms": { "type": "integer", "minimum": 0 },
                "exit_status": { "type": "integer", "minimum": 0, "maximum": 255 }
              }
            },
        """#
}
