import Foundation
import TestSupport
import Testing

/// `slowlane capture`, and `slowlane proxy --pcapng`, read by tshark.
extension CommandTests {
    /// Returns the lines that tshark prints about a file; its warnings fail the test.
    private func tshark(_ arguments: String...) throws -> [String] {
        let (status, text, warnings) = try runProgram("tshark", arguments)
        #expect(status == 0)
        #expect(warnings.split(separator: "\n").allSatisfy { $0.contains("Running as user") }, "\(warnings)")
        return text.split(separator: "\n").map(String.init)
    }

    @Test func tsharkReadsTheCaptureOfTheModelledLink() async throws {
        let folder = try TemporaryFolder()
        let file = folder.path("link.pcapng")
        let (listener, upstream) = try TestSocket.listen()
        let (command, port) = try await proxy(
            "--netem-down", "delay 5ms rate 20mbit loss 5%", "--netem-up", "delay 5ms", "--seed", "4", "--pcapng", file,
            upstream: upstream)
        let body = [UInt8](repeating: 65, count: 200_000)
        try await blocking {
            let client = try TestSocket.connect(port: port)
            try client.send(Array("GET /big HTTP/1.1\r\nHost: a\r\n\r\n".utf8))
            let server = try listener.accept()
            _ = try server.receive()
            try server.send(Array("HTTP/1.1 200 OK\r\nContent-Length: \(body.count)\r\n\r\n".utf8) + body)
            _ = try client.receive(exactly: body.count)
        }
        command.type("status\nquit\n")
        let status = try await command.output.line(with: " lost, ")
        #expect(await command.end() == 0)
        let lost = Int(try #require(status.firstMatch(of: /(\d+) packets? lost/)).output.1)

        #expect(try tshark("-r", file, "-Y", "_ws.malformed or _ws.expert.severity == error").isEmpty)
        let losses = try tshark("-r", file, "-Y", "frame.comment contains \"lost on the link\"")
        #expect(losses.count == lost && losses.count > 0)
        let retransmissions = try tshark("-r", file, "-Y", "frame.comment contains \"retransmission\"")
        #expect(retransmissions.count >= losses.count)
        // tshark finds the same retransmissions; near the first round trip it reports one as out of order.
        let found = try tshark("-r", file, "-Y", "tcp.analysis.retransmission or tcp.analysis.out_of_order")
        #expect(found.count == retransmissions.count)
        #expect(
            try tshark(
                "-r", file, "-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE", "-Y",
                "ip.checksum.status == 0 or tcp.checksum.status == 0"
            ).isEmpty)
        #expect(try tshark("-r", file, "-Y", "http.request.uri == \"/big\"").count == 1)
    }

    /// The capture of a run in virtual time: the lost response of a commit is at the server and not at the device.
    @Test func tsharkReadsTheCaptureOfARun() async throws {
        let folder = try TemporaryFolder()
        let run = try await Command.run(
            "run", "post-answer-lost", "--variant", "none", "--report", folder.path("r"), "--quiet")
        #expect(run.status == 0)
        let lines = try tshark(
            "-r", folder.path("r/wire.pcapng"), "-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE", "-Y",
            "http or _ws.malformed or tcp.analysis.flags or ip.checksum.status == 0 or tcp.checksum.status == 0", "-T",
            "fields", "-e", "ip.dst", "-e", "http.request.method", "-e", "http.response.code", "-e", "frame.comment")
        let posts = lines.filter { $0.contains("\tPOST\t") && $0.contains(": POST n1") }
        // Two attempts, each at the device's proxy and at the server.
        #expect(posts.map { $0.prefix { $0 != "\t" } } == ["10.0.1.2", "10.0.1.1", "10.0.1.2", "10.0.1.1"], "\(lines)")
        let responses = lines.filter { $0.contains("\t20") && $0.contains(": POST n1") }
        #expect(responses.count == 3 && responses.allSatisfy { !$0.contains("\tPOST\t") }, "\(lines)")
        #expect(lines.allSatisfy { $0.contains("exchange ") }, "\(lines)")
    }

    /// The archive of a run: each entry has its page, the phases of an exchange add up to its time, and a lost response
    /// has no status.
    @Test func haralyzerReadsTheArchiveOfARun() async throws {
        let folder = try TemporaryFolder()
        let run = try await Command.run(
            "run", "post-answer-lost", "--variant", "none", "--report", folder.path("r"), "--quiet")
        #expect(run.status == 0)
        let script = """
            import json, sys
            from haralyzer import HarParser
            pages = HarParser(json.load(open(sys.argv[1]))).pages
            for page in pages:
                for entry in page.entries:
                    phases = sum(time for time in entry.timings.values() if time >= 0)
                    assert abs(phases - entry.time) < 0.001, (entry.timings, entry.time)
            posts = [(page.page_id, entry.response.status) for page in pages for entry in page.entries
                     if entry.request.method == 'POST']
            print(len(pages), posts, sum(len(page.entries) for page in pages))
            """
        let (status, output) = try await runPython("python", ["-c", script, folder.path("r/run.har")])
        #expect(status == 0, "\(output)")
        #expect(output.hasPrefix("1 [('A', 0), ('A', 20"), "\(output)")
    }

    @Test func captureShowsExchangesOrPrintsTheMissingPermission() async throws {
        let folder = try TemporaryFolder()
        let (listener, port) = try TestSocket.listen()
        let file = folder.path("lo.pcap")
        let command = try Command(["capture", "--port", "\(port)", "--http", "-w", file])
        guard geteuid() == 0 else {
            #expect(await command.end() == 77)
            #expect(command.errors.text.contains("sudo setcap cap_net_raw"))
            return
        }
        _ = try await command.output.line(with: "capturing TCP port \(port)")
        try await blocking {
            let client = try TestSocket.connect(port: port)
            try client.send(Array("PUT /notes/1?token=x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc".utf8))
            let server = try listener.accept()
            _ = try server.receive()
            try server.send(Array("HTTP/1.1 409 Conflict\r\nContent-Length: 2\r\n\r\nno".utf8))
            _ = try client.receive()
        }
        let line = try await command.output.line(with: "PUT")
        #expect(line.contains("PUT /notes/1?... -> 409, 64 B up, 46 B down, first byte "))
        command.signal(SIGINT)
        #expect(await command.end() == 0)
        #expect(command.errors.text.contains("0 dropped by the kernel"))
        #expect(try tshark("-r", file, "-Y", "http.response.code == 409").count == 1)
    }

    @Test func captureOfAnUnknownInterfaceIsRefused() async throws {
        let result = try await Command.run("capture", "-i", "nothing0", "--port", "80")
        #expect(result.status == (geteuid() == 0 ? 69 : 77) || result.status == 69)
        #expect(result.errors.contains("nothing0"))
        #expect(try await Command.run("capture", "--port", "0").status == 64)
    }

    #if os(Linux)
    /// Files that are no libraries hide the installed libpcap. All other commands work without it.
    @Test func withoutLibpcapCaptureNamesThePackageAndDoctorReportsIt() throws {
        let folder = try TemporaryFolder()
        for name in ["libpcap.so.0.8", "libpcap.so.1", "libpcap.so"] {
            try Data("not a library, but longer than the header of one".utf8)
                .write(to: URL(filePath: folder.path(name)))
        }
        let environment = ["LD_LIBRARY_PATH=\(folder.path("."))", Command.binary.path()]
        let capture = try runProgram("/usr/bin/env", environment + ["capture", "--port", "80"])
        #expect(capture.status == 69)
        #expect(capture.errors.contains("cannot load libpcap: ") && capture.errors.contains("libpcap.so.0.8"))
        #expect(capture.errors.contains("apt-get install libpcap0.8"))
        let doctor = try runProgram("/usr/bin/env", environment + ["doctor"])
        #expect(doctor.status == 0)
        #expect(doctor.output.contains("note  'slowlane capture' cannot load libpcap: "))
        #expect(try runProgram(Command.binary.path(), ["doctor"]).output.contains("uses libpcap version "))
    }

    /// A machine without libpcap can start the program: it is loaded, not linked.
    @Test func theProgramIsNotLinkedWithLibpcap() throws {
        let libraries = try runProgram("ldd", [Command.binary.path()])
        #expect(libraries.status == 0 && libraries.output.contains("libc.so"))
        #expect(!libraries.output.contains("libpcap"))
    }
    #endif
}
