internal import ConfigFiles
internal import HTTPTypes
internal import Proxy
internal import Wire

/// Warnings about parts of a request that have no effect. Toxiproxy ignores such parts, so the requests succeed.
enum RequestWarnings {
    /// The maximum number of warnings about one request.
    static let countMax = 8

    /// Toxiproxy's responses contain `logger`; clients that send them back include it.
    private static let proxyFields =
        [
            "name", "listen", "upstream", "enabled", "toxics", "faults", "link", "seed", "logger", "forward",
            "upstream_tls", "protocol",
        ] + ForwardRequest.fieldNames + InterceptionRequest.fieldNames
    private static let toxicFields = ["name", "type", "stream", "toxicity", "attributes"]

    /// The warnings about a definition of a proxy.
    ///
    /// - Parameter isForward: Whether the proxy is known to be a forward proxy, whose upstream is not used.
    static func ofProxy(_ fields: JSONFields, isForward: Bool = false) -> [String] {
        var warnings = unknownFields(of: fields, proxyFields, "the proxy")
        let isForward = isForward || (try? fields.bool("forward")) == true
        if !isForward, let upstream = try? fields.text("upstream") {
            warnings += [UpstreamText.warning(upstream)].compactMap(\.self)
        }
        if let tls = try? fields.object("upstream_tls") {
            warnings += unknownFields(of: tls, UpstreamText.tlsFieldNames, "upstream_tls")
        }
        if let link = try? fields.object("link") { warnings += ofLink(link) }
        if (try? ProxyRequest.protocols(fields)) == .udp {
            warnings += ["toxics", "faults"].filter { ((try? fields.array($0)) ?? [])?.isEmpty == false }
                .map { "\($0) have no effect on UDP" }
        }
        warnings += ofEntries(fields)
        if case .array(let faults)? = fields["faults"] {
            for value in faults where warnings.count <= countMax {
                if let fault = try? JSONFields(value, "a fault") { warnings += ofFault(fault) }
            }
        }
        guard case .array(let toxics)? = fields["toxics"] else { return limited(warnings) }
        for value in toxics where warnings.count <= countMax {
            guard let toxic = try? JSONFields(value, "a toxic") else { continue }
            warnings += ofToxic(toxic)
        }
        return limited(warnings)
    }

    /// The warnings about the definition of a toxic, or about an update of a toxic of the given type.
    static func ofToxic(_ fields: JSONFields, _ type: ToxicType? = nil) -> [String] {
        var warnings = unknownFields(of: fields, toxicFields, "the toxic")
        // `text` bounds the length: a comparison of long texts may take minutes.
        let type = type ?? (try? fields.text("type")).flatMap(ToxicType.init(rawValue:))
        if let type, let attributes = try? fields.object("attributes") {
            warnings += unknown("attribute", of: attributes, type.attributes, "toxic '\(type.rawValue)'")
        }
        return limited(warnings)
    }

    /// The warnings about a link. Unknown fields of `conditions` are errors.
    static func ofLink(_ fields: JSONFields) -> [String] {
        var warnings = unknownFields(of: fields, LinkSetting.fields.names, "the link")
        if let netem = try? fields.object("netem") {
            warnings += unknownFields(of: netem, LinkSetting.netemFields.names, "netem")
        }
        return limited(warnings)
    }

    /// The warnings about the body of `PUT .../rules`.
    static func ofRules(_ fields: JSONFields) -> [String] {
        limited(unknownFields(of: fields, ForwardRequest.ruleFields.names, "the rules") + ofEntries(fields))
    }

    /// The warnings about the rules of a forward proxy that are objects.
    private static func ofEntries(_ fields: JSONFields) -> [String] {
        var warnings: [String] = []
        guard case .array(let rules)? = fields["to"] else { return [] }
        for value in rules where warnings.count <= countMax {
            guard let rule = try? JSONFields(value, "a rule") else { continue }
            warnings += unknownFields(of: rule, ForwardRequest.entryFields.names, "the rule")
            if let link = try? rule.object("link") { warnings += ofLink(link) }
        }
        return warnings
    }

    /// The warnings about the body of `PUT .../seed`.
    static func ofSeed(_ fields: JSONFields) -> [String] {
        unknownFields(of: fields, API.seed.fields.names, "the seed")
    }

    /// The warnings about a fault.
    static func ofFault(_ fields: JSONFields) -> [String] {
        limited(unknownFields(of: fields, StoredFault.fieldNames, "the fault"))
    }

    /// The warnings about the body of `PUT .../outage`.
    static func ofOutage(_ fields: JSONFields) -> [String] {
        limited(unknownFields(of: fields, API.outageFields.names, "the outage"))
    }

    /// The warnings about the body of `PATCH .../timeline`.
    static func ofTimeline(_ fields: JSONFields) -> [String] {
        limited(unknownFields(of: fields, TimelineView.changes.names, "the timeline"))
    }

    /// The warnings about the entries of the body of `POST /populate` or of a configuration.
    static func ofProxies(_ entries: [JSONValue]) -> [String] {
        var warnings: [String] = []
        for entry in entries where warnings.count <= countMax {
            guard let fields = try? JSONFields(entry, "a proxy") else { continue }
            let name = printable((try? fields.text("name")) ?? "")
            warnings += ofProxy(fields).map { "proxy '\(name)': \($0)" }
        }
        return limited(warnings)
    }

    private static func unknownFields(of fields: JSONFields, _ known: [String], _ owner: String) -> [String] {
        unknown("field", of: fields, known, owner)
    }

    private static func unknown(
        _ kind: String, of fields: JSONFields, _ known: [String], _ owner: String
    ) -> [String] {
        fields.names(except: known, limit: countMax + 1).map { name in
            // A short name such as 'to' is near to many others.
            let near = known.filter { 2 * $0.utf8.count > name.utf8.count }
            return "unknown \(kind) '\(printable(name))' of \(owner)\(NearestName.hint(name, in: near))"
        }
    }

    private static func limited(_ warnings: [String]) -> [String] {
        warnings.count <= countMax ? warnings : warnings.prefix(countMax - 1) + ["further warnings are left out"]
    }

    /// Returns the beginning of a text with control characters replaced, for logs and headers.
    static func printable(_ text: String, bytesMax: Int = 60) -> String {
        let isLong = text.utf8.count > bytesMax
        var printable = ""
        for scalar in String(decoding: text.utf8.prefix(bytesMax), as: UTF8.self).unicodeScalars {
            let isControl = scalar.value < 0x20 || (0x7F..<0xA0).contains(scalar.value)
            printable.unicodeScalars.append(isControl ? "?" : scalar)
        }
        return printable + (isLong ? "..." : "")
    }

    /// The name of the header for warnings.
    static let headerName = HTTPField.Name("Warning")!

    /// Returns the texts in the value of a `Warning` header: `299 - "TEXT", 299 - "TEXT"`.
    static func texts(ofHeader value: String) -> [String] {
        var texts: [String] = []
        var rest = value.unicodeScalars[...]
        while let open = rest.firstIndex(of: "\"") {
            rest = rest[rest.index(after: open)...]
            var text = ""
            while let scalar = rest.popFirst(), scalar != "\"" {
                text.unicodeScalars.append(scalar == "\\" ? rest.popFirst() ?? scalar : scalar)
            }
            texts.append(text)
        }
        return texts
    }

    /// Returns the value of the `Warning` header (RFC 7234, section 5.5), in ASCII.
    static func header(_ warnings: [String]) -> String {
        warnings.map { warning in
            var quoted = ""
            for scalar in warning.unicodeScalars {
                if scalar == "\"" || scalar == "\\" { quoted += "\\" }
                quoted.unicodeScalars.append((0x20..<0x7F).contains(scalar.value) ? scalar : "?")
            }
            return "299 - \"\(quoted)\""
        }.joined(separator: ", ")
    }
}
