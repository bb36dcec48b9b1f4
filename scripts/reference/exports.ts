import { existsSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { pluginFolders } from '../plugin-folders.mjs'

const root = path.join(import.meta.dirname, '../..')

/** Sources of the public entries by import specifier. */
export function entrySources(): ReadonlyMap<string, string> {
  const schemas = readdirSync(path.join(root, 'schemas'), { recursive: true, encoding: 'utf8' })
  return new Map([
    ['svc', 'kernel/index.ts'],
    ['svc/plugin', 'kernel/plugin.ts'],
    ['svc/platform', 'kernel/platform.ts'],
    ['svc/kit', 'kernel/kit/index.ts'],
    ['svc/plugins', 'plugins/index.ts'],
    ['svc/bridge', 'packages/bridge-kit/src/index.ts'],
    ['svc/client', 'client/index.ts'],
    ['svc/testing', 'testing/index.ts'],
    ...pluginFolders(root)
      .map(({ name, folder }) => [`svc/plugins/${name}`, `${folder}/api.ts`] as const)
      .filter(([, file]) => existsSync(path.join(root, file))),
    ...schemas
      .filter(file => file.endsWith('.ts'))
      .map(file => [`svc/schemas/${file.replace(/\.ts$/, '')}`, `schemas/${file}`] as const),
  ])
}

/**
 * Names exported by a source, values and types.
 * @param file relative to `from`
 */
export function exportsOf(file: string, from = root): Set<string> {
  const names = new Set<string>()
  const text = readFileSync(path.join(from, file), 'utf8')
  const beside = (specifier: string) => path.join(path.dirname(file), specifier.replace(/\.js$/, '.ts'))
  for (const [, name = ''] of text.matchAll(
    /^export (?:declare )?(?:abstract )?(?:async )?(?:const|let|class|function\*?|interface|type|enum) (\w+)/gm,
  ))
    names.add(name)
  for (const [, list = ''] of text.matchAll(/^export (?:type )?\{([^}]*)\}/gm))
    for (const one of list.replace(/\/\/.*$/gm, '').split(',')) {
      const name = /(?:\bas )?(\w+)\s*$/.exec(one.trim())?.[1]
      if (name) names.add(name)
    }
  for (const [, specifier = ''] of text.matchAll(/^export (?:type )?\* from '(\.[^']+)'/gm))
    for (const name of exportsOf(beside(specifier), from)) names.add(name)
  return names
}

/** One line per importable name: `svc/plugin definePlugin`. */
export const exportLines = (entries: ReadonlyMap<string, string> = entrySources(), from = root): string[] =>
  [...entries].flatMap(([entry, file]) => [...exportsOf(file, from)].sort().map(name => `${entry} ${name}`))
