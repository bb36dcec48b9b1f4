import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { CommandContext } from '../../../../kernel/plugin.js'
import * as commands from '../../../../plugins/reach/notifications/commands.js'
import type { Reply } from '../../../harness/kernel.js'
import { type Scene, scene } from './scene.js'

/** Runs a command against a daemon; resolves to what it prints. */
async function run(
  s: Scene,
  command: (context: CommandContext) => Promise<unknown>,
  args: Record<string, string>,
  options: Record<string, string | number | boolean> = {},
): Promise<string> {
  const lines: string[] = []
  const context = {
    path: '',
    args,
    options,
    client: {
      request: async (method: string, url: string, body?: unknown) => {
        const reply = await s.request(method, url, body)
        if (reply.status >= 400) throw new Error(`${reply.status} ${reply.body.code}`)
        return reply.body as Reply
      },
    },
    out: {
      json: options.json === true,
      id: () => {},
      line: (text: string) => lines.push(text),
      value: (value: unknown) => lines.push(JSON.stringify(value)),
    },
    fault: (code: string, text: string) => {
      throw new Error(`${code}: ${text}`)
    },
  }
  await command(context as never)
  return lines.join('\n')
}

const fails = async (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'it did not fail',
    (error: Error) => error.message,
  )

test('a preset is created, changed, enabled and disabled from the command line', async () => {
  const s = await scene()
  const name = { name: 'ops' }
  const preset = async () => (await s.request('GET', '/api/notifications/presets/ops')).body.preset
  assert.is(
    await run(s, commands.runCreate, name, {
      events: 'task.run_failed, provider.*',
      targets: 'team=group:#ops,other',
      filter: 'severity >= error',
      cooldown: '10m',
      'after-failures': 2,
      quiet: '22:00-07:00',
      'time-zone': 'Europe/Berlin',
    }),
    'created ops; enable it: svc notifications preset enable ops',
  )
  const made = await preset()
  assert.equal([made.events, made.filter], [['task.run_failed', 'provider.*'], 'severity >= error'])
  assert.equal(made.targets, [{ bridge_id: 'team', canonical_route: 'group:#ops' }, { bridge_id: 'other' }])
  const quiet_hours = { from: '22:00', to: '07:00', time_zone: 'Europe/Berlin' }
  assert.equal(made.rules, { after_failures: 2, cooldown: '10m', quiet_hours })

  assert.is(await run(s, commands.runUpdate, name, { 'remind-after': '15m', quiet: '23:00-06:00' }), 'changed ops')
  const changed = await preset()
  assert.equal(changed.rules.quiet_hours, { ...quiet_hours, from: '23:00', to: '06:00' })
  assert.equal(
    [changed.rules.remind_after, changed.rules.cooldown, changed.filter],
    ['15m', '10m', 'severity >= error'],
  )
  await run(s, commands.runUpdate, name, { quiet: 'off', filter: '' })
  assert.equal([(await preset()).rules.quiet_hours, (await preset()).filter], [undefined, undefined])

  assert.is(await run(s, commands.runEnable, name), 'enabled ops')
  assert.is((await preset()).enabled, true)
  assert.is(await run(s, commands.runDisable, name), 'disabled ops')
  assert.is((await preset()).enabled, false)
  assert.is(await run(s, commands.runEnable, name, { profile: 'night' }), 'enabled ops in night')

  assert.match(await fails(run(s, commands.runCreate, { name: 'x' })), /usage: give the events/)
  assert.match(await fails(run(s, commands.runUpdate, name, { quiet: '22:00' })), /usage: --quiet is two times/)
  assert.match(await fails(run(s, commands.runUpdate, name, { quiet: '22:00-07:00' })), /usage: quiet hours need/)
  assert.match(await fails(run(s, commands.runUpdate, { name: 'none' })), /404 preset_not_found/)
  await s.close()
})

test('a preset shows its targets, and reports when it sends nothing', async () => {
  const s = await scene()
  const name = { name: 'task_terminal' }
  assert.match(await run(s, commands.runEnable, name), /^enabled task_terminal; it sends nothing yet: svc .* --targets/)
  await run(s, commands.runUpdate, name, { targets: 'team=group:#ops' })
  assert.is(await run(s, commands.runEnable, name), 'enabled task_terminal')
  await run(s, commands.runDisable, name)
  const { preset } = (await s.request('GET', '/api/notifications/presets/task_terminal')).body
  assert.equal(preset.target_names, ['team group:#ops'])
  assert.equal(preset.target_states, [{ bridge_id: 'team', bridge_name: 'team', canonical_route: 'group:#ops' }])
  await s.close()
})

test('attention is acknowledged as a whole or by item', async () => {
  const s = await scene()
  await s.emitAll(['a', 'b', 'c'].map(provider => ({ name: 'provider.unavailable', payload: { provider } })))
  assert.is(await run(s, commands.runAcknowledge, { id: 'provider:a' }), 'acknowledged 1 item')
  assert.is((await s.request('GET', '/api/notifications/attention')).body.total, 2)
  assert.is(await run(s, commands.runAcknowledge, {}, { json: true }), '{"acknowledged":2}')
  assert.is(await run(s, commands.runAcknowledge, {}), 'nothing to acknowledge')
  assert.match(await fails(run(s, commands.runAcknowledge, { id: 'provider:a' })), /409 attention_item_unknown/)
  await s.close()
})

test.run()
