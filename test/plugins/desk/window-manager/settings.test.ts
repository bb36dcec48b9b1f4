import { rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { createClient } from '../../../../client/index.js'
import { preferences, settingsIn, WindowManagerSettings } from '../../../../plugins/desk/window-manager/settings.js'
import { validateReply } from '../../../harness/contract.js'
import { temporaryFolder } from '../../../harness/kernel.js'
import { until } from '../../../harness/until.js'
import { outcome, scene } from './scene.js'

const home = await temporaryFolder('settings')
const running: { end(): Promise<void> }[] = []
const configure = (values: unknown) => writeFile(path.join(home, 'config.json'), JSON.stringify(values, undefined, 1))

test('the settings equal the section of the contract and are all live', () => {
  const config = preferences(entry => entry.default)
  const section = { scope: 'global', available_scopes: ['global'], section: 'window-manager', config }
  assert.equal(validateReply('GET', '/api/settings/window-manager', 200, section), [])
  const settings = settingsIn(WindowManagerSettings)
  assert.is(settings.length, 23)
  for (const { path: at, apply, section: of } of settings) {
    assert.equal([apply, of], ['live', 'window-manager'], at)
    const value = at
      .split('.')
      .slice(1)
      .reduce<unknown>((outer, name) => (outer as Record<string, unknown>)[name], config)
    assert.ok(value !== undefined, at)
  }
})

test('settings are defaults below those of a workspace, and change while the daemon runs', async () => {
  await configure({
    window_manager: { new_window_policy: 'floating', gaps: { inner: 3 }, shortcuts: { close: 'mod+w', zoom: 'mod+z' } },
  })
  const svc = await scene({ home, listen: ['socket'] })
  running.push(svc)
  const { command, state, base, host } = svc
  const id = await svc.workspace('one')
  const other = await svc.workspace('other')
  const wants = () => svc.inside().needs.windows.preferences(id)
  assert.equal([wants()?.gaps.inner, wants()?.gaps.top, wants()?.raise_on_focus], [3, 8, true])
  assert.is(svc.inside().needs.windows.preferences('ws_gone'), undefined)
  // Most of them nobody but a client can go by: it gets every one.
  const given = async () => (await state(id)).preferences
  const every = settingsIn(WindowManagerSettings).map(({ path: at }) => at.split('.').slice(1))
  for (const names of every) {
    const value = names.reduce((outer, name) => outer?.[name], await given())
    assert.ok(value !== undefined, names.join('.'))
  }
  await command(other, 'window.open', { id: 'a', app: 'mail' })
  assert.is((await state(other)).windows.a.placement, 'floating')

  const overrides = { new_window_policy: 'beside_focus', raise_on_focus: false, shortcuts: { zoom: 'f11' } }
  const { body: document } = await host.request('GET', `${base(id)}/layout`)
  await host.request('PUT', `${base(id)}/layout`, { expected_revision: 0, document: { ...document, overrides } })
  assert.equal(wants()?.shortcuts, { close: 'mod+w', zoom: 'f11' })
  assert.equal(await given(), wants())
  assert.is(wants()?.raise_on_focus, false)
  await command(id, 'window.open', { id: 'a', app: 'mail' })
  assert.is((await state(id)).windows.a.placement, 'tiled')
  const floating_rect = { x: 0, y: 0, width: 0.5, height: 0.5 }
  for (const [workspace, front] of [
    [id, 'c'],
    [other, 'b'],
  ] as const) {
    await command(workspace, 'window.open', { id: 'b', app: 'mail', floating_rect })
    await command(workspace, 'window.open', { id: 'c', app: 'mail', floating_rect })
    await command(workspace, 'window.focus', { window_id: 'b' })
    assert.is((await state(workspace)).desktops[0].floating.at(-1), front)
  }

  const undone = async () => (await state(other)).history.undo.length
  assert.is(await undone(), 3)
  const { revision } = await state(other)
  const abort = new AbortController()
  const reading = createClient({ socket: path.join(home, 'daemon.sock') })
    .getWorkspacesByWorkspaceIdWindowManagerStream({
      path: { workspace_id: other },
      query: { after_revision: revision },
      signal: abort.signal,
    })
    .next()
  await until(() => host.kernel.host.streams()['window-manager'] === 1, 'a stream')
  await configure({ window_manager: { history_limit: 2, raise_on_focus: false } })
  await until(() => wants()?.history_limit === 2, 'the setting')
  const { value: frame } = await reading
  assert.is(frame?.type === 'snapshot' && frame.snapshot.preferences?.history_limit, 2, 'whoever reads is told')
  abort.abort()
  assert.is(await undone(), 2, 'what is beyond the limit is not shown')
  assert.is((await command(other, 'layout.undo')).status, 200)
  assert.is((await command(other, 'layout.undo')).status, 200)
  assert.is(outcome(await command(other, 'layout.undo')), '409 window_manager_history_boundary', 'nor undone')
  assert.is((await command(other, 'layout.redo')).status, 200)
  assert.is((await command(other, 'layout.redo')).status, 200)
  await command(other, 'window.focus', { window_id: 'c' })
  assert.is((await state(other)).desktops[0].floating.at(-1), 'b', 'nothing is raised any more')

  // What is not valid changes nothing.
  await configure({ window_manager: { history_limit: -1, raise_on_focus: true } })
  const said = () => host.log.some(({ msg }) => msg.includes('window_manager.history_limit'))
  await until(() => said(), 'a line of the log')
  assert.equal([wants()?.history_limit, wants()?.gaps.inner], [2, 8])
  await running.pop()?.end()
})

const INVALID: [string, RegExp][] = [
  ['{ "window_manager": {\n "gaps": {\n "inner": -1 } } }', /config\.json:3: window_manager\.gaps\.inner: /],
  ['{ "window_manager": {\n "gaps": { "inner": 1.5 } } }', /:2: window_manager\.gaps\.inner: /],
  ['{ "window_manager": {\n "gaps": { "middle": 1 } } }', /:2: unknown key window_manager\.gaps\.middle/],
  ['{ "window_manager": {\n "gaps": 8 } }', /:2: window_manager\.gaps: Expected an object/],
  ['{ "window_manager": {\n\n "focus_policy": "psychic" } }', /:3: window_manager\.focus_policy: /],
  ['{ "window_manager": { "history_limit": 1001 } }', /:1: window_manager\.history_limit: /],
  ['{ "window_manager": { "snap": {\n "repeat_ratios": [0.5, 2] } } }', /:2: window_manager\.snap\.repeat_ratios: /],
  ['{ "window_manager": { "shortcuts": {\n "zoom": 7 } } }', /window_manager\.shortcuts: /],
  ['{ "window_manager": { "colour": "red" } }', /:1: unknown key window_manager\.colour/],
]
for (const [text, expected] of INVALID)
  test(`a start is refused with ${expected.source}`, async () => {
    await writeFile(path.join(home, 'config.json'), text)
    const failed = await scene({ home }).then(
      svc => svc.end(),
      error => String(error.message),
    )
    assert.match(String(failed), expected)
  })

test.after(async () => {
  await running.pop()?.end()
  await rm(home, { recursive: true, force: true })
})
test.run()
