// Loaded into the daemon before its own code: a socket over which the proof moves the clock of the daemon and measures its memory.
// Requests and replies are lines of JSON: `{"jump": <ms>}`, `{"measure": true}`.
import { rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

const socket = process.env.SVC_SOAK_PROBE
// The processes that the daemon starts are not to have it.
delete process.env.NODE_OPTIONS
delete process.env.SVC_SOAK_PROBE
if (socket !== undefined && process.argv.includes('--foreground')) {
  let offset = 0
  const real = Date.now
  Date.now = () => real() + offset
  globalThis.Date = new Proxy(Date, {
    construct: (target, args, self) => Reflect.construct(target, args.length === 0 ? [Date.now()] : args, self),
    apply: target => new target(Date.now()).toString(),
  })
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc')
  const measure = async () => {
    // What finalizers release is garbage for the collection after theirs.
    for (let n = 0; n < 2; n++) {
      gc()
      await new Promise(resolve => setImmediate(resolve))
    }
    const { heapUsed, external, rss } = process.memoryUsage()
    const handles = process.getActiveResourcesInfo()
    return { rss, heapUsed, external, handles: handles.filter(name => name !== 'Immediate').length }
  }
  const answer = async ({ jump }) => {
    if (jump === undefined) return measure()
    offset += jump
    return { now: Date.now() }
  }
  rmSync(socket, { force: true })
  createServer(connection => {
    let text = ''
    connection.setEncoding('utf8').on('error', () => {})
    connection.on('data', chunk => {
      text += chunk
      for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n')) {
        const request = JSON.parse(text.slice(0, end))
        text = text.slice(end + 1)
        void answer(request).then(reply => connection.write(`${JSON.stringify(reply)}\n`))
      }
    })
  })
    .listen(socket)
    .unref()
}
