import { cut } from '../../../../kernel/kit/text.js'
import type { ConversationMessage, NotWoken } from '../../../../schemas/network/messages.js'
import type { Context } from './commands.js'

const TIME = 8
const PEER = 11
const CHANNEL = 10
/** Columns if the terminal's width is unknown. */
const WIDTH = 80
/** Minimum width of the text column. */
const LEAST = 20

/** Reasons for not waking a session, for people. */
const REASONS: Readonly<Record<NotWoken['reason'], string>> = {
  not_live: 'its session has ended',
  depth_exceeded: 'the chain of wakes is too long',
  budget_exhausted: 'its budget is spent',
  network_disabled: 'the network is off',
}

/** One line for each addressed session that a message did not wake. */
export const unwoken = (
  { not_woken: sessions = [] }: { readonly not_woken?: readonly NotWoken[] | undefined },
  nameOf = (peerId: string) => peerId,
): string[] => sessions.map(({ peer_id, reason }) => `${nameOf(peer_id)} is not woken: ${REASONS[reason]}`)

/** Prints messages as rows of a growing table. */
export class MessageLines {
  /** Peer that owns the short name of its agent. */
  readonly #names = new Map<string, string>()

  constructor(
    private readonly context: Pick<Context, 'out'>,
    /** Whether messages of several channels are shown. */
    private readonly isOfMany: boolean,
  ) {}

  head(): void {
    this.#row(['TIME', 'FROM', 'TO', ...(this.isOfMany ? ['CHANNEL'] : [])], 'MESSAGE', true)
  }

  show(message: ConversationMessage): void {
    const { timestamp, peer_from: from, peer_to: to, channel, mentions } = message
    const at = new Date(timestamp)
    const two = (part: number) => String(part).padStart(2, '0')
    const time = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`
    const receiver = to === undefined ? (mentions ?? []).map(one => this.#nameOf(one)).join(' ') : this.#nameOf(to)
    const cells = [time, this.#nameOf(from), receiver || '-', ...(this.isOfMany ? [channel] : [])]
    this.#row(cells, wordsOf(message), false)
    for (const line of unwoken(message, one => this.#nameOf(one)))
      this.#row(
        cells.map(() => ''),
        line,
        true,
      )
  }

  #row(cells: readonly string[], text: string, isDim: boolean): void {
    const { out } = this.context
    const widths = [TIME, PEER, PEER, CHANNEL]
    const head = cells.map((cell, at) => fit(cell, widths[at] ?? 0)).join('  ')
    const columns = out.width !== undefined && Number.isFinite(out.width) ? out.width : WIDTH
    const width = Math.max(LEAST, columns - head.length - 2)
    const [first = '', ...rest] = wrapped(text, width)
    const line = `${head}  ${first}`
    for (const one of [line, ...rest.map(more => `${' '.repeat(head.length)}  ${more}`)])
      out.line(isDim ? out.color('dim', one.trimEnd()) : one.trimEnd())
  }

  /** Name of the agent, with the end of the peer's id if another peer has that name. */
  #nameOf(peerId: string): string {
    const dot = peerId.lastIndexOf('.')
    if (dot <= 0) return peerId
    const agent = peerId.slice(0, dot)
    const known = this.#names.get(agent) ?? peerId
    this.#names.set(agent, known)
    return known === peerId ? agent : `${fit(agent, PEER - 5).trimEnd()}~${peerId.slice(-4)}`
  }
}

/** A cell of exact width. */
const fit = (cell: string, width: number): string => (cell.length > width ? cut(cell, width - 1) : cell).padEnd(width)

/** A message in one line, prefixed with its work and state. */
function wordsOf({ kind, body, text, preview_text: preview = '', work_id: work }: ConversationMessage): string {
  const { status, state, message } = Object(body) as { readonly [name: string]: unknown }
  const how = kind === 'receipt' ? status : kind === 'trace' ? state : kind === 'say' ? undefined : kind
  const about = [work, how].filter(Boolean).join(' ')
  const said = kind === 'trace' ? message : kind === 'receipt' ? undefined : (text ?? preview)
  return [about && `[${about}]`, said]
    .filter(Boolean)
    .join(' ')
    .replace(/\s*\n\s*/g, ' ⏎ ')
}

/** Wraps a text at gaps between words where possible. */
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
