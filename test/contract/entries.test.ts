import { readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as svc from '../../kernel/index.js'
import * as kit from '../../kernel/kit/index.js'
import * as platform from '../../kernel/platform.js'
import * as plugin from '../../kernel/plugin.js'
import { type ApiEntry, apiValues, mostValues } from '../../scripts/reference/api.js'
import { exportLines } from '../../scripts/reference/exports.js'

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

test('every value of the kernel has a description', () => {
  const silent = entries
    .filter(entry => entry !== 'svc/kit')
    .flatMap(entry => apiValues(entry).filter(({ meaning }) => meaning === ''))
  assert.equal(
    silent.map(({ name }) => name),
    [],
  )
})

const root = path.join(import.meta.dirname, '../..')
const read = (file: string) => readFileSync(path.join(root, file), 'utf8')
/** Entry, name and where it is now, of each line of the page. */
const moved = [...read('docs/moved.md').matchAll(/^\| `(svc[^`]*)` \| `(\w+)` \| (.+) \|$/gm)].map(
  ([, entry = '', name = '', now = '']) => ({ entry, name, now }),
)
/** Lines of the released names that are not exported, by what is exported. */
const goneFrom = (released: readonly string[], now: ReadonlySet<string>) => released.filter(line => !now.has(line))

test('a name exported by the last version is exported or has a line in docs/moved.md', () => {
  const released = read('test/contract/exports.txt')
    .trim()
    .split('\n')
    .flatMap(line => {
      const [entry, ...names] = line.split(' ')
      return names.map(name => `${entry} ${name}`)
    })
  assert.ok(released.length > 2000)
  const lines = new Set(moved.map(({ entry, name }) => `${entry} ${name}`))
  const now = new Set(exportLines())
  assert.equal(
    goneFrom(released, now).filter(line => !lines.has(line)),
    [],
    'it is gone from its entry: put it back, or say in docs/moved.md where it is now',
  )
  assert.equal(goneFrom(['svc/plugin definePlugin', 'svc/plugin isMissing'], now), ['svc/plugin isMissing'])
})

test('docs/moved.md names existing exports', () => {
  const exported = new Set(exportLines())
  const wrong = moved.filter(({ entry, name, now }) => {
    if (exported.has(`${entry} ${name}`)) return true
    const to = /^`(svc[^`]*)`$/.exec(now)?.[1]
    return to !== undefined && !exported.has(`${to} ${name}`)
  })
  assert.equal(wrong, [])
})

test('the names of an entry equal the exports of its module', () => {
  const names = new Set(exportLines())
  for (const entry of entries)
    for (const name of Object.keys(modules[entry])) assert.ok(names.has(`${entry} ${name}`), `${entry} ${name}`)
})

test.run()
