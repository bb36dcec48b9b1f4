import { PassThrough } from 'node:stream'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { LocalContext } from '../../cli/local.js'
import { logInToServer } from '../../cli/mcp/login.js'
import { typedUnseen } from '../../cli/show/terminal.js'

const address = 'http://localhost:1/callback?code=c1&state=s1'
const HOUR_MS = 3_600_000
const expires_at = new Date(Date.now() + HOUR_MS).toISOString()

/** Runs the login on a terminal at which `lines` are typed; returns what was printed and sent. */
async function login(lines: readonly string[], status: object = {}) {
  const [printed, shown, sent]: [string[], string[], unknown[]] = [[], [], []]
  let signal: AbortSignal | undefined
  const rest = [...lines]
  const context = {
    args: { name: 'guarded' },
    options: { 'no-browser': true, workspace: 'ws_0123456789abcdef' },
    client: {
      request: async (_: string, path: string, body?: unknown) => {
        if (path.includes('/begin?')) return { authorization_url: 'http://localhost:1/authorize', expires_at }
        if (path.includes('/status?')) return status
        sent.push(body)
        return { issuer: 'http://localhost:1' }
      },
    },
    io: { cwd: '/', env: {}, signal: new AbortController().signal },
    out: { json: false, line: (text: string) => printed.push(text) },
    terminal: {
      onLine: (take: (line: string) => void) => {
        shown.push(...rest)
        for (const line of rest.splice(0)) take(line)
        return () => {}
      },
    },
    unseen: (_: string, ends?: AbortSignal) => {
      signal = ends
      const line = rest.shift()
      return line === undefined ? new Promise(() => {}) : Promise.resolve(line)
    },
  }
  await logInToServer(context as unknown as LocalContext)
  return { printed, shown, sent, signal }
}

test('the pasted address of a login is not echoed, and an empty line before it is ignored', async () => {
  const { printed, shown, sent } = await login(['', ` ${address} `])
  assert.equal(shown, [], 'no line is read with echo')
  assert.equal(sent, [{ redirect_url: address }])
  assert.is(printed.at(-1), 'logged in to guarded at http://localhost:1')
})

test('a login that ends in the browser ends the prompt for the address', async () => {
  const status = { token_present: true, status: 'authenticated', updated_at: expires_at }
  const { sent, signal } = await login([], status)
  assert.equal([sent, signal?.aborted], [[], true])
})

test('an aborted prompt without echo restores the terminal', async () => {
  const raw: boolean[] = []
  const input = Object.assign(new PassThrough(), { setRawMode: (on: boolean) => raw.push(on) })
  const ends = new AbortController()
  const typed = typedUnseen(input, { write: () => {} }, '', () => {}, ends.signal)
  input.write('half')
  ends.abort()
  assert.is(await typed, undefined)
  assert.equal(raw, [true, false])
  assert.is(input.listenerCount('data') + input.listenerCount('end'), 0)
})

test.run()
