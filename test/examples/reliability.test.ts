import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'

const root = path.join(import.meta.dirname, '../..')
const read = (file: string) => readFileSync(path.join(root, file), 'utf8')

/** Rows of the tables of faults: all cells of a line. */
const rowsOf = (text: string) =>
  text
    .split('\n')
    .filter(line => line.startsWith('| ') && !line.startsWith('| fault |'))
    .map(line => line.slice(2, -2).split(' | '))

/** What is wrong with the last cell of a row: it names no test, or one that does not exist. */
function wrongIn(cells: readonly string[]): string[] {
  const [fault = '', tests = ''] = [cells[0], cells.at(-1)]
  const named = [...tests.matchAll(/`(test\/[^`]+\.test\.ts)` "([^"]+)"/g)]
  const rest = tests.replaceAll(/`test\/[^`]+\.test\.ts` "[^"]+"|<br>/g, '').trim()
  if (named.length === 0 || rest !== '' || cells.length !== 4) return [`${fault}: names no test: ${rest}`]
  return named.flatMap(([, file = '', title = '']) => {
    if (!existsSync(path.join(root, file))) return [`${fault}: ${file} is not there`]
    const text = read(file)
    return ["'", '`'].some(quote => text.includes(`test(${quote}${title}${quote}`))
      ? []
      : [`${fault}: ${file} has no test "${title}"`]
  })
}

const rows = rowsOf(read('docs/reliability.md'))

test('every fault in docs/reliability.md names tests that exist', () => {
  assert.ok(rows.length > 40, `${rows.length} rows`)
  assert.equal(rows.flatMap(wrongIn), [])
})

test('a row without a test or with a missing one is found', () => {
  const file = '`test/examples/reliability.test.ts`'
  assert.match(wrongIn(['a', 'b', 'c', '']).join(), 'names no test')
  assert.match(wrongIn(['a', 'b', 'c', `${file} "no such title"`]).join(), 'has no test')
  assert.match(wrongIn(['a', 'b', 'c', '`test/none.test.ts` "x"']).join(), 'is not there')
  assert.equal(wrongIn(['a', 'b', 'c', `${file} "every fault in docs/reliability.md names tests that exist"`]), [])
})

test.run()
