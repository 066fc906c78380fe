import Foundation
import TestSupport
import Testing
import Wire

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

extension CommandTests {
    /// `slowlane run` with several scenarios, and its reports.
    @Suite(.serialized) struct RunBatchTests {
        private static func scenario(_ name: String, _ expect: String) -> String {
            """
            scenario: 1
            name: \(name)
            server: { notes: { n1: { title: Milk, text: two } } }
            devices: { A: { user: ada } }
            network: { A: { 0s: wifi } }
            steps: [{ at: 200ms, A: { edit: n1, text: three }, mark: edited }]
            expect: \(expect)

            """
        }

        private static let pass = "{ finally: { server: { count: 1 } } }"
        private static let fail = "{ finally: { server: { count: 2 } } }"
        private static let inconclusive = "{ sometimes: [{ A: { row: n1, icon: conflict } }] }"

        /// Returns a folder with scenario files given by their names and expectations.
        private static func folder(_ files: [String: String]) throws -> TemporaryFolder {
            let folder = try TemporaryFolder()
            for (name, expect) in files {
                let text = expect.hasPrefix("{") ? scenario(name, expect) : expect
                try Data(text.utf8).write(to: URL(filePath: folder.path("\(name).yaml")))
            }
            return folder
        }

        /// The arguments after `replay: ` of the failure in an output.
        private static func replay(_ output: String) throws -> [String] {
            let lines = output.split(separator: "\n")
            let start = try #require(lines.firstIndex { $0.hasPrefix("  replay: ") }, "\(output)")
            var command = ""
            for line in lines[start...] {
                command += line.replacingOccurrences(of: "  replay: ", with: "")
                guard command.hasSuffix("\\") else { break }
                command.removeLast()
            }
            return command.split(separator: " ").dropFirst().map { $0.replacingOccurrences(of: "'", with: "") }
        }

        @Test func aBatchHasALinePerRunInTheOrderOfTheFiles() async throws {
            let folder = try Self.folder(["a": Self.pass, "b": Self.fail, "c": Self.pass])
            let result = try await Command.run("run", folder.url.path, "--jobs", "3")
            #expect(result.status == 1)
            let lines = result.output.split(separator: "\n").filter { !$0.hasPrefix(" ") }
            #expect(lines.map { $0.prefix(7) } == ["a: pass", "b: fail", "FAIL  b", "c: pass", "2 of 3 "])
            #expect(lines.last == "2 of 3 runs passed")
            #expect(result.errors.isEmpty)
        }

        /// Returns the path of a program of the search path.
        private static func path(of program: String) -> String? {
            (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map { "\($0)/\(program)" }.first {
                FileManager.default.isExecutableFile(atPath: $0)
            }
        }

        /// Four shards by GNU parallel are the runs of one process; three of them are no report.
        @Test func shardsOnSeveralProcessesAreTheWholeBatch() async throws {
            let folder = try TemporaryFolder()
            let runs = try Command(
                [
                    "--will-cite", "--jobs", "2", Command.binary.path(), "run", "create-retried-after-lost-response",
                    "outage-30-min", "validators", "--jobs", "1", "--quiet", "--shard", "{}/4", "--results",
                    folder.path("{}.jsonl"), ":::", "1", "2", "3", "4",
                ], binary: URL(filePath: try #require(Self.path(of: "parallel"))))
            #expect(await runs.end() == 0)
            func results(_ output: String) -> [String] {
                output.split(separator: "\n").compactMap { line in
                    guard let value = JSONText.parse(line.utf8), value["type"].text == "result" else { return nil }
                    return "\(value["name"].displayText) \(value["seed"].displayText) \(value["digest"].displayText)"
                }.sorted()
            }
            let merged = try await Command.run("merge-reports", folder.url.path, "--json")
            let whole = try await Command.run(
                "run", "create-retried-after-lost-response", "outage-30-min", "validators", "--json", "--quiet")
            #expect(merged.status == 0, "\(merged.errors)")
            #expect(results(merged.output).count > 10)
            #expect(results(merged.output) == results(whole.output))
            try FileManager.default.removeItem(atPath: folder.path("3.jsonl"))
            let three = try await Command.run("merge-reports", folder.url.path)
            #expect(three.status == 65 && three.errors == "error: missing: shard 3/4\n")
        }

        @Test func theWorstResultIsTheExitStatus() async throws {
            let bad = "scenario: 1\nname: x\n"
            let folder = try Self.folder(["pass": Self.pass, "fail": Self.fail, "maybe": Self.inconclusive, "bad": bad])
            func status(_ names: String...) async throws -> Int32 {
                let command = try Command(["run", "-q"] + names.map { folder.path("\($0).yaml") })
                return await command.end()
            }
            #expect(try await status("pass") == 0)
            #expect(try await status("pass", "maybe") == 3)
            #expect(try await status("pass", "bad") == 65)
            #expect(try await status("maybe", "bad") == 65)
            #expect(try await status("bad", "maybe", "fail") == 1)
        }

        @Test func aRejectedFileDoesNotStopTheOthers() async throws {
            let folder = try Self.folder(["a": "scenario: 1\nname: x\n", "b": Self.pass])
            let result = try await Command.run("run", folder.path("*.yaml"))
            #expect(result.status == 65)
            #expect(result.errors.contains("\(folder.path("a.yaml")):1:1: 'devices' is missing"))
            #expect(result.output.contains("b: pass"))
            #expect(result.output.hasSuffix("1 of 1 run passed, 1 file rejected\n"))
        }

        @Test func nothingSelectedHasAStatusOfItsOwn() async throws {
            let folder = try TemporaryFolder()
            let empty = try await Command.run("run", folder.url.path)
            #expect(empty.status == 4)
            #expect(empty.errors.contains("select no scenario"))
            #expect(try await Command.run("run", folder.path("*.yaml")).status == 4)
            #expect(try await Command.run("run", "edit-conflict-after-subway", "--jobs", "0").status == 64)
        }

        /// The printed command gives the same failure with the same digest.
        @Test func theReplayCommandRepeatsAFailure() async throws {
            let arguments = [
                "run", "create-retried-after-lost-response", "--mutant", "posts-again-under-new-id", "--seed", "77",
            ]
            let first = try Command(arguments + ["--variant", "none"])
            #expect(await first.end() == 1)
            let replay = try Self.replay(first.output.text)
            #expect(replay.first == "run" && replay.contains("--mutant") && replay.contains("--seed"))
            let second = try Command(replay)
            #expect(await second.end() == 1)
            #expect(second.output.text == first.output.text)
            #expect(first.output.text.contains("  reproducible: repeated with the same digest "))
        }

        /// A batch with variants: the command repeats the variant that failed.
        @Test func theReplayCommandOfABatchSelectsTheRun() async throws {
            let folder = try Self.folder([
                "a": Self.scenario("a", Self.pass) + "variants: { more: { expect: \(Self.fail) } }\n"
            ])
            let batch = try await Command.run("run", folder.url.path)
            #expect(batch.status == 1)
            let replayed = try Command(try Self.replay(batch.output))
            #expect(await replayed.end() == 1)
            #expect(replayed.output.text.hasSuffix("a (more): fail\n"))
        }

        @Test func aTraceIsTheSameInEveryProcess() async throws {
            let first = try await Command.run("run", "edit-conflict-after-subway", "--trace", "--quiet")
            let second = try await Command.run(
                "run", "edit-conflict-after-subway", "--trace", "--check-determinism", "-q")
            #expect(first.status == 0 && second.status == 0)
            #expect(first.output == second.output)
            #expect(first.errors.isEmpty)
            let lines = first.output.split(separator: "\n")
            #expect(lines.first == "run scenario=edit-conflict-after-subway variant=none seed=12 world=simulated")
            #expect(lines.last?.hasPrefix("end result=pass digest=") == true)
            #expect(lines.contains { $0.hasSuffix(" mark mark=shown") })
        }

        @Test func jsonLinesAreValid() async throws {
            let folder = try Self.folder(["a": Self.pass, "b": Self.fail, "c": "scenario: 1\nname: x\n"])
            let result = try await Command.run("run", folder.url.path, "--json")
            #expect(result.status == 1)
            try await Self.expectValid(result.output)
            let values = result.output.split(separator: "\n").map { JSONText.parse($0.utf8) ?? .null }
            #expect(values.map { $0["type"].text ?? "" } == ["run", "rejected", "result", "result", "end"])
            #expect(values[0]["version"].number == 1)
            #expect(values[3]["reproducible"].json == "true")
            #expect(values[4]["exit_status"].number == 1)
        }

        /// Validates lines of JSON with a package that others use.
        private static func expectValid(_ lines: String) async throws {
            let schema = try await Command.run("schema", "output")
            let script = """
                import json, sys, jsonschema
                schema = json.loads(sys.argv[1])
                jsonschema.Draft202012Validator.check_schema(schema)
                # The errors of the line's own type are readable.
                for line in sys.argv[2].splitlines():
                    kind = {"$ref": "#/$defs/" + json.loads(line)["type"], "$defs": schema["$defs"]}
                    jsonschema.Draft202012Validator(kind).validate(json.loads(line))
                """
            let (status, output) = try await runPython("python", ["-c", script, schema.output, lines])
            #expect(status == 0, "\(output)")
        }

        @Test func theOutputOfOtherCommandsMatchesTheSchema() async throws {
            let folder = try TemporaryFolder()
            let store = ["--store", folder.path("notes.db")]
            _ = try await Command.run(["notes", "new", "Milk", "--text", "2 l \u{1F95B}\u{0}"] + store)
            var lines = try await Command.run("doctor", "--json").output
            lines += try await Command.run(["notes", "list", "--json"] + store).output
            lines += try await Command.run(["notes", "show", "Milk", "--json"] + store).output
            lines += try await Command.run("measure", "wifi", "--trials", "1", "--json").output
            let mutant = ["mutation-test", "--quiet", "--json", "--mutant", "overwrites-on-conflict"]
            lines += try await Command.run(mutant + ["--list"]).output
            lines += try await Command.run(mutant + ["edit-vs-edit"]).output
            lines += try await Command.run(mutant + ["edit-vs-edit", "--shrink"]).output
            lines += try await Command.run(
                "shrink", "edit-vs-edit", "--variant", "none", "--mutant", "overwrites-on-conflict", "--json",
                "--output",
                folder.path("failures")
            ).output
            #expect(lines.split(separator: "\n").count == 12)
            try await Self.expectValid(lines)
        }

        @Test func reportsAreReadByOtherPrograms() async throws {
            let folder = try Self.folder([
                "a": Self.pass, "b": Self.fail, "c": Self.inconclusive, "d": "scenario: 1\nname: x\n",
            ])
            let junit = folder.path("results.xml")
            let result = try await Command.run("run", folder.url.path, "--tap", "--junit", junit)
            #expect(result.status == 1)
            try Data(result.output.utf8).write(to: URL(filePath: folder.path("results.tap")))
            let script = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Python/read_reports.py")
            let read = try await runPython("python", [script.path(), junit, folder.path("results.tap")])
            #expect(read.status == 0, "\(read.output)")
            let value = try #require(JSONText.parse(read.output.utf8))
            #expect(value["totals"].json == "[4,1,2,0]")
            #expect(
                value["cases"].array.map { $0["results"].json } == [
                    "[]", "[\"Failure expectation\"]", "[\"Error inconclusive\"]", "[\"Error invalid-file\"]",
                ])
            #expect(value["cases"].array[0]["properties"].array.map(\.displayText).contains("digest"))
            #expect(Set(value["cases"].array.map { $0["class"].displayText + $0["name"].displayText }).count == 4)
            #expect(value["plan"].number == 4)
            #expect(value["points"].array.map { $0["ok"].json } == ["false", "true", "false", "false"])
            #expect(
                value["points"].array.map { $0["severity"].json } == [
                    "\"error\"", "null", "\"fail\"", "\"inconclusive\"",
                ])
        }

        /// The command of each case, passed or failed, gives the result of the case.
        @Test func eachCaseOfAJUnitReportHasTheCommandThatRepeatsIt() async throws {
            let folder = try Self.folder(["a": Self.pass, "b": Self.fail, "c": Self.inconclusive])
            let junit = folder.path("results.xml")
            #expect(try await Command.run("run", folder.url.path, "--seed", "41", "--junit", junit).status == 1)
            let script = """
                import json, sys, xml.etree.ElementTree as tree
                cases = []
                for case in tree.parse(sys.argv[1]).iter("testcase"):
                    values = {each.get("name"): each.get("value") for each in case.iter("property")}
                    lines = case.find("system-out").text.split("\\n")
                    for name in ["seed", "network", "contract", "replay"]:
                        assert name + ": " + values[name] in lines, lines
                    command = [line for line in lines if line.startswith("replay: ")][0].removeprefix("replay: ")
                    result = next((each.get("type") for each in case if each.tag in ("failure", "error")), "pass")
                    cases.append([values["seed"], values["network"], values["contract"], command, result])
                print(json.dumps(cases))
                """
            let read = try await runPython("python", ["-c", script, junit])
            let cases = try #require(JSONText.parse(read.output.utf8), "\(read.output)").array
            #expect(cases.count == 3)
            for (values, expected) in zip(cases, [("pass", 0), ("expectation", 1), ("inconclusive", 3)]) {
                let texts = values.array.map(\.displayText)
                #expect(
                    Array(texts.prefix(3)) == ["41", "A: 0s wifi", "compat"] && texts.last == expected.0, "\(texts)")
                let program = "slowlane() { '\(Command.binary.path())' \"$@\"; }; "
                let again = try Command(["-c", program + texts[3]], binary: URL(filePath: "/bin/sh"))
                again.type("", andClose: true)
                #expect(await again.end() == expected.1, "\(texts[3]): \(again.errors.text)")
            }
        }

        @Test func theMovingPictureOfTheDemonstrationIsXML() async throws {
            let folder = try TemporaryFolder()
            let (first, second) = (folder.path("first.svg"), folder.path("second.SVG"))
            for path in [first, second] {
                let result = try await Command.run("demo", "--record", path)
                #expect(result.status == 0 && result.output == "\(path): open it in a browser\n", "\(result)")
            }
            let film = try await Command.run("demo", "--record", folder.path("film.mp4"))
            #expect(film.status == 64 && film.errors.contains("the name must end in .html or .svg"), "\(film)")
            #expect(try Data(contentsOf: URL(filePath: first)) == Data(contentsOf: URL(filePath: second)))
            let script = """
                import sys, xml.etree.ElementTree as tree
                root = tree.parse(sys.argv[1]).getroot()
                assert not list(root.iter("{http://www.w3.org/2000/svg}script"))
                print(root.tag, len(list(root.iter("{http://www.w3.org/2000/svg}text"))))
                """
            let read = try await runPython("python", ["-c", script, first])
            #expect(read.status == 0 && read.output.hasPrefix("{http://www.w3.org/2000/svg}svg "), "\(read.output)")
        }

        @Test func onGitHubFailuresAreAnnotations() async throws {
            let folder = try Self.folder(["a": Self.pass, "b": Self.fail])
            let summary = folder.path("summary.md")
            try Data("before\n".utf8).write(to: URL(filePath: summary))
            let environment = ["GITHUB_ACTIONS=true", "GITHUB_STEP_SUMMARY=\(summary)", Command.binary.path]
            let command = try Command(environment + ["run", folder.url.path], binary: URL(filePath: "/usr/bin/env"))
            #expect(await command.end() == 1)
            let lines = command.output.text.split(separator: "\n").filter { $0.hasPrefix("::") }
            #expect(lines.count == 1)
            #expect(lines[0].hasPrefix("::error file=\(folder.path("b.yaml")),line=7,col="))
            let text = try String(contentsOfFile: summary, encoding: .utf8)
            #expect(text.hasPrefix("before\n### slowlane run\n\n1 of 2 runs passed, 1 problem\n"))
        }

        @Test func aReportThatCannotBeWrittenIsAnError() async throws {
            let folder = try Self.folder(["a": Self.pass])
            let result = try await Command.run("run", folder.url.path, "--junit", folder.path("missing/results.xml"))
            #expect(result.status == 69)
            #expect(result.errors.contains("error: cannot write \(folder.path("missing/results.xml")): the folder "))
            #expect(result.output.isEmpty, "the error comes before the runs")
        }

        @Test func aChangedFileIsRunAgain() async throws {
            let folder = try Self.folder(["a": Self.fail])
            let command = try Command(["run", folder.path("a.yaml"), "--watch", "--quiet"])
            _ = try await command.output.line(with: "a: fail")
            let clock = ContinuousClock()
            let start = clock.now
            try Data(Self.scenario("a", Self.pass).utf8).write(to: URL(filePath: folder.path("a.yaml")))
            _ = try await command.output.line(with: "a: pass")
            // Generous for a machine with other work; an idle one takes about 100 ms.
            #expect(clock.now - start < .seconds(5))
            command.signal(SIGINT)
            #expect(await command.end() == 130)
        }

        /// A folder is watched too, and a file that is not valid at first.
        @Test func aNewFileOfAFolderIsRun() async throws {
            let folder = try Self.folder(["a": Self.pass])
            let command = try Command(["run", folder.url.path, "--watch"])
            _ = try await command.errors.line(with: "waiting for changes")
            try Data("scenario: 1\n".utf8).write(to: URL(filePath: folder.path("b.yaml")))
            _ = try await command.errors.line(with: "b.yaml:1:1")
            try Data(Self.scenario("b", Self.pass).utf8).write(to: URL(filePath: folder.path("b.yaml")))
            _ = try await command.output.line(with: "b: pass")
            command.signal(SIGTERM)
            #expect(await command.end() == 130)
        }

        /// Live runs side by side: a signal ends all of them, and their temporary folders are removed.
        @Test func aSignalEndsAllLiveRunsAndRemovesTheirFolders() async throws {
            let folder = try TemporaryFolder()
            let command = try Command(
                ["TMPDIR=\(folder.url.path)", Command.binary.path]
                    + [
                        "run", "create-offline-then-heal", "edit-conflict-after-subway", "--variant", "none", "--live",
                        "--jobs", "2", "--tap",
                    ],
                binary: URL(filePath: "/usr/bin/env"))
            func folders() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: folder.url.path) }
            let deadline = ContinuousClock.now + .seconds(30)
            while try folders().count < 2 && ContinuousClock.now < deadline {
                try await Task.sleep(for: .milliseconds(20))
            }
            #expect(try folders().count == 2)
            command.signal(SIGINT)
            #expect(await command.end() == 130)
            #expect(command.output.text == "TAP version 14\nBail out! interrupted\n")
            #expect(try folders().isEmpty)
        }

        /// A live batch takes 17 s and more, so its progress is printed.
        @Test func theProgressOfALongBatchIsPrinted() async throws {
            let command = try Command(
                [
                    "run", "create-offline-then-heal", "edit-conflict-after-subway", "--variant", "none", "--live",
                    "--jobs", "2",
                ])
            let line = try await command.errors.line(with: " done, ")
            #expect(line == "0 of 2 done, 0 failed, 2 running")
            command.signal(SIGINT)
            #expect(await command.end() == 130)
        }
    }
}
