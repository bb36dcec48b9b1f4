import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import { issueText } from '../../../kernel/kit/index.js'

const told = (schema: v.GenericSchema, value: unknown) => {
  const { issues } = v.safeParse(schema, value)
  return issues?.map(issueText)
}

test('what is wrong is told without the value', () => {
  assert.equal(told(v.number(), 'hunter2'), ['Invalid type: Expected number but received another string'])
  assert.equal(told(v.strictObject({}), { a: 1 }), ['unknown member'])
  assert.equal(told(v.pipe(v.string(), v.minLength(9, 'too short for "hunter2"')), 'x'), ['too short for "hunter2"'])
})

test('of many values that are allowed the first are named, and how many more there are', () => {
  const values = Array.from({ length: 15 }, (_, index) => `v${index}`)
  const all = (count: number) =>
    values
      .slice(0, count)
      .map(value => `"${value}"`)
      .join(' | ')
  assert.equal(told(v.picklist(values.slice(0, 12)), 'x'), [
    `Invalid type: Expected (${all(12)}) but received another string`,
  ])
  assert.equal(told(v.picklist(values), 'x'), [
    `Invalid type: Expected (${all(12)} | … 3 more) but received another string`,
  ])
})

test.run()
