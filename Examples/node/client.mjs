// A notes client with a queue on disk. It creates and edits notes, and shows no conflicts.
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { createInterface } from "node:readline"
import { randomUUID } from "node:crypto"

const env = process.env
const file = `${env.SLOWLANE_DATA}/state.json`
const state = existsSync(file) ? JSON.parse(readFileSync(file)) : { notes: {}, queue: [] }
const authorization = "Basic " + btoa(`${env.SLOWLANE_USER}:${env.SLOWLANE_PASSWORD}`)
const say = (line) => process.stdout.write(JSON.stringify(line) + "\n")

function save() {
  writeFileSync(file + ".new", JSON.stringify(state))
  renameSync(file + ".new", file)
  const icon = (id) => (state.queue.some((entry) => entry.id === id) ? "upload" : "none")
  const rows = Object.entries(state.notes).map(([id, { title, text }]) => ({ id, title, text, icon: icon(id) }))
  say({ view: { rows, outbox: state.queue.length } })
}

async function request(method, path, body, key = randomUUID()) {
  const headers = { authorization, "content-type": "application/json", "idempotency-key": key }
  const signal = AbortSignal.timeout(2000)
  const response = await fetch(`${env.SLOWLANE_URL}/api/${path}`, { method, headers, body, signal })
  if (!response.ok) throw new Error(`status ${response.status}`)
  return response.json()
}

async function sync() {
  while (state.queue.length) {
    const { id, key, method, content } = state.queue[0]
    const body = JSON.stringify({ ...content, uuid: id, revision: state.notes[id].revision })
    state.queue[0].body ??= body // a repeated request is the same request
    save()
    const note = await request(method, method === "POST" ? "notes/" : `notes/${id}/`, state.queue[0].body, key)
    state.notes[id].revision = note.revision
    state.queue.shift()
    save()
  }
  for (const note of await request("GET", "notes/")) {
    if (!state.queue.some((entry) => entry.id === note.uuid)) state.notes[note.uuid] = note
  }
  save()
  say({ settled: state.queue.length === 0 })
}

let running = null
function wake(delay = 100) {
  running ??= sync().then(() => (running = null), () => ((running = null), setTimeout(wake, delay, Math.min(2 * delay, 4000))))
}

save()
wake()
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, do: act, record, title, text } = JSON.parse(line)
  if (id === undefined) return
  if (act === "create" || act === "edit") {
    const note = (state.notes[record] = { ...state.notes[record], ...(title && { title }), ...(text && { text }) })
    const content = { title: note.title ?? null, text: note.text ?? null }
    state.queue.push({ id: record, key: randomUUID(), method: act === "create" ? "POST" : "PUT", content })
    save()
  }
  wake()
  say({ id, ok: true })
}).on("close", () => process.exit())
