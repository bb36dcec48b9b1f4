import { inTree } from '../../plugins/index.js'
import { code, page, table } from './markdown.js'
import { commentBefore, pluginSources } from './sources.js'

export interface Registry {
  readonly id: string
  /** Name of the exported token; of one that stays inside its plugin, nothing. */
  readonly token: string | undefined
  readonly plugin: string
  /** Type of an entry. */
  readonly entry: string
  readonly comment: string
}

/** The registries of plugins; those whose tokens are in an `api.ts` are for others. */
export const registries = (): Registry[] =>
  pluginSources().flatMap(({ plugin, file, text }) =>
    [...text.matchAll(/^export const (\w+) = registry<(.+)>\('([^']+)'\)/gm)].map(match => {
      const [, name, entry = '', id = ''] = match
      const token = file === 'api.ts' ? name : undefined
      const declared = text.search(new RegExp(`^export interface ${entry}\\b`, 'm'))
      const comment = commentBefore(text, match.index) || (declared < 0 ? '' : commentBefore(text, declared))
      return { id, token, plugin, entry, comment }
    }),
  )

export function registriesPage(): string {
  const contributors = (id: string) =>
    inTree
      .filter(({ surface }) => surface.registries?.some(({ to }) => to.registry === id))
      .map(({ name }) => name)
      .sort()
  const rows = registries().map(({ id, token, plugin, entry, comment }) => [
    code(id),
    token === undefined ? `internal to ${plugin}` : `${code(token)} of ${code(`svc/plugins/${plugin}`)}`,
    code(entry),
    contributors(id).join(', '),
    comment,
  ])
  return page(
    'Registries',
    `A surface contributes with ${code('contribute(Checks, self => [ … ])')}; the plugin that declares the registry collects the entries of all.
A contribution to a registry that nobody declares waits, and ${code('svc plugin show <name>')} lists it.`,
    table(['registry', 'token', 'entry', 'contributed to by', 'meaning'], rows),
  )
}
