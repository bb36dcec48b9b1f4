import { readFile, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import { definePlugin, type PluginKernel, type Setting } from '../../../../kernel/plugin.js'
import { Configuration, type ConfigurationApi } from '../../../../plugins/platform/configuration/api.js'
import configuration from '../../../../plugins/platform/configuration/index.js'
import type { TextFile } from '../../../../plugins/platform/files/api.js'
import { type BootOptions, boot, temporaryFolder } from '../../../harness/kernel.js'

const size: Setting<number> = {
  path: 'sizes.size',
  section: 'general',
  schema: v.pipe(v.number(), v.maxValue(100)),
  default: 1,
  apply: 'live',
  overlay: true,
}
const depth: Setting<number> = { ...size, path: 'sizes.depth', apply: 'restart-required' }
const height: Setting<number> = { ...size, path: 'sizes.height', apply: 'session-rebind' }
const guard: Setting<boolean> = { ...size, path: 'sizes.guard', schema: v.boolean(), default: true }
const width: Setting<number | string> = {
  ...size,
  path: 'sizes.width',
  schema: v.union([v.number(), v.literal('wide')]),
  default: 3,
  env: 'SIZES_WIDTH',
}
type Shape = { readonly sides: number; readonly colour?: string | undefined }
const shapes: Setting<Readonly<Record<string, Shape>>> = {
  path: 'shapes',
  section: 'general',
  schema: v.record(v.string(), v.strictObject({ sides: v.number(), colour: v.optional(v.string()) })),
  default: { dot: { sides: 0 } },
  apply: 'live',
  merge: 'by-name',
  overlay: true,
}
const { overlay: _, ...guarded } = guard
const settings = [size, depth, height, guarded, width, shapes] as readonly Setting[]

const needs = { configuration: Configuration }

interface Scene {
  readonly config: ConfigurationApi
  readonly told: unknown[]
  readonly text: () => Promise<string>
  readonly put: (text: string) => Promise<void>
  readonly unload: () => Promise<unknown>
  readonly pending: () => readonly string[]
}

/** A kernel with a plugin that owns the settings above, on a home with that `config.json`. */
async function withConfig(text: string, use: (scene: Scene) => Promise<void>, options: Partial<BootOptions> = {}) {
  const home = await temporaryFolder('layers')
  const file = path.join(home, 'config.json')
  await writeFile(file, text)
  const notices: unknown[] = []
  const seen: { kernel?: PluginKernel<typeof needs> } = {}
  const plugin = definePlugin({
    name: 'sizes',
    version: '1.0.0',
    requires: needs,
    service: async () =>
      class {
        constructor(kernel: PluginKernel<typeof needs>) {
          seen.kernel = kernel
          kernel.config.onChange(size, value => notices.push(['size', value]))
          kernel.config.onChange(depth, value => notices.push(['depth', value]))
          kernel.config.onChange(height, value => notices.push(['height', value]))
          kernel.config.onChange(shapes, value => notices.push(['shapes', Object.keys(value)]))
        }
      },
  }).surface({ settings })
  const host = await boot({ home, plugins: [configuration, plugin], ...options })
  try {
    await use({
      config: (seen.kernel as PluginKernel<typeof needs>).needs.configuration,
      told: notices,
      text: () => readFile(file, 'utf8'),
      put: next => writeFile(file, next),
      unload: () => host.kernel.host.unload('sizes'),
      pending: () => (seen.kernel as PluginKernel<typeof needs>).needs.configuration.state().pending,
    })
  } finally {
    await host.close()
    await rm(home, { recursive: true, force: true })
  }
}

const codeOf = async (work: () => unknown): Promise<string> => {
  try {
    await work()
  } catch (error) {
    return (error as { code: string }).code
  }
  return 'nothing'
}

/** A file in memory; `answers` are what reads give before its text. */
const memory = (text: string | undefined, answers: string[] = []): TextFile & { text: string | undefined } => ({
  text,
  async read() {
    return answers.shift() ?? this.text
  },
  async write(next) {
    this.text = next
  },
})

const FILE = `// mine
{
  "sizes": {
    "depth": 2, // deep
    "size": 2 // small
  },
  "plugins": { "acme": { "absent": { "x": 1 } } }
}
`

test('a write keeps comments and order; a live value is applied by its end, another one is pending', async () => {
  await withConfig(FILE, async ({ config, told, text, pending }) => {
    const before = config.hashes()
    assert.is(before.active, before.desired)
    const live = await config.write([{ path: 'sizes.size', value: 5 }])
    assert.equal([config.get(size), told], [5, [['size', 5]]])
    assert.is(await text(), FILE.replace('"size": 2', '"size": 5'))
    assert.equal([live.written, live.apply, live.generation], [true, 'live', 2])
    assert.not.equal(live.active, before.active)
    assert.is(live.hash, live.active)

    const later = await config.write([
      { path: 'sizes.depth', value: 7 },
      { path: 'sizes.height', value: 8 },
    ])
    assert.equal([config.get(depth), config.get(height)], [2, 8])
    assert.is(later.apply, 'restart-required', 'the strictest')
    assert.equal(pending(), ['sizes.depth'])
    assert.not.equal(later.hash, later.active)
    assert.equal(told.slice(1), [['height', 8]])

    const fixed = await config.write([{ path: 'sizes.depth', value: 9 }])
    assert.equal([fixed.generation, fixed.active], [later.generation, later.active], 'nothing in force has changed')
    const same = await config.write([{ path: 'sizes.depth', value: 9 }])
    assert.equal([same.written, same.apply, same.changes], [false, 'none', []])
    await config.write([{ path: 'sizes.depth' }, { path: 'sizes.height' }, { path: 'sizes.size' }])
    assert.equal([config.get(size), config.get(depth), config.get(height)], [1, 2, 1], 'the defaults show')
    assert.match(await text(), /\/\/ mine[\s\S]*\/\/ deep[\s\S]*\/\/ small[\s\S]*"absent": \{ "x": 1 \}/)
  })
})

test('a value that is invalid, without an owner or outside its map is refused, and nothing is written', async () => {
  await withConfig(FILE, async ({ config, told, text }) => {
    const circle: Record<string, unknown> = {}
    circle.self = circle
    const cases = [
      ['setting_unknown', { path: 'sizes.none', value: 1 }],
      ['setting_unknown', { path: 'plugins.acme.absent.x', value: 2 }],
      ['setting_unknown', { path: '__proto__', value: 2 }],
      ['setting_invalid', { path: 'sizes.size', value: 'big' }],
      ['setting_invalid', { path: 'sizes.size', value: 101 }],
      ['setting_invalid', { path: 'sizes.size', value: Number.NaN }],
      ['setting_invalid', { path: 'sizes.size', name: 'a', value: 1 }],
      ['setting_invalid', { path: 'shapes', name: 'a', value: { sides: '3' } }],
      ['setting_invalid', { path: 'shapes', name: 'a', value: circle }],
      ['setting_invalid', { path: 'shapes', name: 'a', value: { sides: 3, colour: 'x'.repeat(2 ** 20) } }],
    ] as const
    for (const [code, change] of cases) {
      const changes = [{ path: 'sizes.depth', value: 4 }, change]
      assert.is(await codeOf(() => config.plan(changes)), code, JSON.stringify(change.path))
      assert.is(await codeOf(() => config.write(changes)), code)
    }
    const twice = [
      { path: 'shapes', value: {} },
      { path: 'shapes', name: 'a', value: { sides: 1 } },
    ]
    const many = Array.from({ length: 101 }, (_, n) => ({ path: 'shapes', name: String(n), value: { sides: 1 } }))
    for (const changes of [twice, many]) assert.is(await codeOf(() => config.write(changes)), 'setting_invalid')
    assert.is(await text(), FILE)
    assert.equal([told, config.generation], [[], 1])
  })
})

test('a plan shows the result of a write, and writes nothing', async () => {
  await withConfig(FILE, async ({ config, text }) => {
    const plan = config.plan([
      { path: 'sizes.size', value: 6 },
      { path: 'shapes', name: 'box', value: { sides: 4 } },
      { path: 'sizes.depth', value: 2 },
      { path: 'sizes.height', value: 1 },
    ])
    assert.is(plan.apply, 'live')
    assert.equal(plan.changes, [
      { path: 'sizes.size', before: 2, after: 6, apply: 'live' },
      {
        path: 'shapes',
        name: 'box',
        before: { dot: { sides: 0 } },
        after: { dot: { sides: 0 }, box: { sides: 4 } },
        apply: 'live',
      },
      // Said for the first time, and what it was anyway.
      { path: 'sizes.height', before: 1, after: 1, apply: 'none' },
    ])
    assert.is(await text(), FILE)
    assert.is((await config.write([{ path: 'sizes.size', value: 6 }], { ifHash: plan.hash })).generation, 2)
  })
})

test('a write of planned changes keeps what was saved after the plan, even a comment', async () => {
  await withConfig(FILE, async ({ config, text, put }) => {
    const change = [{ path: 'sizes.size', value: 6 }]
    const { hash } = config.plan(change)
    const byHand = `// saved later\n${FILE}`
    await put(byHand)
    await config.write(change, { ifHash: hash })
    assert.is(await text(), byHand.replace('"size": 2', '"size": 6'))
  })
})

test('a failed condition is refused with the current value; without one the newer text is changed', async () => {
  await withConfig(FILE, async ({ config, text, put }) => {
    const { hash } = config.plan([])
    const byHand = FILE.replace('"depth": 2', '"depth": 3')
    await put(byHand)
    const change = [{ path: 'sizes.size', value: 6 }]
    const refused = await config.write(change, { ifHash: hash }).then(
      () => undefined,
      error => error,
    )
    assert.is(refused.code, 'config_changed')
    assert.is(refused.status, 409)
    assert.is(refused.details.hash, config.hashes().desired)
    assert.is(await text(), byHand)
    assert.is((await config.write(change, { ifGeneration: 1 })).generation, 2)
    assert.is(await text(), byHand.replace('"size": 2', '"size": 6'), 'on top of what the person saved')
    assert.is(await codeOf(() => config.write(change, { ifGeneration: 1 })), 'config_changed')

    await put('{ "sizes": { "size": }')
    assert.is(await codeOf(() => config.write(change)), 'config_invalid')
    assert.is(await text(), '{ "sizes": { "size": }')
    await put('{ "sizes": { "size": 3 }, "sizes": { "size": 4 } }')
    assert.is(await codeOf(() => config.write([{ path: 'sizes.size' }])), 'config_ambiguous')
    assert.is(await text(), '{ "sizes": { "size": 3 }, "sizes": { "size": 4 } }')
  })
})

test('concurrent writes all succeed, each on top of the previous one', async () => {
  await withConfig(FILE, async ({ config, text }) => {
    const names = Array.from({ length: 30 }, (_, n) => `shape ${n}.${n}`)
    await Promise.all(names.map((name, n) => config.write([{ path: 'shapes', name, value: { sides: n } }])))
    assert.equal(Object.keys(config.get(shapes)).sort(), ['dot', ...names].sort())
    await Promise.all(names.map(name => config.write([{ path: 'shapes', name }])))
    assert.equal(config.get(shapes), { dot: { sides: 0 } })
    assert.match(await text(), /\/\/ deep[\s\S]*\/\/ small/)
  })
})

test('an overlay contributes only its permitted members, merged by name', async () => {
  await withConfig(`{ "sizes": { "size": 2 }, "shapes": { "box": { "sides": 4 } } }`, async ({ config, unload }) => {
    const file = memory(
      `{ "sizes": { "size": 9, "depth": 8 }, "shapes": { "box": { "sides": 5 }, "tri": { "sides": 3 } } }`,
    )
    const release = await config.overlay('one', file, 'one/config.json')
    assert.is(await codeOf(() => config.overlay('one', file, 'again')), 'overlay_taken')
    assert.equal([config.get(size), config.get(size, 'one'), config.get(size, 'two')], [2, 9, 2])
    assert.equal([config.get(depth), config.get(depth, 'one')], [1, 8])
    assert.equal(config.get(shapes, 'one'), { dot: { sides: 0 }, box: { sides: 5 }, tri: { sides: 3 } })
    const explained = config.explain('shapes', 'one')
    assert.equal(explained.names, { dot: 'default', box: 'overlay', tri: 'overlay' })
    assert.equal(config.explain('sizes.size', 'one').layers, [
      { layer: 'default', where: '', value: 1 },
      { layer: 'file', where: config.explain('sizes.size').layers[1]?.where, value: 2 },
      { layer: 'overlay', where: 'one/config.json:1', value: 9 },
    ])
    assert.match(config.explain('sizes.size').layers[1]?.where ?? '', /config\.json:1$/)
    assert.not.equal(config.hashes('one').active, config.hashes().active)

    const notices: unknown[] = []
    config.onChange(size, value => notices.push(value), 'one')
    file.text = `{ "sizes": { "size": 10, "depth": 3 } }`
    await config.reload()
    assert.equal([notices, config.get(size, 'one'), config.get(depth, 'one')], [[10], 10, 8])
    assert.equal([config.state('one').pending, config.state().pending], [['sizes.depth'], []])
    assert.equal(config.explain('sizes.depth', 'one').pending, 3)

    for (const bad of ['{ "sizes": { "guard": false } }', '{ "sizes": { "sise": 1 } }', '[', '['.repeat(100_000)]) {
      file.text = bad
      await config.reload()
      assert.match(config.state('one').problem ?? '', /./)
      assert.equal([config.get(size, 'one'), config.get(guarded as Setting, 'one')], [10, true])
    }
    file.text = '{ "plugins": { "of.nobody": 1 } }'
    await config.reload()
    assert.equal([config.state('one').problem, config.get(size, 'one')], [undefined, 2])
    assert.equal(config.state('one').unowned, ['plugins.of.nobody'])
    await release()
    assert.is(await codeOf(() => config.state('one')), 'overlay_unknown')
    await config.overlay('one', memory('{ "sizes": { "size": 4 } }'), 'one/config.json')
    assert.is(config.get(size, 'one'), 4)
    await unload()
    assert.is(await codeOf(() => config.state('one')), 'overlay_unknown', 'it goes with its owner')
  })
})

test('an overlay is written like the file, unless another writer changed it', async () => {
  await withConfig('{}', async ({ config, text }) => {
    const file = memory(undefined)
    await config.overlay('one', file, 'one/config.json')
    const { changes } = await config.write([{ path: 'sizes.size', value: 7 }], { overlay: 'one' })
    assert.equal(changes, [{ path: 'sizes.size', before: 1, after: 7, apply: 'live' }])
    assert.equal([file.text, await text()], ['{\n  "sizes": {\n    "size": 7\n  }\n}\n', '{}'])
    assert.equal([config.get(size, 'one'), config.get(size)], [7, 1])
    const guarding = [{ path: 'sizes.guard', value: false }]
    assert.is(await codeOf(() => config.write(guarding, { overlay: 'one' })), 'setting_not_overlaid')
    assert.is(await codeOf(() => config.write(guarding, { overlay: 'two' })), 'overlay_unknown')

    const hasty = memory('{ "sizes": { "size": 3 } }', ['{}', '{}'])
    await config.overlay('hasty', hasty, 'hasty')
    assert.is(
      await codeOf(() => config.write([{ path: 'sizes.size', value: 5 }], { overlay: 'hasty' })),
      'config_changed',
    )
    assert.is(hasty.text, '{ "sizes": { "size": 3 } }')
  })
})

test('a variable named by a setting overrides all files, and an invalid one stops the start', async () => {
  const env = { SIZES_WIDTH: 'wide' }
  await withConfig(
    '{ "sizes": { "width": 4 } }',
    async ({ config }) => {
      assert.is(config.get(width), 'wide')
      const { layer, layers } = config.explain('sizes.width')
      assert.equal([layer, layers.map(({ value }) => value)], ['environment', [3, 4, 'wide']])
      assert.is(layers[2]?.where, 'SIZES_WIDTH')
      const { changes, apply } = await config.write([{ path: 'sizes.width', value: 5 }])
      assert.is(apply, 'none')
      assert.equal(changes, [
        { path: 'sizes.width', before: 'wide', after: 'wide', apply: 'none', hiddenBy: 'environment' },
      ])
    },
    { env },
  )
  const started = withConfig('{}', async () => {}, { env: { SIZES_WIDTH: 'narrow' } })
  assert.is(await codeOf(() => started), 'config_invalid')
  await withConfig('{}', async ({ config }) => assert.is(config.get(width), 12), { env: { SIZES_WIDTH: '12' } })
})

test('a failed write changes nothing, and the next one is made', async () => {
  await withConfig(FILE, async ({ config, told }) => {
    const file = memory('{ "sizes": { "size": 3 } }')
    const { write } = file
    file.write = () => Promise.reject(new Error('no room'))
    await config.overlay('one', file, 'one/config.json')
    const change = [{ path: 'sizes.size', value: 6 }]
    const before = config.hashes('one')
    assert.is(await config.write(change, { overlay: 'one' }).catch(error => error.message), 'no room')
    assert.equal([config.get(size, 'one'), config.hashes('one'), told], [3, before, []])
    file.write = write
    await config.write(change, { overlay: 'one' })
    assert.is(config.get(size, 'one'), 6)
  })
})

test.run()
