import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { label, testCases } from '../../../fixtures/cases.js'
import { bridge, fakeBridges, scene } from './scene.js'

const URL = '/api/notifications/presets'

test('built-in presets exist, disabled and without targets', async () => {
  const s = await scene()
  const { body } = await s.request('GET', URL)
  assert.equal(
    body.presets.map((preset: { name: string; enabled: boolean; built_in: boolean; targets: unknown[] }) => [
      preset.name,
      preset.enabled,
      preset.built_in,
      preset.targets,
    ]),
    [
      ['provider_failure', false, true, []],
      ['session_unhealthy', false, true, []],
      ['task_terminal', false, true, []],
    ],
  )
  assert.is(body.total, 3)
  const { preset } = (await s.request('GET', `${URL}/task_terminal`)).body
  assert.equal(preset.events, ['task.run_*'])
  assert.match(preset.default_hash, /^[0-9a-f]{16}$/)
  assert.equal([preset.default_version, preset.user_modified, preset.default_update_available], ['1', false, false])
  await s.close()
})

test('doctor names the events of a preset that no plugin has', async () => {
  const s = await scene()
  const events = ['agent.notice', 'attention.*', 'notifications.nope', 'foo.*']
  assert.is((await s.post(URL, { name: 'odd', events, targets: [] })).status, 201)
  const { items } = (await s.request('GET', '/api/doctor?only=notifications')).body
  const found = items.filter((item: { code: string }) => item.code === 'preset_events_unknown')
  assert.equal(
    found.map(({ id, message }: { id: string; message: string }) => [id, message.split(':')[0]]),
    [
      ['notifications.presets.odd', 'notifications.nope'],
      ['notifications.presets.odd', 'foo.*'],
    ],
  )
  await s.close()
})

test('a preset is created, changed, enabled in a profile and deleted', async () => {
  const s = await scene()
  const made = await s.post(URL, {
    name: 'failures',
    events: ['task.run_failed', 'provider.*'],
    filter: 'severity >= error',
    targets: [{ bridge_id: 'team', canonical_route: 'group:#ops', display_name: 'ops' }],
  })
  assert.is(made.status, 201)
  assert.equal(
    [made.body.preset.enabled, made.body.preset.built_in, 'profile' in made.body.preset],
    [false, false, false],
  )

  assert.equal((await s.post(URL, { name: 'failures', events: [], targets: [] })).body.code, 'preset_duplicate_name')
  const enabled = await s.request('PUT', `${URL}/failures/enablement`, { enabled: true, profile: 'night' })
  assert.equal(enabled.body, { name: 'failures', enabled: true, profile: 'night' })
  const seen = async (query: string) => {
    const { preset } = (await s.request('GET', `${URL}/failures${query}`)).body
    return [preset.enabled, preset.profile]
  }
  assert.equal(await seen(''), [false, undefined])
  assert.equal(await seen('?profile=night'), [true, 'night'])
  assert.equal((await s.request('GET', `${URL}?profile=night&enabled=true`)).body.total, 1)
  assert.equal((await s.request('GET', `${URL}?built_in=false`)).body.total, 1)
  assert.equal((await s.request('GET', `${URL}?name=failures`)).body.presets[0].filter, 'severity >= error')
  assert.equal((await s.request('GET', `${URL}?limit=1`)).body.presets.length, 1)

  const same = await s.request('PUT', `${URL}/failures`, {})
  assert.equal(same.body.preset.events, ['task.run_failed', 'provider.*'])
  const changed = await s.request('PUT', `${URL}/failures`, { filter: '', events: null, enabled: true })
  assert.equal([changed.body.preset.filter, changed.body.preset.enabled], [undefined, true])

  assert.is((await s.request('DELETE', `${URL}/failures`)).status, 204)
  assert.equal((await s.request('GET', `${URL}/failures`)).body.code, 'preset_not_found')
  assert.equal((await s.request('DELETE', `${URL}/failures`)).body.code, 'preset_not_found')
  await s.close()
})

const REFUSALS: readonly (readonly [object, number, string, RegExp])[] = [
  [{ events: ['*'] }, 400, 'preset_events_invalid', /\*/],
  [{ events: ['task'] }, 400, 'preset_events_invalid', /task/],
  [{ events: ['task.*.failed'] }, 400, 'preset_events_invalid', /at the end/],
  [{ filter: 'severity >= loud' }, 400, 'preset_filter_invalid', /character 13.*not a severity/],
  [{ filter: 'agent > ada' }, 400, 'preset_filter_invalid', /only severity has an order/],
  [{ filter: '(task = a' }, 400, 'preset_filter_invalid', /the filter ends/],
  [{ filter: 'colour = red' }, 400, 'preset_filter_invalid', /fields are severity/],
  [{ targets: [{ bridge_id: 'gone' }] }, 422, 'preset_target_invalid', /no bridge "gone"/],
  [{ targets: [{ bridge_id: 'Chat' }] }, 422, 'preset_target_ambiguous', /2 bridges/],
  [{ targets: [{ bridge_id: 'mute' }] }, 422, 'preset_target_ambiguous', /default target/],
  [{ targets: [{ bridge_id: 'team', canonical_route: 'ops' }] }, 422, 'preset_target_invalid', /there are group:C1/],
  [{ targets: [{ bridge_id: 'team', canonical_route: '#two' }] }, 422, 'preset_target_ambiguous', /group:A, group:B/],
  [
    { rules: { quiet_hours: { from: '22:00', to: '07:00', time_zone: 'Mars/Olympus' } } },
    400,
    'preset_rules_invalid',
    /not a time zone/,
  ],
  [{ rules: { quiet_hours: { from: '22:00', to: '22:00', time_zone: 'UTC' } } }, 400, 'preset_rules_invalid', /same/],
]
/** Refused by the schema of the request. */
const MALFORMED = [{ name: 'Not A Name' }, { rules: { cooldown: 'soon' } }, { colour: 'red' }, { events: 'task.*' }]
const base = { name: 'p', events: ['task.run_failed'], targets: [{ bridge_id: 'team' }] }

testCases({
  open: () => {
    const bridges = fakeBridges('team')
    bridges.known.set('a', bridge('a', { displayName: 'Chat' }))
    bridges.known.set('b', bridge('b', { displayName: 'Chat' }))
    bridges.known.set('mute', bridge('mute', { defaultTarget: undefined }))
    bridges.names.set('#two', { candidates: ['group:A', 'group:B'], isAmbiguous: true })
    return scene({ bridges })
  },
  close: s => s.close(),
  cases: [...REFUSALS, ...MALFORMED.map(more => [more, 400, 'invalid_request', /./] as const)],
  name: ([more, , code]) => `a preset is refused as ${code}: ${label(more)}`,
  run: async (s, [more, status, code, text]) => {
    const reply = await s.post(URL, { ...base, ...more })
    assert.is(reply.status, status)
    if (code !== 'invalid_request') assert.is(reply.body.code, code)
    assert.match(reply.body.error, text)
  },
  after: [
    'a refused preset is not stored, and a refused change leaves the preset',
    async s => {
      assert.is((await s.request('GET', URL)).body.total, 3)
      await s.post(URL, base)
      const before = (await s.request('GET', `${URL}/p`)).body.preset
      assert.is((await s.request('PUT', `${URL}/p`, { targets: [{ bridge_id: 'Chat' }], filter: '' })).status, 422)
      assert.equal((await s.request('GET', `${URL}/p`)).body.preset, before)
    },
  ],
})

test('a bridge is referenced by its id or a unique display name', async () => {
  const bridges = fakeBridges('team')
  bridges.known.set('brg_1', bridge('brg_1', { displayName: 'Ops' }))
  const s = await scene({ bridges })
  const targets = [{ bridge_id: 'Ops' }, { bridge_id: 'brg_1' }]
  const { preset } = (await s.post(URL, { name: 'p', events: [], targets })).body
  assert.equal(preset.targets, [{ bridge_id: 'brg_1' }])
  await s.close()
})

test('a room is referenced by its name, and its route is stored', async () => {
  const bridges = fakeBridges('team')
  bridges.names.set('#ops', { route: 'group:C123', displayName: 'ops' })
  const s = await scene({ bridges })
  const targets = [{ bridge_id: 'team', canonical_route: '#ops', delivery_mode: 'reply' }]
  const { preset } = (await s.post(URL, { name: 'p', events: [], targets })).body
  assert.equal(preset.targets, [
    { bridge_id: 'team', canonical_route: 'group:C123', delivery_mode: 'reply', display_name: 'ops' },
  ])
  assert.equal(preset.target_names, ['team ops'])
  await s.close()
})

test('a built-in preset is not deleted, and one changed by the user is not updated', async () => {
  const s = await scene()
  const reply = await s.request('DELETE', `${URL}/task_terminal`)
  assert.equal([reply.status, reply.body.code], [409, 'preset_builtin_protected'])
  const put = async (body: object) => (await s.request('PUT', `${URL}/session_unhealthy`, body)).body.preset
  assert.is((await put({ targets: [{ bridge_id: 'team' }], enabled: true })).user_modified, false)
  const modified = await put({ filter: 'agent = ada' })
  assert.equal([modified.user_modified, modified.default_update_available], [true, false])
  assert.is((await put({ filter: '' })).user_modified, false)
  await s.close()
})

test.run()
