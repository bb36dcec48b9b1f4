import { inTree } from '../../plugins/index.js'
import { code, page, table } from './markdown.js'
import { commentBefore, kitSources, pluginSources } from './sources.js'

export interface Registry {
  readonly id: string
  /** Name of the exported token. */
  readonly token: string
  /** Import specifier for authors; undefined for a registry private to its plugin. */
  readonly from: string | undefined
  /** Type of an entry. */
  readonly entry: string
  readonly comment: string
}

/** The registries of plugins and of the kit. */
export const registries = (): Registry[] => [
  ...pluginSources().flatMap(({ plugin, file, text }) =>
    registriesIn(text, file === 'api.ts' ? `svc/plugins/${plugin}` : undefined),
  ),
  ...kitSources().flatMap(({ text }) => registriesIn(text, 'svc/kit')),
]

const registriesIn = (text: string, from: string | undefined): Registry[] =>
  [...text.matchAll(/^export const (\w+) = registry<(.+)>\(\s*'([^']+)'/gm)].map(match => {
    const [, token = '', entry = '', id = ''] = match
    const declared = text.search(new RegExp(`^export interface ${entry}\\b`, 'm'))
    const comment = commentBefore(text, match.index) || (declared < 0 ? '' : commentBefore(text, declared))
    return { id, token, from, entry, comment }
  })

export function registriesPage(): string {
  const contributors = (id: string) =>
    inTree
      .filter(({ surface }) => surface.registries?.some(({ to }) => to.registry === id))
      .map(({ name }) => name)
      .sort()
  const rows = registries().map(({ id, token, from, entry, comment }) => [
    code(id),
    from === undefined ? 'internal' : `${code(token)} of ${code(from)}`,
    code(entry),
    contributors(id).join(', '),
    comment,
  ])
  return page(
    'Registries',
    `A surface contributes with ${code('contribute(Checks, service => [ … ])')}; the plugin that declares the registry collects the entries of all.
A contribution to a registry that nobody declares waits, and ${code('svc plugin show <name>')} lists it.`,
    table(['registry', 'token', 'entry', 'contributed to by', 'meaning'], rows),
  )
}
