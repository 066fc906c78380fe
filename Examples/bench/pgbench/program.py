"""pgbench, PostgreSQL's own load generator: the transactions that it reports, and those that the server has."""
import re

import database
from bench import EDGE, Effects, Network, fault, outage, when

DEBIAN = ["postgresql-15"]
VERSION = [database.binary("pgbench"), "--version"]
CONDITIONS = {
    "edge": EDGE,
    "outage": outage(after=6000, seconds=10),
    # The command tag of COMMIT stands alone in its message; "END;" of the script is a COMMIT.
    "lost-response": fault('TCP server "COMMIT\\x00" nth 5 before-match reset'),
    "mid-request": fault('TCP client "INSERT INTO" nth 5 after-match reset'),
    "stall": fault('TCP server "COMMIT\\x00" nth 5 before-match stall'),
    "kill": Network("3g"),
}


def run(bench, condition):
    port, restart = database.create(bench)
    pgbench = database.binary("pgbench")
    at = ["-h", "127.0.0.1", "-U", "ada"]
    bench.must(pgbench, *at, "-p", port, "-i", "-q", "postgres")
    proxy = bench.proxy(port, CONDITIONS[condition])
    restarted = when(lambda: proxy.bytes() > 2500, restart) if condition == "kill" else None
    count = 4 if condition == "edge" else 10
    done = bench.do(pgbench, *at, "-p", proxy.port, "-n", "-t", count, "postgres", limit=60)
    if restarted:
        restarted()
    proxy.heal()
    found = re.search(r"actually processed: (\d+)", done.text)
    reported = int(found.group(1)) if found else 0
    stored = int(database.ask(bench, port, "select count(*) from pgbench_history")[0])
    sums = database.ask(bench, port, "select (select sum(delta) from pgbench_history) is not distinct from nullif((select sum(abalance) from pgbench_accounts), 0) or (select coalesce(sum(delta), 0) from pgbench_history) = (select sum(abalance) from pgbench_accounts)")[0]
    effects = set()
    if done.status is None:
        effects.add("stuck")
    elif not done.ok:
        effects.add("error")
    if stored < reported:
        effects.add("lost")
    if sums != "t":
        effects.add("mixed")
    return Effects(effects, {"lost", "mixed"}, f"{reported} transactions reported, {stored} stored" + (", no end after 60 s" if done.status is None else ""))
