import { readFileSync } from 'node:fs'
import path from 'node:path'
import { code, page, table } from './markdown.js'
import { commentBefore } from './sources.js'

const root = path.join(import.meta.dirname, '../..')

export interface ApiValue {
  readonly name: string
  /** First sentence of the docstring. */
  readonly meaning: string
}

/** Sources of the entries that plugins and embedders import, by specifier. */
export const apiSources = {
  svc: 'kernel/index.ts',
  'svc/plugin': 'kernel/plugin.ts',
  'svc/platform': 'kernel/platform.ts',
  'svc/kit': 'kernel/kit/index.ts',
} as const
export type ApiEntry = keyof typeof apiSources

const read = (file: string) => readFileSync(path.join(root, file), 'utf8')

/** The exported values of an entry, without types, by name; entries list each in `export { … } from`. */
export function apiValues(entry: ApiEntry): ApiValue[] {
  const source = apiSources[entry]
  const values = [...read(source).matchAll(/^export \{([^}]*)\} from '([^']+)\.js'/gm)].flatMap(
    ([, names = '', from = '']) => {
      const text = textOf(path.join(path.dirname(source), `${from}.ts`))
      const plain = names.split(',').map(name => name.trim())
      return plain
        .filter(name => name !== '' && !name.startsWith('type '))
        .map(name => ({ name, meaning: meaningOf(text, name) }))
    },
  )
  return values.sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** A source together with the modules that it re-exports. */
function textOf(file: string): string {
  const text = read(file)
  const parts = [...text.matchAll(/^export \* from '([^']+)\.js'/gm)].map(([, part = '']) => `${part}.ts`)
  return [text, ...parts.map(part => read(path.join(path.dirname(file), part)))].join('\n')
}

function meaningOf(text: string, name: string): string {
  const at = text.search(new RegExp(`^export (?:async )?(?:const|class|function\\*?) ${name}\\b`, 'm'))
  const comment = at < 0 ? '' : commentBefore(text, at)
  return /^.*?[.;:](?=\s|$)/.exec(comment)?.[0].replace(/[;:]$/, '.') ?? comment
}

/** Maximum values of an entry: authors do not read more. */
export const mostValues: Readonly<Partial<Record<ApiEntry, number>>> = { 'svc/plugin': 60, 'svc/platform': 40 }

const about: Readonly<Record<ApiEntry, string>> = {
  svc: 'For programs that embed the kernel.',
  'svc/plugin': 'What an author of a plugin needs; [plugins.md](../plugins.md) is its manual.',
  'svc/platform':
    'What plugins use that do a part of the work of the kernel. Open to every extension; names may change in a minor version.',
  'svc/kit': 'Stateless helpers.',
}

export function apiPage(): string {
  const sections = (Object.keys(apiSources) as ApiEntry[]).map(entry => {
    const values = apiValues(entry)
    const rows = values.map(({ name, meaning }) => [code(name), meaning])
    const most = mostValues[entry]
    const count = `${values.length} values${most === undefined ? '' : `, at most ${most}`}.`
    return `## ${code(entry)}\n\n${about[entry]} ${count}\n\n${table(['value', 'meaning'], rows)}`
  })
  return page(
    'API',
    'The values of each entry of the package; types stand beside them. No value is in two entries.',
    ...sections,
  )
}
