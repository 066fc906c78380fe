extension OutputSchema {
    /// The definitions of what `slowlane shrink` and `slowlane mutation-test --shrink` print.
    static let shrinking = #"""
            "shrunk": {
              "description": "'slowlane shrink --json': a failing run and its smallest scenario",
              "type": "object",
              "required": [
                "type", "version", "scenario", "variant", "source", "seed", "mutant", "check", "file", "original", "shrunk",
                "runs", "complete", "reproducible", "wall_ms"
              ],
              "properties": {
                "type": { "const": "shrunk" },
                "version": { "const": 1 },
                "scenario": { "type": "string" },
                "variant": {
                  "type": [ "string", "null" ]
                },
                "source": { "type": "string" },
                "seed": {
                  "type": "string",
                  "pattern": "^[0-9]+$"
                },
                "mutant": {
                  "type": [ "string", "null" ]
                },
                "check": { "type": "string" },
                "file": { "type": "string" },
                "original": { "$ref": "#/$defs/size" },
                "shrunk": { "$ref": "#/$defs/size" },
                "runs": { "type": "integer", "minimum": 1 },
                "complete": { "type": "boolean" },
                "reproducible": { "type": "boolean" },
                "wall_ms": { "type": "integer", "minimum": 0 }
              }
            },
            "size": {
              "description": "the size of a scenario",
              "type": "object",
              "required": [ "steps", "faults", "network_entries" ],
              "properties": {
                "steps": { "type": "integer", "minimum": 0 },
                "faults": { "type": "integer", "minimum": 0 },
                "network_entries": { "type": "integer", "minimum": 0 }
              }
            },
            "shrunk_mutant": {
              "description": "'slowlane mutation-test --shrink --json': a mutant and the smallest scenario that detects it",
              "type": "object",
              "required": [
                "type", "version", "mutant", "run", "check", "steps", "faults", "runs", "small", "wall_ms"
              ],
              "properties": {
                "type": { "const": "shrunk_mutant" },
                "version": { "const": 1 },
                "mutant": { "type": "string" },
                "run": {
                  "type": [ "string", "null" ]
                },
                "check": {
                  "type": [ "string", "null" ]
                },
                "steps": {
                  "type": [ "integer", "null" ]
                },
                "faults": {
                  "type": [ "integer", "null" ]
                },
                "runs": { "type": "integer", "minimum": 0 },
                "small": { "type": "boolean" },
                "wall_ms": { "type": "integer", "minimum": 0 }
              }
            },
        """#
}
