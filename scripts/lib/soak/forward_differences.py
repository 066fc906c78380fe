"""The classes of differences of scripts/soak forward. What no rule names is wrong."""
import re

# verdict, side, difference (regular expression), feature or None for all, reason. The first rule that matches counts.
RULES = [
    ("allowed", "client|origin", "field via added", None, "RFC 9110, 7.6.3 demands it; Slowlane does not add it, documented"),
    ("allowed", "client|origin", r"field x-.* added", None, "a field of the proxy's own"),
    ("allowed", "origin", "field cache-control added", None, "RFC 9111, 5.2"),
    ("allowed", "client", "reason", None, "RFC 9112, 4: clients should ignore the reason"),
    ("allowed", "client|origin", "version", None, "RFC 9112, 2.3: a proxy sends its own version"),
    ("allowed", "client|origin", "trailers", None, "RFC 9110, 6.5.1: trailers may be discarded"),
    ("allowed", "client|origin", "framing", None, "RFC 9112, 6: the framing is of one connection"),
    ("allowed", "client", "end without a response|end of a partial body", "origin closes early", "RFC 9112, 8: incomplete either way"),
    ("allowed", "client", "response of the proxy", "origin closes early", "RFC 9110, 15.6.3: 502"),
    ("allowed", "client", "response of the proxy", "client closes early", "RFC 9112, 8: an error response"),
    ("allowed", "origin", "end of an (incomplete|aborted) request", "client closes early", "RFC 9112, 8: FIN and RST both end it early"),
    ("allowed", "client", "(field|body|status).*", "max forwards", "RFC 9110, 7.6.2: the proxy responds as the final recipient"),
    ("allowed", "origin", "repeated request", "origin closes early", "RFC 9110, 9.2.2: idempotent requests may be sent again"),
    ("allowed", "origin|client", "field upgrade missing", "upgrade", "RFC 9110, 7.8: the proxy does not support the upgrade"),
    ("allowed", "client", "status", "upgrade", "RFC 9110, 7.8: the proxy does not support the upgrade"),
    ("wrong", "client|origin", "no response|no request|body|bytes of the tunnel", "half close",
     "RFC 9112, 9.6; RFC 9110, 9.3.6: a client that has closed its sending side still gets its response"),
    ("wrong", "origin", "target", "urls", "RFC 9112, 3.2.1 and 3.2.4; RFC 9110, 4.2.5: origin form, '*', no fragment"),
    ("wrong", "origin", "target", None, "a later request of the connection reaches the first origin in absolute form"),
    ("wrong", "origin", "no request", "several origins", "RFC 9112, 3.2.2: the request went to the origin of the first one"),
    ("wrong", "origin", "field host changed", "urls", "RFC 9112, 3.2.2: Host must be that of the URL"),
    ("wrong", "origin", "field max-forwards changed|request with Max-Forwards: 0", None, "RFC 9110, 7.6.2"),
    ("wrong", "client|origin", "field x-same changed", None, "RFC 9110, 5.3: fields with one name are a list"),
    ("wrong", "origin", "method", None, "RFC 9110, 9.1: methods are case-sensitive"),
    ("wrong", "client", "no response", "expect refused", "RFC 9110, 10.1.1: the final response must pass before the body"),
    ("wrong", "client|origin", "no response|body", "chunked both ways", "RFC 9112, 7.1: recipients must decode chunks"),
]

LOST_RST = "a RST that the full queue of a link drops is not repeated, as in TCP (docs/reference/terms.md: orphan)"


def classify(route, conversation, exchange, side, what, expected, got):
    """Returns the class of a difference and the reason: `allowed`, `documented` or `wrong`."""
    if route.kind == "direct":
        return "wrong", "an error of this script"
    if route.has_link and expected == "rst" and got in ("open", "timeout"):
        return "documented", LOST_RST
    for verdict, sides, pattern, feature, reason in RULES:
        if re.fullmatch(sides, side) and re.fullmatch(pattern, what) and feature in (None, conversation.feature):
            # A tunnel carries bytes, and the proxy that simulates a network also passes FIN and RST as they are.
            if verdict == "allowed" and route.is_ours and (route.kind == "tunnel" or "end" in what.split()):
                continue
            return verdict, reason
    return "wrong", ""
