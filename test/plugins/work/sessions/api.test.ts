import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, Fault, type PluginKernel, surfaceOf } from '../../../../kernel/plugin.js'
import { type SessionInfo, Sessions } from '../../../../plugins/work/sessions/api.js'
import { agentText, openWorld, type World } from '../../../fixtures/session-world.js'

// Sessions as another plugin uses them.
let world: World
let guest: Guest

class Guest {
  readonly stopped: SessionInfo[] = []
  constructor(readonly kernel: PluginKernel<{ sessions: typeof Sessions }>) {
    guest = this
  }
  get sessions() {
    return this.kernel.needs.sessions
  }
  create(agentName: string) {
    return this.sessions.create({
      workspaceId: world.workspaceId,
      agentName,
      name: 'a job',
      type: 'system',
      actor: this.kernel.actor,
    })
  }
}
const { tap } = surfaceOf<Guest>()
const plugin = definePlugin({
  name: 'test.guest',
  version: '1.0.0',
  requires: { sessions: Sessions },
  service: async () => Guest,
}).surface({
  taps: [
    tap(
      Sessions,
      sessions => sessions.stopped,
      self => session => void self.stopped.push(session),
    ),
    tap(
      Sessions,
      sessions => sessions.prepare,
      () => (start, session) => ({
        ...start,
        env: { ...start.env, GUEST: session.name },
        preamble: `${start.preamble}\nMind the gap.`,
      }),
    ),
  ],
})

test.before(async () => {
  world = await openWorld({ plugins: [plugin] })
  await world.agent('plain')
})
test.after(() => world.close())

const run = (id: string, text: string) => guest.sessions.run(id, { text, source: 'automation' })

/** The code of the fault that something throws. */
async function codeOf(work: Promise<unknown>): Promise<string | undefined> {
  const error = await work.then(
    () => undefined,
    (error: unknown) => error,
  )
  return error instanceof Fault ? error.code : undefined
}

test('a session is created, run and stopped, with its events', async () => {
  const made = await guest.create('plain')
  assert.equal([made.state, made.type, made.name], ['active', 'system', 'a job'])
  const outcome = await run(made.id, 'env GUEST\necho')
  assert.is(outcome.status, 'completed')
  const at = `/api/workspaces/${world.workspaceId}/sessions/${made.id}`
  const events = await world.events(at)
  assert.match(agentText(events), /^GUEST=a job\n/)
  assert.match(agentText(events), /Mind the gap/)
  assert.is(events[0].content.source, 'automation')
  await guest.sessions.stop(made.id, { reason: 'completed' })
  await guest.sessions.stop(made.id, { reason: 'error' })
  assert.equal(
    guest.stopped.map(session => [session.id, session.stopReason]),
    [[made.id, 'completed']],
  )
  assert.is(guest.sessions.get(made.id)?.stopReason, 'completed')
  assert.is(await codeOf(run(made.id, 'say x')), 'session_stopped')
  assert.is(guest.sessions.get('ses_0'), undefined)
  assert.is(await codeOf(guest.sessions.stop('ses_0', { reason: 'error' })), 'session_not_found')
  assert.is(await codeOf(guest.create('nobody')), 'agent_not_found')
})

test('a failed turn is an outcome, and a refused start is thrown', async () => {
  const made = await guest.create('plain')
  const at = `/api/workspaces/${world.workspaceId}/sessions/${made.id}`
  const gate = world.gate()
  const first = run(made.id, `say begun\n${gate.line}\nexit 9`)
  await world.until(at, event => event.type === 'agent_message')
  assert.is(await codeOf(run(made.id, 'say x')), 'session_busy')
  await gate.open()
  const outcome = await first
  assert.is(outcome.status === 'failed' && outcome.failure.kind, 'process_exit')
  const stopped = guest.sessions.get(made.id)
  assert.equal(
    [stopped?.state, stopped?.stopReason],
    ['stopped', 'agent_crashed'],
    'stopped before the outcome is told',
  )
  assert.ok(stopped?.failure?.crashBundlePath)
  const again = await run(made.id, 'say back')
  assert.is(again.status, 'completed', 'a prompt starts it again')
  const canceled = run(made.id, 'say hanging\nhang')
  await world.until(at, event => event.type === 'agent_message' && event.content.text === 'hanging\n')
  await guest.sessions.stop(made.id, { reason: 'user_canceled' })
  assert.is((await canceled).status, 'canceled')
})

test.run()
