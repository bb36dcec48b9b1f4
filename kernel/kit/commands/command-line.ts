/** Paths of the commands of the program, from their own data; the build fills it in. Without it any text is a path. */
// biome-ignore lint/suspicious/noEmptyInterface: declarations that the build writes are merged into it
export interface KnownCommands {}

/** Path of a command, `things show`. */
export type CommandPath = keyof KnownCommands extends never ? string : keyof KnownCommands

/** What the reader of a command has to fill in: `<dir>`. */
export interface Placeholder {
  readonly placeholder: string
}

/** Stands in a {@link command} for what only its reader knows. */
export const placeholder = (name: string): Placeholder => ({ placeholder: name })

/** A word as a POSIX shell takes it for one, whatever is in it. */
export const shellWord = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`

/**
 * A command that helps, for `next` of an error or `suggested_command` of a finding: `svc things show 'a b'`.
 * @param words arguments and options, quoted for a shell where they have to be
 */
export function command(path: CommandPath, ...words: readonly (string | number | Placeholder)[]): string {
  const quoted = words.map(word => (typeof word === 'object' ? `<${word.placeholder}>` : shellWord(String(word))))
  return ['svc', path, ...quoted].join(' ')
}
