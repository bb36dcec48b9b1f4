import { test } from 'uvu'
import * as assert from 'uvu/assert'
import {
  type DeliveryState,
  type InboundEvent,
  PAIR_MESSAGES,
  PAIR_MS,
  PairLimit,
} from '../../../../plugins/reach/bridges/api.js'
import { CAPACITY, LaneQueue, type Passing } from '../../../../plugins/reach/bridges/delivery/lane-queue.js'
import { ACTIVE, furthest, isActive, step, TRANSITIONS } from '../../../../plugins/reach/bridges/delivery/states.js'
import { judge, mayApprove } from '../../../../plugins/reach/bridges/inbound/policy.js'
import { conversationOf } from '../../../../plugins/reach/bridges/inbound/routing.js'
import { wordOf } from '../../../../plugins/reach/bridges/inbound/words.js'

const event = (more: Partial<InboundEvent> = {}): InboundEvent => ({
  bridge_instance_id: 'b1',
  idempotency_key: 'k',
  family: 'message',
  sender: { id: 'U1', username: 'ada', authenticated: true },
  peer_id: 'U1',
  addressed: true,
  text: 'hello',
  ...more,
})
const provider = (authenticatesSenders = true) => ({
  capabilities: {
    ...{ edits: true, canSettle: true, threads: true, authenticatesSenders },
    ...{ textLimit: 2000, textUnit: 'code_points' as const, fences: true },
  },
})

test('a part makes only the transitions of the table', () => {
  const states = Object.keys(TRANSITIONS) as DeliveryState[]
  for (const from of states)
    for (const to of states) {
      if (TRANSITIONS[from].includes(to)) assert.is(step(from, to), to)
      else assert.throws(() => step(from, to), /cannot change from/)
    }
  assert.equal(states.filter(isActive).sort(), [...ACTIVE].sort())
  assert.is(furthest(['delivered', 'failed', 'queued']), 'queued')
  assert.is(furthest(['delivered', 'failed', 'suppressed']), 'failed')
  assert.is(furthest(['delivered', 'delivered']), 'delivered')
})

test('a route holds four parts; a delta is dropped for room, and the end of an answer always fits', () => {
  const queue = new LaneQueue<Passing>()
  assert.equal(queue.offer({ key: 'a', kind: 'delta' }, 0), [])
  assert.equal(queue.offer({ key: 'a', kind: 'delta' }, 0), ['coalesced'], 'the latest replaces what waits')
  for (const key of ['p1', 'p2', 'p3']) assert.equal(queue.offer({ key, kind: 'progress' }, 0), [])
  assert.is(queue.size, CAPACITY)
  assert.equal(queue.offer({ key: 'b', kind: 'start' }, 0), ['coalesced'], 'the delta of another answer gives way')
  assert.equal(queue.offer({ key: 'c', kind: 'delta' }, 0), ['queue_saturated'])
  assert.equal(queue.makeRoom(3), [], 'nothing else gives way')
  assert.is(queue.size, CAPACITY)
  const full = new LaneQueue<Passing>()
  assert.equal(full.offer({ key: 'a', kind: 'delta' }, CAPACITY), ['queue_saturated'], 'durable parts count')
  assert.equal(full.offer({ key: 'a', kind: 'delta' }, 3), [])
  assert.equal(full.makeRoom(4), ['coalesced'])
  assert.is(full.size, 0)
})

test('a conversation is identified only by enabled dimensions, and lacks those missing in the event', () => {
  const instance = (policy: object, providerConfig = {}) => ({
    ...{ id: 'b1', scope: 'workspace' as const, workspaceId: 'ws_1', providerConfig },
    routingPolicy: { include_peer: false, include_group: false, include_thread: false, ...policy },
  })
  const one = conversationOf(instance({ include_peer: true }), event())
  const same = conversationOf(instance({ include_peer: true }), event({ thread_id: 't', idempotency_key: 'other' }))
  assert.equal(one, same)
  assert.ok(typeof one === 'object' && /^[0-9a-f]{64}$/.test(one.key))
  assert.not.equal(one, conversationOf(instance({ include_peer: true }), event({ peer_id: 'U2' })))
  assert.not.equal(one, conversationOf({ ...instance({ include_peer: true }), id: 'b2' }, event()))
  assert.is(conversationOf(instance({ include_group: true }), event()), 'group_id')
  assert.is(conversationOf(instance({ include_peer: true, include_thread: true }), event()), 'thread_id')
  const routing = { routing: { fallback: true } }
  const threads = instance({ include_group: true, include_thread: true }, routing)
  const dimensionsOf = (more: Partial<InboundEvent>) => {
    const found = conversationOf(threads, event(more))
    return typeof found === 'string' ? found : found.dimensions
  }
  assert.equal(dimensionsOf({}), { peer_id: 'U1' }, 'a direct message')
  assert.equal(dimensionsOf({ group_id: 'G' }), { group_id: 'G' }, 'a room outside of its threads')
  assert.equal(dimensionsOf({ group_id: 'G', thread_id: 'T' }), { group_id: 'G', thread_id: 'T' })
})

test('the policy of the instance decides which senders may prompt', () => {
  const may = (
    dmPolicy: 'open' | 'allowlist' | 'pairing',
    config: object,
    more: Partial<InboundEvent> = {},
    vouches = true,
  ) => {
    const judged = judge({ dmPolicy, providerConfig: { ...config } }, provider(vouches), event(more))
    return judged.may ? 'may' : judged.reason
  }
  const stranger = { sender: { id: 'U1', authenticated: false } }
  assert.is(may('open', {}), 'may')
  assert.is(may('open', {}, stranger), 'sender_not_authenticated')
  assert.is(may('open', {}, stranger, false), 'may', 'a platform that vouches for no sender')
  assert.is(may('allowlist', {}), 'sender_not_allowed')
  assert.is(may('allowlist', { dm: { allow_user_ids: ['U1'] } }), 'may')
  assert.is(may('allowlist', { dm: { allow_user_ids: ['U1'] } }, stranger), 'sender_not_authenticated')
  assert.is(may('allowlist', { dm: { allow_usernames: ['ada'] } }), 'may')
  assert.is(may('allowlist', { dm: 'nonsense' }), 'sender_not_allowed')
  assert.is(may('pairing', {}), 'sender_not_paired')
  assert.is(may('pairing', { dm: { paired_user_ids: ['U1'] } }), 'may')
  const group = { group_id: 'G', addressed: false }
  assert.is(may('allowlist', {}, { group_id: 'G' }), 'may')
  assert.is(may('open', {}, group), 'not_addressed')
  assert.is(may('open', { group: { reply: 'all' } }, group), 'may')
  assert.is(may('open', { group: { allow_user_ids: ['U9'] } }, { group_id: 'G' }), 'sender_not_allowed')
  assert.is(may('open', {}, { automatic: true }), 'automatic')
})

test('only a listed sender vouched for by the platform answers questions', () => {
  const config = { providerConfig: { approvers: { user_ids: ['U1'] } } }
  const { sender } = event()
  assert.is(mayApprove(config, provider(), sender), true)
  assert.is(mayApprove(config, provider(false), sender), false)
  assert.is(mayApprove(config, provider(), { ...sender, authenticated: false }), false)
  assert.is(mayApprove(config, provider(), { ...sender, id: 'U2', username: 'U1' }), false)
  assert.is(mayApprove({ providerConfig: {} }, provider(), sender), false)
})

test('bridge commands are distinguished from prompts', () => {
  const word = (text: string, more: Partial<InboundEvent> = {}) => wordOf(event({ text, ...more }))
  assert.equal(word('/cancel'), { says: 'cancel' })
  assert.equal(word('svc: !new'), { says: 'new' })
  assert.equal(word('@bot /new'), { says: 'new' })
  assert.equal(word('cancel', { family: 'command' }), { says: 'cancel' })
  assert.is(word('please /cancel the order'), undefined)
  assert.is(word('cancel'), undefined)
  assert.equal(word('allow bcdfg'), { says: 'allow', code: 'BCDFG' })
  assert.equal(word('bot, deny BCDFG'), { says: 'deny', code: 'BCDFG' })
  assert.is(word('allow everything'), undefined)
  assert.equal(word('reply BCDFG two words'), { says: 'reply', code: 'BCDFG', text: 'two words' })
  assert.equal(word('', { family: 'action', action_id: 'allow:BCDFG' }), { says: 'allow', code: 'BCDFG' })
  assert.is(word('', { family: 'action', action_id: 'anything' }), undefined)
})

test('two bots that answer each other are paused for a minute with one notice; a fast user is not', () => {
  const limit = new PairLimit()
  const outcomes: string[] = []
  for (let now = 0; now < 30; now++) {
    outcomes.push(limit.came('bot', false, now))
    limit.answered('bot', now)
  }
  assert.is(outcomes.indexOf('first') < PAIR_MESSAGES, true)
  assert.is(outcomes.filter(outcome => outcome === 'first').length, 1)
  assert.is(outcomes.at(-1), 'stopped')
  assert.is(limit.came('bot', false, PAIR_MS + 100), 'passes')
  for (let n = 0; n < 100; n++) assert.is(limit.came('person', false, n), 'passes')
  const flood = Array.from({ length: 25 }, (_, n) => limit.came('flood', true, n))
  assert.is(flood.indexOf('first'), PAIR_MESSAGES - 1)
  assert.is(flood.at(-1), 'stopped')
})

test.run()
