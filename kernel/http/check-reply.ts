import { KernelErrors } from '../errors.js'
import type { Route } from '../route.js'

/** A reply that is no stream, as a handler gives it. */
export interface PlainReply {
  readonly status: number
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/** Throws `reply_invalid` for a reply that is not as its route declares it. */
export function checkReply(route: Route, result: PlainReply): void {
  const schema = route.replies[result.status]
  if (schema === undefined)
    throw KernelErrors.reply_invalid(`${route.method} ${route.path} does not declare ${result.status}`)
  if (schema === null) return
  const issues = schema['~run']({ value: result.body }, {}).issues
  if (!issues) return
  const at = issues[0].path?.map(item => String(item.key)).join('.') ?? 'body'
  throw KernelErrors.reply_invalid(`${route.method} ${route.path} ${result.status}: ${at}: ${issues[0].message}`)
}

/** The messages of a WebSocket; the first that is not as its route declares it is thrown as `reply_invalid`. */
export async function* checked(route: Route, messages: AsyncIterable<unknown>): AsyncGenerator<unknown> {
  for await (const body of messages) {
    checkReply(route, { status: 101, body })
    yield body
  }
}
