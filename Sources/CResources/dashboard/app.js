// Shows the last events as text.
const output = document.getElementById("events");
const lines = [];
const source = new EventSource("/slowlane/v1/events");
for (const type of ["hello", "proxy", "link", "fault", "connection", "exchange", "summary", "recording", "dropped"]) {
  source.addEventListener(type, (event) => {
    lines.push(`${type} ${event.data.slice(0, 400)}`);
    if (lines.length > 40) lines.shift();
    output.textContent = lines.join("\n");
  });
}
