#if os(Linux)
import Foundation
import TestSupport
import Testing

/// `scripts/setup` on a system that names packages differently.
@Suite(.tags(.commands)) struct SetupScriptTests {
    @Test func onMacOSTheScriptNamesFormulasOfHomebrew() throws {
        let folder = try TemporaryFolder()
        for (name, text) in [("uname", "echo Darwin"), ("python3", "exit 1")] {
            let path = folder.path(name)
            try Data("#!/bin/sh\n\(text)\n".utf8).write(to: URL(filePath: path))
            try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path)
        }
        for tool in ["dirname", "sort", "paste", "sed", "head"] {
            try FileManager.default.createSymbolicLink(
                atPath: folder.path(tool), withDestinationPath: "/usr/bin/\(tool)")
        }
        let script = Repository.root.appending(path: "scripts/setup").path
        let result = try runProgram(
            "/usr/bin/env", ["PATH=\(folder.path("."))", "/bin/bash", script, "--tests"])
        #expect(
            result.output
                == "setup: missing; try: brew install curl git httpd node openssl parallel pkgconf python sqlite wireshark wrk\n"
        )
        #expect(result.status == 69)
        #expect(result.errors.hasPrefix("setup: no swift"))
    }
}
#endif
