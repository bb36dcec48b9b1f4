import { existsSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Folder of the tree. */
export const root = join(dirname(fileURLToPath(import.meta.url)), '../..')

/** Sources by what is imported of this package, as the exports of package.json say it of the build. */
const entries = {
  svc: 'kernel/index.ts',
  'svc/plugin': 'kernel/plugin.ts',
  'svc/kit': 'kernel/kit/index.ts',
  'svc/plugins': 'plugins/index.ts',
  'svc/client': 'client/index.ts',
  'svc/testing': 'testing/index.ts',
}

/** The source of `svc` and of what is below it: with it tests, and the extensions in them, have one instance of each module. */
export function sourceOf(specifier) {
  if (Object.hasOwn(entries, specifier)) return entries[specifier]
  const [, folder, name] = /^svc\/(plugins|schemas)\/(.+)$/.exec(specifier) ?? []
  if (folder === undefined) return undefined
  return folder === 'plugins' ? `plugins/${name}/api.ts` : `schemas/${name}.ts`
}

/** Every source that `svc` stands for, where this tree has it. */
export function packageEntries() {
  const below = (folder, sourceIn) =>
    existsSync(join(root, folder)) ? readdirSync(join(root, folder), { recursive: true }).flatMap(sourceIn) : []
  const plugins = below('plugins', name => (/^[^/]+\/api\.ts$/.test(name) ? [`plugins/${name}`] : []))
  const schemas = below('schemas', name => (/(?<!\.d|\.test)\.ts$/.test(name) ? [`schemas/${name}`] : []))
  return [...Object.values(entries), ...plugins, ...schemas].filter(name => existsSync(join(root, name)))
}
