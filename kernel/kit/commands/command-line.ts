/** Paths of the commands of the program, from their own data; the build fills it in. Without it any text is a path. */
// biome-ignore lint/suspicious/noEmptyInterface: declarations that the build writes are merged into it
export interface KnownCommands {}

/** Path of a command, `things show`. */
export type CommandPath = keyof KnownCommands extends never ? string : keyof KnownCommands

/** A part of a command that its reader has to fill in: `<dir>`. */
export interface Placeholder {
  readonly placeholder: string
}

/** A part of a {@link command} that only its reader knows. */
export const placeholder = (name: string): Placeholder => ({ placeholder: name })

/** A word quoted for a POSIX shell, if necessary. */
export const shellWord = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`

/**
 * A command for `next` of an error or `suggested_command` of a finding: `svc things show 'a b'`.
 * @param words arguments and options, quoted for a shell where necessary
 */
export function command(path: CommandPath, ...words: readonly (string | number | Placeholder)[]): string {
  const quoted = words.map(word => (typeof word === 'object' ? `<${word.placeholder}>` : shellWord(String(word))))
  return ['svc', path, ...quoted].join(' ')
}
