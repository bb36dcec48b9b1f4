import { readFileSync } from 'node:fs'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { diagnose, limits } from '../../../../../plugins/desk/window-manager/document/topology.js'

// biome-ignore lint/suspicious/noExplicitAny: documents are broken in every way
type Broken = any

const WHOLE = { x: 0, y: 0, width: 1, height: 1 }
const window = (id: string, desktop_id: string, placement: string) => ({
  id,
  app: 'mail',
  desktop_id,
  minimized: false,
  placement,
  floating_rect: { ...WHOLE },
  route: { pathname: '/', search: {} },
})
const leaf = (window_id: string) => ({ id: `n-${window_id}`, kind: 'leaf', window_id })

/** A split of a leaf and of a split of a leaf and a stack of two, one window floating; and a second desktop with one window. */
const valid = () => ({
  version: 2,
  workspace_id: 'ws_1',
  overrides: {},
  windows: {
    a: window('a', 'one', 'tiled'),
    b: window('b', 'one', 'tiled'),
    c: window('c', 'one', 'stacked'),
    d: window('d', 'one', 'stacked'),
    f: window('f', 'one', 'floating'),
    z: window('z', 'two', 'tiled'),
  },
  desktops: [
    {
      id: 'one',
      name: 'One',
      order: 0,
      purpose: 'standard',
      focus_owner: 'a',
      floating: ['f'],
      groups: [
        {
          id: 'g',
          frame: { ...WHOLE },
          root: {
            id: 's',
            kind: 'split',
            axis: 'horizontal',
            weights: [0.3, 0.7],
            children: [
              leaf('a'),
              {
                id: 't',
                kind: 'split',
                axis: 'vertical',
                weights: [0.5, 0.5],
                children: [leaf('b'), { id: 'k', kind: 'stack', window_ids: ['c', 'd'], active_id: 'd' }],
              },
            ],
          },
        },
      ],
    },
    {
      id: 'two',
      name: 'Two',
      order: 1,
      purpose: 'focus',
      floating: [],
      groups: [{ id: 'h', frame: { ...WHOLE }, root: leaf('z') }],
    },
  ],
})

const root = (d: Broken) => d.desktops[0].groups[0].root
const inner = (d: Broken) => root(d).children[1]
const stack = (d: Broken) => inner(d).children[1]
const R = 'desktops.0.groups.0.root'
const half = { x: 0, y: 0, width: 0.5, height: 1 }
/** A node as deep as may be, and one more. */
const deep = (levels: number): Broken =>
  levels === 0
    ? leaf('a')
    : {
        id: `x${levels}`,
        kind: 'split',
        axis: levels % 2 ? 'horizontal' : 'vertical',
        weights: [1],
        children: [deep(levels - 1)],
      }

/** What is done to a valid document, and everything that is then wrong with it. */
const cases: [fault: string, breakIt: (d: Broken) => void, expected: string[]][] = [
  ['nothing', () => {}, []],
  ['another version', d => (d.version = 3), ['version version']],
  ['another workspace', d => (d.workspace_id = 'ws_2'), ['workspace workspace_id']],
  ['no desktop', d => Object.assign(d, { desktops: [], windows: {} }), ['desktops desktops']],
  [
    'a doubled desktop',
    d => (d.desktops[1].id = 'one'),
    [
      'window_desktop windows.z.desktop_id',
      'desktop_duplicate desktops.1.id',
      `window_foreign desktops.1.groups.0.root.window_id`,
    ],
  ],
  ['a wrong order', d => (d.desktops[1].order = 2), ['desktop_order desktops.1.order']],
  ['an unknown purpose', d => (d.desktops[0].purpose = 'party'), ['desktop_purpose desktops.0.purpose']],
  ['a long name', d => (d.desktops[0].name = 'x'.repeat(513)), ['limit desktops.0.name']],
  ['an id that is none', d => (d.desktops[0].groups[0].id = 'a b'), ['id desktops.0.groups.0.id']],
  ['a key that is not the id', d => (d.windows.a.id = 'q'), ['window_key windows.a.id']],
  ['a window without an app', d => (d.windows.a.app = ' '), ['window_app windows.a.app']],
  [
    'a window of no desktop',
    d => (d.windows.a.desktop_id = 'three'),
    ['window_desktop windows.a.desktop_id', `window_foreign ${R}.children.0.window_id`],
  ],
  ['a window of another desktop', d => (d.windows.a.desktop_id = 'two'), [`window_foreign ${R}.children.0.window_id`]],
  ['a rect from below 0', d => (d.windows.a.floating_rect.x = -0.1), ['window_rect windows.a.floating_rect']],
  ['a rect without a height', d => (d.windows.a.floating_rect.height = 0), ['window_rect windows.a.floating_rect']],
  ['a rect beyond 1', d => (d.windows.a.floating_rect.y = 0.1), ['window_rect windows.a.floating_rect']],
  [
    'a rect that is endless',
    d => (d.windows.a.floating_rect.width = Number.POSITIVE_INFINITY),
    ['window_rect windows.a.floating_rect'],
  ],
  ['a rect that is off by rounding', d => (d.windows.a.floating_rect.width = 1 + 1e-9), []],
  [
    'an unknown placement',
    d => (d.windows.a.placement = 'glued'),
    ['window_placement windows.a.placement', `window_placement ${R}.children.0.window_id`],
  ],
  ['a placement that is another', d => (d.windows.f.placement = 'tiled'), ['window_placement desktops.0.floating.0']],
  ['a minimized tiled window', d => (d.windows.a.minimized = true), ['window_minimized windows.a.minimized']],
  ['a minimized floating window', d => (d.windows.f.minimized = true), []],
  ['a window on no desktop', d => d.desktops[0].floating.pop(), ['window_unplaced windows.f']],
  ['a window at two places', d => d.desktops[0].floating.push('f'), ['window_doubled desktops.0.floating.1']],
  ['a place for no window', d => d.desktops[0].floating.push('constructor'), ['window_missing desktops.0.floating.1']],
  ['a focus elsewhere', d => (d.desktops[0].focus_owner = 'z'), ['focus_owner desktops.0.focus_owner']],
  ['a focus on nothing', d => (d.desktops[0].focus_owner = 'q'), ['focus_owner desktops.0.focus_owner']],
  ['no focus', d => (d.desktops[0].focus_owner = null), []],
  ['a doubled group', d => (d.desktops[1].groups[0].id = 'g'), ['group_duplicate desktops.1.groups.0.id']],
  ['a frame beyond 1', d => (d.desktops[0].groups[0].frame.x = 0.5), ['group_frame desktops.0.groups.0.frame']],
  [
    'frames side by side',
    d => {
      d.desktops[1].groups[0].frame = half
      d.desktops[1].groups.push({ id: 'i', frame: { ...half, x: 0.5 }, root: leaf('y') })
      d.windows.y = window('y', 'two', 'tiled')
    },
    [],
  ],
  [
    'frames that overlap',
    d => {
      d.desktops[1].groups.push({ id: 'i', frame: half, root: leaf('y') })
      d.windows.y = window('y', 'two', 'tiled')
    },
    ['group_overlap desktops.1.groups.1.frame'],
  ],
  ['a node in itself', d => (inner(d).id = 's'), [`node_cycle ${R}.children.1.id`]],
  ['a doubled node', d => (d.desktops[1].groups[0].root.id = 's'), ['node_duplicate desktops.1.groups.0.root.id']],
  [
    'an unknown node',
    d => {
      stack(d).kind = 'blob'
      d.desktops[0].floating.push('c', 'd')
      d.windows.c.placement = d.windows.d.placement = 'floating'
    },
    [`node_kind ${R}.children.1.children.1.kind`],
  ],
  [
    'a leaf of nothing',
    d => {
      root(d).children[0].window_id = null
      d.desktops[0].focus_owner = null
    },
    [`leaf_window ${R}.children.0.window_id`, 'window_unplaced windows.a'],
  ],
  [
    'a stack of one',
    d => {
      stack(d).window_ids = ['d']
      d.desktops[0].floating.push('c')
      d.windows.c.placement = 'floating'
    },
    [`stack_size ${R}.children.1.children.1.window_ids`],
  ],
  [
    'a stack that shows another',
    d => (stack(d).active_id = 'a'),
    [`stack_active ${R}.children.1.children.1.active_id`],
  ],
  [
    'a split of one',
    d => Object.assign(inner(d), { children: [stack(d)], weights: [1] }),
    [`split_children ${R}.children.1.children`, 'window_unplaced windows.b'],
  ],
  ['a weight too few', d => (root(d).weights = [1]), [`split_weights ${R}.weights`]],
  ['weights that are not 1', d => (root(d).weights = [0.5, 0.6]), [`split_weights ${R}.weights`]],
  ['a weight of 0', d => (root(d).weights = [0, 1]), [`split_weights ${R}.weights`]],
  ['weights that are off by rounding', d => (root(d).weights = [0.3, 0.7 + 1e-9]), []],
  ['an unknown axis', d => (inner(d).axis = 'diagonal'), [`split_axis ${R}.children.1.axis`]],
  ['a split in one of its axis', d => (inner(d).axis = 'horizontal'), [`split_nested ${R}.children.1.axis`]],
  [
    'too many windows',
    d => {
      for (let i = 0; i < limits.windows; i++) {
        d.windows[`w${i}`] = window(`w${i}`, 'two', 'floating')
        d.desktops[1].floating.push(`w${i}`)
      }
    },
    ['limit windows'],
  ],
  [
    'too many desktops',
    d => {
      for (let i = 2; i <= limits.desktops; i++)
        d.desktops.push({ id: `d${i}`, name: '', order: i, purpose: 'focus', floating: [], groups: [] })
    },
    ['limit desktops'],
  ],
  [
    'a document that is too large',
    d => (d.windows.a.route.search = { text: 'x'.repeat(limits.characters) }),
    ['limit document'],
  ],
  ['a history limit below 0', d => (d.overrides.history_limit = -1), ['overrides overrides.history_limit']],
  ['a history limit that is too large', d => (d.overrides.history_limit = 1001), ['overrides overrides.history_limit']],
  [
    'a policy that nobody knows',
    d => (d.overrides.small_viewport_policy = 'hide'),
    ['overrides overrides.small_viewport_policy'],
  ],
  [
    'gaps below 0',
    d => (d.overrides.gaps = { top: -1, bottom: 0, left: 0, right: 0, inner: 0.5 }),
    ['overrides overrides.gaps.top'],
  ],
  ['overrides that say nothing', d => (d.overrides = { gaps: null, focus_policy: null, history_limit: 0 }), []],
]

const found = (document: Broken) =>
  diagnose(document, 'ws_1').map(({ code, path }) => `${code.replace('topology.', '')} ${path}`)

for (const [fault, breakIt, expected] of cases)
  test(`the diagnosis has exactly the faults and positions of: ${fault}`, () => {
    const document = valid()
    breakIt(document)
    assert.equal(found(document), expected)
  })

test('every diagnostic of the code has a case, and nodes are valid up to the depth limit', () => {
  const source = readFileSync(
    new URL('../../../../../plugins/desk/window-manager/document/topology.ts', import.meta.url),
    'utf8',
  )
  const codes = [...source.matchAll(/(?:add|#rect)\('([a-z_]+)'/g)].map(match => match[1])
  const told = new Set(cases.flatMap(([, , expected]) => expected.map(line => line.split(' ')[0])))
  assert.ok(codes.length > 30)
  for (const code of codes) assert.ok(told.has(code), `topology.${code} has no case`)
  const nested = (levels: number) => {
    const document: Broken = valid()
    document.desktops[0].groups[0].root = deep(levels)
    return found(document).filter(line => line.startsWith('limit'))
  }
  assert.equal([nested(limits.depth - 1), nested(limits.depth).length], [[], 1])
})

test('all faults of a document are reported at once', () => {
  const document: Broken = valid()
  const apart = [
    'another version',
    'a wrong order',
    'a window without an app',
    'weights that are not 1',
    'a focus elsewhere',
  ]
  for (const [fault, breakIt] of cases) if (apart.includes(fault)) breakIt(document)
  assert.equal(found(document), [
    'version version',
    'window_app windows.a.app',
    `split_weights ${R}.weights`,
    'focus_owner desktops.0.focus_owner',
    'desktop_order desktops.1.order',
  ])
})

test.run()
