import { copyFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { systemClock } from '../../../../kernel/clock.js'
import { definePlugin } from '../../../../kernel/plugin.js'
import { Sessions } from '../../../../plugins/work/sessions/api.js'
import type { SessionsService } from '../../../../plugins/work/sessions/service.js'
import { openWorld, type World } from '../../../fixtures/session-world.js'
import type { Reply } from '../../../harness/kernel.js'

const DAY = 24 * 3_600_000

/** The service of the kernel that runs. */
let service: SessionsService
const other = definePlugin({
  name: 'test.other',
  version: '1.0.0',
  requires: { sessions: Sessions },
  service: async () =>
    class {
      constructor({ needs }: { needs: Record<string, unknown> }) {
        service = needs.sessions as SessionsService
      }
    },
}).surface({})

async function withWorld(run: (world: World, pass: (days: number) => Promise<void>) => Promise<void>): Promise<void> {
  let shift = 0
  const clock = { ...systemClock(), now: () => Date.now() + shift }
  const world = await openWorld({ plugins: [other], clock })
  const pass = async (days: number) => {
    shift += days * DAY
    await service.context.promptFiles.sweep()
  }
  try {
    await world.agent('loads', { flags: '--load' })
    await run(world, pass)
  } finally {
    await world.close()
  }
}

const fileOf = (world: World, id: string) => path.join(world.home, 'sessions', id, 'prompts.json')
const moved = (world: World, id: string) => existsSync(fileOf(world, id))
const send = async (world: World, at: string, key: string, text = `say ${key}`): Promise<Reply> => {
  const body = { text, idempotency_key: key, message_id: `msg-${key}` }
  const reply = await world.kernel.request('POST', `${at}/prompt`, body)
  return { ...(reply.body.prompt ?? reply.body), status: reply.status }
}
/** Sends a prompt and waits for its turn. */
async function sent(world: World, at: string, key: string): Promise<Reply> {
  const receipt = await send(world, at, key)
  assert.ok(receipt.status < 300, JSON.stringify(receipt))
  await world.ended(at, receipt.new_turn_id)
  return receipt
}
const turnsOf = async (world: World, at: string) =>
  (await world.events(at)).filter(({ type }) => type === 'user_message').length

test('a repeated prompt is recognized after the prompts moved into the session folder', () =>
  withWorld(async (world, pass) => {
    const { id, at } = await world.session('loads')
    const first = await sent(world, at, 'one')
    await pass(0)
    assert.not.ok(moved(world, id), 'it was used a moment ago')
    await pass(2)
    assert.ok(moved(world, id))
    const again = await send(world, at, 'one')
    assert.equal([again.replayed, again.new_turn_id], [true, first.new_turn_id])
    assert.not.ok(moved(world, id), 'they are back')
    assert.is((await send(world, at, 'one', 'say other')).code, 'prompt_idempotency_conflict')
    await sent(world, at, 'two')
    await pass(2)
    for (const key of ['two', 'one']) assert.is((await send(world, at, key)).replayed, true, key)
    assert.is(await turnsOf(world, at), 2)
  }))

test('moved prompts are found after a stop, and deleted with the session', () =>
  withWorld(async (world, pass) => {
    const { id, at } = await world.session('loads')
    await sent(world, at, 'one')
    assert.ok((await world.kernel.request('POST', `${at}/stop`)).status < 300)
    await pass(2)
    assert.ok(moved(world, id))
    await world.restart()
    assert.is((await send(world, at, 'one')).replayed, true)
    assert.is((await send(world, at, 'two')).code, 'session_stopped')
    await pass(2)
    assert.ok(moved(world, id))
    assert.ok((await world.kernel.request('DELETE', at)).status < 300)
    assert.not.ok(existsSync(path.dirname(fileOf(world, id))))
  }))

test('waiting prompts stay in the catalog with all of their session', () =>
  withWorld(async (world, pass) => {
    const { id, at } = await world.session('loads')
    const gate = world.gate()
    await send(world, at, 'one', gate.line)
    const second = await send(world, at, 'two')
    assert.is(second.status, 202)
    await pass(2)
    assert.not.ok(moved(world, id))
    await gate.open()
    await world.ended(at, second.new_turn_id)
    assert.is(await turnsOf(world, at), 2)
  }))

test('a kill between file and catalog loses and duplicates nothing', () =>
  withWorld(async (world, pass) => {
    const { id, at } = await world.session('loads')
    const first = await sent(world, at, 'one')
    const known = async () => {
      const again = await send(world, at, 'one')
      assert.equal([again.replayed, again.new_turn_id], [true, first.new_turn_id])
      assert.is(await turnsOf(world, at), 1)
    }
    const db = path.join(world.home, 'svc.db')
    const saved = path.join(world.root, 'saved')
    // The file is written, the catalog is as before.
    await world.restart({ meanwhile: () => copyFileSync(db, saved) })
    await pass(2)
    assert.ok(moved(world, id))
    await world.restart({
      meanwhile: () => {
        for (const suffix of ['-wal', '-mark']) rmSync(`${db}${suffix}`, { force: true })
        copyFileSync(saved, db)
      },
    })
    assert.ok(moved(world, id))
    await known()
    await pass(2)
    await known()
    // The prompts are back, their file is still there.
    await pass(2)
    const text = readFileSync(fileOf(world, id))
    await known()
    await sent(world, at, 'two')
    await world.restart({ meanwhile: () => writeFileSync(fileOf(world, id), text) })
    assert.is((await send(world, at, 'two')).replayed, true)
    await pass(2)
    for (const key of ['two', 'one']) assert.is((await send(world, at, key)).replayed, true, key)
    assert.is(await turnsOf(world, at), 2)
  }))

test('a damaged file affects only the repetitions of its session, and doctor names it', () =>
  withWorld(async (world, pass) => {
    const [damaged, whole] = [await world.session('loads'), await world.session('loads')]
    for (const { at } of [damaged, whole]) await sent(world, at, 'one')
    await pass(2)
    const text = readFileSync(fileOf(world, damaged.id), 'utf8')
    writeFileSync(fileOf(world, damaged.id), text.replace('completed', 'completet'))
    const refused = await send(world, damaged.at, 'one')
    assert.equal([refused.status, refused.code], [503, 'session_prompts_damaged'])
    assert.is((await send(world, whole.at, 'one')).replayed, true)
    const { items } = (await world.kernel.request('GET', '/api/doctor')).body
    const named = items.filter(({ code }: Reply) => code === 'session_prompts_damaged')
    assert.equal(
      named.map(({ evidence }: Reply) => evidence.session_id),
      [damaged.id],
    )
    await world.prompt(damaged.at, 'say without a key')
    await pass(2)
    writeFileSync(fileOf(world, damaged.id), text)
    assert.is((await send(world, damaged.at, 'one')).replayed, true, 'restored')
    assert.is(await turnsOf(world, damaged.at), 2)
  }))

test.run()
