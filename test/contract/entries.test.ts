import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as svc from '../../kernel/index.js'
import * as kit from '../../kernel/kit/index.js'
import * as platform from '../../kernel/platform.js'
import * as plugin from '../../kernel/plugin.js'
import { type ApiEntry, apiValues, mostValues } from '../../scripts/reference/api.js'

const modules: Readonly<Record<ApiEntry, object>> = {
  svc,
  'svc/plugin': plugin,
  'svc/platform': platform,
  'svc/kit': kit,
}
const entries = Object.keys(modules) as ApiEntry[]

/** Names that two of the lists have, with the places of those lists. */
const doubles = (lists: readonly (readonly string[])[]) => {
  const places = new Map<string, number[]>()
  for (const [at, names] of lists.entries())
    for (const name of names) places.set(name, [...(places.get(name) ?? []), at])
  return [...places].filter(([, at]) => at.length > 1)
}

test('docs/reference/api.md lists every value of the four entries', () => {
  for (const entry of entries) {
    const listed = apiValues(entry).map(({ name }) => name)
    assert.equal(listed, Object.keys(modules[entry]).sort(), entry)
    assert.ok(listed.length > 5, entry)
  }
})

test('svc/plugin has at most 60 values, svc/platform at most 40', () => {
  assert.equal(mostValues, { 'svc/plugin': 60, 'svc/platform': 40 })
  for (const [entry, limit] of Object.entries(mostValues)) {
    const { length } = Object.keys(modules[entry as ApiEntry])
    assert.ok(length <= limit, `${entry} has ${length} values`)
  }
})

test('no value is in two entries', () => {
  assert.equal(doubles(entries.map(entry => Object.keys(modules[entry]))), [])
  assert.equal(doubles([['a', 'b'], ['c'], ['b']]), [['b', [0, 2]]])
})

test('every value of the kernel says what it is for', () => {
  const silent = entries
    .filter(entry => entry !== 'svc/kit')
    .flatMap(entry => apiValues(entry).filter(({ meaning }) => meaning === ''))
  assert.equal(
    silent.map(({ name }) => name),
    [],
  )
})

test.run()
