// timeout: 60s
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Client } from '../../../../cli/client.js'
import * as commands from '../../../../plugins/work/session-commands/commands.js'
import type { TaskContext } from '../../../../plugins/work/session-commands/task-context.js'
import { openWorld, type World } from '../../../fixtures/session-world.js'
import type { Reply } from '../../../harness/kernel.js'

let world: World

test.before(async () => {
  world = await openWorld({ listen: ['socket'] })
  await world.agent('dies', { permissions: 'approve-all' })
})
test.after(() => world.close())

/** What happens at a request of a command, before it is sent or once it is answered. */
type Meddle = (request: string, send: () => Promise<unknown>) => Promise<unknown>

interface Options {
  readonly args?: Readonly<Record<string, string>>
  readonly options?: Readonly<Record<string, string>>
  readonly meddle?: Meddle
  readonly stdin?: () => Promise<string>
  /** Called with what is typed at a terminal, once the command listens. */
  readonly types?: (type: (line: string | undefined) => void) => void
}

/** Runs a command as the command line would; returns its exit code and what it printed. */
async function run(
  command: (context: TaskContext) => Promise<number>,
  { args = {}, options = {}, meddle = (_request, send) => send(), stdin = async () => '', types }: Options,
): Promise<{ readonly code: number; readonly text: string }> {
  const { signal } = new AbortController()
  const client = new Client({
    address: async () => ({ home: world.home, socket: `${world.home}/daemon.sock` }),
    signal,
  })
  let text = ''
  const code = await command({
    ...{ path: '', args, options, cwd: world.root, home: world.home, signal, stdin },
    client: {
      request: (method, path, ...more) => meddle(`${method} ${path}`, () => client.request(method, path, ...more)),
      stream: (path, how) => client.stream(path, how),
    },
    out: {
      json: false,
      line: line => {
        text += `${line}\n`
      },
      text: more => {
        text += more
      },
      id: () => {},
      value: () => {},
      table: () => {},
      color: (_name, colored) => colored,
    },
    ...(types && {
      terminal: {
        now: () => performance.now(),
        onLine(take) {
          types(take)
          return () => {}
        },
      },
    }),
    readFile: async () => '',
    onInterrupt: () => () => {},
    fault(faultCode, words) {
      throw new Error(`${faultCode}: ${words}`)
    },
  })
  return { code, text }
}

/** A session that lives, of which a turn has ended. */
async function lively() {
  const session = await world.session('dies')
  await world.prompt(session.at, 'say alive')
  return session
}
const isStop = ({ type }: Reply) => type === 'session_stopped'
/** Another client's prompt, at which the agent dies; resolves when the session has stopped. */
async function die(at: string): Promise<void> {
  await world.kernel.request('POST', `${at}/prompt`, { text: 'exit 3' })
  await world.until(at, isStop)
}
/** Calls `work` once, behind the first reply to such a request. */
function once(wanted: RegExp, work: () => Promise<unknown>): Meddle {
  let done = false
  return async (request, send) => {
    const reply = await send()
    if (done || !wanted.test(request)) return reply
    done = true
    await work()
    return reply
  }
}

test('a prompt that starts a session again does not end with the stop before it', async () => {
  const { id, at } = await lively()
  const { code, text } = await run(commands.runPrompt, {
    args: { session_id: id, text: 'say again' },
    meddle: once(/events\?limit=1$/, () => die(at)),
  })
  assert.is(code, 0, text)
  assert.match(text, /session stopped[\s\S]*again\n[\s\S]*done/)
})

test('a prompt that waits ends with the stop that it waited through', async () => {
  const { id, at } = await lively()
  const gate = world.gate()
  await world.kernel.request('POST', `${at}/prompt`, { text: `${gate.line}\nexit 3` })
  const { code, text } = await run(commands.runPrompt, {
    args: { session_id: id, text: 'say later' },
    meddle: once(/\/prompt$/, () => gate.open()),
  })
  assert.is(code, 1, text)
  assert.match(text, /Queued[\s\S]*a prompt starts it again/)
})

test('a prompt behind prompts that a stop kept is followed to its end', async () => {
  const { id, at } = await lively()
  const gate = world.gate()
  await world.kernel.request('POST', `${at}/prompt`, { text: `${gate.line}\nexit 3` })
  await world.kernel.request('POST', `${at}/prompt`, { text: 'say kept' })
  await gate.open()
  await world.until(at, isStop)
  const { code, text } = await run(commands.runPrompt, {
    args: { session_id: id, text: 'say again' },
    meddle: once(/\/prompt$/, async () => assert.is.not((await world.row(id)).state, 'stopped', 'with the receipt')),
  })
  assert.is(code, 0, text)
  assert.match(text, /Queued[\s\S]*kept\n[\s\S]*again\n[\s\S]*done/)
  assert.not.match(text, 'session stopped')
})

test('a wait for a session with nothing left to do waits for its queue', async () => {
  const { id, at } = await lively()
  const [first, second] = [world.gate(), world.gate()]
  for (const { line } of [first, second]) await world.kernel.request('POST', `${at}/prompt`, { text: line })
  const waited = world.kernel.request('POST', `${at}/wait`, { timeout_ms: 60_000 })
  await first.open()
  await world.until(at, ({ type, content }) => type === 'user_message' && content.text === second.line)
  assert.is(await Promise.race([waited, world.row(id).then(() => 'waits')]), 'waits')
  await second.open()
  const { outcome, state } = (await waited).body
  assert.equal([outcome, state], ['reached', 'idle'])
})

test('piped input that starts a session again does not end with the stop before it', async () => {
  const { id, at } = await lively()
  const { code, text } = await run(commands.runAttach, {
    args: { session_id: id },
    stdin: async () => 'say again',
    // The receipt comes when the stream has told of the stop.
    meddle: async (request, send) => {
      if (request.endsWith('/prompt')) await die(at)
      return send()
    },
  })
  assert.is(code, 0, text)
  assert.match(text, /session stopped[\s\S]*again\n[\s\S]*done/)
})

test('piped input ends with its turn, whose end may come before its receipt', async () => {
  const { id, at } = await lively()
  const { code, text } = await run(commands.runAttach, {
    args: { session_id: id },
    stdin: async () => 'error -32000 no more credit',
    meddle: once(/\/prompt$/, async () => {
      await world.until(at, ({ type }) => type === 'error')
      await new Promise(resolve => setTimeout(resolve, 300))
    }),
  })
  assert.is(code, 1, text)
})

/** `svc run` with a first prompt; `type` is called behind its receipt. */
function runWith(prompt: string, type: (at: string, line: (text: string) => void) => Promise<void>, meddle: Meddle) {
  let line: (text: string) => void = () => {}
  return run(commands.runRun, {
    args: { prompt },
    options: { workspace: world.workspaceId, agent: 'dies' },
    types: take => {
      line = take
    },
    meddle: async (request, send) => {
      const reply = await meddle(request, send)
      const [, at] = /^POST (\S+)\/prompt$/.exec(request) ?? []
      if (at && line) setTimeout(() => void type(at, line))
      return reply
    },
  })
}

test('a prompt typed as the turn of a run ends is followed to its end', async () => {
  const gate = world.gate()
  let typed = false
  let sent: () => void = () => {}
  const isSent = new Promise<void>(resolve => {
    sent = resolve
  })
  const { code, text } = await runWith(
    `say first\n${gate.line}`,
    async (_at, line) => {
      if (typed) return
      typed = true
      line('say second')
      await isSent
      await gate.open()
    },
    async (request, send) => {
      if (!typed || !request.endsWith('/prompt')) return send()
      sent()
      // Long enough for the first turn to end before the second prompt is there.
      await new Promise(resolve => setTimeout(resolve, 500))
      return send()
    },
  )
  assert.is(code, 0, text)
  assert.match(text, /first\n[\s\S]*done[\s\S]*second\n[\s\S]*done/)
})

test('a prompt typed as the agent of a run dies starts the session again', async () => {
  let typed = false
  const { code, text } = await runWith(
    'say first\nexit 3',
    async (_at, line) => {
      if (typed) return
      typed = true
      line('say second')
    },
    async (request, send) => {
      const [, at = ''] = /^POST (\S+)\/prompt$/.exec(request) ?? []
      if (typed && at) await world.until(at, isStop)
      return send()
    },
  )
  assert.is(code, 0, text)
  assert.match(text, /first\n[\s\S]*session stopped[\s\S]*second\n[\s\S]*done/)
})

test('a run goes on with the guidance that took over its turn', async () => {
  const gate = world.gate()
  let typed = false
  const { code, text } = await runWith(
    `say first\n${gate.line}\ntools 1\nsleep 60000`,
    async (_at, line) => {
      if (typed) return void gate.open()
      typed = true
      line('/steer say steered')
    },
    (_request, send) => send(),
  )
  assert.is(code, 0, text)
  assert.match(text, /first\n[\s\S]*steered\n[\s\S]*done/)
})

test.run()
