// proof, timeout: 180s: each server floods until a limit ends it
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { eventually } from '../../../fixtures/session-world.js'
import { type McpScene, mcpScene } from './scene.js'

const [FLOODING, CALM] = ['flooding-server.mjs', 'http-server.mjs'].map(file =>
  path.resolve('test/plugins/work/mcp', file),
)

interface Seen {
  readonly streams: number
  readonly lists: number
  readonly calls: number
  readonly answering: number
}

interface World {
  readonly scene: McpScene
  /** What the flooding server has seen of the daemon. */
  seen(): Promise<Seen>
}

/** A server that floods, as `web`, and one that does not, as `calm`; their processes are not this one. */
async function world(args: readonly string[], work: (world: World) => Promise<void>): Promise<void> {
  const scene = await mcpScene()
  const children: ChildProcess[] = []
  const start = async (file: string, ...words: readonly string[]) => {
    const child = spawn(process.execPath, [file, ...words], { stdio: ['ignore', 'pipe', 'inherit'] })
    children.push(child)
    const [line] = await once(child.stdout, 'data')
    return `http://127.0.0.1:${Number(line)}`
  }
  try {
    const calm = await start(CALM as string, '0', 'echo')
    await scene.put('calm', { url: `${calm}/mcp` })
    await known(scene, 'mcp__calm__echo')
    const at = await start(FLOODING as string, ...args)
    await scene.put('web', { url: `${at}/mcp` })
    await work({ scene, seen: async () => (await (await fetch(`${at}/seen`)).json()) as Seen })
  } finally {
    await scene.close()
    for (const child of children) child.kill('SIGKILL')
  }
}

const known = (scene: McpScene, tool: string) =>
  eventually(async () => (await scene.tools()).some(({ descriptor }) => descriptor.id === tool), tool)
const stateOf = async ({ request }: McpScene) =>
  (await request('GET', '/api/settings/mcp-servers/web')).body.mcp_server.runtime_status

/**
 * Asks the daemon, and the other server, again and again until something is over; both answer as ever. Resolves with the seconds that
 * passed: on a busy machine more than those of a timer.
 */
async function answersUntil(scene: McpScene, over: Promise<unknown>): Promise<number> {
  const startedAt = performance.now()
  let isOver = false
  const end = () => {
    isOver = true
  }
  over.then(end, end)
  do {
    const [identity, echo] = await Promise.all([
      scene.request('GET', '/api/status/identity'),
      scene.call('mcp__calm__echo', {}),
    ])
    assert.is(identity.status, 200)
    assert.match(echo.text ?? '', /^echo /, `${echo.code} ${echo.why}`)
    await sleep(50)
  } while (!isOver)
  return (performance.now() - startedAt) / 1000
}

/** A call of the flooding tool that its caller can give up. */
async function callOf(scene: McpScene) {
  await known(scene, 'mcp__web__more')
  const tool = (await scene.tools()).find(({ descriptor }) => descriptor.owner === 'web')
  assert.ok(tool)
  const given = new AbortController()
  const call = scene.backend.call(tool.descriptor, {}, { actor: scene.inside.actor, signal: given.signal })
  const ended = call.then(
    () => 'an answer',
    error => error.name,
  )
  return { ended, giveUp: () => given.abort() }
}

const PACE = /it floods: a burst of over 200000 lines, and 2000 per second since/
const SIZE = /more than 4194304 bytes/
const JUNK = /more than 1000 lines in a row that are not messages/

for (const [shape, limit] of [
  ['events', PACE],
  ['one endless line', SIZE],
  ['one endless event', SIZE],
  ['comments', JUNK],
  ['empty lines', JUNK],
  ['one endless body', SIZE],
] as const)
  test(`a call over HTTP answered with ${shape} fails with the limit, and other requests are served`, () =>
    world(['reply', shape], async ({ scene }) => {
      await known(scene, 'mcp__web__more')
      const call = scene.call('mcp__web__more', {})
      await answersUntil(scene, call)
      const { code, why } = await call
      assert.is(code, shape === 'one endless body' ? 'tool_backend_failed' : 'tool_unavailable', why)
      assert.match(why ?? '', limit)
    }))

for (const [shape, limit] of [
  ['one endless line', SIZE],
  ['one endless event', SIZE],
  ['comments', JUNK],
] as const)
  test(`a server over HTTP that sends ${shape} unasked is abandoned with the limit as the reason`, () =>
    world(['standing', shape], async ({ scene }) => {
      void scene.request('GET', '/api/settings/mcp-servers/web?probe=true')
      const failed = eventually(async () => {
        const status = await stateOf(scene)
        return status.state === 'failed' && status
      }, 'the end of the flood')
      await answersUntil(scene, failed)
      const { reason, diagnostic } = await failed
      assert.is(reason, 'mcp_unreachable')
      assert.match(diagnostic, limit)
    }))

for (const shape of ['events', 'answers that nobody asked for', 'events now and then'])
  test(`a call over HTTP answered with endless ${shape} blocks nothing, and its caller can cancel`, () =>
    world(['reply', shape], async ({ scene }) => {
      const { ended, giveUp } = await callOf(scene)
      await answersUntil(scene, sleep(1500))
      giveUp()
      assert.is(await ended, 'AbortError')
    }))

test('canceled calls leave no streams to reopen on a server that ends each stream at once', () =>
  world(['reply', 'streams that end at once'], async ({ scene, seen }) => {
    const calls = await Promise.all(Array.from({ length: 40 }, () => callOf(scene)))
    await eventually(async () => (await seen()).calls === calls.length, 'all calls')
    for (const { giveUp } of calls) giveUp()
    for (const { ended } of calls) assert.is(await ended, 'AbortError')
    const { streams: before } = await seen()
    const seconds = await answersUntil(scene, sleep(4000))
    const { streams } = await seen()
    // Each of the calls would have one opened every second.
    assert.ok(streams - before <= 20 * seconds, `${streams - before} streams in ${seconds} s`)
  }))

for (const where of ['standing', 'reply']) {
  const called = async (scene: McpScene) => {
    await known(scene, 'mcp__web__more')
    return where === 'reply' ? await callOf(scene) : undefined
  }

  test(`a server that ends each stream at once and asks for immediate retries is polled seldom (${where})`, () =>
    world([where, 'streams that end at once'], async ({ scene, seen }) => {
      const call = await called(scene)
      await eventually(async () => (await seen()).streams > 0, 'the first stream')
      const { streams: before } = await seen()
      const seconds = await answersUntil(scene, sleep(3000))
      const { streams } = await seen()
      // One for the call beside the one that is always open, each opened once a second.
      assert.ok(streams - before <= 4 * seconds, `${streams - before} streams in ${seconds} s`)
      call?.giveUp()
    }))

  test(`a server with endless tool change notices is listed seldom (${where})`, () =>
    world([where, 'lists that changed'], async ({ scene, seen }) => {
      const call = await called(scene)
      const { lists: before } = await seen()
      const seconds = await answersUntil(scene, sleep(2500))
      const { lists } = await seen()
      // One a second, and what is under way at both ends.
      assert.ok(lists - before <= seconds + 3, `${lists - before} lists of tools in ${seconds} s`)
      call?.giveUp()
    }))

  test(`a server with endless requests and no reading has few of them pending (${where})`, () =>
    world([where, 'questions'], async ({ scene, seen }) => {
      const call = await called(scene)
      await eventually(async () => (await seen()).answering > 0, 'an answer')
      await answersUntil(scene, sleep(1500))
      const { answering } = await seen()
      assert.ok(answering <= 64, `${answering} answers under way`)
      call?.giveUp()
    }))
}

test.run()
