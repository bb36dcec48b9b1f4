// An agent that works on a run, calls a model that is not there, and tells of its use as the trick that it is started with
// wants it. Each call is a line in the ledger: what the daemon is not told of is counted there.
import { appendFileSync } from 'node:fs'
import http from 'node:http'
import { createInterface } from 'node:readline'

const [trick, ledger, tokens] = process.argv.slice(2)
const CALL = Number(tokens)
/** Calls of a turn of an agent that goes on for ever; nobody needs so many. */
const MANY = 40
const sleep = ms => new Promise(resolve => setTimeout(resolve, ms))
const send = message => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)

/** Asks the daemon over the socket of the session. */
function ask(url, body = {}) {
  const text = JSON.stringify(body)
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }
  return new Promise((resolve, reject) => {
    const request = http.request({ socketPath: process.env.SVC_SOCKET, method: 'POST', path: url, headers }, reply => {
      let answer = ''
      reply.setEncoding('utf8').on('data', chunk => {
        answer += chunk
      })
      reply.on('end', () => resolve({ status: reply.statusCode, body: answer === '' ? undefined : JSON.parse(answer) }))
    })
    request.on('error', reject)
    request.end(text)
  })
}

const update = (sessionId, fields) => send({ method: 'session/update', params: { sessionId, update: fields } })
/** The number may be anything; it goes out as it stands, since JSON has no word for some. */
const tell = (sessionId, used) =>
  process.stdout.write(
    `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"${sessionId}","update":{"sessionUpdate":"usage_update","size":1000000,"used":${used}}}}\n`,
  )

let used = 0
let turns = 0
let run
let canceled = false

/** What the agent says of a call. */
function say(sessionId) {
  if (trick === 'silent' || (trick === 'once' && turns > 1)) return
  if (trick === 'garbage') {
    for (const word of ['-1', '"many"', '1.5', 'null', '1e999']) tell(sessionId, word)
    return
  }
  tell(sessionId, used)
  if (trick === 'negative') tell(sessionId, -1_000_000)
  if (trick === 'words') for (const word of ['"NaN"', 'null', '{}', '[5]', '1e999']) tell(sessionId, word)
  if (trick === 'decreasing') tell(sessionId, 0)
  if (trick === 'small') for (let part = used - 90; part < used; part += 10) tell(sessionId, part)
}

/** Does the session still hold the run, asked until the daemon has had time to take in what it was told. */
async function holds() {
  for (let asked = 0; asked < 4; asked++) {
    await sleep(40)
    if (canceled || (await ask(`/api/agent/tasks/${run}/heartbeat`)).status !== 200) return false
  }
  return true
}

async function prompt({ sessionId }) {
  turns++
  if (!run) {
    const { body } = await ask('/api/agent/tasks/claim-next', { lease_seconds: 120 })
    run = body?.claim?.run?.id
    if (!run) return { stopReason: 'end_turn' }
  }
  if (trick === 'flood')
    for (let piece = 0; piece < 6000; piece++)
      update(sessionId, {
        sessionUpdate: 'agent_message_chunk',
        content: { type: 'text', text: `${'x'.repeat(250)}\n` },
      })
  const most = ['silent', 'once', 'garbage', 'release', 'crash'].includes(trick) ? 3 : MANY
  for (let call = 0; call < most; call++) {
    used += CALL
    appendFileSync(ledger, `${run}\n`)
    say(sessionId)
    if (!(await holds())) return { stopReason: 'cancelled' }
  }
  if (trick === 'crash') process.exit(9)
  if (trick === 'release') await ask(`/api/agent/tasks/${run}/release`)
  return { stopReason: 'end_turn' }
}

createInterface({ input: process.stdin }).on('line', async line => {
  const { id, method, params } = JSON.parse(line)
  if (method === 'session/cancel') canceled = true
  if (id === undefined || method === undefined) return
  const results = {
    initialize: () => ({ protocolVersion: 1, agentCapabilities: { loadSession: false } }),
    'session/new': () => ({ sessionId: `acp-${process.pid}` }),
    'session/prompt': () => prompt(params),
  }
  try {
    send({ id, result: (await results[method]?.()) ?? {} })
  } catch (error) {
    send({ id, error: { code: -32603, message: String(error.message) } })
  }
})
