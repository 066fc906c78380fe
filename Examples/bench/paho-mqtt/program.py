"""paho-mqtt and Mosquitto, with the qualities of service 1 (at least once) and 2 (exactly once)."""
import pathlib, signal, subprocess, sys, time

from bench import EDGE, Effects, compare, fault, free_port, kill, outage, wait_until, when

DEBIAN = ["mosquitto", "mosquitto-clients"]
PYPI = ["paho-mqtt==2.2.0"]
VERSION = [sys.executable, "-c", "import paho.mqtt; print(paho.mqtt.__version__)"]
CONDITIONS = {
    "edge": EDGE,
    "qos1-outage": outage(after=100, seconds=12),
    "qos2-outage": outage(after=100, seconds=12),
    "qos1-lost-puback": fault('TCP server "\\x40\\x02" nth 5 before-match reset'),
    "qos2-lost-pubrec": fault('TCP server "\\x50\\x02" nth 5 before-match reset'),
    "qos2-lost-pubcomp": fault('TCP server "\\x70\\x02" nth 5 before-match reset'),
    "qos2-mid-publish": fault('TCP client "benc" nth 5 after-match reset'),
    "qos2-restart": EDGE,
}
COUNT = 10


def run(bench, condition):
    port, qos = free_port(), 1 if "qos1" in condition else 2
    folder = bench.own("mosquitto")
    bench.write("mosquitto.conf", f"listener {port} 127.0.0.1\nallow_anonymous true\npersistence true\npersistence_location {folder}/\n"
                "autosave_interval 1\nautosave_on_changes true\n" + (f"user {bench.user}\n" if bench.user else ""))

    def serve():
        return bench.start("mosquitto", "-c", bench.folder / "mosquitto.conf", port=port)

    server = serve()
    received = bench.folder / "received"

    def subscribe():
        with open(received, "a") as file:
            process = subprocess.Popen(
                ["mosquitto_sub", "-p", str(port), "-h", "127.0.0.1", "-q", "2", "-c", "-i", "subscriber", "-t", "bench"],
                stdout=file, start_new_session=True, env=bench.environment)
        bench.processes.append(process)

    subscribe()
    time.sleep(0.5)
    proxy = bench.proxy(port, CONDITIONS[condition])
    if condition == "qos2-restart":
        when(lambda: proxy.bytes() > 150, lambda: (kill(server, signal.SIGTERM), time.sleep(1), serve()))
    done = bench.do(sys.executable, pathlib.Path(__file__).with_name("client.py"), proxy.port, COUNT, qos, limit=90)
    wanted = [f"m{number}" for number in range(COUNT)]
    found = lambda: received.read_text().split()
    wait_until(lambda: set(found()) >= set(wanted), 10)
    time.sleep(1)
    effects = compare(wanted, found())
    if done.status is None:
        effects.add("stuck")
    if "unknown" in done.text:
        effects.add("error")
    # MQTT 3.1.1, 4.3: "at least once" and "exactly once".
    promised = {"lost"} if qos == 1 else {"lost", "doubled"}
    return Effects(effects, promised, f"QoS {qos}: {COUNT} published, {len(found())} received; {done.text.count('unknown')} not confirmed")
