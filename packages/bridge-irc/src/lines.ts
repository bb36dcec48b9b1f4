import { linesOf, split } from '../../bridge-kit/src/index.js'

/** Bytes of an IRC line including CR and LF. */
const LINE = 512
/** Bytes reserved for our host while it is unknown. */
const LONGEST_HOST = 63

/** The sender's prefix, which the server puts in front of relayed lines. */
export interface Prefix {
  readonly nick: string
  readonly user: string
  /** Empty until the server has reported it. */
  readonly host: string
}

/** Bytes of text that fit into one PRIVMSG to the target, with the prefix that the server adds. */
export function roomFor(target: string, { nick, user, host }: Prefix): number {
  const bytes = (text: string) => Buffer.byteLength(text)
  // The server may have put an unseen tilde before the user.
  const mask = bytes(nick) + 1 + bytes(user) + 1 + 1 + (host === '' ? LONGEST_HOST : bytes(host))
  return LINE - 2 - (1 + mask + 1) - bytes('PRIVMSG ') - bytes(target) - bytes(' :')
}

/**
 * Splits a text into PRIVMSG lines without control characters, which could start a command or CTCP. If there would be more than
 * `most`, lines are joined with bars.
 */
export function privmsgLines(text: string, target: string, prefix: Prefix, most: number): string[] {
  const room = Math.max(40, roomFor(target, prefix))
  const lines = linesOf(text).flatMap(line => split(line, room, 'bytes').filter(piece => piece.trim() !== ''))
  if (lines.length <= most) return lines
  const joined: string[] = []
  for (const line of lines) {
    const last = joined.at(-1)
    if (last !== undefined && Buffer.byteLength(`${last} | ${line}`) <= room)
      joined[joined.length - 1] = `${last} | ${line}`
    else joined.push(line)
  }
  return joined
}

/** Whether a text is exactly one channel or nick: a comma would name several. */
export const isTarget = (target: string): boolean => /^[^\p{Cc} ,:*?!@$][^\p{Cc} ,*?!@]{0,199}$/u.test(target)

/** The text without IRC colours and styles. */
export function plain(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are the format
  return text.replace(/\x03(?:\d{1,2}(?:,\d{1,2})?)?|\x04(?:[0-9a-f]{6})?|[\x00-\x08\x0b-\x1f\x7f]/gi, '')
}

/** The text after `nick: ` or `@nick `; undefined: the line is not addressed to the nick. */
export function addressedText(text: string, nick: string, lower: (text: string) => string): string | undefined {
  const at = text.startsWith('@') ? 1 : 0
  if (lower(text.slice(at, at + nick.length)) !== lower(nick)) return undefined
  const rest = text.slice(at + nick.length)
  const [separator] = /^(?:\s*[:,]\s*|\s+|$)/.exec(rest) ?? []
  return separator === undefined ? undefined : rest.slice(separator.length)
}
