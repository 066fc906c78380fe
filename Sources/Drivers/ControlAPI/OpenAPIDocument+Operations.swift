internal import HTTPTypes
internal import Proxy
internal import Wire

extension SlowlaneRoute {
    /// The operations of the route by their methods, which are those of ``methods``.
    var operations: [HTTPRequest.Method: OpenAPIDocument.Operation] {
        typealias Operation = OpenAPIDocument.Operation
        switch self {
        case .version: return [.get: Operation("getVersion", "Versions", .json(API.version.schema, "The versions."))]
        case .openAPI:
            let schema = JSONSchema(["type": "object", "required": ["openapi", "paths"]])
            return [.get: Operation("getOpenAPI", "This document", .json(schema, "The document."))]
        case .metrics:
            let text: JSONValue = ["schema": JSONSchema.text.value]
            return [
                .get: Operation(
                    "getMetrics", "Metrics of the proxies and of the process",
                    .other(
                        ["text/plain": text, "application/openmetrics-text": text],
                        "Prometheus text, or OpenMetrics if the request accepts it."))
            ]
        case .profiles:
            return [
                .get: Operation(
                    "listProfiles", "Built-in profiles and timelines",
                    .json(API.profiles.schema, "The profiles and timelines."))
            ]
        case .proxy:
            return [
                .get: Operation("getProxy", "Status of a proxy", .json(ProxyView.shape.schema, "The status."))
            ]
        case .link:
            let link = LinkView.shape.schema
            return [
                .get: Operation(
                    "getLink", "Link of a proxy", .json(link, "The link with the conditions that apply now.")),
                .put: Operation(
                    "setLink", "Change the link",
                    about: "The conditions apply to open connections when the response is sent.",
                    body: LinkSetting.schema, .json(link, "The link."), errors: [500]),
                .delete: Operation("clearLink", "Remove all conditions", .json(link, "The link."), errors: [500]),
            ]
        case .timeline:
            let position = OpenAPIDocument.Success.json(TimelineView.shape.schema, "The position.")
            return [
                .get: Operation(
                    "getTimeline", "Position of the timeline",
                    about: "Responds with 404 if the link of the proxy is not a timeline.", position),
                .patch: Operation(
                    "changeTimeline", "Pause or continue the timeline, or jump to a position",
                    about: "Responds with 409 if the link of the proxy is not a timeline, or if the proxy is disabled.",
                    body: TimelineView.change, position, errors: [409]),
            ]
        case .outage:
            let outage = API.outage.schema
            return [
                .get: Operation(
                    "getOutage", "Outage of a proxy", .json(outage, "The directions that have an outage.")),
                .put: Operation(
                    "startOutage", "Lose all packets",
                    about:
                        "Starts an outage that lasts until it is deleted, even if the link changes. Without a body, or "
                        + "without a direction, it has both directions.",
                    body: API.newOutage, isBodyRequired: false, .json(outage, "The outage.")),
                .delete: Operation("endOutage", "End the outage", .json(outage, "The outage.")),
            ]
        case .seed:
            let seed = API.seed.schema
            return [
                .get: Operation("getSeed", "Random seed of a proxy", .json(seed, "The seed.")),
                .put: Operation(
                    "setSeed", "Set the seed and restart the numbers of connections at 0", body: seed,
                    .json(seed, "The seed.")),
            ]
        case .faults:
            return [
                .get: Operation(
                    "listFaults", "Faults with their counts",
                    .json(ProxyView.faults.schema, "The faults, in the order in which they were added.")),
                .post: Operation(
                    "addFault", "Add a fault",
                    about: "No connection is closed. The fault applies to requests on new connections, and to the next "
                        + "request of open ones, except those of which the fast path has forwarded bytes and those "
                        + "that are not HTTP.",
                    body: StoredFault.schema,
                    .json(
                        StoredFault.shape.schema,
                        "The fault. A `Warning` header tells if the fault does not apply to open connections.", .created
                    ),
                    errors: [409]),
                .delete: Operation("removeFaults", "Remove all faults", .done),
            ]
        case .fault:
            return [
                .get: Operation(
                    "getFault", "Fault with its counts", .json(StoredFault.shape.schema, "The fault.")),
                .delete: Operation(
                    "removeFault", "Remove a fault",
                    about: "Ends the delays and throttles of the fault. Bytes that it has discarded stay discarded.",
                    .done),
            ]
        case .rules:
            let rules = ForwardSettings.shape.schema
            return [
                .get: Operation(
                    "getRules", "Rules and maps of a forward proxy",
                    about: "Responds with 404 if the proxy has an upstream.", .json(rules, "The rules and maps.")),
                .put: Operation(
                    "setRules", "Replace the rules, the maps or both",
                    about:
                        "A list that is not given remains. The change applies to connections that are opened from now "
                        + "on.",
                    body: ForwardRequest.schema, .json(rules, "The rules and maps.")),
                .delete: Operation("removeRules", "Remove all rules and maps", .json(rules, "The empty lists.")),
            ]
        case .hosts:
            return [
                .get: Operation(
                    "getHosts", "Destinations that the clients of a forward proxy have named",
                    about: "Responds with 404 if the proxy has an upstream. The counters restart when the proxy is "
                        + "enabled.",
                    .json(API.hosts.schema, "The destinations, in the order in which clients first named them."))
            ]
        case .connections:
            return [
                .get: Operation(
                    "listConnections", "Open connections", .json(API.connections.schema, "The connections.")),
                .delete: Operation(
                    "closeConnections", "Close all connections", about: "New connections are accepted as before.",
                    parameters: [OpenAPIDocument.how], .done),
            ]
        case .connection:
            return [
                .delete: Operation(
                    "closeConnection", "Close a connection", parameters: [OpenAPIDocument.how], .done)
            ]
        case .events: return [.get: Self.readEvents]
        case .reset:
            return [
                .post: Operation(
                    "reset", "Reset all proxies",
                    about:
                        "Enables every proxy, removes every toxic and fault, ends every outage, and restores the link "
                        + "that each proxy was created with.",
                    .done, errors: [301, 500])
            ]
        case .recording:
            let recording = OpenAPIDocument.Success.json(LinkRecording.shape.schema, "The recording.")
            return [
                .get: Operation(
                    "getRecording", "Last recording",
                    about: "The links and faults of all proxies since the start of the recording, as a scenario.",
                    recording, errors: [301, 404]),
                .post: Operation(
                    "setRecording", "Start or end a recording", body: .object(LinkRecording.request),
                    recording, errors: [301, 400, 404, 409]),
            ]
        }
    }

    private static var readEvents: OpenAPIDocument.Operation {
        OpenAPIDocument.Operation(
            "readEvents", "Stream of events",
            about:
                "Server-sent events about all proxies: first a snapshot (`hello`), or the events after "
                + "`Last-Event-ID`, then all changes. docs/reference/events.md describes the types. The stream ends "
                + "when the server stops.",
            parameters: [
                OpenAPIDocument.parameter("proxy", in: "query", .text, "The proxy whose events are wanted."),
                OpenAPIDocument.parameter(
                    "last_event_id", in: "query", .count, "Replaces the header Last-Event-ID."),
                OpenAPIDocument.parameter(
                    "Last-Event-ID", in: "header", .count, "The last event that the reader has got."),
            ], .other(["text/event-stream": [:]], "The stream."), errors: [301, 400, 403, 503])
    }
}
