import { isDeepStrictEqual } from 'node:util'
import { parse } from 'jsonc-parser'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { removeAt, setAt } from '../../../../plugins/platform/configuration/edit-json.js'

const lines = (...text: string[]) => `${text.join('\n')}\n`
const FILE = lines(
  '// top',
  '{',
  '  // about http',
  '  "http": {',
  '    "port": 1, // the port',
  '    "host": "x" // the host',
  '  },',
  '  "log": { "level": "info" }, // about log',
  '}',
)

test('a new member is added after the last one, whose comment stays with it', () => {
  assert.is(setAt(FILE, ['http', 'max'], 3), FILE.replace('"x" // the host', '"x", // the host\n    "max": 3'))
  assert.is(
    setAt(FILE, ['roles', 'a'], { b: 1 }),
    FILE.replace('// about log\n', '// about log\n  "roles": {\n    "a": {\n      "b": 1\n    }\n  }\n'),
  )
  assert.is(setAt(FILE, ['log', 'days'], 2), FILE.replace('"info" }', '"info", "days": 2 }'))
})

test('a value is changed in place, an object member by member', () => {
  assert.is(setAt(FILE, ['http', 'port'], 7), FILE.replace('"port": 1', '"port": 7'))
  assert.is(setAt(FILE, ['http', 'port'], 1), FILE)
  assert.is(setAt(FILE, ['http'], { port: 2, host: 'x' }), FILE.replace('"port": 1', '"port": 2'))
  assert.is(
    setAt(FILE, ['http'], { port: 1, list: [1, { a: 2 }] }),
    FILE.replace('1, // the port', '1, // the port').replace(
      '    "host": "x" // the host\n',
      '    // the host\n    "list": [\n      1,\n      {\n        "a": 2\n      }\n    ]\n',
    ),
  )
})

test('a removed member takes only its comma along', () => {
  assert.is(removeAt(FILE, ['http', 'port']), FILE.replace('    "port": 1, // the port', '    // the port'))
  assert.is(removeAt(FILE, ['log']), FILE.replace('  "log": { "level": "info" }, // about log', '  // about log'))
  assert.is(removeAt('{ "a": 1, "b": 2 }', ['b']), '{ "a": 1 }')
  assert.is(removeAt('{ "a": 1, "b": 2 }', ['a']), '{ "b": 2 }')
  assert.is(removeAt(lines('{', '  "a": 1,', '  "b": 2', '}'), ['b']), lines('{', '  "a": 1', '}'))
  assert.is(removeAt(lines('{', '  "a": 1,', '  "b": 2,', '}'), ['a']), lines('{', '  "b": 2,', '}'))
  assert.is(removeAt(FILE, ['http', 'none']), FILE)
})

test('dotted keys are found, and indentation and line endings are kept', () => {
  assert.is(
    setAt('{ "plugins": { "acme.sizes": { "size": 1 } } }', ['plugins', 'acme', 'sizes', 'size'], 2),
    '{ "plugins": { "acme.sizes": { "size": 2 } } }',
  )
  assert.is(setAt('{ "http.port": 1 }', ['http', 'port'], 2), '{ "http.port": 2 }')
  assert.is(setAt('{\r\n\t"a": 1\r\n}\r\n', ['b', 'c'], 2), '{\r\n\t"a": 1,\r\n\t"b": {\r\n\t\t"c": 2\r\n\t}\r\n}\r\n')
  assert.is(setAt('', ['a', 'b'], 1), lines('{', '  "a": {', '    "b": 1', '  }', '}'))
  assert.is(setAt('// mine', ['a'], 1), lines('// mine', '{', '  "a": 1', '}'))
  assert.is(setAt('{}', ['a'], 1), '{\n  "a": 1\n}')
  assert.is(setAt('{\n  // none yet\n}\n', ['a'], 1), '{\n  // none yet\n  "a": 1\n}\n')
})

test('an edit of a large value takes time linear in its size', () => {
  const members = (count: number, value: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, n) => [`member-${n}`, value]))
  const text = setAt('{ "few": 1 } // mine', ['many'], members(20_000, 1))
  const after = setAt(text, ['many'], members(20_000, 2))
  assert.equal(parse(after), { few: 1, many: members(20_000, 2) })
  assert.match(after, /\/\/ mine$/)
})

test('random edits of random texts change only the named members and keep comments and order', () => {
  let state = 7
  const below = (n: number) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * n)
  }
  let comments = 0
  const comment = () => (below(3) > 0 ? '' : below(2) > 0 ? ` /* c${comments++} */ ` : ` // c${comments++}\n`)
  const value = (depth: number): string => {
    if (depth > 2 || below(3) === 0) return ['1', '"x, } // y"', '[1, /* in */ 2]', 'null', '{}'][below(5)] ?? '1'
    const members = ['a', 'b', 'c.d', 'e'].filter(() => below(2) > 0)
    const body = members.map((key, n) => {
      const more = n < members.length - 1 || below(3) === 0 ? ',' : ''
      return `${comment()}"${key}":${comment()}${value(depth + 1)}${comment()}${more}${comment()}`
    })
    return below(2) > 0 ? `{${body.join('')}${comment()}}` : `{\n${body.join('\n')}\n${comment()}}`
  }
  const set = (tree: unknown, [key = '', ...rest]: readonly string[], to: unknown): unknown => {
    const before = (tree ?? {}) as Record<string, unknown>
    if (rest.length > 0) return { ...before, [key]: set(before[key], rest, to) }
    const { [key]: _, ...others } = before
    return to === undefined ? others : { ...before, [key]: to }
  }
  const marks = (text: string) => text.match(/\bc\d+\b/g)?.sort() ?? []
  const isThere = (tree: unknown, [key = '', ...rest]: readonly string[]): boolean =>
    typeof tree === 'object' &&
    tree !== null &&
    Object.hasOwn(tree, key) &&
    (rest.length === 0 || isThere((tree as Record<string, unknown>)[key], rest))
  for (let round = 0; round < 3000; round++) {
    comments = 0
    let text = value(0)
    while (!text.startsWith('{')) text = value(0)
    const before = parse(text, [], { allowTrailingComma: true })
    const keys = [['a'], ['b'], ['e'], ['e', 'a'], ['b', 'e']][below(5)] as string[]
    const [first = ''] = keys
    const blocked = keys.length > 1 && typeof before[first] !== 'object' && first in before
    if (blocked || Array.isArray(before[first]) || before[first] === null) continue
    const to = [undefined, 5, { a: { b: 2 } }, [1, 2], 'x'][below(5)]
    const after = to === undefined ? removeAt(text, keys) : setAt(text, keys, to)
    const wanted = to === undefined && !isThere(before, keys) ? before : set(before, keys, to)
    const got = parse(after, [], { allowTrailingComma: true })
    assert.ok(isDeepStrictEqual(got, wanted), `${text}\n${keys} = ${JSON.stringify(to)}\n${after}`)
    const order = Object.keys(before).filter(key => key in got)
    assert.equal(
      Object.keys(got).filter(key => order.includes(key)),
      order,
    )
    // What stood inside of a value that another one replaced goes with it.
    if (to === undefined ? !/\{|\[/.test(text.slice(1)) : !isThere(before, keys))
      assert.equal(marks(after), marks(text))
  }
})

test.run()
