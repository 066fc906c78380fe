extension ScenarioFormat {
    /// Words that are often used for keys and values of the format, where the edit distance does not lead to them.
    static let synonyms: [String: String] = [
        "remove": "delete", "destroy": "delete", "add": "create", "new": "create", "insert": "create", "post": "create",
        "update": "edit", "change": "edit", "modify": "edit", "put": "edit", "merge": "resolve", "fix": "resolve",
        "restart": "start", "launch": "start", "stop": "kill", "crash": "kill", "terminate": "kill", "quit": "kill",
        "refresh": "sync", "pull": "sync", "fetch": "sync",
        "clients": "devices", "phones": "devices", "users": "devices", "apps": "devices", "client": "devices",
        "links": "network", "networks": "network", "connection": "network", "timeline": "network",
        "assert": "expect", "asserts": "expect", "expectations": "expect", "assertions": "expect", "checks": "expect",
        "actions": "steps", "script": "steps", "plan": "steps", "injections": "faults", "chaos": "faults",
        "timeout": "limit", "duration": "limit", "title": "name", "description": "about", "summary": "about",
        "labels": "tags", "base": "extends", "include": "extends", "parameters": "matrix",
        "rst": "reset", "abort": "reset", "fin": "close", "hang": "stall", "drop": "stall",
        "wait": "delay", "response": "respond", "slow": "throttle", "limit-rate": "throttle",
        "device": "to", "on": "to", "action": "then", "do": "then", "rate": "probability", "number": "nth",
        "requests": "request", "method": "request", "statuses": "responses", "status": "responses",
        "note": "row", "id": "row", "visible": "present", "exists": "present", "queue": "outbox", "body": "text",
        "content": "text", "label": "mark", "time": "at", "until": "within", "before": "by", "if": "when",
        "signaled": "signalled", "profile": "link", "notify": "signalled", "waiting": "pending",
    ]
}
