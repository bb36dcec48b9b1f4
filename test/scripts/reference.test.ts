import { readdirSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { inTree } from '../../plugins/index.js'
import { pluginHooks } from '../../scripts/reference/hooks.js'
import { manifestKeys } from '../../scripts/reference/manifest.js'
import { manifestTexts } from '../../scripts/reference/manifest-text.js'
import { pages } from '../../scripts/reference/pages.js'
import { registries } from '../../scripts/reference/registries.js'
import { configurationPage, settingRows } from '../../scripts/reference/settings.js'
import { settingTexts } from '../../scripts/reference/settings-text.js'
import { pluginSources } from '../../scripts/reference/sources.js'
import { boot, temporaryFolder } from '../harness/kernel.js'

const root = path.join(import.meta.dirname, '../..')
const folder = path.join(root, 'docs/reference')

test('the committed pages match the code', async () => {
  const made = await pages()
  assert.equal(readdirSync(folder).sort(), Object.keys(made).sort())
  for (const [name, text] of Object.entries(made)) {
    const committed = readFileSync(path.join(folder, name), 'utf8')
    assert.ok(committed === text, `docs/reference/${name} is out of date; run: npm run docs:reference`)
  }
})

test('docs/configuration.md has every key of the code', () => {
  const committed = readFileSync(path.join(root, 'docs/configuration.md'), 'utf8')
  assert.ok(committed === configurationPage(), 'docs/configuration.md is out of date; run: npm run docs:reference')
  for (const { path: key } of settingRows()) assert.ok(committed.includes(`| \`${key}\` |`), key)
})

test('every manifest key and setting has a description', () => {
  const silent = [...manifestKeys(), ...settingRows()].filter(({ description }) => description === '')
  assert.equal(
    silent.map(({ path: at }) => at),
    [],
  )
  const paths = new Set([...manifestKeys(), ...settingRows()].map(({ path: at }) => at))
  assert.equal(
    Object.keys({ ...manifestTexts, ...settingTexts }).filter(at => !paths.has(at)),
    [],
    'a text for what is not there',
  )
})

test('every registry and hook of a plugin is listed', () => {
  const declared = inTree.flatMap(({ surface }) => (surface.declares ?? []).map(({ registry }) => registry))
  assert.equal(
    registries()
      .map(({ id }) => id)
      .sort(),
    declared.sort(),
  )
  const hooksIn = (text: string) => [...text.matchAll(/hooks\s*\.(?:notify|pipeline|gate|guard)\s*[<(]/g)]
  const single = pluginSources().filter(({ text }) => hooksIn(text).length > 0)
  assert.equal(
    single.map(({ plugin, file }) => `${plugin}/${file}`),
    [],
    'a hook of no table',
  )
  assert.is(hooksIn("kernel.hooks.gate<[]>('x')").length, 1)
  // What a table has that no kernel makes can be tapped and is never called.
  const made = pluginSources().flatMap(({ plugin, text }) => (/hooks\s*\.of\(points\)/.test(text) ? [plugin] : []))
  const shown = new Set(pluginHooks().flatMap(({ plugin }) => (plugin === 'configuration' ? [] : [plugin])))
  assert.equal(made.sort(), [...shown].sort())
})

test('a daemon accepts the example configuration', async () => {
  const home = await temporaryFolder('home')
  await writeFile(path.join(home, 'config.json'), readFileSync(path.join(root, 'examples/config.jsonc')))
  const { kernel, close } = await boot({ home, plugins: [...inTree] })
  try {
    const values = kernel.host.settings().map(({ entry }) => entry.path)
    assert.ok(values.includes('automation.timezone'))
  } finally {
    await close()
  }
})

test.run()
