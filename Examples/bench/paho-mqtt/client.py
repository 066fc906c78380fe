"""A user of paho-mqtt: publishes messages with a quality of service, and waits for each."""
import sys, time

import paho.mqtt.client as mqtt

port, count, qos = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id="publisher", clean_session=False)
client.reconnect_delay_set(1, 2)
confirmed = set()
client.on_publish = lambda client, data, mid, code, properties: confirmed.add(mid)
client.connect("127.0.0.1", port, keepalive=5)
client.loop_start()
for number in range(count):
    info = client.publish("bench", f"m{number}", qos=qos)
    # A message of a client that is not connected is queued; wait_for_publish() reports it as failed.
    end = time.monotonic() + 25
    while info.mid not in confirmed and time.monotonic() < end:
        time.sleep(0.02)
    print(f"{'published' if info.mid in confirmed else 'unknown'} m{number}", flush=True)
client.disconnect()
