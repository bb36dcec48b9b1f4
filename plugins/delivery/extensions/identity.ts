import path from 'node:path'

/** The reference that a request uses for a link to all workspaces. */
export const EVERYWHERE = '*'

/** A developer's link, by the workspace it applies to. */
export interface Link {
  /** Id of a workspace; empty for all of them. */
  readonly workspace: string
}

/**
 * Unique key of an extension: `things` is the installed one, `things@ws_1` a link to that workspace, `things@*` a link
 * to all. It is the source id of its records and the key of its flag; no name contains an `@`.
 */
export const keyOf = (name: string, link?: Link): string => (link ? `${name}@${link.workspace || EVERYWHERE}` : name)

/** The place of an instance: empty for the installed one, else the workspace of the link or `*`. */
export const placeOf = ({ name, key }: { readonly name: string; readonly key: string }): string =>
  key.slice(name.length + 1)

export const isLink = (key: string): boolean => key.includes('@')

/** Whether the key is one of a link of that name. */
export const isLinkOf = (key: string, name: string): boolean => key.startsWith(`${name}@`)

/** The workspace reference that a command sends: relative paths of a person are resolved. */
export const referenceOf = (value: string | number | boolean, cwd: string): string =>
  /^\.{1,2}$|\//.test(String(value)) ? path.resolve(cwd, String(value)) : String(value)
