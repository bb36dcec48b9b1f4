import { linesOf, split } from '../../bridge-kit/src/index.js'

/** Bytes of a line of IRC with its CR and LF. */
const LINE = 512
/** What a server may make of our user and host after we have last seen them. */
const LONGEST_HOST = 63

/** How others see the sender of a line; the server puts it in front of what it passes on. */
export interface Prefix {
  readonly nick: string
  readonly user: string
  /** Unknown before the server has said it. */
  readonly host: string
}

/** Bytes of text that one PRIVMSG to the target has room for when the server passes it on. */
export function roomFor(target: string, { nick, user, host }: Prefix): number {
  const bytes = (text: string) => Buffer.byteLength(text)
  // The user may have got a tilde that we do not see.
  const mask = bytes(nick) + 1 + bytes(user) + 1 + 1 + (host === '' ? LONGEST_HOST : bytes(host))
  return LINE - 2 - (1 + mask + 1) - bytes('PRIVMSG ') - bytes(target) - bytes(' :')
}

/**
 * The lines of a PRIVMSG each that a text becomes, with no control character that could begin a command or be a CTCP. Where there
 * would be more than `most`, those that fit are joined by bars.
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

/** A channel or nick to which a message may go: one word, and one of them, for a comma would name several. */
export const isTarget = (target: string): boolean => /^[^\p{Cc} ,:*?!@$][^\p{Cc} ,*?!@]{0,199}$/u.test(target)

/** A text without the colours and styles of IRC. */
export function plain(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are the format
  return text.replace(/\x03(?:\d{1,2}(?:,\d{1,2})?)?|\x04(?:[0-9a-f]{6})?|[\x00-\x08\x0b-\x1f\x7f]/gi, '')
}

/** What follows when a line is addressed to the nick, `nick: text` or `@nick text`; undefined: it is not. */
export function addressedText(text: string, nick: string, lower: (text: string) => string): string | undefined {
  const at = text.startsWith('@') ? 1 : 0
  if (lower(text.slice(at, at + nick.length)) !== lower(nick)) return undefined
  const rest = text.slice(at + nick.length)
  const [separator] = /^(?:\s*[:,]\s*|\s+|$)/.exec(rest) ?? []
  return separator === undefined ? undefined : rest.slice(separator.length)
}
