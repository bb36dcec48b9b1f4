import path from 'node:path'

/** How a request names the link to all workspaces. */
export const EVERYWHERE = '*'

/** A link of a developer, by where it counts. */
export interface Link {
  /** Id of a workspace; empty for all of them. */
  readonly workspace: string
}

/**
 * What tells one of several of a name: `things` is what is installed, `things@ws_1` a link to that workspace, `things@*` one to
 * all. It is the id of the source of its records and of its switch; no name has an `@`.
 */
export const keyOf = (name: string, link?: Link): string => (link ? `${name}@${link.workspace || EVERYWHERE}` : name)

/** Where of a name one is: empty for what is installed, else the workspace of the link or `*`. */
export const placeOf = ({ name, key }: { readonly name: string; readonly key: string }): string =>
  key.slice(name.length + 1)

export const isLink = (key: string): boolean => key.includes('@')

/** Whether that is the key of a link of that name. */
export const isLinkOf = (key: string, name: string): boolean => key.startsWith(`${name}@`)

/** How a command names a workspace to the daemon: its path may be relative for a person. */
export const referenceOf = (given: string | number | boolean, cwd: string): string =>
  /^\.{1,2}$|\//.test(String(given)) ? path.resolve(cwd, String(given)) : String(given)
