import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { ThoughtTags } from '../../../packages/agent/src/endpoint/thought-tags.js'

/** What comes of an answer that arrives in these pieces. */
function split(pieces: readonly string[]) {
  const tags = new ThoughtTags()
  const parts = [...pieces.map(piece => tags.take(piece)), tags.end()]
  return [parts.map(({ thought }) => thought).join(''), parts.map(({ text }) => text).join('')]
}

const ANSWERS: readonly (readonly [answer: string, thought: string, text: string])[] = [
  ['<think>\nHm, 1 < 2.\n</think>\n\nYes.', 'Hm, 1 < 2.\n', 'Yes.'],
  ['\n<thinking>a</thinking>b', 'a', 'b'],
  ['<think></think>b', '', 'b'],
  ['<think>never closed', 'never closed', ''],
  ['Plain <think>text</think>.', '', 'Plain <think>text</think>.'],
  ['<thin air', '', '<thin air'],
  ['<', '', '<'],
  ['', '', ''],
]

for (const [answer, thought, text] of ANSWERS)
  test(`the thought is removed from ${JSON.stringify(answer)} in any number of chunks`, () => {
    for (const size of [1, 2, 3, 7, 100]) {
      const pieces = answer.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? []
      assert.equal(split(pieces), [thought, text], `in pieces of ${size}`)
    }
  })

test.run()
