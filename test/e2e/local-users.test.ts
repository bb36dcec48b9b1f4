// proof, timeout: 120s: the built program, attacked by a process of another user
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { Installed } from './installed.js'

const STRANGER = 12_345
const OPEN_AT = '/tmp'

const local = suite<{ at: Installed; port: number; workspace: string }>('local users')
local.before(async context => {
  // Where even the own user needs no token, another one needs it.
  context.at = new Installed({ http: { port: 0, trust_own_user: true } })
  const root = join(context.at.folder, 'work')
  mkdirSync(root)
  await context.at.json('daemon', 'start')
  context.port = context.at.discovery.port
  const { text } = await context.at.request('socket', 'POST', '/api/workspaces/resolve', { path: root })
  context.workspace = JSON.parse(text).workspace.id
})
local.after(({ at }) => at.remove())

/** Only root may start a process as another user. */
const test = process.geteuid?.() === 0 && process.platform === 'linux' ? local : local.skip

/** Runs JavaScript as another user, its arguments in `given`. */
function runAs(uid: number, code: string, ...given: unknown[]) {
  const script = `const given = JSON.parse(process.argv[1]); ${code}`
  const options = {
    uid,
    gid: uid,
    cwd: OPEN_AT,
    env: {},
    stdio: ['ignore', 'pipe', 'inherit'] as ['ignore', 'pipe', 'inherit'],
  }
  return spawn(process.execPath, ['-e', script, JSON.stringify(given)], options)
}

/** Prints status and code of each reply. */
const ASK = `
  const [port, requests] = given
  void (async () => {
    for (const [method, path, body] of requests) {
      const reply = await fetch('http://127.0.0.1:' + port + path, {
        method,
        ...(body ? { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) } : {}),
      })
      console.log(reply.status, (await reply.json()).code)
    }
  })()`

const PWNED = join(OPEN_AT, `svc-pwned-${process.pid}`)
const evil = { agent: { name: 'evil', prompt: 'x', command: `touch ${PWNED}` }, scope: 'global' }

test('another user cannot create an agent, a session or a prompt', async ({ at, port, workspace }) => {
  const own = { agent: { name: 'decent', prompt: 'x', command: 'true' }, scope: 'global' }
  assert.is((await at.request('tcp', 'POST', '/api/agents', own)).status, 201)
  const requests = [
    ['POST', '/api/agents', evil],
    ['POST', '/api/sessions', { workspace, agent_name: 'decent' }],
    ['POST', `/api/workspaces/${workspace}/sessions/s/prompt`, { text: 'x' }],
    ['GET', '/api/sessions'],
    ['GET', '/api/openapi.json'],
    ['POST', '/api/drain'],
  ]
  const child = runAs(STRANGER, ASK, port, requests)
  const lines: string[] = []
  createInterface(child.stdout).on('line', line => lines.push(line))
  await once(child, 'close')
  assert.equal(lines, Array(requests.length).fill('401 unauthorized_peer'))
  const { text } = await at.request('socket', 'GET', '/api/agents')
  assert.ok(text.includes('decent') && !text.includes('evil'), text)
  assert.is(JSON.parse((await at.request('socket', 'GET', '/api/sessions')).text).page.total, 0)
  assert.not(existsSync(PWNED))
})

/**
 * From each port, another user sends a request and resets the connection, and at once root opens one from the same port. Both
 * in one process, whose effective user changes: between two processes the lookup would be over before the second connects.
 */
const REUSE = `
  const net = require('node:net')
  const [port, text, ports, uid] = given
  let reused = 0
  const once = (socket, name) => new Promise(resolve => socket.once(name, resolve))
  void (async () => {
    for (const localPort of ports) {
      process.seteuid(uid)
      const stranger = net.connect({ host: '127.0.0.1', port, localPort }).on('error', () => {})
      const gone = once(stranger, 'close')
      // The socket is made in the next tick, which is queued already.
      process.nextTick(() => process.seteuid(0))
      stranger.once('connect', () => {
        stranger.write(text)
        stranger.resetAndDestroy()
      })
      await gone
      const own = net.connect({ host: '127.0.0.1', port, localPort }).on('error', () => {})
      own.once('connect', () => reused++)
      await new Promise(resolve => setTimeout(resolve, 20))
      own.resetAndDestroy()
    }
    console.log(reused)
  })()`

test('a request on a reset connection is not attributed to the user of the daemon on the same port', async ({
  at,
  port,
}) => {
  const body = JSON.stringify(evil)
  const head = `POST /api/agents HTTP/1.1\r\nhost: localhost:${port}\r\ncontent-type: application/json\r\n`
  const first = 20_000 + Math.floor(Math.random() * 5000)
  const ports = Array.from({ length: 200 }, (_, n) => first + n)
  const child = runAs(0, REUSE, port, `${head}content-length: ${body.length}\r\n\r\n${body}`, ports, STRANGER)
  let reused = ''
  child.stdout.on('data', data => {
    reused += data
  })
  await once(child, 'close')
  assert.ok(Number(reused) > 0, 'the port was used again at least once')
  assert.not((await at.request('socket', 'GET', '/api/agents')).text.includes('evil'))
})

local.run()
