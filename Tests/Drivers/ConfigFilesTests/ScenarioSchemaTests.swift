import Foundation
import Scenario
import TestSupport
import Testing

@testable import ConfigFiles

/// The JSON Schema of scenario files, against a validator from PyPI.
@Suite(.tags(.services)) struct ScenarioSchemaTests {
    /// Prints `accepted` or `rejected` for each file named after the schema.
    private static let validator = """
        import json, sys, yaml, jsonschema
        schema = json.load(open(sys.argv[1]))
        jsonschema.Draft202012Validator.check_schema(schema)
        validator = jsonschema.Draft202012Validator(schema)
        def strings(value):
            if isinstance(value, dict):
                return {str(key): strings(item) for key, item in value.items()}
            if isinstance(value, list):
                return [strings(item) for item in value]
            return value
        for name in sys.argv[2:]:
            try:
                errors = list(validator.iter_errors(strings(yaml.safe_load(open(name)))))
            except yaml.YAMLError as error:
                errors = [error]
            print("rejected" if errors else "accepted")
        """

    private static func verdicts(_ texts: [String]) async throws -> [Substring] {
        let folder = try TemporaryFolder()
        let schema = folder.path("schema.json")
        try Data(ScenarioSchema.json.utf8).write(to: URL(filePath: schema))
        var paths: [String] = []
        for (index, text) in texts.enumerated() {
            paths.append(folder.path("\(index).yaml"))
            try Data(text.utf8).write(to: URL(filePath: paths[index]))
        }
        let (status, output) = try await runPython("python", ["-c", validator, schema] + paths)
        #expect(status == 0, "\(output)")
        return output.split(separator: "\n")
    }

    @Test func theSchemaAcceptsWhatTheReaderAccepts() async throws {
        var texts = try ScenarioExamples.names.map(ScenarioExamples.text) + [ScenarioMistakes.valid]
        let folder = Repository.root.appending(path: "scenarios")
        for name in ScenarioCatalogue.names {
            texts.append(try String(contentsOf: folder.appending(path: "\(name).yaml"), encoding: .utf8))
        }
        let verdicts = try await Self.verdicts(texts)
        #expect(verdicts.count == texts.count)
        #expect(verdicts.allSatisfy { $0 == "accepted" }, "\(verdicts)")
    }

    @Test func theSchemaAcceptsNullWhereItTakesAKeyBack() async throws {
        let base = ScenarioMistakes.valid
        func variant(_ changes: String) -> String { base + "\nvariants: { v: \(changes) }\n" }
        func child(_ rest: String) -> String { "scenario: 1\nname: c\nextends: base.yaml\n\(rest)\n" }
        let accepted = [
            variant("{ limit: null, faults: ~, invariants: null }"), variant("{ network: { A: { 5s: null } } }"),
            variant("{ expect: { finally: null, always: null } }"),
            variant("{ expect: { finally: { agree: null } }, devices: { B: null } }"),
            child("limit: null"), child("network: { A: { 5s: null } }"), child("expect: { finally: { agree: null } }"),
        ]
        let rejected = [
            base.replacing("limit: 2m", with: "limit: null"), variant("{ devices: null }"), variant("{ expect: ~ }"),
            variant("null"), child("devices: null"), child("variants: null"), child("nonsense: null"),
        ]
        let verdicts = try await Self.verdicts(accepted + rejected)
        #expect(
            verdicts == accepted.map { _ in "accepted" } + rejected.map { _ in "rejected" }, "\(verdicts)")
    }

    @Test func theSchemaRejectsEachMistakeThatItCanKnow() async throws {
        let mistakes = ScenarioMistakes.all
        #expect(mistakes.count >= 40)
        #expect(mistakes.count { $0.isInSchema } > 40)
        let verdicts = try await Self.verdicts(mistakes.map { $0.applied.text })
        #expect(verdicts.count == mistakes.count)
        for (mistake, verdict) in zip(mistakes, verdicts) {
            #expect((verdict == "rejected") == mistake.isInSchema, "\(mistake)")
        }
    }
}
