"""MariaDB replication with GTID: the replica is behind the bad network."""
import time

from bench import EDGE, Effects, Network, compare, fault, free_port, kill, outage, wait_until, when

DEBIAN = ["mariadb-server"]
VERSION = ["mariadbd", "--version"]
CONDITIONS = {
    "edge": EDGE,
    "outage": outage(after=2500, seconds=12),
    "lost-event": fault('TCP server "row-7" before-match reset'),
    "mid-event": fault('TCP server "row-7" after-match bytes 300 reset'),
    "stall": fault('TCP server "row-7" before-match stall'),
    "kill-replica": Network("3g"),
    "kill-primary": Network("3g"),
}
COUNT = 20


def run(bench, condition):
    ports, folders = [free_port(), free_port()], [bench.own("primary"), bench.own("replica")]

    def serve(index):
        return bench.start(
            "mariadbd", "--no-defaults", f"--datadir={folders[index]}/data", f"--port={ports[index]}", "--bind-address=127.0.0.1",
            f"--socket={folders[index]}/socket", f"--pid-file={folders[index]}/pid", f"--server-id={index + 1}", "--log-bin=log",
            "--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1", "--slave-net-timeout=8", "--innodb-buffer-pool-size=16M",
            "--skip-name-resolve", port=ports[index], user=bench.user, cwd=folders[index], env={"TMPDIR": str(folders[index])}, name=f"mariadbd-{index + 1}")

    def ask(index, text):
        return bench.must("mariadb", "--no-defaults", "-u", "ada", "-h", "127.0.0.1", "-P", ports[index], "-N", "-e", text).split()

    servers = []
    for index in [0, 1]:
        bench.must(
            "mariadb-install-db", "--no-defaults", f"--datadir={folders[index]}/data", "--auth-root-authentication-method=normal",
            "--skip-test-db", user=bench.user, cwd=folders[index], env={"TMPDIR": str(folders[index])})
        servers.append(serve(index))
        bench.must("mariadb", "--no-defaults", "-u", "root", f"--socket={folders[index]}/socket", "-e",
                   "set sql_log_bin = 0; create user ada@'%'; grant all on *.* to ada@'%'; grant replication slave on *.* to ada@'%'")
    proxy = bench.proxy(ports[0], CONDITIONS[condition])
    ask(1, f"change master to master_host='127.0.0.1', master_port={proxy.port}, master_user='ada', master_use_gtid=slave_pos, "
           "master_connect_retry=1; start slave")
    if condition in ("kill-replica", "kill-primary"):
        index = 1 if condition == "kill-replica" else 0

        def restart():
            kill(servers[index])
            servers[index] = serve(index)
        restarted = when(lambda: proxy.bytes() > 6000, restart)
    ask(0, "create database bench; create table bench.rows (id int auto_increment primary key, text varchar(600)) engine=innodb")
    acknowledged = []
    for number in range(COUNT):
        done = bench.do("mariadb", "--no-defaults", "-u", "ada", "-h", "127.0.0.1", "-P", ports[0], "-e",
                        f"insert into bench.rows (text) values (concat('row-{number} ', repeat('x', 500)))")
        if done.ok:
            acknowledged.append(f"row-{number}")
        time.sleep(0.2 if done.ok else 1)
    if condition in ("kill-replica", "kill-primary"):
        restarted()

    def rows(index):
        done = bench.do("mariadb", "--no-defaults", "-u", "ada", "-h", "127.0.0.1", "-P", ports[index], "-N", "-e", "select text from bench.rows")
        return [line.split()[0] for line in done.text.splitlines()] if done.ok else []

    complete = wait_until(lambda: rows(1) == rows(0), 60, 0.5)
    both = rows(0), rows(1)
    effects = compare(acknowledged, [row for row in both[0] if row in acknowledged]) | compare(both[0], both[1])
    if not complete:
        effects = effects - {"lost"} | {"stuck"}
    # Whether an insertion is under way when the primary is killed is chance.
    if len(acknowledged) < COUNT and condition != "kill-primary":
        effects.add("error")
    return Effects(effects, {"lost", "doubled"}, f"{len(acknowledged)} rows acknowledged, {len(both[0])} at the primary, {len(both[1])} at the replica")
