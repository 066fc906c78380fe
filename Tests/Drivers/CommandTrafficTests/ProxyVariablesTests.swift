import TestSupport
import Testing

@testable import CommandTraffic

/// The variables, flags and notes of env mode.
@Suite struct ProxyVariablesTests {
    private let plain = ProxyVariables(port: 9000)

    @Test(arguments: [
        ("http_proxy", "http://127.0.0.1:9000"), ("HTTP_PROXY", "http://127.0.0.1:9000"),
        ("https_proxy", "http://127.0.0.1:9000"), ("HTTPS_PROXY", "http://127.0.0.1:9000"),
        ("all_proxy", "http://127.0.0.1:9000"), ("ALL_PROXY", "http://127.0.0.1:9000"),
        ("no_proxy", ""), ("NO_PROXY", ""), ("NODE_USE_ENV_PROXY", "1"),
        ("SOCKS_SERVER", "127.0.0.1:9000"), ("SOCKS_VERSION", "5"),
        ("npm_config_proxy", "http://127.0.0.1:9000"), ("npm_config_https_proxy", "http://127.0.0.1:9000"),
        ("GLOBAL_AGENT_HTTP_PROXY", "http://127.0.0.1:9000"), ("CGI_HTTP_PROXY", "http://127.0.0.1:9000"),
        (
            "JAVA_TOOL_OPTIONS",
            "-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=9000 -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=9000 "
                + "-Dhttp.nonProxyHosts="
        ),
    ]) func eachVariableNamesTheProxy(_ name: String, value: String) {
        let variables = plain.variables()
        #expect(variables.filter { $0.name == name }.map(\.value) == [value])
    }

    @Test func noVariableIsSetTwice() {
        let names = plain.variables().map(\.name)
        #expect(Set(names).count == names.count)
    }

    @Test func bypassedHostsHaveTheSyntaxOfEachVariable() {
        let variables = ProxyVariables(port: 1, bypass: ["localhost", "a.test"])
        let values = Dictionary(uniqueKeysWithValues: variables.variables().map { ($0.name, $0.value) })
        #expect(values["no_proxy"] == "localhost,a.test" && values["NO_PROXY"] == "localhost,a.test")
        #expect(values["JAVA_TOOL_OPTIONS"]?.hasSuffix("-Dhttp.nonProxyHosts=localhost|a.test") == true)
        #expect(variables.command(["chromium"]).last == "--proxy-bypass-list=<-loopback>;localhost;a.test")
    }

    @Test func presentOptionsOfJavaAreKept() {
        let value = plain.variables(javaOptions: "-Xmx1g").first { $0.name == "JAVA_TOOL_OPTIONS" }?.value
        #expect(value?.hasPrefix("-Xmx1g -Dhttp.proxyHost=") == true)
    }

    @Test(arguments: [
        (["chromium", "http://a/"], ["--proxy-server=http://127.0.0.1:9000", "--proxy-bypass-list=<-loopback>"]),
        (["/opt/google-chrome"], ["--proxy-server=http://127.0.0.1:9000", "--proxy-bypass-list=<-loopback>"]),
        (["chromium", "--proxy-server=x"], []), (["chromium", "--no-proxy-server"], []), (["curl", "http://a/"], []),
        ([], []),
    ]) func onlyChromiumGetsFlags(_ command: [String], added: [String]) {
        #expect(plain.command(command) == command.prefix(1) + added + command.dropFirst())
    }

    @Test(arguments: [
        ("node", "22.21"), ("/usr/bin/node", "22.21"), ("go", "localhost"), ("python3.11", "trust_env"),
        ("psql", "does not use proxies"),
    ]) func programsWithLimitationsAreKnown(_ program: String, part: String) {
        #expect(ProxyVariables.limitation(of: [program, "x"])?.contains(part) == true)
    }

    @Test(arguments: [["curl"], ["java"], [], ["nodemon"]]) func otherProgramsHaveNoNote(_ command: [String]) {
        #expect(ProxyVariables.limitation(of: command) == nil)
    }
}
