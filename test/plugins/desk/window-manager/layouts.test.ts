import { mkdir, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { decodeLayout, readLayoutFile } from '../../../../plugins/desk/window-manager/api.js'
import type { WindowLayoutSpec } from '../../../../schemas/window-manager.js'
import { temporaryFolder } from '../../../harness/kernel.js'
import { outcome, scene } from './scene.js'

const svc = await scene()
const { host, base, command, state } = svc
const GLOBAL = { kind: 'global' } as const

/** Two windows beside each other, of which the second is a participant's. */
function layout(id: string, more: Partial<WindowLayoutSpec> = {}): WindowLayoutSpec {
  const rect = { x: 0, y: 0, width: 1, height: 1 }
  const window = (name: string, app: string) => ({
    id: name,
    app,
    desktop_id: 'main',
    minimized: false,
    placement: 'tiled',
    floating_rect: rect,
    route: { pathname: '/', search: {} },
  })
  const leaf = (name: string) => ({ id: `n-${name}`, kind: 'leaf', window_id: name })
  const root = {
    id: 'n',
    kind: 'split',
    axis: 'horizontal',
    weights: [0.7, 0.3],
    children: [leaf('left'), leaf('right')],
  }
  return {
    version: 1,
    id,
    display_name: 'Two up',
    aspect: 'any',
    overflow: 'stack',
    document: {
      version: 2,
      workspace_id: '',
      overrides: {},
      windows: { left: window('left', 'code'), right: window('right', 'chat') },
      desktops: [
        {
          id: 'main',
          name: 'Main',
          order: 0,
          purpose: 'standard',
          floating: [],
          groups: [{ id: 'g', frame: rect, root }],
        },
      ],
    },
    ...more,
  }
}

const save = (workspace: string, spec: WindowLayoutSpec, scope: object = GLOBAL, expected_version = 0) =>
  host.request('PUT', `${base(workspace)}/layout-profiles/${spec.id}`, { scope, spec, expected_version })

test('a layout is saved, listed, changed at its version, and deleted', async () => {
  const id = await svc.workspace('profiles')
  const other = await svc.workspace('elsewhere')
  assert.is((await save(id, layout('two'))).status, 201)
  assert.is(outcome(await save(id, layout('two'))), '409 record_exists')
  assert.is((await save(id, layout('two', { display_name: 'Two' }), GLOBAL, 1)).status, 200)
  const own = layout('own')
  const placed = { ...own, document: { ...own.document, workspace_id: id } }
  assert.is(outcome(await save(id, own, { kind: 'workspace' })), '422 invalid_spec')
  assert.is((await save(id, placed, { kind: 'workspace' })).status, 201)
  assert.is(outcome(await save(other, placed, { kind: 'workspace', id })), '422 invalid_scope')
  const names = async (workspace: string) =>
    (await host.request('GET', `${base(workspace)}/layout-profiles`)).body.records.map(
      (record: { id: string }) => record.id,
    )
  assert.equal([await names(id), await names(other)], [['own', 'two'], ['two']])
  const remove = (workspace: string, profile: string, expected_version: number) =>
    host.request('DELETE', `${base(workspace)}/layout-profiles/${profile}`, { expected_version })
  assert.is(outcome(await remove(other, 'own', 1)), '404 record_not_found')
  assert.is(outcome(await remove(id, 'two', 1)), '409 version_conflict')
  assert.is((await remove(id, 'two', 2)).status, 204)
  assert.equal(await names(id), ['own'])
})

test('an applied layout places open windows, opens missing ones, and stacks the rest', async () => {
  const id = await svc.workspace('applied')
  await save(id, layout('stacking'))
  await command(id, 'window.open', { id: 'mine', app: 'code', route: { pathname: '/a.ts', search: {} } })
  await command(id, 'window.open', { id: 'left', app: 'mail' })
  const before = await state(id)
  const { status, body } = await command(id, 'layout.replace', { layout_id: 'stacking' })
  assert.is(status, 200, JSON.stringify(body))
  const { windows, desktops } = body.snapshot
  const [{ root }] = desktops[0].groups
  assert.equal([windows.mine.route.pathname, root.children[0].window_id, root.weights], ['/a.ts', 'mine', [0.7, 0.3]])
  assert.equal([windows.left.app, windows.left.placement], ['mail', 'stacked'], 'the one that has no place')
  assert.equal([root.children[1].kind, windows[root.children[1].active_id].app], ['stack', 'chat'])
  await command(id, 'layout.undo')
  const { windows: old, desktops: places } = await state(id)
  assert.equal([old, places], [before.windows, before.desktops])
})

test('a refused layout that needs a participant or another screen gives every reason and changes nothing', async () => {
  const id = await svc.workspace('picky')
  const participants = [{ id: 'reviewer', window_id: 'right', required: true }]
  await save(id, layout('picky', { overflow: 'reject', aspect: 'portrait', participants }))
  await command(id, 'window.open', { id: 'mail', app: 'mail' })
  const viewport = { width: 1920, height: 1080 }
  const refused = await command(id, 'layout.replace', { layout_id: 'picky', viewport, participants: { stranger: {} } })
  assert.is(outcome(refused), '422 window_manager_invalid_command')
  assert.equal(
    refused.body.diagnostics.map(({ code, path: at }: { code: string; path: string }) => `${code} ${at}`),
    [
      'layout.aspect aspect',
      'layout.participant participants.reviewer',
      'layout.participant participants.stranger',
      'layout.overflow windows.mail',
    ],
  )
  await command(id, 'window.close', { window_id: 'mail' })
  const payload = { layout_id: 'picky', participants: { reviewer: { instance_key: 'ses_1' } } }
  const { body } = await command(id, 'layout.replace', payload)
  assert.is(body.snapshot.windows.right.instance_key, 'ses_1')
  const free = await svc.workspace('free')
  await save(free, layout('optional', { participants: [{ id: 'reviewer', window_id: 'right' }] }))
  const without = await command(free, 'layout.replace', { layout_id: 'optional' })
  assert.equal(Object.keys(without.body.snapshot.windows), ['left'], 'a slot that nobody takes is left out')
})

test('layouts are decoded strictly: other versions, unknown and mistyped members, foreign workspaces are refused', () => {
  const codes = (spec: unknown, scope: Parameters<typeof decodeLayout>[1] = GLOBAL) => {
    const decoded = decodeLayout(spec, scope)
    return decoded.is === 'layout' ? [] : decoded.diagnostics.map(({ code, path: at }) => `${code} ${at}`)
  }
  const good = layout('a')
  assert.equal(codes(good), [])
  assert.equal(codes({ ...good, version: 2, document: { ...good.document, version: 1 } }), [
    'layout.version version',
    'topology.version document.version',
  ])
  assert.equal(codes({ ...good, aspect: 'square', stray: 1, display_name: 7 }).sort(), [
    'layout.invalid aspect',
    'layout.invalid display_name',
    'layout.invalid stray',
  ])
  assert.equal(codes(good, { kind: 'workspace', id: 'ws_1' }), ['topology.workspace document.workspace_id'])
  const slots = [
    { id: 's', window_id: 'gone' },
    { id: 's', window_id: 'left' },
  ]
  assert.equal(codes({ ...good, participants: slots }), [
    'layout.participant participants.0.window_id',
    'layout.participant participants.1.id',
  ])
  for (const none of [undefined, null, 7, 'text', []]) assert.is(decodeLayout(none, GLOBAL).is, 'invalid')
})

test('a layout file is read only inside its package, whatever its links', async () => {
  const folder = await realpath(await temporaryFolder('package'))
  const root = path.join(folder, 'pack')
  await mkdir(path.join(root, 'layouts'), { recursive: true })
  const text = JSON.stringify(layout('a'))
  await writeFile(path.join(root, 'layouts/two.json'), text)
  await writeFile(path.join(folder, 'outside.json'), text)
  await writeFile(path.join(root, 'bad.json'), '{')
  await writeFile(path.join(root, 'large.json'), ' '.repeat(4 * 1024 * 1024 + 1))
  await symlink('../../outside.json', path.join(root, 'layouts/link.json'))
  await symlink('layouts', path.join(root, 'inside'))
  const read = async (relative: string) => {
    const decoded = await readLayoutFile(root, relative, GLOBAL)
    return decoded.is === 'layout' ? decoded.layout.id : decoded.diagnostics[0]?.code
  }
  assert.equal(await Promise.all(['layouts/two.json', 'inside/two.json'].map(read)), ['a', 'a'])
  for (const bad of [
    '../outside.json',
    'layouts/link.json',
    path.join(root, 'layouts/two.json'),
    '.',
    'layouts',
    'none.json',
    'large.json',
    'a\0b',
  ])
    assert.is(await read(bad), 'layout.path', bad)
  assert.is(await read('bad.json'), 'layout.json')
  await rm(folder, { recursive: true })
})

test.after(() => svc.end())
test.run()
