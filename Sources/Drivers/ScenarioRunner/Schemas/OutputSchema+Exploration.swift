extension OutputSchema {
    /// The lines of `slowlane explore`.
    static let exploration = #"""
            "exploration": {
              "description": "'slowlane explore --json': the first line",
              "type": "object",
              "required": [
                "type", "version", "slowlane", "source", "scenario", "variant", "first", "count", "commit", "mutants"
              ],
              "properties": {
                "type": { "const": "exploration" },
                "version": { "const": 1 },
                "slowlane": { "type": "string" },
                "source": { "type": "string" },
                "scenario": { "type": "string" },
                "variant": { "type": [ "string", "null" ] },
                "first": { "type": "string", "pattern": "^[0-9]+$" },
                "count": { "type": [ "integer", "null" ], "minimum": 1 },
                "commit": { "type": "boolean" },
                "mutants": { "type": "array", "items": { "type": "string" } }
              }
            },
            "failure": {
              "description": "'slowlane explore --json': a failed check of a seed",
              "type": "object",
              "required": [
                "type", "seed", "check", "subject", "actors", "notes", "reason", "configuration", "replay"
              ],
              "properties": {
                "type": { "const": "failure" },
                "seed": { "type": "string", "pattern": "^[0-9]+$" },
                "check": { "type": "string" },
                "subject": { "enum": [ "note", "device", "run" ] },
                "actors": { "type": "array", "items": { "type": "string" } },
                "notes": { "type": "array", "items": { "type": "string" } },
                "reason": { "type": "string" },
                "configuration": { "type": "array", "items": { "type": "string" } },
                "replay": { "type": "array", "items": { "type": "string" } }
              }
            },
            "shrunk_failure": {
              "description": "'slowlane explore --json': the scenario file of a shrunk failure",
              "type": "object",
              "required": [
                "type", "seed", "check", "file", "steps", "faults", "runs", "complete", "reproducible", "wall_ms", "replay"
              ],
              "properties": {
                "type": { "const": "shrunk_failure" },
                "seed": { "type": "string", "pattern": "^[0-9]+$" },
                "check": { "type": "string" },
                "file": { "type": "string" },
                "steps": { "type": "integer", "minimum": 0 },
                "faults": { "type": "integer", "minimum": 0 },
                "runs": { "type": "integer", "minimum": 1 },
                "complete": { "type": "boolean" },
                "reproducible": { "type": "boolean" },
                "wall_ms": { "type": "integer", "minimum": 0 },
                "replay": { "type": "array", "items": { "type": "string" } }
              }
            },
            "seed_error": {
              "description": "'slowlane explore --json': a seed that could not be run, or whose repetition differed",
              "type": "object",
              "required": [ "type", "seed", "lines" ],
              "properties": {
                "type": { "const": "seed_error" },
                "seed": { "type": "string", "pattern": "^[0-9]+$" },
                "lines": { "type": "array", "items": { "type": "string" } }
              }
            },
            "coverage": {
              "description": "'slowlane explore --coverage --json': what the runs have reached",
              "type": "object",
              "required": [ "type", "cells", "faults_not_applied" ],
              "properties": {
                "type": { "const": "coverage" },
                "faults_not_applied": { "type": "array", "items": { "type": "string" } },
                "cells": {
                  "type": "array",
                  "items": {
                    "type": "object",
                    "required": [ "table", "cell", "seeds" ],
                    "properties": {
                      "table": { "enum": [ "states", "merges", "faults" ] },
                      "cell": { "type": "string" },
                      "seeds": { "type": "integer", "minimum": 1 }
                    }
                  }
                }
              }
            },
            "exploration_end": {
              "description": "'slowlane explore --json': the last line",
              "type": "object",
              "required": [
                "type", "seeds", "failed", "not_run", "repeated", "not_deterministic", "states", "events", "wall_ms",
                "classes", "never_reached", "exit_status"
              ],
              "properties": {
                "type": { "const": "exploration_end" },
                "seeds": { "type": "integer", "minimum": 0 },
                "failed": { "type": "integer", "minimum": 0 },
                "not_run": { "type": "integer", "minimum": 0 },
                "repeated": { "type": "integer", "minimum": 0 },
                "not_deterministic": { "type": "integer", "minimum": 0 },
                "states": { "type": "integer", "minimum": 0 },
                "events": { "type": "integer", "minimum": 0 },
                "wall_ms": { "type": [ "integer", "null" ], "minimum": 0 },
                "classes": {
                  "type": "array",
                  "items": {
                    "type": "object",
                    "required": [ "check", "subject", "count", "seeds" ],
                    "properties": {
                      "check": { "type": "string" },
                      "subject": { "enum": [ "note", "device", "run" ] },
                      "count": { "type": "integer", "minimum": 1 },
                      "seeds": { "type": "array", "items": { "type": "string", "pattern": "^[0-9]+$" } }
                    }
                  }
                },
                "never_reached": { "type": "array", "items": { "type": "string" } },
                "exit_status": { "type": "integer", "minimum": 0, "maximum": 255 }
              }
            },
            "all_mutants": {
              "description": "'slowlane explore --all-mutants --json': the first line",
              "type": "object",
              "required": [ "type", "version", "source", "seeds" ],
              "properties": {
                "type": { "const": "all_mutants" },
                "version": { "const": 1 },
                "source": { "type": "string" },
                "seeds": { "type": "string" }
              }
            },
            "detection": {
              "description": "'slowlane explore --all-mutants --json': a mutant, and the seeds up to its detection",
              "type": "object",
              "required": [
                "type", "mutant", "detector", "check", "first_seed", "seeds", "named_seeds", "detected", "steps",
                "faults", "small", "wall_ms"
              ],
              "properties": {
                "type": { "const": "detection" },
                "mutant": { "type": "string" },
                "detector": { "type": "string" },
                "check": { "type": [ "string", "null" ] },
                "first_seed": { "type": [ "string", "null" ] },
                "seeds": { "type": [ "integer", "null" ], "minimum": 1 },
                "named_seeds": { "type": [ "integer", "null" ], "minimum": 1 },
                "detected": { "type": "boolean" },
                "steps": { "type": [ "integer", "null" ], "minimum": 0 },
                "faults": { "type": [ "integer", "null" ], "minimum": 0 },
                "small": { "type": "boolean" },
                "wall_ms": { "type": "integer", "minimum": 0 }
              }
            },
            "gallery_end": {
              "description": "'slowlane explore --all-mutants --json': the last line",
              "type": "object",
              "required": [ "type", "mutants", "detected", "exit_status" ],
              "properties": {
                "type": { "const": "gallery_end" },
                "mutants": { "type": "integer", "minimum": 0 },
                "detected": { "type": "integer", "minimum": 0 },
                "exit_status": { "type": "integer", "minimum": 0, "maximum": 255 }
              }
            },
        """#
}
