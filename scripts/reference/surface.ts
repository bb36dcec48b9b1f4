import { createHash } from 'node:crypto'

interface Operation {
  readonly parameters?: unknown
  readonly requestBody?: unknown
  readonly responses?: unknown
  readonly 'x-error-codes'?: unknown
}

export interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components?: { readonly schemas?: Readonly<Record<string, unknown>> }
}

/**
 * A line for each operation of a document: method, path, and a short hash each of its parameters, body, replies and error codes, with
 * everything that they refer to. What a change of the code does to the contract is a diff of these lines.
 */
export function surfaceLines({ paths, components }: Document): string {
  const hash = (part: unknown): string =>
    part === undefined
      ? '-'
      : createHash('sha256')
          .update(JSON.stringify(whole(part, components?.schemas ?? {})))
          .digest('hex')
          .slice(0, 8)
  const lines = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, { parameters, requestBody, responses, 'x-error-codes': codes }]) =>
      [method.toUpperCase(), path, hash(parameters), hash(requestBody), hash(responses), hash(codes)].join(' '),
    ),
  )
  return `${lines.sort().join('\n')}\n`
}

/** A part of the document with the components that it refers to, directly or through others, in an order that does not depend on theirs. */
function whole(part: unknown, schemas: Readonly<Record<string, unknown>>): unknown {
  const found = new Map<string, unknown>()
  const visit = (value: unknown): void => {
    const text = JSON.stringify(value)
    for (const [, name = ''] of text.matchAll(/"#\/components\/schemas\/([^"]+)"/g))
      if (!found.has(name)) {
        found.set(name, schemas[name])
        visit(schemas[name] ?? null)
      }
  }
  visit(part)
  return [part, [...found].sort(([a], [b]) => (a < b ? -1 : 1))]
}
