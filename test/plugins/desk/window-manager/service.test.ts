import { rm } from 'node:fs/promises'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { VirtualClock } from '../../../../testing/virtual-clock.js'
import { label, testCases } from '../../../fixtures/cases.js'
import { temporaryFolder } from '../../../harness/kernel.js'
import { outcome, scene } from './scene.js'

const clock = new VirtualClock()
const svc = await scene({ clock })
const { host, base, command, state } = svc
const codes = (body: { diagnostics?: { code: string }[] }) => (body.diagnostics ?? []).map(({ code }) => code)

test('an unused workspace has one empty desktop at revision 0, by id, name and path', async () => {
  const id = await svc.workspace('fresh')
  const first = await state(id)
  assert.equal([first.revision, first.version, first.desktops.length, first.windows], [0, 2, 1, {}])
  assert.equal(await state('fresh'), first)
  assert.equal(await state(encodeURIComponent(`${svc.folder}/fresh`)), first)
  const gone = await host.request('GET', base('ws_gone'))
  assert.is(outcome(gone), '404 window_manager_workspace_not_found')
  assert.is(gone.body.workspace_id, 'ws_gone')
})

test('windows are opened, moved, stacked, floated and closed; undo and redo cover all of it', async () => {
  const id = await svc.workspace('work')
  await command(id, 'window.open', { id: 'a', app: 'mail' })
  await command(id, 'window.open', { id: 'b', app: 'code' })
  const third = await command(id, 'window.open', { id: 'c', app: 'shell' })
  assert.is(third.body.snapshot.revision, 3)
  const [group] = third.body.snapshot.desktops[0].groups
  assert.equal([group.root.kind, group.root.axis, group.root.children.length], ['split', 'horizontal', 3])
  await command(id, 'window.move', { window_id: 'c', target_window_id: 'a', edge: 'center' })
  assert.is((await state(id)).windows.a.placement, 'stacked')
  await command(id, 'window.toggle_floating', { window_id: 'b', minimized: true })
  assert.equal([(await state(id)).windows.b.placement, (await state(id)).windows.b.minimized], ['floating', true])
  await command(id, 'window.focus', { window_id: 'b' })
  assert.is((await state(id)).windows.b.minimized, false)
  await command(id, 'window.toggle_floating', { window_id: 'b' })
  const back = await state(id)
  assert.equal([back.windows.b.placement, back.desktops[0].groups[0].root.children.at(-1).window_id], ['tiled', 'b'])
  await command(id, 'window.close', { window_id: 'a' })
  assert.is((await state(id)).windows.c.placement, 'tiled', 'a stack of one is none')
  const closed = await state(id)
  assert.equal(closed.history.undo.map((entry: { command_id: string }) => entry.command_id).at(-1), 'window.close')
  while ((await command(id, 'layout.undo')).status === 200);
  const none = await command(id, 'layout.undo')
  assert.is(outcome(none), '409 window_manager_history_boundary')
  assert.equal((await state(id)).windows, {})
  while ((await command(id, 'layout.redo')).status === 200);
  const { windows, desktops } = await state(id)
  assert.equal([windows, desktops], [closed.windows, closed.desktops])
})

test('one of two writers with one revision wins, and the other gets the current revision', async () => {
  const id = await svc.workspace('race')
  const write = (app: string) =>
    host.request('POST', `${base(id)}/commands`, { expected_revision: 0, command_id: 'window.open', payload: { app } })
  const replies = await Promise.all(Array.from({ length: 8 }, (_, i) => write(`app${i}`)))
  assert.equal(replies.map(({ status }) => status).sort(), [200, ...Array(7).fill(409)])
  for (const { status, body } of replies) if (status === 409) assert.is(body.current_revision, 1)
  const [only] = Object.values((await state(id)).windows) as { app: string }[]
  assert.is(only?.app, `app${replies.findIndex(({ status }) => status === 200)}`)
})

test('a stale command is applied if its references exist, and refused with the missing one', async () => {
  const id = await svc.workspace('rebase')
  await command(id, 'window.open', { id: 'a', app: 'mail' })
  await command(id, 'window.open', { id: 'b', app: 'code' })
  const stale = (rebase: object) => command(id, 'window.zoom', { window_id: 'a' }, { expected_revision: 1, rebase })
  assert.is((await stale({ window_id: 'a' })).body.rebased_from, 1)
  const gone = await stale({ window_id: 'a', target_node_id: 'nd_gone' })
  assert.is(outcome(gone), '409 window_manager_revision_conflict')
  assert.equal(gone.body.conflicts, [{ code: 'node_missing', entity_id: 'nd_gone' }])
  assert.is(outcome(await stale({})), '409 window_manager_revision_conflict')
  await command(id, 'window.zoom', { window_id: 'a' })
  const [{ root }] = (await state(id)).desktops[0].groups
  const boundary = async (boundary_index: number) => {
    const { body } = await stale({ split_id: root.id, boundary_index })
    return body.conflicts ?? body.rebased_from
  }
  assert.equal(await boundary(1), [{ code: 'boundary_missing', entity_id: root.id }])
  assert.is(await boundary(0), 1)
  assert.is(
    outcome(await command(id, 'layout.undo', {}, { expected_revision: 99, rebase: { window_id: 'a' } })),
    '409 window_manager_revision_conflict',
  )
})

const REFUSED: readonly [string, object, string][] = [
  ['window.close', { window_id: 'constructor' }, '404 window_manager_window_not_found'],
  ['window.open', { app: 'x', desktop_id: 'nowhere' }, '404 window_manager_desktop_not_found'],
  ['desktop.delete', { desktop_id: 'desktop-1' }, '422 window_manager_destination_required'],
  ['desktop.delete', { desktop_id: 'desktop-1', move_to: 'desktop-1' }, '422 window_manager_destination_required'],
  ['desktop.switch', { desktop_id: 'second' }, '404 window_manager_client_not_found'],
  ['layout.replace', { layout_id: 'none' }, '404 window_manager_layout_not_found'],
  ['layout.redo', {}, '409 window_manager_history_boundary'],
  ['layout.resize', { window_id: 'a', axis: 'vertical', delta: 0.1 }, '422 window_manager_invalid_command'],
  ['window.open', { id: '../x', app: 'x' }, '422 window_manager_invalid_topology'],
  ['window.open', { id: '__proto__', app: 'x' }, '422 window_manager_invalid_topology'],
  ['window.open', { id: 'a', app: 'x' }, '422 window_manager_invalid_command'],
]

testCases({
  open: async () => {
    const id = await svc.workspace('refusals')
    await command(id, 'window.open', { id: 'a', app: 'mail' })
    await command(id, 'desktop.create', { id: 'second' })
    return { id, before: await state(id) }
  },
  close: () => {},
  cases: REFUSED,
  name: ([name, payload, expected]) => `${name} ${label(payload, 50)} is refused: ${expected}`,
  run: async ({ id }, [name, payload, expected]) => assert.is(outcome(await command(id, name, payload)), expected),
  after: [
    'a refused command names its members and changes nothing',
    async ({ id, before }) => {
      const wrong = await command(id, 'window.open', { app: '', edge: 'up', colour: 'red' })
      assert.is(outcome(wrong), '422 window_manager_invalid_command')
      assert.equal(wrong.body.diagnostics.map(({ path }: { path: string }) => path).sort(), ['app', 'colour', 'edge'])
      assert.is((await command(id, 'window.shout')).status, 400)
      assert.equal(await state(id), before)
      await command(id, 'desktop.delete', { desktop_id: 'desktop-1', move_to: 'second' })
      assert.equal((await state(id)).windows.a.desktop_id, 'second')
      assert.is(
        outcome(await command(id, 'desktop.delete', { desktop_id: 'second' })),
        '409 window_manager_final_desktop',
      )
    },
  ],
})

test('opening an open window focuses it and adds no undo step', async () => {
  const id = await svc.workspace('instances')
  const open = (instance_key: string) => command(id, 'window.open', { app: 'mail', instance_key })
  await open('one')
  await open('two')
  const again = await open('one')
  assert.equal([again.body.applied, Object.keys(again.body.snapshot.windows).length], [true, 2])
  await command(id, 'layout.undo')
  const { windows } = await state(id)
  assert.equal(
    Object.values(windows).map(window => (window as { instance_key: string }).instance_key),
    ['one'],
  )
})

test('a new command discards the undone ones', async () => {
  const id = await svc.workspace('branch')
  await command(id, 'window.open', { id: 'a', app: 'mail' })
  await command(id, 'layout.undo')
  await command(id, 'desktop.update', { desktop_id: 'desktop-1', name: 'Main' })
  assert.is(outcome(await command(id, 'layout.redo')), '409 window_manager_history_boundary')
})

test('a preview shows the result of a command without applying it', async () => {
  const id = await svc.workspace('preview')
  const body = { expected_revision: 0, command_id: 'window.open', payload: { id: 'a', app: 'mail' } }
  const shown = await host.request('POST', `${base(id)}/preview`, body)
  assert.equal([shown.status, shown.body.changed, shown.body.snapshot.windows.a.app], [200, true, 'mail'])
  assert.equal(shown.body.changes.window_ids, ['a'])
  assert.is((await state(id)).revision, 0)
})

test('the history keeps the documented number of commands', async () => {
  const id = await svc.workspace('limit')
  const { body: document } = await host.request('GET', `${base(id)}/layout`)
  const put = { expected_revision: 0, document: { ...document, overrides: { history_limit: 3 } } }
  assert.is((await host.request('PUT', `${base(id)}/layout`, put)).status, 200)
  for (let i = 0; i < 6; i++) await command(id, 'window.open', { app: `app${i}` })
  assert.is((await state(id)).history.undo.length, 3)
  for (let i = 0; i < 3; i++) assert.is((await command(id, 'layout.undo')).status, 200)
  assert.is(outcome(await command(id, 'layout.undo')), '409 window_manager_history_boundary')
  assert.is(Object.keys((await state(id)).windows).length, 3)
})

test('clients have their own desktop and focus, and expire when silent', async () => {
  const id = await svc.workspace('clients')
  await command(id, 'desktop.create', { id: 'second' })
  const attach = async (body: object) => host.request('POST', `${base(id)}/clients`, body)
  const list = async () =>
    (await host.request('GET', `${base(id)}/clients`)).body.clients.map(
      (client: { client_id: string }) => client.client_id,
    )
  const one = (await attach({ client_id: 'one' })).body
  assert.is(one.active_desktop_id, 'desktop-1')
  assert.is(outcome(await attach({ active_desktop_id: 'third' })), '404 window_manager_desktop_not_found')
  const switched = await command(id, 'desktop.switch', { desktop_id: 'second' }, { client_id: 'one' })
  assert.equal([switched.body.applied, switched.body.client.active_desktop_id], [false, 'second'])
  const opened = await command(id, 'window.open', { id: 'a', app: 'mail' }, { client_id: 'one' })
  assert.equal([opened.body.client.focused_window_id, opened.body.snapshot.windows.a.desktop_id], ['a', 'second'])
  await command(id, 'window.close', { window_id: 'a' })
  assert.equal((await attach({ client_id: 'one' })).body.focused_window_id, null)
  await clock.advance(4 * 60_000)
  await attach({ client_id: 'two' })
  await clock.advance(2 * 60_000)
  assert.equal(await list(), ['two'])
  assert.is((await host.request('DELETE', `${base(id)}/clients/two`)).status, 204)
  assert.is(outcome(await host.request('DELETE', `${base(id)}/clients/two`)), '404 window_manager_client_not_found')
})

test('the longest silent clients are removed beyond the limit', async () => {
  const id = await svc.workspace('crowd')
  for (let i = 0; i < 70; i++) {
    await clock.advance(1)
    await host.request('POST', `${base(id)}/clients`, { client_id: `c${i}` })
  }
  const { clients } = (await host.request('GET', `${base(id)}/clients`)).body
  assert.equal([clients.length, clients[0].client_id, clients.at(-1).client_id], [64, 'c6', 'c69'])
})

test('one reply names every fault of a document', async () => {
  const id = await svc.workspace('faults')
  const rect = { x: 0, y: 0, width: 1, height: 1 }
  const half = { x: 0, y: 0, width: 0.6, height: 1 }
  const window = (name: string, more: object = {}) => ({
    id: name,
    app: 'x',
    desktop_id: 'd1',
    minimized: false,
    placement: 'tiled',
    floating_rect: rect,
    route: { pathname: '/', search: {} },
    ...more,
  })
  const leaf = (node: string, window_id: string) => ({ id: node, kind: 'leaf', window_id })
  const split = (node: string, axis: string, children: object[], weights: number[]) => ({
    id: node,
    kind: 'split',
    axis,
    children,
    weights,
  })
  const document = {
    version: 3,
    workspace_id: 'ws_other',
    overrides: { history_limit: -1, small_viewport_policy: 'hide' },
    desktops: [
      {
        id: 'd1',
        name: 'One',
        order: 1,
        purpose: 'party',
        floating: ['lost', 'a'],
        focus_owner: 'homeless',
        groups: [
          {
            id: 'g',
            frame: half,
            root: split(
              's',
              'horizontal',
              [leaf('s', 'a'), split('t', 'horizontal', [leaf('n', 'far')], [0.5]), leaf('n', '')],
              [0.5, 0.5, 0.5],
            ),
          },
          { id: 'g', frame: { ...half, x: 0.3 }, root: { id: 'k', kind: 'stack', window_ids: ['b'], active_id: 'c' } },
          { id: 'h', frame: { ...half, x: 0.9 }, root: { id: 'q', kind: 'blob' } },
          { id: 'i', frame: { x: 0, y: 0, width: 0, height: 1 }, root: split('u', 'diagonal', [], []) },
        ],
      },
      { id: 'd1', name: 'Two', order: 1, purpose: 'focus', floating: [], groups: [] },
      { id: 'd3', name: 'Three', order: 2, purpose: 'focus', floating: [], groups: [] },
    ],
    windows: {
      a: window('a'),
      b: window('b', { placement: 'tiled', minimized: true }),
      c: window('other', { app: ' ', placement: 'glued' }),
      far: window('far', { desktop_id: 'd3' }),
      homeless: window('homeless', { desktop_id: 'd9', floating_rect: { ...rect, x: -1 } }),
    },
  }
  const { status, body } = await host.request('POST', `${base(id)}/layout/validate`, { document })
  assert.equal([status, body.valid], [200, false])
  const wanted = [
    'version',
    'workspace',
    'overrides',
    'desktop_duplicate',
    'desktop_order',
    'desktop_purpose',
    'window_key',
    'window_app',
    'window_desktop',
    'window_rect',
    'window_placement',
    'window_minimized',
    'window_unplaced',
    'window_doubled',
    'window_missing',
    'window_foreign',
    'focus_owner',
    'group_duplicate',
    'group_frame',
    'group_overlap',
    'node_cycle',
    'node_duplicate',
    'node_kind',
    'leaf_window',
    'stack_size',
    'stack_active',
    'split_children',
    'split_weights',
    'split_axis',
    'split_nested',
  ]
  const found = new Set(codes(body))
  assert.equal(
    wanted.map(code => `topology.${code}`).filter(code => !found.has(code)),
    [],
  )
  const refused = await host.request('PUT', `${base(id)}/layout`, { expected_revision: 0, document })
  assert.is(outcome(refused), '422 window_manager_invalid_topology')
  assert.equal(codes(refused.body), codes(body))
  const none = { ...document, desktops: [] }
  assert.ok(
    codes((await host.request('POST', `${base(id)}/layout/validate`, { document: none })).body).includes(
      'topology.desktops',
    ),
  )
  const mistyped = await host.request('POST', `${base(id)}/layout/validate`, {
    document: { ...document, desktops: 'none', more: 1 },
  })
  assert.is(mistyped.status, 400)
  assert.is((await state(id)).revision, 0)
})

test('each command emits its events, one per name', async () => {
  const id = await svc.workspace('events')
  await command(id, 'window.open', { id: 'a', app: 'mail' })
  await command(id, 'window.open', { id: 'b', app: 'mail' })
  await command(id, 'window.move', { window_id: 'b', target_window_id: 'a', edge: 'center' })
  await command(id, 'window.focus', { window_id: 'a' })
  await command(id, 'layout.undo')
  const events = await svc.inside().needs.events.list({ subject: id })
  const reports = events.map(({ name, payload }) => [
    name.replace('window_manager.', ''),
    (payload as { ids?: string[] }).ids ?? '',
  ])
  assert.equal(
    reports.filter(([name]) => name !== 'command.applied' && !String(name).startsWith('workspace.')),
    [
      ['window.opened', ['a']],
      ['window.opened', ['b']],
      ['window.moved', ['a', 'b']],
      ['stack.grouped', ['a', 'b']],
      ['stack.activated', ['b']],
      ['stack.activated', ['a']],
      ['window.moved', ['a', 'b']],
      ['stack.ungrouped', ['a', 'b']],
    ],
  )
  const applied = events.filter(({ name }) => name === 'window_manager.command.applied')
  assert.equal(
    applied.map(({ payload }) => (payload as { revision: number }).revision),
    [1, 2, 3, 4, 5],
  )
})

test('documents survive a restart and are deleted with their workspace', async () => {
  const home = await temporaryFolder('home')
  const first = await scene({ home })
  const id = await first.workspace('kept')
  const other = await first.workspace('other')
  await first.command(id, 'window.open', { id: 'a', app: 'mail' })
  await first.command(other, 'window.open', { id: 'b', app: 'mail' })
  const before = await first.state(id)
  await first.host.close()
  const second = await scene({ home })
  assert.equal(await second.state(id), before)
  assert.is((await second.command(id, 'layout.undo')).status, 200)
  assert.is((await second.host.request('DELETE', `/api/workspaces/${id}`)).status, 204)
  assert.is(outcome(await second.host.request('GET', second.base(id))), '404 window_manager_workspace_not_found')
  const left = (table: string) =>
    second
      .inside()
      .db.all<{ id: string }>(`SELECT workspace_id AS id FROM window_manager_${table}`)
      .map(row => row.id)
  while ([...left('document'), ...left('history')].includes(id)) await new Promise(setImmediate)
  assert.equal([left('document'), left('history')], [[other], [other]])
  await second.end()
  await rm(home, { recursive: true, force: true })
  await rm(first.folder, { recursive: true, force: true })
})

test.after(() => svc.end())
test.run()
