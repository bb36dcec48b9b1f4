import { cut } from '../../../../kernel/kit/text.js'
import type { ConversationMessage } from '../../../../schemas/network/messages.js'
import type { Context } from './commands.js'

const TIME = 8
const PEER = 11
const CHANNEL = 10
/** Columns where nothing tells how many there are. */
const WIDTH = 80
/** A narrower column of text is of no use. */
const LEAST = 20

/** Messages as rows of a table that grows: a row is printed when its message comes. */
export class MessageLines {
  /** The peer that goes by the short name of its agent. */
  readonly #names = new Map<string, string>()

  constructor(
    private readonly context: Pick<Context, 'out'>,
    /** Messages of several channels are shown. */
    private readonly isOfMany: boolean,
  ) {}

  head(): void {
    this.#row(['TIME', 'FROM', 'TO', ...(this.isOfMany ? ['CHANNEL'] : [])], 'MESSAGE', true)
  }

  show(message: ConversationMessage): void {
    const {
      timestamp,
      peer_from: from,
      peer_to: to,
      kind,
      channel,
      text,
      preview_text: preview = '',
      mentions,
    } = message
    const at = new Date(timestamp)
    const two = (part: number) => String(part).padStart(2, '0')
    const time = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`
    const receiver = to === undefined ? (mentions ?? []).map(one => this.#nameOf(one)).join(' ') : this.#nameOf(to)
    const said = `${text ?? preview}`.replace(/\s*\n\s*/g, ' ⏎ ')
    const what = kind === 'say' ? said : `[${kind}] ${said}`
    this.#row([time, this.#nameOf(from), receiver || '-', ...(this.isOfMany ? [channel] : [])], what, false)
  }

  #row(cells: readonly string[], text: string, isHead: boolean): void {
    const { out } = this.context
    const widths = [TIME, PEER, PEER, CHANNEL]
    const head = cells.map((cell, at) => cut(cell, widths[at] ?? 0).padEnd(widths[at] ?? 0)).join('  ')
    const columns = out.width !== undefined && Number.isFinite(out.width) ? out.width : WIDTH
    const width = Math.max(LEAST, columns - head.length - 2)
    const [first = '', ...rest] = wrapped(text, width)
    const line = `${head}  ${first}`
    out.line(isHead ? out.color('dim', line) : line)
    for (const more of rest) out.line(`${' '.repeat(head.length)}  ${more}`)
  }

  /** The name of its agent, with the end of its id where another peer goes by that name. */
  #nameOf(peerId: string): string {
    const dot = peerId.lastIndexOf('.')
    if (dot <= 0) return peerId
    const agent = peerId.slice(0, dot)
    const known = this.#names.get(agent) ?? peerId
    this.#names.set(agent, known)
    return known === peerId ? agent : `${cut(agent, PEER - 5)}~${peerId.slice(-4)}`
  }
}

/** Lines of at most so many characters, broken between words where there is a gap. */
function wrapped(text: string, width: number): string[] {
  const lines: string[] = []
  let left = [...text]
  while (left.length > width) {
    const gap = left.slice(0, width + 1).lastIndexOf(' ')
    const at = gap > width / 2 ? gap : width
    lines.push(left.slice(0, at).join('').trimEnd())
    left = left.slice(left[at] === ' ' ? at + 1 : at)
  }
  return [...lines, left.join('')]
}
