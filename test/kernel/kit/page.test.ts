import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import { Fault } from '../../../kernel/contract/errors.js'
import { Paging } from '../../../kernel/kit/page.js'
import { label } from '../../fixtures/cases.js'

const paging = new Paging({ place: v.tuple([v.number(), v.string()]) })
const ada = { kind: 'operator', id: 'ada' } as const
const codeOf = (run: () => unknown) => {
  try {
    run()
  } catch (error) {
    if (error instanceof Fault) return `${error.status} ${error.code}`
    throw error
  }
  return 'none'
}

test('pages follow one another to the last row, each row once', () => {
  const all = Array.from({ length: 10 }, (_, n) => ({ n, id: `r${n}` }))
  const of = { actor: ada, query: { state: 'open' } }
  const seen: number[] = []
  for (let cursor: string | undefined; ; ) {
    const after = paging.after(of, cursor)
    const from = after === undefined ? 0 : after[0] + 1
    const page = paging.cut(of, all.slice(from, from + 4), 3, ({ n, id }) => [n, id])
    seen.push(...page.rows.map(({ n }) => n))
    assert.is(page.has_more, page.next_cursor !== undefined)
    cursor = page.next_cursor
    if (cursor === undefined) break
  }
  assert.equal(
    seen,
    all.map(({ n }) => n),
  )
})

const CURSOR = paging.cursor({ actor: ada, query: { state: 'open', q: undefined, limit: 3 } }, [1, 'x'])

test('a cursor is valid for the same query and caller with another limit', () =>
  assert.equal(paging.after({ actor: ada, query: { cursor: CURSOR, limit: 50, state: 'open' } }, CURSOR), [1, 'x']))

for (const other of [
  { actor: ada, query: { state: 'closed' } },
  { actor: ada, query: {} },
  { actor: ada, query: { state: 'open', q: '' } },
  { actor: { kind: 'operator', id: 'bob' }, query: { state: 'open' } },
  { actor: { kind: 'extension', id: 'ada' }, query: { state: 'open' } },
  { query: { state: 'open' } },
] as const)
  test(`a cursor is refused for ${label(other, 90)}`, () =>
    assert.is(
      codeOf(() => paging.after(other, CURSOR)),
      '400 invalid_cursor',
    ))

test('the order of query members does not matter', () => {
  const cursor = paging.cursor({ query: { a: '1', b: '2' } }, [1, 'x'])
  assert.equal(paging.after({ query: { b: '2', a: '1' } }, cursor), [1, 'x'])
})

const of = { actor: ada, query: {} }
const own = new Paging({ place: v.number(), invalid: () => new Fault('things_cursor_invalid', 400, 'no') })
const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
const [digest] = JSON.parse(Buffer.from(own.cursor(of, 1), 'base64url').toString()) as [string]
const wrong = ['', 'nonsense', '12', encoded(null), encoded({}), encoded([]), encoded(['filter', 1])]
const forged = [encoded([digest]), encoded([digest, 'x']), encoded([digest, null]), 'A'.repeat(1_000_000)]
for (const cursor of [...wrong, ...forged])
  test(`an invalid cursor is refused with the code of the route: ${label(cursor, 40)}`, () =>
    assert.is(
      codeOf(() => own.after(of, cursor)),
      '400 things_cursor_invalid',
    ))

test.run()
