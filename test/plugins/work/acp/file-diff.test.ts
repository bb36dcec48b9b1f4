import { applyPatch } from 'diff'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { fileDiff, fileDiffs } from '../../../../plugins/work/acp/questions/file-diff.js'
import { boundedDiffs } from '../../../../plugins/work/acp/questions/shown.js'

const patchOf = (before: string | undefined, after: string) => fileDiff('a', before, after).patch.split('\n')
const numbered = (count: number, from = 0) => Array.from({ length: count }, (_, at) => `line ${at + from}\n`).join('')

test('a diff has changed lines, context lines and positions', () => {
  assert.equal(patchOf('1\n2\n3\n4\n5\n6\n7\n8\n9\n', '1\n2\n3\n4\nfive\n6\n7\n8\n9\n'), [
    ...['@@ -2,7 +2,7 @@', ' 2', ' 3', ' 4', '-5', '+five', ' 6', ' 7', ' 8'],
  ])
  assert.equal(patchOf(undefined, 'a\nb\n'), ['@@ -0,0 +1,2 @@', '+a', '+b'])
  assert.equal(patchOf('a\nb\n', ''), ['@@ -1,2 +0,0 @@', '-a', '-b'])
  assert.equal(patchOf('same\n', 'same\n'), [''])
  assert.equal(patchOf('a\nkeep\nb\n', 'x\nkeep\ny\n'), ['@@ -1,3 +1,3 @@', '-a', '+x', ' keep', '-b', '+y'])
  assert.equal(patchOf('a', 'a\n').slice(1), ['-a', '\\ No newline at end of file', '+a'])
})

test('a patch turns any old text into the new one', () => {
  let seed = 7
  const random = (max: number) => {
    seed = (seed * 1103515245 + 12345) % 2147483648
    return seed % max
  }
  const text = () => {
    const lines = Array.from({ length: random(30) }, () => String(random(5)))
    return lines.join('\n') + (lines.length > 0 && random(2) === 0 ? '\n' : '')
  }
  for (let round = 0; round < 1000; round++) {
    const [before, after] = [text(), text()]
    for (const isCompared of [true, false]) {
      const { patch, added, removed } = fileDiff('a', before, after, isCompared)
      const whole = patch === '' ? before : applyPatch(before, `--- a\n+++ a\n${patch}\n`)
      assert.is(whole, after, JSON.stringify([before, after, patch]))
      const lines = patch.split('\n')
      assert.equal(
        [added, removed],
        ['+', '-'].map(sign => lines.filter(line => line.startsWith(sign)).length),
      )
    }
  }
})

test('a change anywhere in a large file is found with its line number', () => {
  const before = numbered(20_000)
  const { patch, added, removed } = fileDiff('a', before, before.replace('line 19000\n', 'evil\n'))
  assert.equal([added, removed], [1, 1])
  assert.match(patch, /^@@ -18998,7 \+18998,7 @@/)
  assert.match(patch, /\+evil/)
})

test('texts too large to compare are shown as removed and added, in bounded time', () => {
  const size = 4_000_000
  const { patch, added, removed, lines } = fileDiff('a', `a\n${'\n'.repeat(size)}b`, `c\n${'\n'.repeat(size)}d`)
  assert.equal([added, removed], [size + 2, size + 2])
  assert.is(lines, 2 * (size + 2) + 3)
  assert.ok(patch.startsWith('@@ -1,4000002 +1,4000002 @@\n-a\n-\n'))
  let seed = 1
  const noise = () => {
    const next = () => (seed = (seed * 1103515245 + 12345) % 2147483648)
    return Array.from({ length: 9_000 }, () => `${next()}\n`).join('')
  }
  assert.is(fileDiff('a', noise(), noise()).added, 9_000)
})

test('the shown diff is bounded and says how much is hidden', async () => {
  const change = (path: string, lines: number) => ({ path, newText: numbered(lines) })
  const one = boundedDiffs(await fileDiffs([change('a', 2000)]))
  assert.equal([one.diffs[0]?.added, one.diffs[0]?.is_new], [2000, true])
  const shown = one.diffs[0]!.patch.split('\n').length
  assert.is(one.diffs[0]?.hidden_lines, 2001 - shown)
  assert.equal(one.hidden, { files: 0, lines: 2001 - shown, characters: 0 })
  const many = boundedDiffs(await fileDiffs(Array.from({ length: 23 }, (_, at) => change(`f${at}`, 10))))
  assert.equal([many.diffs.length, many.hidden], [20, { files: 3, lines: 33, characters: 0 }])
})

test('the differing part of a long line is shown', async () => {
  const line = 'x'.repeat(5000)
  const oldText = `${line}old${line}`
  const { diffs, hidden } = boundedDiffs(await fileDiffs([{ path: 'a', oldText, newText: `${line}EVIL${line}` }]))
  const [, removed, , added] = diffs[0]!.patch.split('\n')
  assert.match(removed ?? '', /^-…\(\d+ characters\)…x+oldx+…\(\d+ characters\)…$/)
  assert.match(added ?? '', /^\+…\(\d+ characters\)…x+EVILx+…\(\d+ characters\)…$/)
  assert.ok(hidden.characters > 18_000)
})

test.run()
