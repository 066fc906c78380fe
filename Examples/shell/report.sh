#!/bin/sh
# Sends one note, and repeats the request until there is a response. It does not speak the protocol of the runner:
# the scenario has `adapter: none`.
note="$SLOWLANE_DATA/note.json"
if [ ! -f "$note" ]; then
    # Written before the first attempt, so that a program that starts again sends the same note.
    cat >"$note.new" <<NOTE
{"uuid":"5f0c4b1e-9b1d-4c53-8a39-0d7f3f5f2a11","title":"Report","text":"from a shell","date":"2026-03-01T00:00:00.000Z"}
NOTE
    mv "$note.new" "$note"
fi
delay=0.1
until curl --silent --fail --max-time 2 --noproxy '*' --user "$SLOWLANE_USER:$SLOWLANE_PASSWORD" \
    --header 'Content-Type: application/json' --header 'Idempotency-Key: report-1' \
    --data "@$note" --output /dev/null "$SLOWLANE_URL/api/notes/"; do
    echo "no response, again in $delay s" >&2
    sleep $delay
    delay=1
done
