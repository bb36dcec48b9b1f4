// proof: the reconcile loop against a model
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import { type Batch, kind, operator } from '../../../../kernel/plugin.js'
import { systemDisk } from '../../../../kernel/store/disk.js'
import { seededIds } from '../../../../testing/seeded-ids.js'
import { VirtualClock } from '../../../../testing/virtual-clock.js'
import { boot } from '../../../harness/kernel.js'
import { Dice, forSeeds } from '../../../kernel/fixtures/dice.js'
import { everywhere, keeper } from '../../../kernel/fixtures/keeper.js'

const Seedling = kind({ name: 'seedling', spec: v.object({ text: v.string() }), maxBytes: 1000 })
/** Writes are on the disk as soon as the promises have run, so that only the seed decides what happens when. */
const instantDisk = { ...systemDisk(), fsync: async () => {}, fsyncDir: async () => {} }
const IDS = Array.from({ length: 12 }, (_, i) => `s${i}`)
/** What a spec makes the reconciler do; a number is what the codec refuses. */
const TEXTS = ['a', 'b', 'c', 'named', 'thrown', 7] as const
const STEPS = 60

/** The runtime and how badly it behaves. */
class Runtime {
  readonly held = new Map<string, unknown>()
  /** For every key the number of the pass that had it last. */
  readonly handed = new Map<string, number>()
  pass = 0
  running = 0
  flaky = false
  slow = false

  constructor(
    private readonly dice: Dice,
    private readonly clock: VirtualClock,
  ) {}

  async run({ records, removed, fail }: Batch<{ text: unknown }>, signal: AbortSignal): Promise<void> {
    assert.is(this.running++, 0, 'one pass at a time')
    try {
      const pass = ++this.pass
      if (this.slow) await this.clock.sleep(this.dice.upTo(12_000), signal)
      for (const id of [...records.map(record => record.id), ...removed]) this.handed.set(id, pass)
      if (this.flaky && this.dice.chance(0.3)) throw new Error('the runtime is away')
      for (const { id, spec } of records) {
        if (spec.text === 'thrown') throw new Error(`thrown ${id}`)
        if (spec.text === 'named' || (this.flaky && this.dice.chance(0.2))) fail(id, 'named')
        else this.held.set(id, spec.text)
      }
      for (const id of removed) this.held.delete(id)
    } finally {
      this.running--
    }
  }
}

async function play(seed: number): Promise<void> {
  const dice = new Dice(seed)
  const clock = new VirtualClock()
  let runtime = new Runtime(dice, clock)
  const codec = keeper('codec', { kinds: [Seedling] as never })
  const projector = keeper('projector', {
    reconcilers: [
      {
        kind: Seedling,
        run: (_: unknown, batch: Batch<{ text: unknown }>, signal: AbortSignal) => runtime.run(batch, signal),
      },
    ] as never,
  })
  const writer = keeper('writer')
  const host = await boot({
    plugins: [writer.plugin, projector.plugin],
    clock,
    ids: seededIds(seed),
    disk: instantDisk,
  })
  const { kernel } = writer
  const { load, unload } = host.kernel.host
  // The model: what is stored, what is loaded, and after which pass a key has to be in another one.
  const stored = new Map<string, string | number>()
  const loaded = new Set(['projector'])
  const marked = new Map<string, number>()

  const passing = async (work: Promise<unknown>) => {
    let done = false
    const ended = work.finally(() => {
      done = true
    })
    ended.catch(() => {})
    while (!done) await clock.advance(10)
    await ended
  }
  // Nobody passes while no reconciler is there; the next one begins with what is stored.
  const mark = (id: string) => loaded.has('projector') && marked.set(id, runtime.pass)
  const steps: Record<string, () => Promise<unknown>> = {
    write: () =>
      passing(
        kernel.db.tx(t => {
          for (let n = dice.upTo(3); n >= 0; n--) {
            const id = dice.of(IDS)
            const text = loaded.has('codec') ? dice.of(TEXTS.slice(0, 5)) : dice.of(TEXTS)
            kernel.records.put(t, operator, { kind: 'seedling', id, scope: everywhere, spec: { text } })
            stored.set(id, text)
            mark(id)
          }
        }),
      ),
    remove: async () => {
      const id = dice.of([...stored.keys(), ''])
      if (id === '') return
      mark(id)
      await passing(kernel.db.tx(t => kernel.records.delete(t, operator, { kind: 'seedling', id })))
      stored.delete(id)
    },
    mark: async () => {
      const id = dice.of(IDS)
      mark(id)
      kernel.needs.reconcile.mark([{ kind: 'seedling', id }])
    },
    wait: () => clock.advance(dice.of([0, 40, 1000, 20_000])),
    flaky: async () => {
      runtime.flaky = !runtime.flaky
    },
    slow: async () => {
      runtime.slow = !runtime.slow
    },
    codec: async () => {
      const known = loaded.delete('codec')
      if (!known) loaded.add('codec')
      await passing(known ? unload('codec') : load(codec.plugin))
    },
    projector: async () => {
      if (loaded.delete('projector')) {
        await passing(unload('projector'))
        assert.is(runtime.running, 0, 'no pass goes on without its plugin')
        // Whoever starts again begins with an empty runtime.
        runtime = new Runtime(dice, clock)
        marked.clear()
      } else {
        loaded.add('projector')
        for (const id of stored.keys()) mark(id)
        await passing(load(projector.plugin))
      }
    },
  }
  const often = ['write', 'write', 'write', 'write', 'remove', 'remove', 'mark', 'wait', 'wait', 'wait']
  for (let step = 0; step < STEPS; step++) {
    await steps[dice.of([...often, ...Object.keys(steps)])]?.()
    if (dice.chance(0.5)) await clock.advance(0)
  }

  // No more trouble: whatever happened, the runtime is what the records say.
  runtime.flaky = false
  runtime.slow = false
  if (!loaded.has('projector')) await steps.projector?.()
  const keys = IDS.map(id => ({ kind: 'seedling', id }))
  for (let i = 0; i < 16; i++) await clock.advance(10_000)
  assert.is(await kernel.needs.reconcile.settled(keys, { timeoutMs: 1 }), true, 'everything has had its pass')

  const refused = (text: string | number) => text === 7 && loaded.has('codec')
  const bad = [...stored].filter(([, text]) => refused(text) || text === 'named' || text === 'thrown').map(([id]) => id)
  const good = [...stored].filter(([id]) => !bad.includes(id))
  const sorted = (entries: Iterable<readonly [string, unknown]>) => [...entries].sort(([a], [b]) => (a < b ? -1 : 1))
  assert.equal(sorted([...runtime.held].filter(([id]) => !bad.includes(id))), sorted(good), 'records and runtime agree')
  for (const [id, pass] of marked) {
    const text = stored.get(id)
    if (text === undefined || !refused(text))
      assert.ok((runtime.handed.get(id) ?? 0) > pass, `${id} had a pass after it was marked`)
  }
  const health = () => kernel.needs.reconcile.health()[0]
  assert.is(health()?.pending, 0)
  assert.equal(
    health()
      ?.quarantined.map(({ id }) => id)
      .sort(),
    bad.sort(),
  )
  assert.is(health()?.status, bad.length > 0 ? 'degraded' : 'healthy', 'nothing but retries for minutes')
  await passing(
    kernel.db.tx(t =>
      kernel.records.put(t, operator, { kind: 'seedling', id: 'x', scope: everywhere, spec: { text: 'a' } }),
    ),
  )
  await clock.advance(0)
  assert.is(health()?.status, bad.length > 0 ? 'failing' : 'healthy', 'one key succeeded')
  assert.is(runtime.held.get('x'), 'a')
  await host.close()
}

test('random writes, marks, refusals, delays, failures and reloads end with the runtime of the records', () =>
  forSeeds(10, play))

test.run()
