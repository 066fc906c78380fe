"""A task that appends its number to a file. The broker's port is in BROKER."""
import os

from celery import Celery

app = Celery("tasks", broker=f"redis://127.0.0.1:{os.environ['BROKER']}/0")
app.conf.update(
    broker_connection_retry_on_startup=True, task_acks_late=os.environ.get("LATE") == "1", worker_prefetch_multiplier=1,
    worker_hijack_root_logger=False, broker_transport_options={"visibility_timeout": 8, "unacked_mailbox_timeout": 1})


@app.task
def add(number):
    with open(os.environ["OUTPUT"], "a") as file:
        file.write(f"{number}\n")
