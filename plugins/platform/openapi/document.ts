import { toJsonSchema } from '@valibot/to-json-schema'
import type * as v from 'valibot'
import {
  annotationKinds,
  annotationOf,
  annotationsOf,
  Description,
  Thrown,
  wrongAnnotation,
} from '../../../kernel/kit/annotations/index.js'
import { operationId } from '../../../kernel/platform.js'
import { type BytesReply, messageOf, type Route, type RouteBody } from '../../../kernel/plugin.js'
import { ErrorBody } from '../../../schemas/kernel/error.js'
import { TcpSettings } from '../tcp/api.js'

/** Section of routes without one. */
const OTHER = 'Other'

/** Statuses that every route can return, beyond its own. */
const COMMON = [400, 401, 403, 404, 409, 413, 415, 421, 422, 429, 500, 503, 507]

/**
 * A schema as JSON Schema. A body is described by its input, a query by its output, since on the wire all of it is text. Custom
 * code (`check`) and trimming have no counterpart and are left out.
 */
export function jsonSchema(schema: v.GenericSchema, part: 'query' | 'body' | 'reply'): Record<string, unknown> {
  const { $schema: _, ...converted } = toJsonSchema(schema, {
    typeMode: part === 'body' ? 'input' : 'output',
    target: 'draft-2020-12',
    errorMode: 'throw',
    ignoreActions: ['check', 'trim'],
  }) as Record<string, unknown>
  return converted
}

/** Throws an error with the first of these routes whose annotations or schemas are invalid, and the reason. */
export function checkDescribable(routes: readonly Route<never>[]): void {
  for (const route of routes) {
    const wrong = wrongAnnotation(route.with ?? [], annotationKinds)
    if (wrong !== undefined) throw new Error(`${route.method} ${route.path} ${wrong}`)
    try {
      describe(route as Route)
    } catch (error) {
      throw new Error(`${route.method} ${route.path} has a schema that is not a JSON Schema: ${messageOf(error)}`)
    }
  }
}

/** The OpenAPI document of these routes. */
export function buildDocument(routes: readonly Route[], version: string) {
  const named = new Map<string, unknown>([['Error', jsonSchema(ErrorBody, 'reply')]])
  const paths: Record<string, Record<string, unknown>> = {}
  for (const route of [...routes].sort((a, b) => (key(a) < key(b) ? -1 : 1))) {
    paths[route.path] ??= {}
    Object.assign(paths[route.path] as object, { [route.method.toLowerCase()]: hoisted(describe(route), named) })
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'svc',
      version,
      description: 'The same contract on the Unix socket and over HTTP.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    components: { schemas: Object.fromEntries(named), securitySchemes: { ...callers, ...signaturesOf(routes) } },
    paths,
    servers: [{ url: 'http://localhost:{port}', variables: { port: { default: String(TcpSettings.port.default) } } }],
    security: [{}, { bearer: [] }, { bearer: [], sessionId: [], sessionAgent: [] }],
  }
}

/** Authentication schemes; the operator's Unix socket needs none. */
const callers = {
  bearer: {
    type: 'http',
    scheme: 'bearer',
    description: 'The operator token (`svc auth token`), an API key, or the token of a session (`SVC_SESSION_TOKEN`).',
  },
  sessionId: {
    type: 'apiKey',
    in: 'header',
    name: 'X-Service-Session-Id',
    description: 'With the operator token: the session for whose agent the request is made.',
  },
  sessionAgent: {
    type: 'apiKey',
    in: 'header',
    name: 'X-Service-Agent',
    description: 'With the operator token: the agent of that session.',
  },
} as const

/** A scheme for each header with a signature of a public route. */
function signaturesOf(routes: readonly Route[]) {
  const headers = new Set(routes.flatMap(signatureHeaders))
  return Object.fromEntries(
    [...headers].sort().map(name => [name, { type: 'apiKey', in: 'header', name } as const] as const),
  )
}

const signatureHeaders = ({ public: isPublic, headers = {} }: Route): string[] =>
  isPublic ? Object.keys(headers).filter(name => /signature/i.test(name)) : []

/** Security of a public route: one of its signatures, or none. */
function signatureSecurity(route: Route): object[] {
  const signed = signatureHeaders(route).map(name => ({ [name]: [] }))
  return signed.length > 0 ? signed : [{}]
}

function describe(route: Route): Record<string, unknown> {
  const thrown = annotationsOf(route, Thrown).flat()
  const parameters = parametersOf(route)
  return {
    operationId: operationId(route),
    summary: route.summary,
    tags: [annotationOf(route, Description)?.area ?? OTHER],
    ...(route.body && { requestBody: { required: !route.bodyOptional, ...content(route.body, 'body') } }),
    ...(parameters.length > 0 && { parameters }),
    ...(thrown.length > 0 && { 'x-error-codes': [...new Set(thrown.map(({ code }) => code))].sort() }),
    responses: responses(route),
    ...(route.public && { security: signatureSecurity(route) }),
  }
}

function parametersOf({ path, query, headers = {} }: Route) {
  const one = (place: string, name: string, required = true, schema: Schema = { type: 'string' }) => {
    const { description, ...rest } = schema
    return { schema: rest, in: place, name, required, ...(description !== undefined && { description }) }
  }
  const { properties = {}, required, $defs } = (query ? jsonSchema(query, 'query') : {}) as Partial<ObjectSchema>
  return [
    ...Object.entries(properties).map(([name, schema]) =>
      one('query', name, required?.includes(name) ?? false, $defs ? { ...schema, $defs } : schema),
    ),
    ...[...path.matchAll(/\{([^}]+)\}/g)].map(([, name = '']) => one('path', name)),
    ...Object.entries(headers).map(([name, { required }]) => one('header', name, required)),
  ]
}

type Schema = Readonly<Record<string, unknown>>
type ObjectSchema = { readonly properties: Record<string, Schema>; readonly required: string[]; readonly $defs: object }

function responses(route: Route): Record<string, unknown> {
  const all: Record<string, unknown> = {}
  for (const [status, schema] of Object.entries(route.replies)) {
    if (schema === null) all[status] = { description: 'Done, no body' }
    else all[status] = { description: 'Success', ...content(schema, 'reply', route.contentType) }
  }
  const refused = route.faults ? content(route.faults.reply) : content({ $ref: referenceTo('Error') })
  const { errors = [] } = annotationOf(route, Description) ?? {}
  const thrown = annotationsOf(route, Thrown).flat()
  const statuses = [...COMMON, ...(101 in route.replies ? [426] : []), ...errors, ...thrown.map(({ status }) => status)]
  for (const status of new Set(statuses)) all[status] ??= { description: 'Refused or failed', ...refused }
  return all
}

/** The content of a body: JSON by its schema, or bytes of several types. */
function content(
  declared: RouteBody | BytesReply | { readonly $ref: string },
  part: 'body' | 'reply' = 'reply',
  type = 'application/json',
) {
  if (!('as' in declared))
    return { content: { [type]: { schema: '$ref' in declared ? declared : jsonSchema(declared, part) } } }
  const schemaOf = (type: string) => ({ type: 'string', ...(type.startsWith('text/') ? {} : { format: 'binary' }) })
  return { content: Object.fromEntries(declared.types.map(type => [type.split(';')[0], { schema: schemaOf(type) }])) }
}

type Definitions = Readonly<Record<string, { readonly title?: string }>>

/**
 * Replaces schemas with a title, and references to such, by references to components of the document, since `#/$defs/0` means
 * something else in every schema. The components are added to `named`.
 */
function hoisted(value: unknown, named: Map<string, unknown>, around: Definitions = {}): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return Array.isArray(value) ? value.map(item => hoisted(item, named, around)) : value
  const { $defs: definitions = around, ...schema } = value as { $defs?: Definitions; $ref?: unknown; title?: unknown }
  const own = typeof schema.$ref === 'string' ? definitions[schema.$ref.replace('#/$defs/', '')]?.title : undefined
  if (own !== undefined) return { $ref: referenceTo(own) }
  const whole = () =>
    Object.fromEntries(
      Object.entries(schema).map(([name, member]) =>
        // Generators of clients know `enum` better than `const`. A member of that name has an object here.
        name === 'const' && typeof member !== 'object'
          ? ['enum', [member]]
          : [name, hoisted(member, named, definitions)],
      ),
    )
  if (typeof schema.title !== 'string') return whole()
  if (!named.has(schema.title)) {
    named.set(schema.title, undefined)
    named.set(schema.title, whole())
  }
  return { $ref: referenceTo(schema.title) }
}

const referenceTo = (title: string) => `#/components/schemas/${title}`

const key = (route: Route) => `${route.path} ${route.method}`
