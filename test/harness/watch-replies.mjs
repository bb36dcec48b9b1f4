// Loaded before every test file and before the daemons that it starts: writes down what a server below /api/ answers, by
// whatever door it was asked, so that the runner can hold it against the contract (judge-replies.ts). Servers that only
// play a daemon send the header `x-not-svc`.
import { createHash } from 'node:crypto'
import { appendFileSync } from 'node:fs'
import { ServerResponse } from 'node:http'

/** Another for each test file that a process runs. */
const fileNow = () => process.env.SVC_TEST_REPLIES
/** Of a process, different ones; a test that asks more often asks the same again. */
const maxReplies = 3000
const maxBytes = 1024 * 1024
const bodies = new WeakMap()
let knownReplies = new Set()
let knownRepliesOf

if (fileNow() !== undefined) {
  const { write, end } = ServerResponse.prototype
  ServerResponse.prototype.write = function (chunk, ...rest) {
    keep(this, chunk, rest[0])
    return write.call(this, chunk, ...rest)
  }
  ServerResponse.prototype.end = function (chunk, ...rest) {
    if (typeof chunk !== 'function') keep(this, chunk, rest[0])
    const result = end.call(this, chunk, ...rest)
    tell(this)
    return result
  }
}

const ofDaemon = response => response.req?.url?.startsWith('/api/') === true && !response.hasHeader('x-not-svc')

function keep(response, chunk, encoding) {
  if (chunk === undefined || chunk === null || !ofDaemon(response)) return
  const body = bodies.get(response) ?? { chunks: [], size: 0 }
  bodies.set(response, body)
  const bytes = typeof chunk === 'string' ? Buffer.from(chunk, typeof encoding === 'string' ? encoding : 'utf8') : chunk
  body.size += bytes.length
  if (body.size <= maxBytes) body.chunks.push(bytes)
}

function tell(response) {
  const file = fileNow()
  if (file !== knownRepliesOf) [knownReplies, knownRepliesOf] = [new Set(), file]
  if (file === undefined || !ofDaemon(response) || knownReplies.size >= maxReplies) return
  // The head as it was sent: a stream writes it past `getHeader`. Frames have a checker of their own.
  if (/^content-type: text\/event-stream/im.test(response._header ?? '')) return
  const { chunks, size } = bodies.get(response) ?? { chunks: [], size: 0 }
  bodies.delete(response)
  if (size > maxBytes) return
  const reply = { method: response.req.method, path: response.req.url.split('?')[0], status: response.statusCode }
  const line = JSON.stringify({ ...reply, text: Buffer.concat(chunks).toString('utf8') })
  const key = createHash('sha1').update(line).digest('base64')
  if (knownReplies.has(key)) return
  knownReplies.add(key)
  try {
    appendFileSync(file, `${line}\n`)
  } catch {}
}
