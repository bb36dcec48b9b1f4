import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { diffLines } from '../../../plugins/sessions/cli/diff.js'

const shown = (before: string, after: string) => diffLines(before, after).map(({ sign, text }) => `${sign}${text}`)

test('what goes and what comes, with the lines beside it', () => {
  assert.equal(shown('1\n2\n3\n4\n5\n6\n7\n', '1\n2\n3\nfour\n5\n6\n7\n'), [' 2', ' 3', '-4', '+four', ' 5', ' 6'])
  assert.equal(shown('', 'a\nb\n'), ['+a', '+b'])
  assert.equal(shown('a\nb\n', ''), ['-a', '-b'])
  assert.equal(shown('same\n', 'same\n'), [])
})

test('lines that stay between two changes are told from those that change', () => {
  assert.equal(shown('a\nkeep\nb\n', 'x\nkeep\ny\n'), ['-a', '+x', ' keep', '-b', '+y'])
})

test('the new text comes of the old one by the diff, whatever the two are', () => {
  let seed = 7
  const random = (max: number) => {
    seed = (seed * 1103515245 + 12345) % 2147483648
    return seed % max
  }
  for (let round = 0; round < 300; round++) {
    const lines = (count: number) => Array.from({ length: count }, () => String(random(4)))
    const [old, fresh] = [lines(random(12)), lines(random(12))]
    const all = diffLines(old.join('\n'), fresh.join('\n'))
    const added = all.filter(({ sign }) => sign === '+').length
    const removed = all.filter(({ sign }) => sign === '-').length
    assert.is(added - removed, fresh.length - old.length, `${old} -> ${fresh}`)
  }
})

test.run()
