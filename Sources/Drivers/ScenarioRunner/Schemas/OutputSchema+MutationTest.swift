extension OutputSchema {
    /// The definitions of what `slowlane mutation-test` prints.
    static let selfTest = #"""
            "mutation_test": {
              "description": "'slowlane mutation-test --json': the first line",
              "type": "object",
              "required": [ "type", "version", "slowlane", "scenarios", "runs", "mutants" ],
              "properties": {
                "type": { "const": "mutation_test" },
                "version": { "const": 1 },
                "slowlane": { "type": "string" },
                "scenarios": { "type": "integer", "minimum": 0 },
                "runs": { "type": "integer", "minimum": 0 },
                "mutants": { "type": "integer", "minimum": 0 }
              }
            },
            "unmutated": {
              "description": "'slowlane mutation-test --json': the runs without mutants",
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
              "description": "'slowlane mutation-test --json': a mutant with its runs; with '--list' without",
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
            "mutation_test_end": {
              "description": "'slowlane mutation-test --json': the last line",
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
                "type": { "const": "mutation_test_end" },
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
