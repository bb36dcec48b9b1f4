import { clip } from '../kernel/kit/text.js'
import type { ErrorBody } from '../schemas/kernel/error.js'

/** Exit codes of every command. */
export const exitCodes = {
  done: 0,
  failed: 1,
  usage: 2,
  noDaemon: 3,
  notFound: 4,
  conflict: 5,
  refused: 6,
  invalid: 7,
  unavailable: 8,
  interrupted: 130,
} as const

const exits: Readonly<Record<number, number>> = {
  400: exitCodes.invalid,
  401: exitCodes.refused,
  403: exitCodes.refused,
  404: exitCodes.notFound,
  409: exitCodes.conflict,
  410: exitCodes.notFound,
  413: exitCodes.invalid,
  415: exitCodes.invalid,
  421: exitCodes.refused,
  422: exitCodes.invalid,
  429: exitCodes.unavailable,
  503: exitCodes.unavailable,
  507: exitCodes.unavailable,
}

/** The exit code for an HTTP status of an error. */
export const exitOfStatus = (status: number): number => exits[status] ?? exitCodes.failed

/** Additional data of a {@link CliFault}. */
export interface CliFaultMore {
  /** Exit code; default 1. */
  readonly exit?: number
  /** The command that helps. */
  readonly next?: string | undefined
  /** The error of each invalid part of the request, by its name. */
  readonly details?: Readonly<Record<string, string>> | undefined
  /** The error body of the daemon, printed unchanged in structured modes. */
  readonly body?: unknown
  readonly cause?: unknown
}

/** Error of a command: a stable code for scripts, a text and the next step for people. */
export class CliFault extends Error {
  override readonly name = 'CliFault'

  constructor(
    readonly code: string,
    message: string,
    readonly more: CliFaultMore = {},
  ) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause })
  }

  get exit(): number {
    return this.more.exit ?? exitCodes.failed
  }

  /** The message of the cause, unless the message already contains it. */
  get why(): string | undefined {
    const { cause } = this.more
    const text = cause instanceof Error ? cause.message : ''
    return text === '' || this.message.includes(text) ? undefined : text
  }

  /** The error body for structured modes: the daemon's own, or one of the same form. */
  toBody(): unknown {
    if (this.more.body !== undefined) return this.more.body
    const { next } = this.more
    const details = { ...this.more.details, ...(next && { next }) }
    return { error: this.message, code: this.code, ...(Object.keys(details).length > 0 && { details }) }
  }
}

/** An invalid call of the CLI. */
export function usageFault(message: string, next?: string): CliFault {
  return new CliFault('usage', message, { exit: exitCodes.usage, next })
}

/** Next steps that the daemon cannot know: a command of the package without a route belongs to a plugin that does not run. */
const NEXT: ReadonlyMap<unknown, string> = new Map([['route_not_found', 'svc plugin list']])

/** The fault for an error reply of the daemon; `text` is its body. */
export function replyFault(status: number, text: string): CliFault {
  const exit = exitOfStatus(status)
  const body = parseBody(text)
  if (body === undefined) {
    const shown = clip(text.trim(), 500)
    const message = shown === '' ? `the daemon answered ${status}` : shown
    return new CliFault(`http_${status}`, message, { exit, body: parseJson(text) })
  }
  const { code, diagnostic } = body
  const { error, details: more } = saidIn(body)
  const { next = textsOf(diagnostic).suggested_command ?? NEXT.get(code), ...others } = textsOf(more)
  // Details already in the message are not repeated.
  const details = Object.fromEntries(Object.entries(others).filter(([, text]) => !error.includes(text)))
  return new CliFault(typeof code === 'string' ? code : `http_${status}`, error, { exit, details, body, next })
}

/** The text members of a reply, which may come from another program than the daemon. */
function textsOf(value: unknown): Record<string, string> {
  const members = typeof value === 'object' && value !== null ? Object.entries(value) : []
  return Object.fromEntries(members.filter(([, member]) => typeof member === 'string'))
}

function parseBody(text: string): ErrorBody | undefined {
  const body = parseJson(text) as ErrorBody | null | undefined
  return body && typeof saidIn(body).error === 'string' ? body : undefined
}

/** The error text of a reply; replies of tools wrap it in an object. */
function saidIn({ error, details }: { readonly error: unknown; readonly details?: unknown }): {
  readonly error: string
  readonly details?: unknown
} {
  if (typeof error !== 'object' || error === null) return { error: error as string, details }
  const { message, details: inner } = error as { readonly message: string; readonly details?: unknown }
  return { error: message, details: inner }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
