import type { IncomingHttpHeaders } from 'node:http'
import { Readable } from 'node:stream'
import * as v from 'valibot'
import { type Fault, KernelErrors } from '../contract/errors.js'
import { isSchema, type Route } from '../contract/route.js'
import { issueText } from '../issue-text.js'

/** Decodes the query; parameters that the route does not know are refused, for a misspelt filter must not mean "all". */
export function decodeQuery(route: Route, query: unknown): unknown {
  const given = Object.keys(query as object)
  if (!route.query) {
    if (given.length > 0)
      throw refusal(route, 'query', { [given[0] as string]: 'unknown parameter; this route takes none' })
    return undefined
  }
  const known = 'entries' in route.query ? Object.keys(route.query.entries as object) : undefined
  const unknown = known && given.find(name => !known.includes(name))
  if (unknown !== undefined)
    throw refusal(route, 'query', { [unknown]: `unknown parameter; known are ${known?.join(', ')}` })
  return decode(route, 'query', route.query, query)
}

/** Decodes the body; `undefined` for a route without one. Bytes stay what they are. */
export function decodeBody(route: Route, body: unknown): unknown {
  if (!route.body) return undefined
  if (!isSchema(route.body)) return body ?? (route.body.as === 'raw' ? Buffer.alloc(0) : Readable.from([]))
  if (body === undefined) {
    if (route.bodyOptional) return undefined
    throw refusal({ ...route, invalid: 400 }, 'body', { body: 'missing; send JSON with content-type application/json' })
  }
  // For the schema of an object an array would do, as one without members.
  if ('entries' in route.body && Array.isArray(body))
    throw refusal({ ...route, invalid: 400 }, 'body', { body: 'an object is expected, not an array' })
  return decode(route, 'body', route.body, body)
}

const NO_HEADERS = {}

/** The headers that the route declares, by their lower-case names; of a repeated one the first. */
export function decodeHeaders({ headers }: Route, given: IncomingHttpHeaders): Record<string, string | undefined> {
  if (!headers) return NO_HEADERS
  return Object.fromEntries(
    Object.keys(headers).map(name => {
      const value = given[name.toLowerCase()]
      return [name.toLowerCase(), Array.isArray(value) ? value[0] : value]
    }),
  )
}

function decode(route: Route, part: 'query' | 'body', schema: v.GenericSchema, value: unknown): unknown {
  const decoded = v.safeParse(schema, value)
  if (decoded.success) return decoded.output
  const details: Record<string, string> = {}
  for (const issue of decoded.issues.slice(0, 20)) details[v.getDotPath(issue) ?? part] ??= issueText(issue)
  throw refusal(
    part === 'body' && decoded.issues.some(cannotBeDecoded) ? { ...route, invalid: 400 } : route,
    part,
    details,
  )
}

/** A body that is no object, or has a member that nobody knows: 400 everywhere, also where wrong values are 422. */
const cannotBeDecoded = (issue: v.BaseIssue<unknown>) =>
  issue.type === 'strict_object' && (issue.expected === 'never' || issue.path === undefined)

function refusal(route: Route, part: 'query' | 'body', details: Record<string, string>): Fault {
  const [[path, text] = [part, 'invalid']] = Object.entries(details)
  const make = part === 'query' ? KernelErrors.invalid_query : KernelErrors.invalid_request
  const fault = make(`${part}: ${path}: ${text}`, { details })
  return route.invalid === 422 ? KernelErrors.unprocessable(fault.message, { details }) : fault
}
