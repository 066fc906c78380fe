internal import CommandSupport
internal import Foundation
internal import Wire

/// The text of proxies, toxics and links, from responses of the control API.
enum ProxyText {
    /// Returns a line per proxy of `GET /proxies`: a table with a header for a terminal of the given width, else
    /// tab-separated fields.
    static func list(_ proxies: JSONValue, terminalWidth: Int?) -> [String] {
        let rows = (proxies.object ?? [:]).map { name, proxy in
            [
                name, proxy["listen"].displayText, proxy["upstream"].displayText, state(proxy),
                "\(proxy["toxics"].array.count)",
            ]
        }
        guard let terminalWidth else { return rows.map { $0.joined(separator: "\t") } }
        return TextTable.lines([["NAME", "LISTEN", "UPSTREAM", "STATE", "TOXICS"]] + rows, width: terminalWidth)
    }

    /// Returns the lines of a proxy and its link.
    ///
    /// - Parameter details: Slowlane's fields of the proxy; `nil` if the server has none.
    static func heading(_ name: String, _ proxy: JSONValue, details: JSONValue?) -> [String] {
        let heading = "\(name): \(proxy["listen"].displayText) -> \(proxy["upstream"].displayText), \(state(proxy))"
        guard let details else { return [heading] }
        let connections = Int(exactly: details["connections_open"].number ?? 0) ?? 0
        return [
            heading,
            "link: \(link(details["link"])); seed \(details["seed"].displayText); "
                + TextTable.count(connections, "open connection"),
        ]
    }

    /// Returns the line of a toxic, with tab-separated fields.
    static func toxic(_ toxic: JSONValue) -> String {
        let toxicity = String(format: "%.2f", toxic["toxicity"].number ?? 1)
        let attributes = (toxic["attributes"].object ?? [:]).map { "\($0.key)=\($0.value.displayText)" }
        return
            ([
                toxic["name"].displayText, "type=\(toxic["type"].displayText)", "stream=\(toxic["stream"].displayText)",
                "toxicity=\(toxicity)", "attributes=[",
            ] + attributes + ["]"]).joined(separator: "\t")
    }

    /// Returns a link as `edge, down 240 kbit/s 400 ms, up 200 kbit/s 440 ms`.
    static func link(_ link: JSONValue) -> String {
        // Conditions without a name may have a policy other than that of all others.
        let policy = link["connection_policy"].text.flatMap { $0 == "open" ? nil : $0 }
        let source = [link["profile"].text, link["timeline"].text, policy].compactMap(\.self).first
        return "\(source.map { "\($0), " } ?? "")down \(direction(link["down"])), up \(direction(link["up"]))"
    }

    /// Returns Toxiproxy's fields of a proxy with Slowlane's fields `link`, `seed` and `connections_open`, as JSON.
    static func json(_ proxy: JSONValue, details: JSONValue?) -> String {
        guard case .object(var members) = proxy, let details else { return proxy.json }
        for key in ["link", "seed", "connections_open"] { members[key] = details[key] }
        return JSONValue.object(members).json
    }

    private static func state(_ proxy: JSONValue) -> String {
        proxy["enabled"] == .bool(true) ? "enabled" : "disabled"
    }

    private static func direction(_ conditions: JSONValue) -> String {
        let rate = conditions["rate_bps"].number.map { JSONText.number($0 / 1000) + " kbit/s" }
        let loss = conditions["loss_percent"].number ?? 0
        let jitter = conditions["jitter"]["span_ms"].number.map {
            " ±\(JSONText.number($0)) ms \(conditions["jitter"]["distribution"].displayText)"
        }
        return "\(rate ?? "no rate limit") \(conditions["delay_ms"].displayText) ms" + (jitter ?? "")
            + (loss == 0 ? "" : " \(JSONText.number(loss)) % loss")
    }
}
