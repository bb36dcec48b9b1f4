import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { FrontmatterError, headValues, parseHead, splitFrontmatter } from '../../../kernel/kit/frontmatter.js'

test('a file is split at the delimiter lines of its front matter', () => {
  assert.equal(splitFrontmatter('---\na: 1\n---\nText\n'), { head: 'a: 1', body: 'Text\n', bodyLine: 4 })
  assert.equal(splitFrontmatter('--- \r\na: 1\r\nb: 2\r\n---\r\nText'), {
    head: 'a: 1\r\nb: 2',
    body: 'Text',
    bodyLine: 5,
  })
  assert.equal(splitFrontmatter('---\n---\n'), { head: '', body: '', bodyLine: 3 })
  assert.equal(splitFrontmatter('---\na: 1\n---'), { head: 'a: 1', body: '', bodyLine: 3 })
  for (const none of ['', 'Text', 'Text\n---\na: 1\n---\n', '----\n']) assert.is(splitFrontmatter(none), 'none', none)
  for (const open of ['---', '---\na: 1\n', '---\na: 1\n--- b\n']) assert.is(splitFrontmatter(open), 'open', open)
})

test('front matter is a mapping whose fields have their position in the file', () => {
  const fields = parseHead('name: x\nnested:\n  deep: [1, 2]')
  assert.equal(headValues(fields), { name: 'x', nested: { deep: [1, 2] } })
  const nested = fields.get('nested')
  assert.equal(nested?.position, { line: 3, column: 1 })
  assert.equal(nested?.positionOf(['deep', 1]), { line: 4, column: 13 })
  assert.equal(nested?.positionOf(['other']), { line: 3, column: 1 })
  assert.is(parseHead('').size, 0)
  assert.is(parseHead('# nothing').size, 0)
})

test('unreadable front matter gives one line of text with its position', () => {
  const wrong = (head: string) => {
    try {
      parseHead(head)
    } catch (error) {
      assert.instance(error, FrontmatterError)
      return error as FrontmatterError
    }
    throw new Error(`${JSON.stringify(head)} was read`)
  }
  assert.match(wrong('a: 1\na: 2').message, /^not valid YAML: /)
  assert.equal(wrong('a: 1\na: 2').position, { line: 3, column: 1 })
  assert.match(wrong('- a').message, /mapping/)
  assert.match(wrong('just text').message, /mapping/)
  assert.not.match(wrong('a: [1\nb: "').message, /\n/)
})

test('nested aliases do not expand without bound', () => {
  const levels = ['a: &a [x, x, x, x, x, x, x, x, x, x]']
  for (const [to, from] of ['ba', 'cb', 'dc', 'ed', 'fe', 'gf']) {
    levels.push(`${to}: &${to} [${Array.from({ length: 10 }, () => `*${from}`).join(', ')}]`)
  }
  assert.throws(() => parseHead(levels.join('\n')), /alias/i)
})

test.run()
