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
  { says: 'an empty plan has no order', plugins: '', order: '' },
  { says: 'ties break by name', plugins: 'c b a', order: 'a b c' },
  { says: 'a provider comes before its dependents', plugins: 'a:z>a z>z', order: 'z a' },
  { says: 'depth precedes name', plugins: 'b:a a>a c', order: 'a c b' },
  { says: 'an optional need orders nothing and waits for nothing', plugins: 'a:z?,none? z>z', order: 'a z' },
  { says: 'a cycle of optional needs is allowed', plugins: 'a:b?>a b:a>b', order: 'a b' },
  {
    says: 'a missing token is reported as a path to each dependent',
    plugins: 'a:b b:c>b c:none>c d',
    order: 'd',
    waiting: { a: 'a b c none@1', b: 'b c none@1', c: 'c none@1' },
  },
  {
    says: 'a cycle fails only its members',
    plugins: 'a:b>a b:c>b c:a>c d:a e',
    order: 'e',
    failed: { a: /a → b → c → a/, b: /b → c → a → b/, c: /c → a → b → c/ },
    waiting: { d: 'd a b c a' },
  },
  { says: 'a plugin that requires itself fails', plugins: 'a:a>a', order: '', failed: { a: /a → a/ } },
  {
    says: 'the first of two providers of a token has it',
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
