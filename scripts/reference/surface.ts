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
 * One line per operation of a document: method, path, and short hashes of its parameters, body, replies and error codes including
 * referenced components. A contract change appears as a diff of these lines.
 */
export function surfaceLines({ paths, components }: Document): string {
  const hash = (part: unknown): string =>
    part === undefined
      ? '-'
      : createHash('sha256')
          .update(JSON.stringify(whole(part, components?.schemas ?? {}), withoutExamples))
          .digest('hex')
          .slice(0, 8)
  const lines = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, { parameters, requestBody, responses, 'x-error-codes': codes }]) =>
      [method.toUpperCase(), path, hash(parameters), hash(requestBody), hash(responses), hash(codes)].join(' '),
    ),
  )
  return `${lines.sort().join('\n')}\n`
}

/** Leaves out the example of a body or a reply, which promises nothing: it stands beside the schema. */
const withoutExamples = (_: string, value: unknown): unknown => {
  if (typeof value !== 'object' || value === null || !('schema' in value) || !('example' in value)) return value
  const { example: __, ...rest } = value
  return rest
}

/**
 * A part of the document with all components that it references, directly or indirectly, in an order independent of the document's.
 */
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
