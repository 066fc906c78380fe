import Foundation
import TestSupport
import Testing

/// `slowlane calibrate` and `slowlane trace`.
extension CommandTests {
    /// A download and requests through a live proxy, from its own capture.
    @Test func theProfileOfACaptureIsThatOfItsProxy() async throws {
        let folder = try TemporaryFolder()
        let capture = folder.path("link.pcapng")
        let (listener, upstream) = try TestSocket.listen()
        let (command, port) = try await proxy(
            "--netem-down", "delay 20ms rate 4mbit limit 40", "--netem-up", "delay 20ms rate 4mbit limit 40",
            "--pcapng",
            capture, upstream: upstream)
        let body = [UInt8](repeating: 65, count: 1_000_000)
        try await blocking {
            for size in [300, 300, 300, body.count] {
                let client = try TestSocket.connect(port: port)
                try client.send([UInt8](repeating: 66, count: 100))
                let server = try listener.accept()
                _ = try server.receive(exactly: 100)
                try server.send(Array(body.prefix(size)))
                _ = try client.receive(exactly: size)
            }
        }
        command.type("quit\n")
        #expect(await command.end() == 0)

        let profile = folder.path("link.yaml")
        let result = try await Command.run("calibrate", capture, "-o", profile, "--json")
        #expect(result.status == 0, "\(result.errors)")
        let figures = try #require(JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any])
        func value(_ direction: String, _ key: String) -> Double? {
            ((figures[direction] as? [String: Any])?[key] as? [String: Any])?["value"] as? Double
        }
        let rate = try #require(value("down", "rate_bps"))
        #expect(abs(rate / 4e6 - 1) < 0.05, "\(rate)")
        #expect(value("up", "rate_bps") == nil)
        #expect(
            result.errors.contains(
                "this capture does not show the uplink's rate: no period of the uplink was saturated"))
        let roundTrip = try #require((figures["round_trip_ms"] as? [String: Any])?["value"] as? Double)
        #expect(abs(roundTrip - 40) < 6, "\(roundTrip)")
        let check = try await Command.run("profiles", "check", profile)
        #expect(check.status == 0, "\(check.output) \(check.errors)")
        let text = try String(contentsOfFile: profile, encoding: .utf8)
        #expect(text.contains("# rate is not known: no period of the uplink was saturated"))
        let printed = try await Command.run("calibrate", capture)
        #expect(printed.output == text)

        let replay = try await Command.run("calibrate", capture, "--check")
        // How far they differ depends on the host as well; a transfer during which it was paused is left out.
        #expect([0, 1].contains(replay.status) && replay.output.contains("median difference of "))
        if let times = replay.output.firstMatch(of: /1\.0 MB +(\d+) ms +(\d+) ms/)?.output {
            let (captured, modelled) = (try #require(Double(times.1)), try #require(Double(times.2)))
            #expect(modelled < 1.1 * captured && modelled > 2000, "\(replay.output)")
        }
    }

    @Test func capturesThatShowNothingAreErrors() async throws {
        let folder = try TemporaryFolder()
        let file = folder.path("x.pcap")
        try Data("neither".utf8).write(to: URL(filePath: file))
        let result = try await Command.run("calibrate", file)
        #expect(result.status == 65)
        #expect(
            result.errors
                == "error: \(file): byte 0: neither pcap nor pcapng; write it with 'slowlane capture -w' or tcpdump\n")
        let missing = try await Command.run("calibrate", folder.path("missing.pcap"))
        #expect(missing.status == 65 && missing.errors.contains("no such file"))
        for wrong in [["--port", "0"], ["--at", "middle"], ["--timeline", "t.yaml"]] {
            #expect(try await Command.run(["calibrate", file] + wrong).status == 64)
        }
    }

    @Test func tablesBecomeTracesAndTracesTables() async throws {
        let folder = try TemporaryFolder()
        let (table, trace) = (folder.path("drive.csv"), folder.path("drive.trace"))
        try Data("time;UL;DL\n0;1;12000\n1;1;6000\n2;1;0\n3;1;24000\n".utf8).write(to: URL(filePath: table))
        let conversion = try await Command.run("trace", table, "--rate-column", "DL", "-o", trace)
        #expect(conversion.status == 0 && conversion.output.isEmpty)
        let back = try await Command.run("trace", trace, "--csv", "--window", "1s")
        #expect(back.output == "seconds,kbit/s\n0.000,12000.000\n1.000,6000.000\n2.000,0.000\n3.000,24000.000\n")
        let part = try await Command.run(
            "trace", trace, "--from", "1s", "--to", "2s", "--scale", "2", "--repeat", "3", "--csv")
        #expect(part.output == "seconds,kbit/s\n0.000,12000.000\n1.000,12000.000\n2.000,12000.000\n")
        let summary = try await Command.run("trace", trace)
        #expect(summary.output.contains("4s, ") && summary.output.contains("mean 10500 kbit/s"), "\(summary.output)")
        let wrong = try await Command.run("trace", table, "--rate-column", "DX")
        #expect(wrong.status == 65 && wrong.errors.contains("drive.csv:1:1: no column 'DX'"), "\(wrong.errors)")
        #expect(try await Command.run("trace", table).status == 65)
        #expect(try await Command.run("trace", trace, "--scale", "0").status == 64)
    }
}
