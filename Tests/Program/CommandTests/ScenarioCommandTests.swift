import Foundation
import TestSupport
import Testing

extension CommandTests {
    /// The commands for scenario files: `lint`, `fmt`, `schema`, `scenarios`, `explain`.
    @Suite struct ScenarioCommandTests {
        private static let valid = """
            scenario: 1
            name: valid
            tags: [short]
            server: { notes: { n1: { title: Milk } } }
            devices:
              A: { user: ada }
            network:
              A: { 0s: wifi }
            steps:
              - { at: 1s, A: { edit: n1, text: two } }
            expect:
              finally: { agree: [A, server] }

            """

        private static func write(_ text: String, _ name: String, in folder: TemporaryFolder) throws -> String {
            let path = folder.path(name)
            try Data(text.utf8).write(to: URL(filePath: path))
            return path
        }

        @Test func aProblemIsShownWithItsLineAndACaret() async throws {
            let folder = try TemporaryFolder()
            let path = try Self.write(Self.valid.replacing("edit: n1", with: "remove: n1"), "a.yaml", in: folder)
            let result = try await Command.run("lint", path)
            #expect(result.status == 65)
            let lines = result.output.split(separator: "\n")
            #expect(lines.count == 3)
            #expect(
                lines[0].hasPrefix("\(path):10:20: error: unknown key 'remove' in an action; did you mean 'delete'?"))
            #expect(lines[1] == "      - { at: 1s, A: { remove: n1, text: two } }")
            #expect(lines[2] == "                       ^")
            #expect(result.errors == "1 file: 1 error\n")
        }

        @Test func aFolderIsCheckedWithItsSubfolders() async throws {
            let folder = try TemporaryFolder()
            _ = try Self.write(Self.valid, "a.yaml", in: folder)
            _ = try Self.write("profile: 1\nname: x", "profile.yaml", in: folder)
            try FileManager.default.createDirectory(atPath: folder.path("sub"), withIntermediateDirectories: true)
            let warning = Self.valid.replacing("text: two } }", with: "text: two }, mark: m }")
            _ = try Self.write(warning, "sub/b.yml", in: folder)
            let result = try await Command.run("lint", folder.url.path)
            #expect(result.status == 0)
            #expect(result.output.contains("sub/b.yml:10:5: warning: mark 'm' is never used\n"))
            #expect(result.errors == "1 YAML file without a line 'scenario:' not checked\n2 files: 1 warning\n")
            #expect(try await Command.run("lint", "--strict", "--quiet", folder.url.path).status == 65)
            #expect(try await Command.run("lint", folder.path("missing")).status == 65)
        }

        /// The app has nothing to send at 0 s, so the expectation would hold without a step; a mark begins its window later.
        @Test func anEventuallyThatHoldsBeforeAnyStepIsAWarning() async throws {
            let folder = try TemporaryFolder()
            func lint(_ expectation: String, _ step: String = "at: 1s") async throws -> (Int32, String) {
                let text = Self.valid.replacing("  finally:", with: "  eventually:\n    - \(expectation)\n  finally:")
                    .replacing("at: 1s", with: step).replacing("two } }", with: "two }, mark: edited }")
                let path = try Self.write(text, "a.yaml", in: folder)
                let result = try await Command.run("lint", "--strict", "--quiet", path)
                return (result.status, result.output.replacing(path, with: "a.yaml"))
            }
            let (status, output) = try await lint("{ by: 30s, A: { outbox: 0 } }")
            #expect(status == 65)
            #expect(output.contains("a.yaml:13:7: warning: 'eventually' holds at 0 s"), "\(output)")
            #expect(output.contains("'after' and 'within'"))
            for expectation in [
                "{ after: edited, within: 29s, A: { outbox: 0 } }", "{ by: 30s, A: { row: n1, text: two, outbox: 0 } }",
            ] {
                let (_, output) = try await lint(expectation)
                #expect(!output.contains("holds at 0 s"), "\(output)")
            }
            // The state at 0 s is the one after the steps of that time.
            let (_, atStart) = try await lint("{ by: 30s, A: { outbox: 0 } }", "at: 0s")
            #expect(!atStart.contains("holds at 0 s"), "\(atStart)")
        }

        @Test func noScenarioOfTheRepositoryHasAnEventuallyThatHoldsBeforeAnyStep() async throws {
            let root = Repository.root
            for folder in ["scenarios", "Examples"] {
                let result = try await Command.run("lint", "--quiet", root.appending(path: folder).path())
                #expect(result.status == 0)
                #expect(!result.output.contains("holds at 0 s"), "\(result.output)")
            }
        }

        @Test func formatRewritesAndCheckDoesNot() async throws {
            let folder = try TemporaryFolder()
            let changed = Self.valid.replacing("  A: { user: ada }", with: "    A:   {user: ada}  # Ada")
            let path = try Self.write(changed, "a.yaml", in: folder)
            let check = try await Command.run("fmt", "--check", path)
            #expect(check.status == 1)
            #expect(check.output == path + "\n")
            #expect(try String(contentsOfFile: path, encoding: .utf8) == changed)
            #expect(try await Command.run("fmt", path).status == 0)
            let expected = Self.valid.replacing("  A: { user: ada }", with: "  A: { user: ada }  # Ada")
            #expect(try String(contentsOfFile: path, encoding: .utf8) == expected)
            #expect(try await Command.run("fmt", "--check", path).status == 0)
        }

        /// The words are replaced at their places; everything else, and with --check the whole file, stays as it is.
        @Test func migrateReplacesRenamedWordsOnly() async throws {
            let folder = try TemporaryFolder()
            let base =
                Self.valid.replacing("0s: wifi", with: "0s:   wifi, 9s: refuse")
                + "faults: [{ request: any, point: committed,   then: cut, times: { min: 0 } }]  # a reset\n"
            let path = try Self.write(base, "base.yaml", in: folder)
            let child = try Self.write(
                "scenario: 1\nname: child\nextends: base.yaml\nheal: 30s\n", "child.yaml", in: folder)
            let check = try await Command.run("fmt", "--migrate", "--check", child)
            #expect(check.status == 1)
            #expect(check.output.hasPrefix("\(child):4:1: 'heal' -> 'restore'\n"), "\(check.output)")
            #expect(check.output.contains("'committed' -> 'before-response'\n"), "\(check.output)")
            #expect(try String(contentsOfFile: path, encoding: .utf8) == base)
            #expect(try await Command.run("fmt", "--migrate", child).status == 0)
            #expect(
                try String(contentsOfFile: path, encoding: .utf8)
                    == base.replacing("9s: refuse", with: "9s: { link: offline, signalled: false }")
                    .replacing("point: committed,   then: cut", with: "point: before-response,   then: reset"))
            #expect(try String(contentsOfFile: child, encoding: .utf8).hasSuffix("restore: 30s\n"))
            // Nothing is left: the second migration changes nothing, and the file is accepted.
            let again = try await Command.run("fmt", "--migrate", "--check", folder.url.path)
            #expect(again.status == 0 && again.output.isEmpty, "\(again.output)")
            #expect(try await Command.run("lint", path).status == 0)
        }

        @Test func migrateReplacesAFileAtOnce() async throws {
            let folder = try TemporaryFolder()
            let path = try Self.write("scenario: 1\nname: a\nheal: 30s\n", "a.yaml", in: folder)
            let before = try FileManager.default.attributesOfItem(atPath: path)[.systemFileNumber] as? Int
            #expect(try await Command.run("fmt", "--migrate", path).status == 0)
            let after = try FileManager.default.attributesOfItem(atPath: path)[.systemFileNumber] as? Int
            #expect(before != after, "the file was written in place")
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path) == ["a.yaml"])
        }

        @Test func aFileThatCannotBeFormattedIsNotChanged() async throws {
            let folder = try TemporaryFolder()
            let text = Self.valid.replacing("[A, server]", with: "&x [A, server]")
            let path = try Self.write(text, "a.yaml", in: folder)
            #expect(try await Command.run("fmt", path).status == 65)
            #expect(try String(contentsOfFile: path, encoding: .utf8) == text)
        }

        @Test func scenariosAreListed() async throws {
            let folder = try TemporaryFolder()
            let path = try Self.write(Self.valid, "a.yaml", in: folder)
            #expect(try await Command.run("scenarios").output.contains("edit-conflict-after-subway"))
            let json = try await Command.run("scenarios", "list", folder.url.path, "--json").output
            let object = try #require(JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any])
            #expect(object["scenario"] as? String == path)
            #expect(object["name"] as? String == "valid")
            #expect(object["tags"] as? [String] == ["short"])
            #expect(object["runs"] as? Int == 1)
        }

        @Test func aKeyIsExplained() async throws {
            let point = try await Command.run("explain", "faults.point").output
            #expect(point.hasPrefix("faults.point\n"))
            #expect(point.contains("value: before-request, mid-request, before-request-end, before-response"))
            #expect(point.contains("\n  required\n"))
            #expect(try await Command.run("explain").output.contains("network     required"))
            let unknown = try await Command.run("explain", "pont")
            #expect(unknown.status == 64)
            #expect(unknown.errors.contains("did you mean 'point'"))
        }

        @Test func everyKeyHasAnExplanationOfOneScreen() async throws {
            for key in ["faults", "steps", "expect", "traffic", "row", "workload", "matrix", "variants", "any", "mark"]
            {
                let result = try await Command.run("explain", key)
                #expect(result.status == 0, "\(key)")
                #expect(result.output.split(separator: "\n", omittingEmptySubsequences: false).count <= 60)
            }
        }

        @Test func theSchemaIsJSON() async throws {
            let text = try await Command.run("schema").output
            let schema = try #require(JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
            #expect(schema["$schema"] as? String == "https://json-schema.org/draft/2020-12/schema")
        }

        @Test func aNewScenarioIsCanonicalHasNoWarningAndPasses() async throws {
            let folder = try TemporaryFolder()
            let (status, output, _) = try await blocking {
                try runProgram(
                    Command.binary.path(), ["scenarios", "new", "my-outage"], in: folder.url.path,
                    standardError: .withOutput)
            }
            #expect(status == 0, "\(output)")
            let path = folder.path("my-outage.yaml")
            let lint = try await Command.run("lint", "--strict", path)
            #expect(lint.status == 0, "\(lint.output)")
            #expect(try await Command.run("run", path).status == 0)
            #expect(try await Command.run("scenarios", "new", "My Outage").status == 64)
        }
    }
}
