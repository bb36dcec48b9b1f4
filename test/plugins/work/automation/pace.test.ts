import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { turn } from '../../../../kernel/plugin.js'
import { Pace } from '../../../../plugins/work/automation/pace.js'
import { EveryNth } from '../../../../plugins/work/automation/runs/every-nth.js'

test('urgent steps pass before earlier steps, which still pass', async () => {
  const pace = new Pace(2)
  const passed: string[] = []
  const pass = (name: string, hurries: boolean) => pace.pass(hurries).then(() => passed.push(name))
  // The first two fill their turn.
  const all = ['a', 'b', 'c', 'd'].map(name => pass(name, false))
  all.push(...['X', 'Y', 'Z'].map(name => pass(name, true)))
  await Promise.all(all)
  assert.equal(passed, ['a', 'b', 'X', 'Y', 'Z', 'c', 'd'])
})

test('while urgent work is pending, other steps pass one per turn and are not starved', async () => {
  let isBehind = true
  const pace = new Pace(4, () => isBehind)
  let passed = 0
  const all = Array.from({ length: 9 }, () => pace.pass().then(() => passed++))
  for (let turns = 0; turns < 3; turns++) {
    const before = passed
    await turn()
    assert.ok(passed - before <= 1, `${passed - before} in one turn`)
  }
  assert.ok(passed > 0)
  await pace.pass(true)
  isBehind = false
  await Promise.all(all)
})

test('an id is due on its first call and on every n-th call after it', () => {
  const some = new EveryNth(3)
  const due = (id: string, times: number) => Array.from({ length: times }, () => some.due(id))
  assert.equal(due('a', 7), [true, false, false, true, false, false, true])
  assert.equal(due('b', 2), [true, false])
  assert.equal(due('a', 3), [false, false, true])
  // So many others make it forgotten: then it is due again, never less often than every n-th time.
  for (let n = 0; n < 20_000; n++) assert.ok(some.due(`other ${n}`))
  assert.ok(some.due('a'))
})

test('thousands of ids in turn are each due on every n-th call', () => {
  const some = new EveryNth(3)
  for (let round = 0; round < 7; round++)
    for (let n = 0; n < 10_000; n++) assert.is(some.due(`id ${n}`), round % 3 === 0)
})

test.run()
