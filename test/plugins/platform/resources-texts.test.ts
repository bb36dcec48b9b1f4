import { rm } from 'node:fs/promises'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import {
  definePlugin,
  kind,
  type PluginKernel,
  pluginActor,
  type RecordFilter,
  recordToWire,
} from '../../../kernel/plugin.js'
import { RecordTexts } from '../../../plugins/platform/resources/texts.js'
import { temporaryFolder } from '../../harness/kernel.js'
import { body, start as startScene } from './resource-scene.js'

const rollBack = new Error('not this time')

/** Keeps texts as the record routes do, for whoever asks inside of a transaction. */
class Reader {
  readonly texts: RecordTexts

  constructor({ records }: PluginKernel) {
    this.texts = new RecordTexts(records)
  }
}

async function start(options: { home?: string } = {}) {
  let reader: Reader | undefined
  const plugin = definePlugin({
    name: 'reader',
    version: '1.0.0',
    service: async () =>
      class extends Reader {
        constructor(kernel: PluginKernel) {
          super(kernel)
          reader = this
        }
      },
  }).surface({ hooks: { written: (self, _, { change }) => self.texts.touch(change) } })
  const { host, inside } = await startScene({ ...options, plugins: [plugin] })
  const texts = (filter: RecordFilter & { kind: string }) => (reader as Reader).texts.list(filter)
  return { host, inside: { ...inside, texts } }
}

type Inside = Awaited<ReturnType<typeof start>>['inside']

/** What is sent of all notes, and what is stored. */
const both = ({ records, texts }: Inside) => [
  texts({ kind: 'note' }).map(({ text }) => JSON.parse(text)),
  records.list({ kind: 'note' }).map(recordToWire),
]

/** Puts and deletes notes in a transaction that may be given up when its texts have been read. */
function change(kernel: Inside, changes: readonly [id: string, text?: string][], lasts = true): Promise<void> {
  const { db, records, actor } = kernel
  return db
    .tx(t => {
      for (const [id, text] of changes) {
        const key = { kind: 'note', id }
        if (text !== undefined) records.put(t, actor, { ...key, scope: { kind: 'global' }, spec: { text } })
        else if (records.get('note', id)) records.delete(t, actor, key)
      }
      assert.equal(...(both(kernel) as [unknown, unknown]))
      if (!lasts) throw rollBack
    })
    .catch(error => {
      if (error !== rollBack) throw error
    })
}

test('a rolled back version is not sent when another transaction has written the same version', async () => {
  const { host, inside } = await start()
  await change(inside, [['a', 'first']])
  await change(inside, [['a', 'given up']], false)
  await change(inside, [['a', 'second']])
  await change(inside, [['b', 'given up']], false)
  await change(inside, [['b', 'first']])
  const texts = inside.texts({ kind: 'note' }).map(({ text }) => JSON.parse(text).spec.text)
  assert.equal(texts, ['second', 'first'])
  await host.close()
})

test('a record that replaces a deleted one has its version and its own text', async () => {
  const { host } = await start()
  for (const text of ['first', 'second']) {
    assert.is((await host.request('PUT', '/api/resources/note/a', body(text))).status, 201)
    const { body: one } = await host.request('GET', '/api/resources/note/a')
    const { body: all } = await host.request('GET', '/api/resources/note?limit=10')
    assert.equal([one.record.spec, one.record.version], [{ text }, 1])
    assert.equal(all.records, [one.record])
    await host.request('DELETE', '/api/resources/note/a', { expected_version: 1 })
  }
  assert.is((await host.request('GET', '/api/resources/note/a')).status, 404)
  await host.close()
})

test('random writes, deletions and rollbacks send the stored text, also after a restart', async () => {
  const home = await temporaryFolder('texts')
  let seed = 7
  const chance = (n: number) => {
    seed = (seed * 1103515245 + 12345) % 2 ** 31
    return Math.floor((seed / 2 ** 31) * n)
  }
  for (let life = 0; life < 3; life++) {
    const { host, inside } = await start({ home })
    assert.equal(...(both(inside) as [unknown, unknown]))
    for (let n = 0; n < 100; n++) {
      const changes = Array.from({ length: 1 + chance(3) }, (): [string, string?] =>
        chance(3) === 0 ? [`n${chance(6)}`] : [`n${chance(6)}`, `text ${chance(1000)}`],
      )
      await change(inside, changes, chance(3) > 0)
      assert.equal(...(both(inside) as [unknown, unknown]))
    }
    await host.close()
  }
  await rm(home, { recursive: true })
})

test('texts beyond the cache are sent as stored', async () => {
  const { host, inside } = await start()
  const large = kind({ name: 'large', spec: v.unknown(), maxBytes: 1024 * 1024 })
  const sizes = Array.from({ length: 150 }, (_, n) => (n === 3 ? 200_000 : 40_000 + n))
  await inside.db.tx(t => {
    for (const [n, size] of sizes.entries())
      inside.records.put(t, inside.actor, {
        kind: large,
        id: `l${String(n).padStart(3, '0')}`,
        scope: { kind: 'global' },
        spec: 'x'.repeat(size),
      })
  })
  for (let round = 0; round < 2; round++) {
    const texts = inside.texts({ kind: 'large' })
    assert.equal(
      texts.map(({ text }) => JSON.parse(text).spec.length),
      sizes,
    )
  }
  await host.close()
})

test('a text read by one actor is not shown to another without access', async () => {
  const { host, inside } = await start()
  await change(inside, [['a', 'mine']])
  const texts = (as = inside.actor) => inside.texts({ kind: 'note', as }).length
  assert.is(texts(), 1)
  const stranger = { ...pluginActor('acme.other'), kind: 'extension' as const, grantedKinds: ['note'] }
  assert.is(texts({ ...stranger, source: { kind: 'extension', id: 'acme.other' } }), 0)
  assert.is(texts(), 1)
  await host.close()
})

test('a changed schema of a kind changes no stored and no sent text', async () => {
  const { host, inside } = await start()
  await change(inside, [['a', 'as it is']])
  const before = (await host.request('GET', '/api/resources/note/a')).body
  const plugin = (transform: string) =>
    definePlugin({ name: 'acme.loud', version: transform }).surface({
      kinds: [
        kind({
          name: 'acme.loud',
          spec: v.pipe(
            v.object({ text: v.string() }),
            v.transform(({ text }) => ({ text: `${transform} ${text}` })),
          ),
          maxBytes: 1000,
        }),
      ],
    })
  await host.kernel.host.load(plugin('1'))
  await host.request('PUT', '/api/resources/acme.loud/a', body('words'))
  const spec = async () => (await host.request('GET', '/api/resources/acme.loud/a')).body.record.spec
  assert.equal(await spec(), { text: '1 words' })
  await host.kernel.host.unload('acme.loud')
  await host.kernel.host.load(plugin('2'))
  assert.equal(await spec(), { text: '1 words' })
  await host.request('PUT', '/api/resources/acme.loud/a', body('words', 1))
  assert.equal(await spec(), { text: '2 words' })
  await host.kernel.host.unload('acme.loud')
  assert.equal(await spec(), { text: '2 words' })
  assert.equal((await host.request('GET', '/api/resources/note/a')).body, before)
  await host.close()
})

test.run()
