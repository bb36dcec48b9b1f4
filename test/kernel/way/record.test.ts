// unbundled: it counts the files that are run
import { readFileSync } from 'node:fs'
import { Session } from 'node:inspector/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import { createClient } from '../../../client/index.js'
import { definePlugin, kind, surfaceOf } from '../../../kernel/plugin.js'
import { daemon, resources } from '../../../plugins/index.js'
import { type Doors, openDoors } from '../http/doors.js'

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '../../..')
/** Files of the kernel, those of the store left out, that a PUT over TCP runs code of. */
const MOST_FILES = 24

let parsed = 0
const Counted = kind({
  name: 'test.counted',
  spec: v.pipe(
    v.object({ text: v.string() }),
    v.check(() => {
      parsed++
      return true
    }),
  ),
  maxBytes: 1000,
})
const seen: string[] = []
const { reconciler } = surfaceOf<object>()
const Unprojected = { ...Counted, name: 'test.unprojected' }
const owner = definePlugin({ name: 'counted', version: '1', service: async () => class {} }).surface({
  kinds: [Counted, Unprojected],
  reconcilers: [
    reconciler({
      kind: Counted,
      run: (_, { records }) => {
        for (const { spec } of records) seen.push(spec.text)
      },
    }),
  ],
})

const put = ({ port }: Doors, text: string, version: number, name = Counted.name) =>
  createClient({ baseUrl: `http://localhost:${port}` }).putResourcesByKindById({
    path: { kind: name, id: 'one' },
    body: { scope: { kind: 'global' }, spec: { text }, expected_version: version },
  })

async function crossed(work: () => Promise<unknown>): Promise<string[]> {
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  await session.post('Profiler.takePreciseCoverage')
  await work()
  const { result } = await session.post('Profiler.takePreciseCoverage')
  await session.post('Profiler.stopPreciseCoverage')
  session.disconnect()
  return result
    .filter(({ functions }) => functions.some(({ ranges }) => (ranges[0]?.count ?? 0) > 0))
    .flatMap(({ url }) =>
      url.startsWith('file:') ? path.relative(root, fileURLToPath(url.split('?')[0] as string)) : [],
    )
    .sort()
}

/** Leaf files of the kernel that the way passes, and that its story does not name. */
const SMALL = /^kernel\/(contract\/|config\/|kit\/|host\/register|(clock|ids|kernel|redaction)\.ts)/

/** Files that kernel/README.md names, as `kernel/http/`{a, b}. */
function wayInDocument(): ReadonlySet<string> {
  const text = readFileSync(path.join(root, 'kernel/README.md'), 'utf8')
  const groups = [...text.matchAll(/`(kernel\/\w+\/)`\{([^}]*)\}/g)]
  return new Set(
    groups.flatMap(([, folder = '', names = '']) => names.split(/,\s*/).map(name => `${folder}${name}.ts`)),
  )
}

test(`a PUT over TCP passes at most ${MOST_FILES} kernel files outside the store`, async () => {
  // As in a daemon, which does not check its own replies.
  const doors = await openDoors([daemon, resources, owner], undefined, {}, false)
  assert.is((await put(doors, 'first', 0)).status, 201)
  // What runs beside one of them by chance, the watching of the configuration say, is not on the way of all.
  const ways: string[][] = []
  for (const version of [1, 2, 3, 4, 5, 6, 7, 8])
    ways.push(await crossed(async () => assert.is((await put(doors, `version ${version}`, version)).status, 200)))
  const [first = [], ...others] = ways
  const files = first.filter(file => others.every(way => way.includes(file)))
  const kernel = files.filter(file => file.startsWith('kernel/') && !file.startsWith('kernel/store/'))
  await doors.close()
  console.log(kernel.map(file => `  ${file}`).join('\n'))
  assert.ok(kernel.length > 5, 'it looked at the right files')
  assert.ok(kernel.length <= MOST_FILES, `${kernel.length} files`)
  const documented = wayInDocument()
  assert.equal(
    kernel.filter(file => !SMALL.test(file) && !documented.has(file)),
    [],
    'kernel/README.md names these files',
  )
})

test('a PUT validates its spec once', async () => {
  const doors = await openDoors([daemon, resources, owner])
  parsed = 0
  assert.is((await put(doors, 'once', 0, Unprojected.name)).status, 201)
  const within = parsed
  await doors.close()
  assert.is(within, 1)
})

test.run()
