import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import { issueText } from '../../../kernel/kit/index.js'

const issueOf = (schema: v.GenericSchema, value: unknown) => {
  const { issues } = v.safeParse(schema, value)
  return issues?.map(issueText)
}

test('an issue does not contain the value', () => {
  assert.equal(issueOf(v.number(), 'hunter2'), ['must be a number, not a string'])
  assert.equal(issueOf(v.strictObject({}), { a: 1 }), ['unknown member'])
  assert.equal(issueOf(v.pipe(v.string(), v.minLength(9, 'too short for "hunter2"')), 'x'), ['too short for "hunter2"'])
})

test('an enumeration lists its first values and the number of the others', () => {
  const values = Array.from({ length: 15 }, (_, index) => `v${index}`)
  const all = (count: number) => values.slice(0, count).join(', ')
  assert.equal(issueOf(v.picklist(values.slice(0, 12)), 'x'), [`must be ${all(11)} or v11, not another string`])
  assert.equal(issueOf(v.picklist(values), 'x'), [`must be ${all(12)} or one of 3 more, not another string`])
})

test('limits, formats and missing members are described in words', () => {
  const limited = v.pipe(v.number(), v.minValue(1), v.maxValue(9))
  assert.equal([issueOf(limited, 0), issueOf(limited, 10)], [['must be at least 1'], ['must be at most 9']])
  const named = v.pipe(v.string(), v.minLength(1), v.maxLength(3))
  assert.equal(
    [issueOf(named, ''), issueOf(named, 'abcd')],
    [['must not be empty'], ['must have at most 3 characters']],
  )
  assert.equal(issueOf(v.pipe(v.array(v.string()), v.maxLength(1)), ['a', 'b']), ['must have at most 1 entries'])
  assert.equal(issueOf(v.object({ a: v.string() }), {}), ['is required'])
  assert.equal(issueOf(v.pipe(v.number(), v.integer()), 1.5), ['is not a valid integer'])
  assert.equal(issueOf(v.array(v.string()), null), ['must be a list, not null'])
  assert.equal(issueOf(v.boolean(), 'hunter2'), ['must be true or false, not a string'])
})

test.run()
