"""psycopg with a loop that repeats failed transactions, and PostgreSQL."""
import pathlib, sys

import database
from bench import EDGE, Effects, compare, fault, outage, when

DEBIAN = ["postgresql-15"]
PYPI = ["psycopg[binary]==3.3.9"]
VERSION = [sys.executable, "-c", "import psycopg; print(psycopg.__version__)"]
CONDITIONS = {
    "edge": EDGE,
    "outage": outage(after=1000, seconds=10),
    "lost-response": fault('TCP server "COMMIT\\x00" nth 5 before-match reset'),
    "lost-insert": fault('TCP server "INSERT 0 1" nth 5 before-match reset'),
    "mid-request": fault('TCP client "insert into" nth 5 after-match reset'),
    "stall": fault('TCP server "COMMIT\\x00" nth 5 before-match stall'),
    "kill": EDGE,
}
COUNT = 12


def run(bench, condition):
    port, restart = database.create(bench)
    database.ask(bench, port, "create table log (id serial primary key, number int)")
    proxy = bench.proxy(port, CONDITIONS[condition])
    restarted = when(lambda: proxy.bytes() > 1000, restart) if condition == "kill" else None
    done = bench.do(sys.executable, pathlib.Path(__file__).with_name("client.py"), proxy.port, COUNT, limit=60)
    if restarted:
        restarted()
    proxy.heal()
    rows = [int(row) for row in database.ask(bench, port, "select number from log order by id")]
    effects = {"error", "retried"} if "failed" in done.text else set()
    if done.status is None:
        # Rows after the one that waits are not lost: the program has not sent them.
        effects.add("stuck")
        return Effects(effects, set(), f"no end after {done.seconds:.0f} s without a message; {len(rows)} of {COUNT} rows")
    effects |= compare(list(range(COUNT)), rows)
    # PostgreSQL promises that a reported commit is durable.
    return Effects(effects, {"lost"}, f"{COUNT} rows wanted, {len(rows)} found; {done.text.count('failed')} failures reported")
