"""A PostgreSQL server for the programs that use one."""
import pathlib, time

from bench import free_port, kill


def binary(name):
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return str(found[-1]) if found else name


def create(bench):
    """Creates a database, and starts its server. Returns its port and a function that kills and restarts it."""
    folder, port = bench.own("postgres"), free_port()
    environment = {"PGPORT": str(port)}
    bench.must(binary("initdb"), "-D", folder / "data", "-U", "ada", "--auth=trust", "-E", "UTF8", "--no-sync", user=bench.user, cwd=folder)
    words = [binary("postgres"), "-D", folder / "data", "-p", port, "-k", folder, "-c", "listen_addresses=127.0.0.1"]

    def start():
        process = bench.start(*words, port=port, user=bench.user, cwd=folder, env=environment)
        while not bench.do(binary("pg_isready"), "-h", "127.0.0.1", "-p", port).ok:
            time.sleep(0.1)
        return process

    process = [start()]

    def restart():
        kill(process[0])
        (folder / "data/postmaster.pid").unlink(missing_ok=True)
        process[0] = start()

    return port, restart


def ask(bench, port, text):
    """Returns the rows of a query, without the proxy."""
    return bench.must(binary("psql"), "-h", "127.0.0.1", "-p", port, "-U", "ada", "-d", "postgres", "-At", "-c", text).split()
