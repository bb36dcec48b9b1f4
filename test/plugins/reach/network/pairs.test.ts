import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Pairs } from '../../../../plugins/reach/network/wakes/pairs.js'

const thread = { workspaceId: 'ws_1', channel: 'team', containerId: 'thread_one' }

test('a peer that writes often to one that never answers is not stopped', () => {
  const pairs = new Pairs()
  for (let round = 0; round < 10; round++) {
    for (let n = 0; n < 24; n++) pairs.said({ ...thread, sender: 'ada.one', receiver: undefined }, 1000)
    assert.is(pairs.said({ ...thread, sender: 'ada.one', receiver: 'bob.one' }, 1000)?.pace, 'passes')
  }
})

test('messages before the first answer of the other peer count', () => {
  const pairs = new Pairs()
  for (let n = 0; n < 15; n++) pairs.said({ ...thread, sender: 'ada.one', receiver: undefined }, 1000)
  const paces = Array.from({ length: 5 }, () => pairs.said({ ...thread, sender: 'bob.one', receiver: undefined }, 1000))
  assert.equal(
    paces.map(one => one?.pace),
    ['passes', 'passes', 'passes', 'passes', 'first'],
  )
})

test('peers of a group conversation are not stopped, in any order', () => {
  const pairs = new Pairs()
  const peers = ['ada.one', 'bob.one', 'cid.one', 'dan.one']
  for (let round = 0; round < 100; round++)
    for (const sender of round % 2 === 0 ? peers : [...peers].reverse())
      assert.is.not(pairs.said({ ...thread, sender, receiver: undefined }, 1000)?.pace, 'stopped')
})

test('two peers that answer each other by name are stopped, whoever else writes', () => {
  const pairs = new Pairs()
  const paces: unknown[] = []
  for (let round = 0; round < 10; round++) {
    paces.push(pairs.said({ ...thread, sender: 'ada.one', receiver: 'bob.one' }, 1000)?.pace)
    pairs.said({ ...thread, sender: 'cid.one', receiver: undefined }, 1000)
    paces.push(pairs.said({ ...thread, sender: 'bob.one', receiver: 'ada.one' }, 1000)?.pace)
  }
  assert.is(paces.at(-1), 'first')
})

test.run()
