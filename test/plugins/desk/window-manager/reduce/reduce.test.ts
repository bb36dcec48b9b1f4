import { test } from 'uvu'
import * as assert from 'uvu/assert'
import {
  type Desktop,
  emptyDocument,
  type Node,
  type WindowDocument,
} from '../../../../../plugins/desk/window-manager/document/document.js'
import type { CommandId } from '../../../../../plugins/desk/window-manager/reduce/command-table.js'
import { type HistoryCommand, reduce } from '../../../../../plugins/desk/window-manager/reduce/reduce.js'
import type { Effect } from '../../../../../plugins/desk/window-manager/reduce/reducer.js'
import { label } from '../../../../fixtures/cases.js'

type Step = readonly [id: Exclude<CommandId, HistoryCommand>, payload: object]

const settings = { new_window_policy: 'beside_focus', raise_on_focus: true } as const

/** The document after some commands, and what the last one meant for its client. Throws what is refused. */
function after(steps: readonly Step[]): { document: WindowDocument; effect: Effect } {
  let minted = 0
  let document = emptyDocument('ws_1')
  let effect: Effect = {}
  for (const [id, payload] of steps) {
    const context = { mint: (prefix: string) => `${prefix}${minted++}`, revision: 7, settings, layout: () => undefined }
    const reduced = reduce(document, id, payload, context)
    if (reduced.is === 'refused') throw reduced.refusal
    ;({ document, effect } = reduced)
  }
  return { document, effect }
}

const open = (...ids: string[]): Step[] => ids.map(id => ['window.open', { id, app: id }])
const rounded = (weight: number | undefined) => Math.round((weight ?? 0) * 100)

/** `h(30 a, 70 v(50 b, 50 [c d*]))` is a split of a and of b above a stack of c and d that shows d. */
function shapeOf(node: Node): string {
  if (node.kind === 'leaf') return node.window_id
  if (node.kind === 'stack') return `[${node.window_ids.map(id => (id === node.active_id ? `${id}*` : id)).join(' ')}]`
  const parts = node.children.map((child, i) => `${rounded(node.weights[i])} ${shapeOf(child)}`)
  return `${node.axis === 'horizontal' ? 'h' : 'v'}(${parts.join(', ')})`
}
const shape = ({ groups, floating }: Desktop) =>
  [...groups.map(({ root }) => shapeOf(root)), ...floating.map(id => `~${id}`)].join(' ')
const shown = (steps: readonly Step[]) => after(steps).document.desktops.map(shape).join(' | ')

const beside = (id: string, target_window_id: string, edge: string): Step => [
  'window.move',
  { window_id: id, target_window_id, edge },
]
const resize = (payload: object): Step => ['layout.resize', payload]
const arrange = (mode: string): Step => ['layout.arrange', { desktop_id: 'desktop-1', mode }]
const float = (id: string, more: object = {}): Step => ['window.toggle_floating', { window_id: id, ...more }]
const zoom = (id: string): Step => ['window.zoom', { window_id: id }]
const rows: Step = beside('c', 'b', 'bottom')

/** What is done, and what the desktops look like then. */
const cases: [steps: Step[], expected: string][] = [
  [open('a'), 'a'],
  [open('a', 'b', 'c'), 'h(33 a, 33 b, 33 c)'],
  [[...open('a', 'b', 'c'), rows], 'h(50 a, 50 v(50 b, 50 c))'],
  [[...open('a', 'b', 'c'), beside('c', 'a', 'left')], 'h(33 c, 33 a, 33 b)'],
  [[...open('a', 'b', 'c'), beside('a', 'c', 'top')], 'h(50 b, 50 v(50 a, 50 c))'],
  [[...open('a', 'b', 'c'), beside('a', 'c', 'center')], 'h(50 b, 50 [c a*])'],
  // A split in a split of its axis is flattened, weights and all.
  [[...open('a', 'b', 'c'), rows, ['window.close', { window_id: 'b' }]], 'h(50 a, 50 c)'],
  [
    [
      ...open('a', 'b', 'c', 'd'),
      beside('c', 'b', 'bottom'),
      beside('d', 'c', 'right'),
      ['window.close', { window_id: 'b' }],
    ],
    'h(50 a, 25 c, 25 d)',
  ],
  [[...open('a', 'b', 'c', 'd', 'e'), arrange('columns')], 'h(20 a, 20 b, 20 c, 20 d, 20 e)'],
  [[...open('a', 'b', 'c', 'd', 'e'), arrange('rows')], 'v(20 a, 20 b, 20 c, 20 d, 20 e)'],
  [[...open('a', 'b', 'c', 'd', 'e'), arrange('grid')], 'v(50 h(33 a, 33 b, 33 c), 50 h(50 d, 50 e))'],
  [[...open('a', 'b', 'c'), arrange('main')], 'h(50 a, 50 v(50 b, 50 c))'],
  [[...open('a', 'b'), arrange('main')], 'h(50 a, 50 b)'],
  [[...open('a'), arrange('main')], 'a'],
  [[...open('a', 'b', 'c'), ['window.focus', { window_id: 'b' }], arrange('stack')], '[a b* c]'],
  [[...open('a', 'b', 'c'), float('b'), arrange('rows')], 'v(50 a, 50 c) ~b'],
  [[...open('a', 'b'), resize({ window_id: 'a', axis: 'horizontal', delta: 0.2 })], 'h(70 a, 30 b)'],
  [[...open('a', 'b'), resize({ window_id: 'b', axis: 'horizontal', delta: 0.2 })], 'h(30 a, 70 b)'],
  [[...open('a', 'b'), resize({ window_id: 'b', axis: 'horizontal', delta: -1 })], 'h(95 a, 5 b)'],
  [[...open('a', 'b'), resize({ window_id: 'b', axis: 'horizontal', delta: 1 })], 'h(5 a, 95 b)'],
  [
    [...open('a', 'b', 'c'), rows, resize({ window_id: 'c', axis: 'vertical', delta: 0.1 })],
    'h(50 a, 50 v(40 b, 60 c))',
  ],
  [
    [...open('a', 'b', 'c'), rows, resize({ window_id: 'c', axis: 'horizontal', delta: 0.1 })],
    'h(40 a, 60 v(50 b, 50 c))',
  ],
  [
    [...open('a', 'b'), resize({ window_id: 'a', axis: 'horizontal', delta: 0.2 }), ['layout.balance', {}]],
    'h(50 a, 50 b)',
  ],
  // A floating window comes back to where it was, beside whom it was.
  [[...open('a', 'b', 'c'), float('a')], 'h(50 b, 50 c) ~a'],
  [[...open('a', 'b', 'c'), float('a'), float('a')], 'h(33 a, 33 b, 33 c)'],
  [[...open('a', 'b', 'c'), float('b'), float('b')], 'h(33 a, 33 b, 33 c)'],
  [[...open('a', 'b', 'c'), rows, float('b'), float('b')], 'h(50 a, 50 v(50 b, 50 c))'],
  [[...open('a', 'b', 'c'), rows, float('a'), float('a')], 'h(50 a, 50 v(50 b, 50 c))'],
  [[...open('a', 'b', 'c'), beside('a', 'c', 'center'), float('a'), float('a')], 'h(50 b, 50 [c a*])'],
  [
    [...open('a', 'b'), resize({ window_id: 'a', axis: 'horizontal', delta: 0.2 }), float('a'), float('a')],
    'h(70 a, 30 b)',
  ],
  [[...open('a', 'b'), ['window.close', { window_id: 'b' }], float('a'), float('a')], 'a'],
  [[...open('a', 'b', 'c'), zoom('b')], 'h(50 a, 50 c) ~b'],
  [[...open('a', 'b', 'c'), zoom('b'), zoom('b')], 'h(33 a, 33 b, 33 c)'],
  [[...open('a', 'b'), float('b'), float('a'), ['window.focus', { window_id: 'b' }]], '~a ~b'],
  [[...open('a', 'b', 'c'), ['window.swap', { window_id: 'a', target_window_id: 'c' }]], 'h(33 c, 33 b, 33 a)'],
  [[...open('a', 'b'), float('b'), ['window.swap', { window_id: 'a', target_window_id: 'b' }]], 'b ~a'],
  [
    [...open('a', 'b', 'c'), beside('c', 'b', 'center'), ['window.swap', { window_id: 'c', target_window_id: 'a' }]],
    'h(50 c, 50 [b a*])',
  ],
  [
    [...open('a', 'b'), ['desktop.create', { id: 'two' }], ['window.move', { window_id: 'a', desktop_id: 'two' }]],
    'b | a',
  ],
  [
    [['desktop.create', { id: 'two', order: 0 }], ...open('a'), ['desktop.reorder', { desktop_id: 'two', order: 9 }]],
    ' | a',
  ],
]

for (const [steps, expected] of cases)
  test(`the arrangement after ${steps.length} steps and ${label(steps.at(-1), 60)} is ${expected}`, () =>
    assert.is(shown(steps), expected))

test('swapped windows exchange the properties of their places, and the focus follows', () => {
  const { document, effect } = after([
    ...open('a', 'b', 'c'),
    float('b', { minimized: true }),
    ['window.focus', { window_id: 'a' }],
    ['window.swap', { window_id: 'a', target_window_id: 'b' }],
  ])
  const { a, b } = document.windows
  assert.is(shape(document.desktops[0] as Desktop), 'h(50 b, 50 c) ~a')
  assert.equal([a?.return_anchor?.desktop_id, b?.return_anchor], ['desktop-1', undefined])
  assert.equal([document.desktops[0]?.focus_owner, effect.focus], ['a', 'a'])
  assert.is(a?.minimized, false, 'what has the focus is not minimized')
  const apart = after([
    ...open('a', 'b'),
    float('b', { minimized: true }),
    ...open('c'),
    ['window.swap', { window_id: 'a', target_window_id: 'b' }],
  ]).document
  assert.equal([apart.windows.a?.minimized, apart.windows.b?.minimized], [true, false])
  assert.is(apart.desktops[0]?.focus_owner, 'c')
})

test('a placed window forgets its origin', () => {
  const { windows } = after([...open('a', 'b', 'c'), float('a'), beside('a', 'c', 'right')]).document
  assert.is(windows.a?.return_anchor, undefined)
  const floated = after([...open('a', 'b'), float('a')]).document.windows.a
  assert.equal([floated?.return_anchor?.source_revision, floated?.return_anchor?.neighbor_ids], [7, ['b']])
})

test('a window with a former group of its own gets it back while there is room', () => {
  const start = after(open('a', 'b')).document
  const [desktop] = start.desktops
  const half = (x: number) => ({ x, y: 0, width: 0.5, height: 1 })
  const own = (id: string, x: number) => ({
    id: `g${id}`,
    frame: half(x),
    root: { id: `n${id}`, kind: 'leaf', window_id: id },
  })
  const document = { ...start, desktops: [{ ...desktop, groups: [own('a', 0), own('b', 0.5)] }] }
  const apart: Step = ['layout.replace', { document }]
  const groups = (steps: Step[]) =>
    after([...open('a', 'b'), apart, ...steps])
      .document.desktops[0]?.groups.map(({ id, frame }) => `${id} ${frame.x}`)
      .sort()
  assert.equal(groups([zoom('a')]), ['gb 0.5'])
  assert.equal(groups([zoom('a'), zoom('a')]), ['ga 0', 'gb 0.5'])
  const whole = resize({ group_id: 'gb', frame: { x: 0, y: 0, width: 1, height: 1 } })
  assert.equal(groups([zoom('a'), whole, zoom('a')]), ['gb 0'])
  // What an anchor says came with a document, and is not believed.
  const return_anchor = {
    desktop_id: 'gone',
    source_revision: -1,
    parent_split_id: 'gone',
    child_index: 99,
    weight: 1e300,
    neighbor_ids: ['gone', 'a', 'b'],
    source_group: {
      id: 'ga',
      frame: { x: 5, y: 5, width: 5, height: 5 },
      root: { id: 'x', kind: 'split', axis: 'odd' },
    },
  }
  const windows = { ...start.windows, b: { ...start.windows.b, placement: 'floating', return_anchor } }
  const strange = { ...start, windows, desktops: [{ ...desktop, floating: ['b'], groups: [own('a', 0)] }] }
  assert.is(shown([...open('a', 'b'), ['layout.replace', { document: strange }], float('b')]), 'h(5 a, 95 b)')
  const alone = { ...strange, windows: { b: windows.b }, desktops: [{ ...desktop, focus_owner: 'b', floating: ['b'] }] }
  assert.is(
    shown([
      ['layout.replace', { document: { ...alone, desktops: [{ ...alone.desktops[0], groups: [] }] } }],
      float('b'),
    ]),
    'b',
  )
})

test.run()
