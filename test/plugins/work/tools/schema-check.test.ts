import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { PatternThread } from '../../../../plugins/work/tools/registry/pattern-thread.js'
import { inputProblem } from '../../../../plugins/work/tools/registry/schema-check.js'

const thread = new PatternThread()
const problemOf = (schema: Readonly<Record<string, unknown>>, value: unknown) =>
  inputProblem(schema, value, questions => thread.ask(questions))
test.after(() => thread.close())

const text = { type: 'string', maxLength: 5 }
/** Says the same and counts as one that could take long, for it refers to something. */
const referring = (schema: object) => ({ ...schema, allOf: [{ $ref: '#/$defs/any' }], $defs: { any: true } })

test('plain and time-limited schema checks agree', async () => {
  const schema = {
    type: 'object',
    properties: {
      name: text,
      kind: { enum: ['a', 'b'] },
      many: { type: 'array', items: { anyOf: [text, { type: 'integer', minimum: 1 }] } },
    },
    required: ['name'],
    additionalProperties: false,
  }
  for (const [input, problem] of [
    [{ name: 'x', kind: 'a', many: ['y', 2] }, undefined],
    [{}, 'name: required'],
    [{ name: 'longer' }, 'name: at most 5 long'],
    [{ name: 'x', kind: 'c' }, 'kind: one of ["a","b"] wanted'],
    [{ name: 'x', many: [0] }, 'many.0: matches none of the allowed forms'],
    [{ name: 'x', other: 1 }, 'other: no such member'],
    [[], 'input: object wanted'],
  ] as const) {
    assert.is(await problemOf(schema, input), problem, JSON.stringify(input))
    assert.is(await problemOf(referring(schema), input), problem, `${JSON.stringify(input)}, referring`)
  }
})

test('a schema with more steps than the plain limit is checked', async () => {
  // Each item is held to every form before the last one fits.
  const forms = Array.from({ length: 50 }, (_, n) => ({ const: n }))
  const schema = { type: 'object', properties: { many: { type: 'array', items: { anyOf: forms } } } }
  const many = Array.from({ length: 500 }, () => 49)
  assert.is(await problemOf(schema, { many }), undefined)
  assert.is(await problemOf(schema, { many: [...many, 50] }), 'many.500: matches none of the allowed forms')
})

test('a schema that multiplies its steps is refused, and an endless pattern is aborted', async () => {
  const forms = Array.from({ length: 200 }, (_, n) => ({ const: n }))
  const multiplied = { type: 'object', properties: { many: { type: 'array', items: { anyOf: forms } } } }
  const many = Array.from({ length: 1000 }, () => 199)
  assert.match((await problemOf(multiplied, { many })) ?? '', 'its schema needs too many steps')
  // Nothing else is, whichever part of the schema it stands in.
  const denied = { type: 'object', not: { properties: { many: multiplied.properties.many } } }
  assert.match((await problemOf(denied, { many })) ?? '', 'its schema needs too many steps')
  const endless = { type: 'object', properties: { text: { type: 'string', pattern: '^(a+)+$' } } }
  assert.match((await problemOf(endless, { text: `${'a'.repeat(40)}!` })) ?? '', 'its patterns take too long')
})

test('repeated checks per value are charged each time, in every part of a schema', async () => {
  const many = (schema: object) => ({
    type: 'object',
    properties: { many: { type: 'array', items: { anyOf: [schema, true] } } },
  })
  const values = Array.from({ length: 5000 }, (_, n) => ({ [`k${n}`]: n }))
  const long = 'x'.repeat(60_000)
  const patterns = Object.fromEntries(Array.from({ length: 2000 }, (_, n) => [`^p${n}$`, {}]))
  for (const [what, schema] of Object.entries({
    'one large value': { enum: [long] },
    'a large constant': { const: { long } },
    'many patterns': { patternProperties: patterns },
    'many types': { type: Array.from({ length: 5000 }, () => 'object') },
    'many forms of nothing': { anyOf: [...Array.from({ length: 5000 }, () => false), true] },
    'a long reference': { not: { $ref: `#/${long}` } },
  }))
    assert.match((await problemOf(many(schema), { many: values })) ?? '', 'its schema needs too many steps', what)
  const names = Object.fromEntries(Array.from({ length: 5000 }, (_, n) => [`k${n}`, n]))
  const wide = await problemOf({ type: 'object', patternProperties: patterns }, names)
  assert.match(wide ?? '', 'its schema needs too many steps')
})

test('patterns apply everywhere, also under a not and in alternatives', async () => {
  const word = { type: 'string', pattern: '^[a-z]+$' }
  const digits = { type: 'string', pattern: '^\\d+$' }
  const schema = {
    type: 'object',
    properties: { a: word, b: { anyOf: [word, digits] }, c: { not: digits }, d: { oneOf: [word, digits] } },
    patternProperties: { '^x-': digits },
  }
  for (const [input, problem] of [
    [{ a: 'ab', b: '12', c: 'ab', d: '12', 'x-1': '1' }, undefined],
    [{ a: 'AB' }, 'a: does not match its pattern'],
    [{ b: 'A' }, 'b: matches none of the allowed forms'],
    [{ c: '12' }, 'c: this is not allowed'],
    [{ d: 'A' }, 'd: does not match exactly one of the allowed forms'],
    [{ 'x-1': 'a' }, 'x-1: does not match its pattern'],
  ] as const)
    assert.is(await problemOf(schema, input), problem, JSON.stringify(input))
})

test('the event loop runs during an endless pattern, and later inputs are checked', async () => {
  const endless = { type: 'object', properties: { text: { type: 'string', pattern: '^(a+)+$' } } }
  let isDone = false
  const judged = Promise.all([
    problemOf(endless, { text: `${'a'.repeat(40)}!` }),
    problemOf(endless, { text: `${'a'.repeat(41)}!` }),
    problemOf(endless, { text: 'aaa' }),
  ]).finally(() => {
    isDone = true
  })
  let turns = 0
  for (; !isDone; turns++) await new Promise(resolve => setImmediate(resolve))
  const [first, second, third] = await judged
  assert.match(first ?? '', 'its patterns take too long')
  assert.match(second ?? '', 'its patterns take too long')
  assert.is(third, undefined)
  // A loop that waited for the patterns would have had a turn or two for each.
  assert.ok(turns > 100, String(turns))
})

test.run()
