// A notes client with a queue on disk. It creates and edits notes, and shows no conflicts.
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { request as open } from "node:http"
import { createInterface } from "node:readline"

const { SLOWLANE_URL: url, SLOWLANE_DATA: data, SLOWLANE_USER: user, SLOWLANE_PASSWORD: password } = process.env
const file = `${data}/state.json`
const state = existsSync(file) ? JSON.parse(readFileSync(file)) : { notes: {}, queue: [] }
const isPending = (id) => state.queue.some((entry) => entry.id === id)
const say = (line) => process.stdout.write(JSON.stringify(line) + "\n")

function save() {
  writeFileSync(file + ".new", JSON.stringify(state))
  renameSync(file + ".new", file)
  const row = ([id, { title, text }]) => ({ id, title, text, icon: isPending(id) ? "upload" : "none" })
  say({ view: { rows: Object.entries(state.notes).map(row), outbox: state.queue.length } })
}
const request = (method, path, body, key = crypto.randomUUID()) => new Promise((resolve, reject) => {
  const options = { method, auth: `${user}:${password}`, agent: false, signal: AbortSignal.timeout(2000) }
  options.headers = { "content-type": "application/json", "idempotency-key": key }
  open(`${url}/api/${path}`, options, async (response) => {
    let text = ""
    try { for await (const chunk of response) text += chunk } catch (error) { return reject(error) }
    response.statusCode < 300 ? resolve(JSON.parse(text)) : reject(new Error(`status ${response.statusCode}`))
  }).on("error", reject).end(body)
})

async function sync() {
  for (let entry; (entry = state.queue[0]); save()) {
    const { id, key, method, content } = entry // a repeated request is the same request
    entry.body ??= JSON.stringify({ ...content, uuid: id, revision: state.notes[id].revision })
    save()
    const note = await request(method, method === "POST" ? "notes/" : `notes/${id}/`, entry.body, key)
    state.notes[id].revision = note.revision
    state.queue.shift()
  }
  for (const note of await request("GET", "notes/")) if (!isPending(note.uuid)) state.notes[note.uuid] = note
  save()
  if (state.queue.length) return sync() // written meanwhile
  say({ settled: true })
}

let running // the sync in progress; one that failed is repeated
const ended = (delay) => { running = null; if (delay) setTimeout(wake, delay, Math.min(2 * delay, 4000)) }
function wake(delay = 100) { running ??= sync().then(() => ended(), () => ended(delay)) }

save()
wake()
createInterface({ input: process.stdin }).on("close", () => process.exit()).on("line", (line) => {
  const { id, do: act, record, title, text } = JSON.parse(line)
  if (act === "create" || act === "edit") {
    const note = (state.notes[record] = { ...state.notes[record], ...(title && { title }), ...(text && { text }) })
    const content = { title: note.title, text: note.text, date: new Date().toISOString() }
    state.queue.push({ id: record, key: crypto.randomUUID(), method: act === "create" ? "POST" : "PUT", content })
    save()
  }
  wake()
  if (id !== undefined) say({ id, ok: true })
})
