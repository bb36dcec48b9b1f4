import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { agentText, eventually, isAlive, openWorld, type World } from '../../../fixtures/session-world.js'
import type { Reply } from '../../../harness/kernel.js'

const types = (events: readonly Reply[]) => events.map(event => event.type)

async function withWorld(run: (world: World) => Promise<void>, options?: Parameters<typeof openWorld>[0]) {
  const world = await openWorld(options)
  try {
    await run(world)
  } finally {
    await world.close()
  }
}

test('a clean shutdown stops all sessions with reason shutdown; a prompt restarts one by loading', () =>
  withWorld(async world => {
    await world.agent('loads', { flags: '--load' })
    await world.agent('stubborn')
    const { id, at } = await world.session('loads')
    const pid = Number(/pid (\d+)/.exec(agentText(await world.prompt(at, 'say before\npid')))![1])
    const unused = await world.session('loads')
    const untouched = await Promise.all(Array.from({ length: 20 }, () => world.session('loads')))
    const busy = await world.session('stubborn')
    await world.kernel.request('POST', `${busy.at}/prompt`, { text: 'say x\nhang deaf' })
    await world.until(busy.at, event => event.type === 'agent_message')
    const queued = await world.kernel.request('POST', `${busy.at}/prompt`, { text: 'say queued' })
    assert.is(queued.status, 202)
    await world.restart()
    assert.not(isAlive(pid))
    for (const session of [id, unused.id, busy.id, untouched.at(-1)!.id]) {
      const row = await world.row(session)
      assert.equal([row.state, row.stop_reason, row.failure], ['stopped', 'shutdown', undefined])
    }
    assert.ok(types(await world.events(busy.at)).includes('done'), 'the turn was canceled')
    assert.equal(types(await world.events(at)).slice(-1), ['session_stopped'])
    assert.equal(await world.events(unused.at), [], 'a journal that nobody needed is not written')
    assert.is((await world.kernel.request('GET', '/api/sessions?state=active')).body.page.total, 0)

    const events = await world.prompt(at, 'say after\necho')
    assert.match(agentText(events), /^after\n\["say after\\necho"\]\n$/, 'no first words again, nothing replayed')
    const marker = (await world.events(at)).find(event => event.type === 'transcript_marker.created')
    assert.is(marker.content.loaded, true)
    const row = await world.row(id)
    assert.equal([row.state, row.stop_reason], ['active', undefined])

    const resumed = await world.kernel.request('POST', `${unused.at}/prompt`, {})
    assert.equal([resumed.status, resumed.body.prompt.status], [200, 'resumed'])
    assert.is((await world.row(unused.id)).state, 'active')
    assert.is((await world.kernel.request('POST', `${unused.at}/prompt`, {})).status, 400, 'nothing to resume')

    // What waited in the queue comes before what is asked now.
    const next = await world.kernel.request('POST', `${busy.at}/prompt`, { text: 'say next' })
    assert.is(next.body.prompt.queue_position, 2)
    await world.until(busy.at, event => event.turn_id === next.body.prompt.new_turn_id && event.type === 'done')
    assert.is(agentText(await world.events(busy.at)), 'x\nqueued\nnext\n')
  }))

test('an agent that cannot load, or fails or ends at loading, gets a summary', () =>
  withWorld(async world => {
    const agents = { cannot: '', fails: '--fail-load', ends: '--exit-on-load' }
    const all = <T>(work: (name: string, flags: string) => Promise<T>) =>
      Promise.all(Object.entries(agents).map(([name, flags]) => work(name, flags)))
    const started = await all(async (name, flags) => {
      await world.agent(name, { flags })
      const { id, at } = await world.session(name)
      await world.prompt(at, 'say the answer is 42')
      return [name, { id, at }] as const
    })
    const sessions = new Map<string, { id: string; at: string }>(started)
    await world.restart()
    await all(async name => {
      const { id = '', at = '' } = sessions.get(name) ?? {}
      const text = agentText(await world.prompt(at, 'echo'))
      assert.match(text, /The conversation so far/, name)
      assert.match(text, /the answer is 42/, name)
      const marker = (await world.events(at)).find(event => event.type === 'transcript_marker.created')
      assert.is(marker.content.loaded, false, name)
      assert.is((await world.row(id)).state, 'active', name)
    })
  }))

test('a failed restart leaves the session restartable', () =>
  withWorld(async world => {
    await world.agent('shy', { flags: '--load' })
    const { id, at } = await world.session('shy')
    await world.prompt(at, 'say x')
    await world.restart()
    await world.agent('shy', { flags: '--exit-at-start=4' })
    const sent = await world.kernel.request('POST', `${at}/prompt`, { text: 'say y' })
    await world.until(at, event => event.turn_id === sent.body.prompt.new_turn_id && event.type === 'error')
    const row = await eventually(async () => {
      const row = await world.row(id)
      return row.failure && row
    }, 'the failure')
    assert.equal([row.state, row.stop_reason, row.failure.kind], ['stopped', 'shutdown', 'startup_failure'])
    const starts = path.join(world.root, 'starts')
    await world.agent('shy', { command: `sh -c "echo once >> ${starts}; exit 4"` })
    const resume = await world.kernel.request('POST', `${at}/prompt`, {})
    assert.equal([resume.status, resume.body.code], [500, 'session_start_failed'])
    assert.is(await readFile(starts, 'utf8'), 'once\n', 'only one that ends while it loads is started again')
    await world.agent('shy', { flags: '--load' })
    assert.is(agentText(await world.prompt(at, 'say z')), 'z\n')
    assert.is((await world.row(id)).failure, undefined)
  }))

test.run()
