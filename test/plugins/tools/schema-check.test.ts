import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { inputProblem } from '../../../plugins/tools/registry/schema-check.js'

const text = { type: 'string', maxLength: 5 }
/** Says the same and counts as one that could take long, for it refers to something. */
const referring = (schema: object) => ({ ...schema, allOf: [{ $ref: '#/$defs/any' }], $defs: { any: true } })

test('a plain schema says the same as one that is held to a time', () => {
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
    [{ name: 'x', many: [0] }, 'many.0: none of the forms that it can have'],
    [{ name: 'x', other: 1 }, 'other: no such member'],
    [[], 'input: object wanted'],
  ] as const) {
    assert.is(inputProblem(schema, input), problem, JSON.stringify(input))
    assert.is(inputProblem(referring(schema), input), problem, `${JSON.stringify(input)}, referring`)
  }
})

test('one that needs more steps than a plain one may is judged all the same', () => {
  // Each item is held to every form before the last one fits.
  const forms = Array.from({ length: 50 }, (_, n) => ({ const: n }))
  const schema = { type: 'object', properties: { many: { type: 'array', items: { anyOf: forms } } } }
  const many = Array.from({ length: 500 }, () => 49)
  assert.is(inputProblem(schema, { many }), undefined)
  assert.is(inputProblem(schema, { many: [...many, 50] }), 'many.500: none of the forms that it can have')
})

test('what multiplies its steps is refused, and a pattern that never ends is ended', () => {
  const forms = Array.from({ length: 200 }, (_, n) => ({ const: n }))
  const multiplied = { type: 'object', properties: { many: { type: 'array', items: { anyOf: forms } } } }
  const many = Array.from({ length: 1000 }, () => 199)
  assert.match(inputProblem(multiplied, { many }) ?? '', 'its schema needs too many steps')
  // Nothing else is, whichever part of the schema it stands in.
  const denied = { type: 'object', not: { properties: { many: multiplied.properties.many } } }
  assert.match(inputProblem(denied, { many }) ?? '', 'its schema needs too many steps')
  const endless = { type: 'object', properties: { text: { type: 'string', pattern: '^(a+)+$' } } }
  assert.match(inputProblem(endless, { text: `${'a'.repeat(40)}!` }) ?? '', 'its schema takes more than')
})

test.run()
