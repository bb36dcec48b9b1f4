import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Fault } from '../../../kernel/contract/errors.js'
import type { Tx } from '../../../kernel/contract/storage.js'
import { hookFactory } from '../../../kernel/hooks/index.js'
import { gate, guard, type HooksOf, hookTable, notify, pipeline, type TapsOf } from '../../../kernel/plugin.js'
import { scene } from './scene.js'

const points = hookTable({
  heard: notify<[text: string]>('things.heard', 'A thing was heard.'),
  word: pipeline<string, [id: string]>('word', 'A word is on its way out.', { deadlineMs: 100 }),
  may: gate<[id: string], number>('may', 'Before a thing.', {
    isAnswer: (answer: unknown): answer is number => typeof answer === 'number',
  }),
  must: guard<[id: string]>('must', 'Before a thing, in the transaction.'),
})

function made() {
  const { clock, reports, report, tapper } = scene()
  const hooks: HooksOf<typeof points> = hookFactory('acme', report, clock, []).of(points)
  const taps: TapsOf<typeof points> = hooks
  return { clock, reports, tapper, hooks, taps }
}

test('a table creates a hook of each kind, prefixed in faults with the name of the plugin', async () => {
  const { clock, reports, tapper, hooks, taps } = made()
  const by = tapper('a')
  taps.heard.tap(by, () => {
    throw new Error('boom')
  })
  taps.word.tap(by, (value, id) => `${value} ${id}`)
  taps.word.tap(by, () => new Promise(() => {}))
  taps.may.tap(by, id => (id === 'seven' ? 7 : new Fault('no', 409, 'no')))
  taps.must.tap(by, (_, id) => (id === 'x' ? undefined : new Fault('no', 409, 'no')))
  await hooks.heard.call('x')
  const word = hooks.word.run('a', 'b')
  await clock.advance(100)
  assert.is(await word, 'a b')
  assert.is(await hooks.may.ask('seven'), 7)
  assert.is(((await hooks.may.ask('x')) as Fault).code, 'no')
  hooks.must.check({} as Tx, 'x')
  assert.throws(() => hooks.must.check({} as Tx, 'y'), /no/)
  assert.equal(reports, ['a acme.things.heard: boom', 'a acme.word: no end within 100 ms'])
})

test('a hook reports whether it has taps; a removed tap does not count', async () => {
  const { tapper, hooks, taps } = made()
  const by = tapper('a')
  for (const hook of Object.values(hooks)) assert.not.ok(hook.isUsed())
  taps.heard.tap(by, () => {})
  assert.ok(hooks.heard.isUsed())
  assert.not.ok(hooks.may.isUsed())
  await by.scope.release(1000)
  assert.not.ok(hooks.heard.isUsed())
})

test('two kernels in one process have separate hooks from one table', async () => {
  const [one, other] = [made(), made()]
  let heard = 0
  one.taps.heard.tap(one.tapper('a'), () => heard++)
  await other.hooks.heard.call('x')
  assert.is(heard, 0)
  await one.hooks.heard.call('x')
  assert.is(heard, 1)
})

test('a table with a duplicate name or without entries is refused', () => {
  const twice = { a: notify('a', 'A.'), b: notify('a', 'B.') }
  assert.throws(() => hookTable(twice), /must name "a" exactly once/)
  assert.throws(() => hookTable({ a: notify('', 'A.') }), /a hook table must name "" exactly once/)
})

test.run()
