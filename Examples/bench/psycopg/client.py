"""A user of psycopg: inserts rows, each in a transaction, and repeats a transaction that failed, as many programs do."""
import sys, time

import psycopg

port, count = int(sys.argv[1]), int(sys.argv[2])
connection = None
for number in range(count):
    for attempt in range(20):
        try:
            if connection is None or connection.closed:
                connection = psycopg.connect(f"host=127.0.0.1 port={port} user=ada dbname=postgres connect_timeout=20")
            with connection.transaction():
                connection.execute("insert into log (number) values (%s)", (number,))
            break
        except psycopg.OperationalError as error:
            print(f"failed {number}: {str(error).splitlines()[0]}", flush=True)
            connection = None
            time.sleep(0.3)
    time.sleep(0.02)
print("done", flush=True)
