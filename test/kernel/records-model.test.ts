// proof, timeout: 180s: records against a model
import { rm } from 'node:fs/promises'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type Actor, operator, pluginActor } from '../../kernel/plugin.js'
import { systemDisk } from '../../kernel/store/disk.js'
import type { Snapshot } from '../../plugins/delivery/subprocess-host/snapshots.js'
import { seededIds } from '../../testing/seeded-ids.js'
import { VirtualClock } from '../../testing/virtual-clock.js'
import { temporaryFolder } from '../harness/kernel.js'
import { Dice, forSeeds } from './fixtures/dice.js'
import { extension, type Garden, garden, outcomeOf } from './fixtures/keeper.js'

const instantDisk = { ...systemDisk(), fsync: async () => {}, fsyncDir: async () => {} }
const STEPS = 250
const ACTORS: readonly Actor[] = [
  operator,
  pluginActor('garden'),
  { ...operator, id: 'narrow', grantedKinds: ['leaf'], maxScope: { kind: 'workspace', id: 'w1' } },
  extension('ivy'),
  extension('ivy', { nonce: 'n2' }),
  extension('oak', { grantedScopes: ['global'] }),
]
const SCOPES = [
  { kind: 'global' },
  { kind: 'user' },
  { kind: 'workspace', id: 'w1' },
  { kind: 'workspace', id: 'w2' },
] as const
const KINDS = ['leaf', 'raw.kind'] as const
const IDS = ['a', 'b', 'c', 'd', 'e'] as const

interface Modelled {
  scope: (typeof SCOPES)[number]
  source: string
  text: string
  version: number
  at: number
}
type Wish = {
  kind: (typeof KINDS)[number]
  id: string
  scope: Modelled['scope']
  text: string
  expectedVersion?: number
}

/** The rules of records again, as plainly as possible. */
class Model {
  records = new Map<string, Modelled>()
  sources = new Map<string, { nonce: string; version: number }>()

  put(actor: Actor, wish: Wish, now: number): string {
    const key = `${wish.kind}/${wish.id}`
    const before = this.records.get(key)
    const refused =
      this.writer(actor, wish.kind) ?? (mayUse(actor, wish.kind, wish.scope) ? undefined : '403 not_granted')
    if (refused) return refused
    const known = this.known(actor, wish.kind, before, wish.expectedVersion)
    if (known) return known
    this.records.set(key, {
      ...wish,
      source: actor.source.id,
      version: (before?.version ?? 0) + 1,
      at: now,
    })
    return 'done'
  }

  delete(actor: Actor, kind: string, id: string, expectedVersion?: number): string {
    const before = this.records.get(`${kind}/${id}`)
    const refused = this.writer(actor, kind)
    if (refused) return refused
    if (expectedVersion === 0) return '422 invalid_version'
    if (!before) return '404 record_not_found'
    const known = this.known(actor, kind, before, expectedVersion)
    if (known) return known
    this.records.delete(`${kind}/${id}`)
    return 'done'
  }

  snapshot(actor: Actor, version: number, wishes: readonly Wish[], now: number): string {
    if (actor.kind !== 'extension') return '403 forbidden'
    const keys = wishes.map(wish => `${wish.kind}/${wish.id}`)
    if (new Set(keys).size < keys.length) return '422 invalid_snapshot'
    if (wishes.some(wish => !mayUse(actor, wish.kind, wish.scope))) return '403 not_granted'
    const source = this.sources.get(actor.source.id)
    if (source?.nonce !== actor.nonce) return '409 source_inactive'
    if (version <= (source?.version ?? 0)) return '409 snapshot_stale'
    if (keys.some(key => (this.records.get(key)?.source ?? actor.source.id) !== actor.source.id))
      return '409 record_exists'
    for (const [key, { source: from }] of this.records)
      if (from === actor.source.id && !keys.includes(key)) this.records.delete(key)
    for (const [i, wish] of wishes.entries()) {
      const before = this.records.get(keys[i] as string)
      if (before && before.text === wish.text && JSON.stringify(before.scope) === JSON.stringify(wish.scope)) continue
      const version = (before?.version ?? 0) + 1
      this.records.set(keys[i] as string, { ...wish, source: actor.source.id, version, at: now })
    }
    this.sources.set(actor.source.id, { nonce: source?.nonce ?? '', version })
    return 'done'
  }

  private writer(actor: Actor, kind: string): string | undefined {
    if (actor.kind === 'extension') return '403 forbidden'
    return actor.grantedKinds && !actor.grantedKinds.includes(kind) ? '403 not_granted' : undefined
  }

  private known(actor: Actor, kind: string, before: Modelled | undefined, expected?: number): string | undefined {
    if (!before) return expected ? '404 record_not_found' : undefined
    if (expected === 0) return '409 record_exists'
    if (before.source !== actor.source.id) return '403 source_mismatch'
    if (!mayUse(actor, kind, before.scope)) return '403 not_granted'
    return expected !== undefined && expected !== before.version ? '409 version_conflict' : undefined
  }
}

function mayUse(actor: Actor, kind: string, scope: Modelled['scope']): boolean {
  const name = scope.kind === 'user' ? 'global' : scope.kind
  if (actor.grantedKinds && !actor.grantedKinds.includes(kind)) return false
  if (actor.grantedScopes && !(actor.grantedScopes as readonly string[]).includes(name)) return false
  return !actor.maxScope || ('id' in scope && scope.id === actor.maxScope.id)
}

/** What happened in all games; one that only ever refuses would prove nothing. */
const seen = new Set<string>()

async function play(seed: number): Promise<void> {
  const dice = new Dice(seed)
  const clock = new VirtualClock()
  const home = await temporaryFolder('model')
  const open = () => garden({ home, clock, ids: seededIds(seed), disk: instantDisk })
  let scene: Garden = await open()
  const model = new Model()

  const wish = (): Wish => ({
    kind: dice.of(KINDS),
    id: dice.of(IDS),
    scope: dice.of(SCOPES),
    text: dice.of(['x', 'y']),
  })
  const expected = ({ kind, id }: { kind: string; id: string }) => {
    const version = model.records.get(`${kind}/${id}`)?.version ?? 0
    const wanted = dice.of([undefined, version, version, version, 0, 1, 2, 3])
    return wanted === undefined ? {} : { expectedVersion: wanted }
  }
  const written = ({ text, ...rest }: Wish) => ({ ...rest, spec: { text } })
  const steps: Record<string, () => Promise<[actual: string, wanted: string]>> = {
    put: async () => {
      const actor = dice.of(ACTORS)
      const plain = wish()
      const one = { ...plain, ...expected(plain) }
      return [await outcomeOf(scene.put(actor, written(one))), model.put(actor, one, clock.now())]
    },
    delete: async () => {
      const actor = dice.of(ACTORS)
      const { kind, id } = wish()
      const { expectedVersion } = { expectedVersion: undefined, ...expected({ kind, id }) }
      return [
        await outcomeOf(scene.remove(actor, kind, id, expectedVersion)),
        model.delete(actor, kind, id, expectedVersion),
      ]
    },
    snapshot: async () => {
      const actor = dice.of([operator, ...ACTORS.slice(3), ...ACTORS.slice(3)])
      const scope = dice.chance(0.7) ? SCOPES[0] : undefined
      const wishes = Array.from({ length: dice.upTo(4) }, () => ({ ...wish(), ...(scope ? { scope } : {}) }))
      const sourceVersion = (model.sources.get(actor.source.id)?.version ?? 0) + dice.of([0, 1, 1, 1, 5])
      const snapshot: Snapshot = { sourceVersion, records: wishes.map(written) }
      const { db } = scene.kernel
      return [
        await outcomeOf(db.tx(t => scene.snapshots.apply(t, actor, snapshot))),
        model.snapshot(actor, sourceVersion, wishes, clock.now()),
      ]
    },
    activate: async () => {
      const { source, nonce = '' } = dice.of(ACTORS.slice(3))
      if (model.sources.get(source.id)?.nonce !== nonce) model.sources.set(source.id, { nonce, version: 0 })
      return [await outcomeOf(scene.kernel.db.tx(t => scene.snapshots.activate(t, source, nonce))), 'done']
    },
    reset: async () => {
      const { source } = dice.of(ACTORS.slice(3))
      model.sources.delete(source.id)
      for (const [key, record] of model.records) if (record.source === source.id) model.records.delete(key)
      return [await outcomeOf(scene.kernel.db.tx(t => scene.snapshots.reset(t, operator, source))), 'done']
    },
    restart: async () => {
      await scene.host.close()
      scene = await open()
      return ['done', 'done']
    },
    time: async () => {
      await clock.advance(1000)
      return ['done', 'done']
    },
  }
  const often = ['put', 'put', 'put', 'delete', 'delete', 'snapshot', 'snapshot', 'activate', 'time']
  const shown = (rows: { key: string; scope: object; source: string; text: unknown; version: number; at: number }[]) =>
    rows.sort((a, b) => (a.key < b.key ? -1 : 1))
  for (let step = 0; step < STEPS; step++) {
    const name = dice.chance(0.97) ? dice.of(often) : dice.of(['reset', 'restart'])
    const [actual, wanted] = (await steps[name]?.()) ?? []
    assert.is(actual, wanted, `step ${step}: ${name}`)
    seen.add(`${name} ${wanted}`)
    const rows = scene.kernel.records.list({}).map(({ kind, id, scope, source, spec, version, updatedAt }) => ({
      key: `${kind}/${id}`,
      scope,
      source: source.id,
      text: (spec as { text: string }).text,
      version,
      at: updatedAt,
    }))
    const modelled = [...model.records].map(([key, { scope, source, text, version, at }]) => ({
      key,
      scope,
      source,
      text,
      version,
      at,
    }))
    assert.equal(shown(rows), shown(modelled), `step ${step}: ${name} ${wanted}`)
  }
  await scene.host.close()
  await rm(home, { recursive: true })
}

test('random puts, deletes and snapshots of many actors leave the records of a model', async () => {
  await forSeeds(3, play)
  const wanted = ['put done', 'put 409 version_conflict', 'delete done', 'snapshot done', 'snapshot 409 snapshot_stale']
  if (process.env.SEEDS !== '1') for (const outcome of wanted) assert.ok(seen.has(outcome), outcome)
})

test.run()
