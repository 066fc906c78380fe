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
        "reset": "cut", "rst": "cut", "abort": "cut", "fin": "close", "stall": "mute", "hang": "mute", "drop": "mute",
        "delay": "hold", "wait": "delay", "respond": "reply", "response": "reply", "slow": "trickle",
        "device": "to", "on": "to", "action": "then", "do": "then", "probability": "chance", "number": "nth",
        "requests": "request", "method": "request", "responses": "answers", "statuses": "answers", "status": "answers",
        "note": "row", "id": "row", "visible": "present", "exists": "present", "queue": "outbox", "body": "text",
        "content": "text", "label": "mark", "time": "at", "until": "within", "before": "by", "if": "when",
        "signaled": "signalled", "profile": "link", "notify": "signalled", "queued": "pending",
    ]
}
