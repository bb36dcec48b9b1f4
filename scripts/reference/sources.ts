import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { pluginFolders } from '../plugin-folders.mjs'

const root = path.join(import.meta.dirname, '../..')
const kit = path.join(import.meta.dirname, '../../kernel/kit')

/** Every source of every plugin. */
export const pluginSources = (): { readonly plugin: string; readonly file: string; readonly text: string }[] =>
  pluginFolders(root)
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap(({ name, folder, files }) =>
      files.map(file => ({ plugin: name, file, text: readFileSync(path.join(root, folder, file), 'utf8') })),
    )

/** The sources of `svc/kit`. */
export const kitSources = (): { readonly file: string; readonly text: string }[] =>
  readdirSync(kit, { recursive: true, encoding: 'utf8' })
    .filter(file => file.endsWith('.ts'))
    .sort()
    .map(file => ({ file, text: readFileSync(path.join(kit, file), 'utf8') }))

/** The public sources of each plugin: others may import only these, and hook types are declared only there. */
export const apis = () => pluginSources().filter(({ file }) => ['api.ts', 'points.ts'].includes(file))

/** The docstring directly before a declaration, on one line. */
export function commentBefore(text: string, at: number): string {
  const [, inner = ''] = /\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*$/.exec(text.slice(0, at)) ?? []
  return inner
    .replace(/^\s*\*\s?/gm, '')
    .replace(/\s+/g, ' ')
    .replace(/\{@link (\w+)\}/g, '`$1`')
    .trim()
}

/** The text between a bracket and its closing bracket, on one line. */
export const bracketed = (text: string, open: number): string =>
  text
    .slice(open + 1, endOf(text, open))
    .replace(/\s+/g, ' ')
    .trim()

/** The index of the closing bracket; the `>` of `=>` does not count. */
export function endOf(text: string, open: number): number {
  let depth = 0
  for (let at = open; at < text.length; at++) {
    if ('<({['.includes(text[at] as string)) depth++
    if (')}]'.includes(text[at] as string) || (text[at] === '>' && text[at - 1] !== '=')) depth--
    if (depth === 0) return at
  }
  throw new Error('a bracket is not closed')
}
