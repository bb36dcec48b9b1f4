import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { agentText, eventually, openWorld, type World } from '../../../fixtures/session-world.js'

const LIMITS = { limits: { max_concurrent_agents: 2 } }

async function inWorld(config: object, work: (world: World) => Promise<void>): Promise<void> {
  const world = await openWorld({ config })
  try {
    await world.agent('plain')
    await world.agent('loads', { flags: '--load' })
    await work(world)
  } finally {
    await world.close()
  }
}

const wasEnded = (event: { type: string; content: { note?: string } }) => event.content.note === 'idle_process_ended'
const ended = async (world: World, at: string) => (await world.events(at)).filter(wasEnded).length
const state = async (world: World, id: string) => {
  const { state, badge, failure, health } = await world.row(id)
  return { state, badge, failure, health: health?.health }
}

test('a new session takes the slot of the longest idle one, which continues with its next prompt', () =>
  inWorld(LIMITS, async world => {
    const [first, second, third] = [
      await world.session('plain'),
      await world.session('plain'),
      await world.session('plain'),
    ]
    await world.prompt(first.at, 'say one')
    await world.prompt(second.at, 'say two')
    const before = await state(world, first.id)
    await world.prompt(third.at, 'say three')
    assert.equal([await ended(world, first.at), await ended(world, second.at)], [1, 0])
    assert.equal(await state(world, first.id), before, 'state, badge and failure are as before')
    assert.is(agentText(await world.prompt(first.at, 'say again')), 'again\n')
    assert.is(await ended(world, second.at), 1)
    const events = await world.events(first.at)
    assert.not.ok(events.some(event => event.type === 'session_stopped' || event.type === 'error'))
  }))

test('a session with a loadable agent is ended first', () =>
  inWorld(LIMITS, async world => {
    const [plain, loads, third] = [
      await world.session('plain'),
      await world.session('loads'),
      await world.session('plain'),
    ]
    await world.prompt(plain.at, 'say one')
    await world.prompt(loads.at, 'say two')
    await world.prompt(third.at, 'say three')
    assert.equal([await ended(world, plain.at), await ended(world, loads.at)], [0, 1])
  }))

test('an active or attached session keeps its process, and a prompt is refused when all do', () =>
  inWorld(LIMITS, async world => {
    const [busy, held, third] = [
      await world.session('plain'),
      await world.session('plain'),
      await world.session('plain'),
    ]
    await world.prompt(held.at, 'say one')
    assert.is((await world.kernel.request('POST', `${held.at}/attach`, { attached_to: 'me' })).status, 200)
    const gate = world.gate()
    await world.kernel.request('POST', `${busy.at}/prompt`, { text: gate.line })
    const refused = await world.kernel.request('POST', `${third.at}/prompt`, { text: 'say three' })
    assert.equal([refused.status, refused.body.code], [409, 'session_limit'])
    assert.is(
      (await world.kernel.request('POST', '/api/sessions', { workspace: world.workspaceId, agent_name: 'plain' }))
        .status,
      409,
    )
    await gate.open()
    await world.until(busy.at, event => event.type === 'done')
    await eventually(async () => {
      const reply = await world.kernel.request('POST', `${third.at}/prompt`, { text: 'say three' })
      return reply.status === 200
    }, 'the slot of the session that was at work')
    assert.equal([await ended(world, busy.at), await ended(world, held.at)], [1, 0])
  }))

test('an idle process is ended after the set time, and prompts meanwhile are answered', () =>
  inWorld({ session: { idle_process_timeout: '1s' } }, async world => {
    const { at, id } = await world.session('plain')
    await world.prompt(at, 'say one')
    await world.until(at, wasEnded)
    const answers = await Promise.all(['a', 'b', 'c'].map(word => world.prompt(at, `say ${word}`)))
    assert.equal(answers.map(agentText), ['a\n', 'b\n', 'c\n'])
    assert.is((await world.row(id)).state, 'active')
  }))

test.run()
