import { existsSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { pluginFolders } from '../plugin-folders.mjs'

/** Root of the tree. */
export const root = join(dirname(fileURLToPath(import.meta.url)), '../..')
const plugins = pluginFolders(root)

/** Sources by import specifier, matching the exports in package.json. */
const entries = {
  svc: 'kernel/index.ts',
  'svc/plugin': 'kernel/plugin.ts',
  'svc/platform': 'kernel/platform.ts',
  'svc/kit': 'kernel/kit/index.ts',
  'svc/plugins': 'plugins/index.ts',
  'svc/client': 'client/index.ts',
  'svc/testing': 'testing/index.ts',
}

/** Sources of these specifiers for extensions of `apiVersion = 1`. */
const entriesOfOne = {
  svc: 'plugins/delivery/extensions/version-one/svc.ts',
  'svc/plugin': 'plugins/delivery/extensions/version-one/plugin.ts',
}
/** Code copies of such extensions are in a folder named by their hash; those of later versions are below `api-2`. */
const isOfOne = parentURL => /(?<!\/api-\d+)\/[0-9a-f]{64}\//.test(parentURL)

/**
 * The source of a `svc` specifier, so that tests and the extensions in them share one instance of each module.
 * @param parentURL URL of the importing module
 */
export function sourceOf(specifier, parentURL = '') {
  if (Object.hasOwn(entriesOfOne, specifier) && isOfOne(parentURL)) return entriesOfOne[specifier]
  if (Object.hasOwn(entries, specifier)) return entries[specifier]
  const [, folder, name] = /^svc\/(plugins|schemas)\/(.+)$/.exec(specifier) ?? []
  if (folder === undefined) return undefined
  if (folder === 'schemas') return `schemas/${name}.ts`
  const plugin = plugins.find(one => one.name === name)
  return plugin && `${plugin.folder}/api.ts`
}

/** All existing sources of `svc` specifiers. */
export function packageEntries() {
  const below = (folder, sourceIn) =>
    existsSync(join(root, folder)) ? readdirSync(join(root, folder), { recursive: true }).flatMap(sourceIn) : []
  const apis = plugins.map(({ folder }) => `${folder}/api.ts`)
  const schemas = below('schemas', name => (/(?<!\.d|\.test)\.ts$/.test(name) ? [`schemas/${name}`] : []))
  return [...Object.values(entries), ...Object.values(entriesOfOne), ...apis, ...schemas].filter(name =>
    existsSync(join(root, name)),
  )
}
