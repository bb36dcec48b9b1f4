import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { LeaseTable } from '../../../kernel/kit/lease-table.js'
import { Fault, type Tx } from '../../../kernel/plugin.js'
import { seededIds } from '../../../testing/seeded-ids.js'
import { VirtualClock } from '../../../testing/virtual-clock.js'
import { temporaryFolder } from '../../harness/kernel.js'
import { tables } from './table-scene.js'

const TABLE = 'acme_things_lease'
const TTL = 10_000

async function scene(home?: string) {
  const clock = new VirtualClock()
  const s = await tables([LeaseTable.migration('001', TABLE)], { clock, ...(home === undefined ? {} : { home }) })
  const leases = new LeaseTable(TABLE, clock)
  const tx = <T>(fn: (t: Tx) => T) => s.own.db.tx(fn)
  const code = async (fn: (t: Tx) => unknown) => {
    try {
      await tx(fn)
      return 'done'
    } catch (error) {
      if (error instanceof Fault) return `${error.status} ${error.code}`
      throw error
    }
  }
  return { ...s, clock, leases, tx, code, claim: (key: string, who: string) => tx(t => leases.claim(t, key, who, TTL)) }
}

test('a key has one holder at a time, and other callers learn its expiry', async () => {
  const { leases, tx, code, claim, clock, own, close } = await scene()
  const lease = await claim('k', 'ada')
  assert.equal(lease, { key: 'k', holder: 'ada', token: 1, expiresAt: clock.now() + TTL })
  assert.equal(leases.get(own.db, 'k'), lease)
  await clock.advance(2500)
  const refusal = await tx(t => leases.claim(t, 'k', 'bob', TTL)).catch(error => error as Fault)
  assert.equal([refusal instanceof Fault && refusal.code, (refusal as Fault).retryAfter], ['lease_held', 8])
  assert.is(await code(t => leases.claim(t, 'k', 'ada', TTL)), '409 lease_held', 'the same name may be another process')
  assert.is((await claim('other', 'bob')).holder, 'bob')
  await close()
})

test('a heartbeat extends a lease, and a lease without one expires', async () => {
  const { leases, tx, code, claim, clock, own, close } = await scene()
  const lease = await claim('k', 'ada')
  for (let beat = 0; beat < 3; beat++) {
    await clock.advance(TTL - 1)
    assert.is((await tx(t => leases.renew(t, lease, TTL))).expiresAt, clock.now() + TTL)
  }
  assert.is(leases.nextExpiry(own.db), clock.now() + TTL)
  await clock.advance(TTL)
  assert.is(leases.get(own.db, 'k'), undefined)
  assert.is(await code(t => leases.renew(t, lease, TTL)), '409 lease_lost', 'lost before anybody has noticed')
  assert.is(await code(t => leases.fence(t, lease)), '409 lease_lost')
  assert.not.ok(await tx(t => leases.release(t, lease)))
  await close()
})

test('tokens of a key increase through releases, expiries and restarts', async () => {
  const home = await temporaryFolder('leases')
  const tokens: number[] = []
  for (let start = 0; start < 3; start++) {
    const { leases, tx, claim, clock, close } = await scene(home)
    await clock.advance(start * 100 * TTL)
    const released = await claim('k', 'ada')
    assert.ok(await tx(t => leases.release(t, released)))
    const expired = await claim('k', 'bob')
    await clock.advance(TTL)
    assert.equal(
      (await tx(t => leases.expire(t))).map(({ token }) => token),
      [expired.token],
    )
    const last = await claim('k', 'eve')
    tokens.push(released.token, expired.token, last.token)
    await clock.advance(TTL)
    await close()
  }
  assert.equal(
    tokens,
    [...new Set(tokens)].sort((a, b) => a - b),
  )
})

test('a write under a lost lease is refused: the fence is in the same transaction', async () => {
  const { leases, tx, claim, clock, own, close } = await scene()
  const old = await claim('k', 'ada')
  await clock.advance(TTL)
  const next = await claim('k', 'bob')
  assert.ok(next.token > old.token)
  await tx(t => {
    leases.claim(t, 'written', 'ada', TTL)
    leases.fence(t, old)
  }).catch(() => {})
  assert.is(leases.get(own.db, 'written'), undefined)
  assert.equal(await tx(t => leases.fence(t, next)), next)
  await close()
})

test('expire removes expired leases, the oldest first, up to a limit', async () => {
  const { leases, tx, claim, clock, own, close } = await scene()
  for (const key of ['a', 'b', 'c']) {
    await claim(key, 'ada')
    await clock.advance(1)
  }
  await clock.advance(TTL)
  await claim('live', 'ada')
  const keys = async (limit?: number) => (await tx(t => leases.expire(t, limit))).map(({ key }) => key)
  assert.equal(await keys(2), ['a', 'b'])
  assert.equal(await keys(), ['c'])
  assert.equal(await keys(), [])
  assert.ok(leases.get(own.db, 'live'))
  await close()
})

test('a backward clock jump does not extend a lease beyond its duration', async () => {
  const { leases, tx, code, claim, clock, close } = await scene()
  const lease = await claim('k', 'ada')
  clock.jump(-3_600_000)
  assert.is(await code(t => leases.claim(t, 'k', 'bob', TTL)), '409 lease_held')
  assert.equal((await tx(t => leases.fence(t, lease))).expiresAt, clock.now() + TTL)
  await clock.advance(TTL)
  assert.is(await code(t => leases.claim(t, 'k', 'bob', TTL)), 'done')
  await close()
})

test('random claims, heartbeats, releases and clock jumps never give two holders one key', async () => {
  const { tx, close } = await scene()
  const ids = seededIds(Number(process.env.SVC_SEED ?? 11))
  const any = <T>(from: readonly T[]) => from[Math.floor(ids.random() * from.length)] as T
  const attempt = <T>(run: () => T): T | undefined => {
    try {
      return run()
    } catch (error) {
      if (error instanceof Fault) return undefined
      throw error
    }
  }
  let now = 1_000_000
  const leases = new LeaseTable(TABLE, { now: () => now })
  const known = new Map<string, { token: number }[]>()
  await tx(t => {
    for (let step = 0; step < 3000; step++) {
      const key = any(['x', 'y'])
      const mine = known.get(key) ?? []
      const what = ids.random()
      if (what < 0.4) {
        const lease = attempt(() => leases.claim(t, key, any(['ada', 'bob']), 1 + Math.floor(ids.random() * 50)))
        if (lease) {
          const grows = mine.every(({ token }) => token < lease.token)
          assert.ok(grows, 'a token that is not the largest')
          known.set(key, [...mine.slice(-9), lease])
        }
      } else if (what < 0.6 && mine.length > 0) attempt(() => leases.renew(t, { key, token: any(mine).token }, 30))
      else if (what < 0.7 && mine.length > 0) leases.release(t, { key, token: any(mine).token })
      else if (what < 0.8) leases.expire(t)
      else now += Math.floor(what < 0.9 ? ids.random() * 40 : (ids.random() - 0.5) * 100)
      const held = mine.filter(({ token }) => attempt(() => leases.fence(t, { key, token })))
      assert.ok(held.length <= 1, `${held.length} hold ${key}`)
    }
  })
  await close()
})

test('invalid times and names are refused', async () => {
  const { leases, tx, close } = await scene()
  for (const ttl of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
    assert.ok(
      (await tx(t => leases.claim(t, 'k', 'ada', ttl)).catch(error => error)) instanceof RangeError,
      String(ttl),
    )
  }
  assert.throws(() => new LeaseTable('a b', new VirtualClock()), /not a valid name/)
  assert.throws(() => LeaseTable.migration('001', 'x; DROP TABLE y'), /not a valid name/)
  await close()
})

test.run()
