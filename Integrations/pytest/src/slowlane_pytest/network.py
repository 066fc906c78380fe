"""The network of a test: one proxy of the server."""
import os
import time

from .server import NetworkError
from .trust import Trust

_PASS_THROUGH = {"conditions": {"down": {}, "up": {}}}


def link_setting(profile=None, timeline=None, netem=None, conditions=None):
    """Returns the API's form of a link of which one argument is given; without arguments, one without conditions."""
    given = {"profile": profile, "timeline": timeline, "netem": netem, "conditions": conditions}
    given = {key: value for key, value in given.items() if value is not None}
    if len(given) > 1:
        raise NetworkError("give one of profile, timeline, netem and conditions, not %s" % " and ".join(given))
    return given or _PASS_THROUGH


def link_text(setting):
    """Returns a short text for a link."""
    key, value = next(iter(setting.items()))
    if setting == _PASS_THROUGH:
        return "no conditions"
    return str(value) if key in ("profile", "timeline") else "%s %s" % (key, value)


def forward_setting(to=None, map=None):
    """Returns the API's form of a forward proxy with rules and maps by host."""
    rules = [
        {"pattern": pattern, "link": value} if isinstance(value, dict) else "%s=%s" % (pattern, value)
        for pattern, value in (to or {}).items()]
    return {"forward": True, "to": rules, "map": ["%s=%s" % entry for entry in (map or {}).items()]}


def tls_setting(intercept=None, upstream_ca=None):
    """Returns the API's form of the hosts whose TLS is intercepted (`True` for every host), and of the PEM file of the
    authorities of the servers."""
    setting = {}
    if isinstance(intercept, str):
        raise NetworkError("intercept is a list of hosts, such as [\"api.test\"], or True for every host")
    if intercept:
        setting = {"intercept_all": True} if intercept is True else {"intercept": list(intercept)}
    if upstream_ca is not None:
        try:
            with open(upstream_ca, encoding="utf-8") as file:
                setting["upstream_tls"] = {"ca": file.read()}
        except (OSError, UnicodeDecodeError) as error:
            raise NetworkError("upstream_ca '%s' cannot be read: %s" % (upstream_ca, error)) from error
    return setting


#: The new names of renamed methods.
_RENAMED = {"refuse": "offline", "heal": "restore", "cut": "disconnect"}


class Network:
    """A proxy between the code under test and its server."""

    def __getattr__(self, name):
        if name in _RENAMED:
            raise AttributeError("network.%s() is now called network.%s()" % (name, _RENAMED[name]))
        raise AttributeError("'Network' has no attribute '%s'" % name)

    def __init__(self, server, name, servers, setting, seed, session_seed, tls=None):
        """`servers` is the address of an upstream, or the result of `forward_setting`; `tls` is that of `tls_setting`."""
        self._server = server
        self._initial = self._setting = setting
        self._faults = []
        self._start = time.monotonic()
        #: What was done to the network, as pairs of seconds since the start and a text.
        self.log = []
        #: The seed of every random choice of the network: lost packets, jitter, toxicity.
        self.seed = seed
        #: The seed of the pytest run, from which `seed` is derived.
        self.session_seed = session_seed
        #: The rules and maps of a forward proxy at the start; `None` for a proxy with an upstream.
        self._forward = servers if isinstance(servers, dict) else None
        #: The address of the server behind the proxy; `None` for a forward proxy.
        self.upstream = None if self._forward else str(servers)
        definition = dict(
            self._forward or {"upstream": self.upstream}, name=name, listen="127.0.0.1:0", link=setting, seed=seed, **(tls or {}))
        created = server.call("POST", "/proxies", definition)
        self._name = name
        self._trust = None
        self._intercepts = "intercept" in definition or "intercept_all" in definition
        host, _, port = created["listen"].rpartition(":")
        #: The host to connect to.
        self.host = host
        #: The port to connect to.
        self.port = int(port)

    @property
    def address(self):
        """The address to connect to: `127.0.0.1:49321`."""
        return "%s:%d" % (self.host, self.port)

    @property
    def url(self):
        """The base URL for HTTP: `http://127.0.0.1:49321`."""
        return "http://" + self.address

    # A forward proxy

    def _check_forward(self):
        if self._forward is None:
            raise NetworkError("the network has an upstream; @pytest.mark.network(forward=True) gives the test a forward proxy")

    @property
    def proxy_url(self):
        """The URL of the forward proxy: `http://127.0.0.1:49321`. Its port also accepts SOCKS 4, 4a and 5."""
        self._check_forward()
        return self.url

    @property
    def environment(self):
        """The variables of this process, with those by which programs use the forward proxy, and trust the authority of intercepted
        connections: for `subprocess.run(env=...)`."""
        variables = {}
        if self._forward or not self._intercepts:
            http, socks = self.proxy_url, "socks5h://" + self.address
            variables = {"http_proxy": http, "https_proxy": http, "all_proxy": socks, "no_proxy": ""}
            variables.update({name.upper(): value for name, value in variables.items()})
            variables["NODE_USE_ENV_PROXY"] = "1"
        if self._intercepts:
            variables.update(self._trusted().variables)
        return dict(os.environ, **variables)

    # Intercepted connections

    def _trusted(self):
        if not self._intercepts:
            raise NetworkError("no TLS is intercepted; @pytest.mark.network(intercept=[\"api.test\"]) names the hosts")
        if self._trust is None:
            self._trust = Trust(self.status["intercept"]["certificate"])
        return self._trust

    @property
    def ca_certificate(self):
        """The certificate of the authority that clients of intercepted connections must trust, in PEM form."""
        return self._trusted().authority

    @property
    def ca_bundle(self):
        """The path of a file with the certificates of the system and that of the authority: for `requests.get(verify=...)` and
        `ssl.create_default_context(cafile=...)`."""
        return self._trusted().bundle

    def rules(self, to=None, map=None):
        """Replaces the rules, the maps or both: `rules(to={"*.cdn.test": "block"})`. They apply to new connections."""
        self._check_forward()
        setting = forward_setting(to, map)
        body = {key: setting[key] for key, given in (("to", to), ("map", map)) if given is not None}
        self._call("PUT", "/slowlane/v1/proxies/%s/rules", body)
        self._record("rules: %s" % body)

    @property
    def hosts(self):
        """The destinations that clients have named: `host`, `port`, `connections`, `connections_failed` and `bytes`."""
        return self._call("GET", "/slowlane/v1/proxies/%s/hosts")["hosts"]

    # Conditions

    def link(self, profile=None, *, timeline=None, netem=None, conditions=None):
        """Replaces the conditions by a profile ("edge"), a timeline ("0s: 3g, 20s: 100-loss"), netem expressions
        ({"down": "delay 100ms"}) or conditions ({"down": {"rate": "780 kbit/s"}, "up": {}}); without arguments, by none.

        Returns a context manager that restores the earlier conditions; its use is optional.
        """
        return self._change(link_setting(profile, timeline, netem, conditions))

    def outage(self):
        """Loses every packet, as in a tunnel: open connections stall, new ones time out. Returns the context manager of `link`."""
        return self._change({"profile": "100-loss"})

    def offline(self):
        """Aborts open connections, and lets new ones fail at once, as without an interface. Returns the context manager of `link`."""
        return self._change({"profile": "offline"})

    def restore(self):
        """Restores the network that the test began with: its conditions and rules, without toxics and faults."""
        for toxic in self._call("GET", "/proxies/%s/toxics"):
            self._call("DELETE", "/proxies/%s/toxics/" + toxic["name"])
        for fault in list(self._faults):
            fault.remove()
        if self._forward:
            self._call("PUT", "/slowlane/v1/proxies/%s/rules", {key: self._forward[key] for key in ("to", "map")})
        self._apply(self._initial, "restore")

    def _change(self, setting):
        earlier = self._setting
        self._apply(setting, "link")
        return _Change(self, earlier)

    def _apply(self, setting, verb):
        self._call("PUT", "/slowlane/v1/proxies/%s/link", setting)
        self._setting = setting
        self._record("%s: %s" % (verb, link_text(setting)))

    # Connections and toxics

    def disconnect(self, how="reset"):
        """Aborts every open connection (RST), or closes it (FIN) with `how="close"`. Returns the number of connections."""
        count = 0
        for connection in self._call("GET", "/slowlane/v1/proxies/%s/connections"):
            try:
                self._call("DELETE", "/slowlane/v1/proxies/%%s/connections/%d?how=%s" % (connection["number"], how))
                count += 1
            except NetworkError as error:
                # The connection may have ended meanwhile.
                if getattr(error, "status", None) != 404:
                    raise
        self._record("disconnect: %d %s (%s)" % (count, "connection" if count == 1 else "connections", how))
        return count

    def toxic(self, type, stream="downstream", toxicity=1.0, name=None, **attributes):
        """Adds a toxic, such as `toxic("latency", latency=500)`, and returns its name."""
        body = {"type": type, "stream": stream, "toxicity": toxicity, "attributes": attributes}
        if name:
            body["name"] = name
        added = self._call("POST", "/proxies/%s/toxics", body)["name"]
        self._record("toxic: %s %s" % (added, attributes))
        return added

    def remove_toxic(self, name):
        """Removes a toxic."""
        self._call("DELETE", "/proxies/%s/toxics/" + name)
        self._record("toxic removed: %s" % name)

    # Faults of HTTP exchanges

    def fault(self, rule, *, must_fire=True):
        """Adds a fault rule, such as "PUT /notes/* before-response reset", and returns a Fault.

        The test fails if the fault has not fired by its end; `must_fire=False` permits that. As a context manager, the
        fault has to fire in the block, and is removed at its end.
        """
        __tracebackhide__ = True
        fault = Fault(self, rule, must_fire)
        self._faults.append(fault)
        self._record("fault added: %s" % fault.rule)
        return fault

    def check_faults(self):
        """Throws a NetworkError if a fault that must fire has not fired."""
        for fault in self._faults:
            fault.check()

    # Observation

    @property
    def conditions(self):
        """The conditions that apply now: the response of `GET /slowlane/v1/proxies/NAME/link`."""
        return self._call("GET", "/slowlane/v1/proxies/%s/link")

    @property
    def status(self):
        """The counters of the proxy: the response of `GET /slowlane/v1/proxies/NAME`."""
        return self._call("GET", "/slowlane/v1/proxies/%s")

    @property
    def connections(self):
        """The open connections: the response of `GET /slowlane/v1/proxies/NAME/connections`."""
        return self._call("GET", "/slowlane/v1/proxies/%s/connections")

    @property
    def summary(self):
        """The addresses, the conditions that the test began with, and the seed."""
        return "%s -> %s, %s, seed %d" % (self.address, self.upstream or "any server", link_text(self._initial), self.seed)

    def describe(self):
        """Returns lines that describe the network and what was done to it."""
        lines = ["network " + self.summary]
        try:
            status = self.status
            lines.append("%d connections, %d open; %d bytes up, %d bytes down; %d failed dials" % (
                status["connections_accepted"], status["connections_open"], status["sent_bytes"]["up"],
                status["sent_bytes"]["down"], status["dials_failed"]))
            lines.extend("fault %s: %s" % (fault.rule, fault.counts()) for fault in self._faults)
        except NetworkError as error:
            lines.append("no status: %s" % error)
        return lines + ["%8.3f s  %s" % entry for entry in self.log]

    def close(self):
        """Removes the proxy and closes its connections."""
        if self._trust is not None:
            self._trust.remove()
        self._call("DELETE", "/proxies/%s")

    def _call(self, method, path, body=None, warnings=None):
        __tracebackhide__ = True
        return self._server.call(method, path % self._name, body, warnings)

    def _record(self, text):
        self.log.append((time.monotonic() - self._start, text))


class _Change:
    """A change of the conditions, which the end of a `with` block reverts."""

    def __init__(self, network, earlier):
        self._network = network
        self._earlier = earlier

    def __enter__(self):
        return self._network

    def __exit__(self, *_):
        self._network._apply(self._earlier, "restore")


class Fault:
    """A fault rule of a network."""

    def __init__(self, network, rule, must_fire):
        __tracebackhide__ = True
        self._network = network
        #: Why the fault may miss requests: connections that were open before.
        self._warnings = []
        #: The last status of a removed fault.
        self._last = None
        added = network._call("POST", "/slowlane/v1/proxies/%s/faults", {"rule": rule}, self._warnings)
        self._path = "/slowlane/v1/proxies/%s/faults/" + added["name"]
        #: The rule in the server's notation.
        self.rule = added["rule"]
        #: Whether the test fails if the fault does not fire.
        self.must_fire = must_fire

    @property
    def status(self):
        """The response of `GET /slowlane/v1/proxies/NAME/faults/FAULT`, with the counts `matched`, `applied` and `fired`; the last
        one if the fault has been removed."""
        return self._network._call("GET", self._path) if self._last is None else self._last

    @property
    def fired(self):
        """How often the fault has fired."""
        return self.status["fired"]

    def check(self):
        """Throws a NetworkError if the fault must fire and has not fired."""
        __tracebackhide__ = True
        if self.must_fire:
            status = self.status
            if status["fired"] == 0:
                count = "1 request" if status["matched"] == 1 else "%d requests" % status["matched"]
                raise NetworkError("; ".join(["the fault '%s' did not fire; %s matched" % (self.rule, count)] + self._warnings))

    def counts(self):
        """Returns the counts as a text."""
        status = self.status
        return "matched %d, fired %d" % (status["matched"], status["fired"])

    def remove(self):
        """Removes the fault, which then need not fire. Its counts remain."""
        if self in self._network._faults:
            self._network._faults.remove(self)
            self._last = self.status
            self._network._call("DELETE", self._path)
            self._network._record("fault removed: %s (%s)" % (self.rule, self.counts()))

    def __enter__(self):
        return self

    def __exit__(self, error, *_):
        __tracebackhide__ = True
        try:
            if error is None and self in self._network._faults:
                self.check()
        finally:
            self.remove()
