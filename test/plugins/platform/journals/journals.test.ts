import { readdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, type PluginKernel } from '../../../../kernel/plugin.js'
import { journals } from '../../../../plugins/index.js'
import { type Journal, Journals, type JournalsApi } from '../../../../plugins/platform/journals/api.js'
import { boot } from '../../../harness/kernel.js'

/** A plugin that keeps journals, and what it was handed, anew each time it starts. */
function keeper() {
  const handed: JournalsApi[] = []
  const plugin = definePlugin({
    name: 'keeper',
    version: '1',
    requires: { journals: Journals },
    service: async () =>
      class {
        constructor({ needs }: PluginKernel<{ journals: typeof Journals }>) {
          handed.push(needs.journals)
        }
      },
  }).surface({})
  return { plugin, open: (...args: Parameters<JournalsApi['open']>) => (handed.at(-1) as JournalsApi).open(...args) }
}

const texts = async (journal: Journal) =>
  (await journal.read(1, 100)).map(({ payload }) => Buffer.from(payload).toString())

test('a journal is below the home and is closed with its plugin', async () => {
  const { plugin, open } = keeper()
  const svc = await boot({ plugins: [plugin] })
  const first = await open(['things', 'one'])
  first.append([Buffer.from('a'), Buffer.from('b')])
  await first.written()
  assert.equal(await readdir(path.join(svc.home, 'things')), ['one'])
  await svc.kernel.host.reload(plugin)
  const again = await open(['things', 'one'])
  assert.equal(await texts(again), ['a', 'b'])
  assert.is(again.generation, 1, 'it ended cleanly')
  again.append([Buffer.from('c')])
  await svc.kernel.host.reload(journals)
  assert.equal(await texts(await open(['things', 'one'])), ['a', 'b', 'c'])
  await svc.close()
})

test('a closed journal is no resource of the plugin', async () => {
  const { plugin, open } = keeper()
  const svc = await boot({ plugins: [plugin] })
  const holds = () => svc.kernel.host.plugins().find(({ name }) => name === 'keeper')?.holds
  const before = holds()
  const journal = await open(['things'])
  assert.not.equal(holds(), before)
  await journal.close()
  assert.equal(holds(), before)
  await svc.close()
})

test('no journal is opened outside the home', async () => {
  const { plugin, open } = keeper()
  const svc = await boot({ plugins: [plugin] })
  for (const at of [
    ['..', 'things'],
    ['things', '../../..'],
  ]) {
    assert.ok(
      await open(at).then(
        () => false,
        () => true,
      ),
      at.join(),
    )
  }
  await svc.close()
})

test('a damaged journal is read up to the damage or refused', async () => {
  const { plugin, open } = keeper()
  const svc = await boot({ plugins: [plugin] })
  const journal = await open(['things'], { segmentBytes: 1 })
  for (const text of ['a', 'b', 'c']) {
    journal.append([Buffer.from(text)])
    await journal.sync()
  }
  await journal.close()
  const newest = path.join(svc.home, 'things', 'events-3.log')
  await writeFile(newest, (await readFile(newest)).fill(0))
  assert.is(
    await open(['things'], { intact: false }).then(
      () => '',
      ({ code }) => code,
    ),
    'journal_damaged',
  )
  const rest = await open(['things'])
  assert.equal(await texts(rest), ['a', 'b'])
  assert.throws(() => rest.append([Buffer.from('d')]), /journal damaged/)
  await svc.close()
})

test.run()
