import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { dependentsOf, hardNeeds, makePlan } from '../../../kernel/host/plan.js'
import { maybe, type Plugin, token } from '../../../kernel/plugin.js'

/** `b:x,y?>z` is the plugin b, which requires x, may have y and provides z. */
function parse(text: string): Plugin {
  const [, name = '', needs = '', provides] = /^([a-z]+)(?::([a-z?,]*))?(?:>([a-z]+))?$/.exec(text) ?? []
  const requires = Object.fromEntries(
    needs
      .split(',')
      .filter(Boolean)
      .map(need => {
        const wanted = token<unknown>(`${need.replace('?', '')}@1`)
        return [need, need.endsWith('?') ? maybe(wanted) : wanted]
      }),
  )
  const offer = provides ? { provides: token<unknown>(`${provides}@1`) } : {}
  return { name, version: '1', requires, ...offer, surface: {}, apply: () => ({}) }
}

const names = (plugins: readonly Plugin[]) => plugins.map(({ name }) => name).join(' ')

interface Case {
  readonly says: string
  readonly plugins: string
  readonly order: string
  readonly waiting?: Record<string, string>
  readonly failed?: Record<string, RegExp>
}

const cases: readonly Case[] = [
  { says: 'nothing', plugins: '', order: '' },
  { says: 'ties break by name', plugins: 'c b a', order: 'a b c' },
  { says: 'what is required comes first', plugins: 'a:z>a z>z', order: 'z a' },
  { says: 'depth goes before name', plugins: 'b:a a>a c', order: 'a c b' },
  { says: 'an optional need is no order and no wait', plugins: 'a:z?,none? z>z', order: 'a z' },
  { says: 'an optional cycle is none', plugins: 'a:b?>a b:a>b', order: 'a b' },
  {
    says: 'a missing token is told as a path, to each that leads to it',
    plugins: 'a:b b:c>b c:none>c d',
    order: 'd',
    waiting: { a: 'a b c none@1', b: 'b c none@1', c: 'c none@1' },
  },
  {
    says: 'a cycle fails those in it and no others',
    plugins: 'a:b>a b:c>b c:a>c d:a e',
    order: 'e',
    failed: { a: /a → b → c → a/, b: /b → c → a → b/, c: /c → a → b → c/ },
    waiting: { d: 'd a b c a' },
  },
  { says: 'one that requires itself', plugins: 'a:a>a', order: '', failed: { a: /a → a/ } },
  {
    says: 'of two for one token the first given has it',
    plugins: 'b>x a>x c:x',
    order: 'b c',
    failed: { a: /x@1 is provided by b already/ },
  },
]

for (const { says, plugins, order, waiting = {}, failed = {} } of cases) {
  test(`plan: ${says}`, () => {
    const plan = makePlan(plugins.split(' ').filter(Boolean).map(parse))
    assert.is(names(plan.order), order)
    assert.equal(Object.fromEntries([...plan.waiting].map(([name, path]) => [name, path.join(' ')])), waiting)
    assert.equal([...plan.failed.keys()].sort(), Object.keys(failed).sort())
    for (const [name, text] of Object.entries(failed)) assert.match(plan.failed.get(name) ?? '', text)
  })
}

test('plan: a missing token is reported with the reason', () => {
  const plan = makePlan([parse('a:b'), parse('b:c>b')], new Map([['c@1', 'of c, which is disabled']]))
  assert.equal(plan.waiting.get('a'), ['a', 'b', 'c@1 of c, which is disabled'])
})

test('plan: dependents leave before their providers', () => {
  const all = ['a>a', 'b:a>b', 'c:b', 'd', 'e:a?'].map(parse)
  assert.is(names(dependentsOf(all[0] as Plugin, all)), 'c b a')
})

/** Any plugins that can all start, from a seed. */
function world(seed: number): Plugin[] {
  let state = seed
  const below = (n: number) => {
    state = (state * 1103515245 + 12345) % 2 ** 31
    return Math.floor((state / 2 ** 31) * n)
  }
  const letters = [...'abcdefghij'].sort(() => below(3) - 1)
  return letters.map((name, at) => {
    const needs = letters.slice(0, at).filter(() => below(4) === 0)
    return parse(`${name}:${needs.join(',')}>${name}`)
  })
}

test('plan: 300 random plans are ordered by need, independent of input order and of unrelated plugins', () => {
  for (let seed = 1; seed <= 300; seed++) {
    const plugins = world(seed)
    const { order, depths, waiting, failed } = makePlan(plugins)
    assert.is(order.length, plugins.length)
    assert.is(waiting.size + failed.size, 0)
    order.forEach((plugin, at) => {
      for (const id of hardNeeds(plugin)) {
        const before = order.findIndex(other => other.provides?.id === id)
        assert.ok(before < at, `seed ${seed}`)
      }
    })
    assert.is(names(makePlan([...plugins].reverse()).order), names(order))
    const root = plugins[seed % plugins.length] as Plugin
    const gone = dependentsOf(root, plugins)
    const rest = makePlan(plugins.filter(plugin => !gone.includes(plugin)))
    assert.is(names(rest.order), names(order.filter(plugin => !gone.includes(plugin))), `seed ${seed}`)
    for (const [name, depth] of rest.depths) assert.is(depth, depths.get(name))
  }
})

test.run()
