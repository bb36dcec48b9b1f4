import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { matcherTest } from '../../../../plugins/work/hooks/declared.js'
import { globTest, isGlob } from '../../../../plugins/work/hooks/glob.js'
import { hookProblem, specOf } from '../../../../plugins/work/hooks/hook-kind.js'
import { label } from '../../../fixtures/cases.js'

const MATCHES: readonly (readonly [glob: string, text: string, is: boolean])[] = [
  ['a?c', 'abc', true],
  ['a?c', 'a😀c', true],
  ['*😀', 'well 😀', true],
  ['[😀x]*', '😀!', true],
  ['[😀x]*', 'y!', false],
  ['[!a]*', 'b', true],
  ['[!a]*', 'a', false],
  ['[^a]*', 'b', true],
  ['[a-c]?', 'b1', true],
  ['[a-c]?', 'd1', false],
  ['[-a]', '-', true],
  ['[a-]', '-', true],
  ['[.]x', '.x', true],
  ['[.]x', 'ax', false],
  ['\\[x\\]', '[x]', true],
  ['\\\\*', '\\path', true],
  ['\\*', '*', true],
  ['\\*', 'a', false],
  ['a\\?', 'a?', true],
  ['rm -rf /*', 'rm -rf /home\nnext', true],
]

for (const [glob, text, is] of MATCHES)
  test(`the pattern ${glob} ${is ? 'matches' : 'does not match'} ${label(text)}`, () => {
    assert.ok(isGlob(glob))
    assert.is(globTest(glob)(text), is)
  })

for (const glob of ['[', '[]', '[!]', '[^]', 'a[b', '[[a]', 'a]', '\\', 'a\\', '[z-a]', '[b-a]*', '[a-\\]'])
  test(`the pattern ${glob} is invalid`, () => {
    assert.not.ok(isGlob(glob))
    const { problem = '' } = specOf({
      ...{ name: 'x', event: 'tool.pre_call', command: 'true', matcher: { tool_name: glob } },
    }) as { problem?: string }
    assert.match(problem, /matcher\.tool_name: invalid pattern/)
  })

test('every valid pattern can be tested, whatever its content', () => {
  const signs = ['a', '-', '[', ']', '!', '^', '\\', '*', '?', '😀', '.', '$']
  const words = (length: number): string[] =>
    length === 0 ? [''] : words(length - 1).flatMap(word => signs.map(sign => word + sign))
  let valid = 0
  for (const glob of [1, 2, 3, 4].flatMap(words)) {
    if (!isGlob(glob)) continue
    valid++
    assert.type(globTest(glob)('a-]😀'), 'boolean', glob)
  }
  assert.ok(valid > 1000)
})

test('a text member cannot be matched by true or false', () => {
  const spec = (matcher: object) => {
    const read = specOf({ name: 'x', event: 'tool.pre_call', command: 'true', matcher })
    return 'problem' in read ? read.problem : hookProblem(read.spec)
  }
  assert.match(spec({ tool_name: true }) ?? '', /matcher\.tool_name: must be a string/)
  assert.match(spec({ tool_read_only: 'yes' }) ?? '', /matcher\.tool_read_only: must be true or false/)
  assert.is(spec({ tool_read_only: false, tool_name: 'x*' }), undefined)
})

test('an inherited member of a payload is not matched', () => {
  assert.not.ok(matcherTest({ autonomy: { constructor: '*a' } })({ autonomy: {} }))
})

test.run()
