import type * as v from 'valibot'
import { isSchema } from '../../../../kernel/platform.js'
import type { Route } from '../../../../kernel/plugin.js'
import { type NativeTool, toolFault } from '../api.js'

type Json = Record<string, unknown>
const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)

/** Places of an input's members in the request of a route. */
export interface RouteInput {
  /** JSON Schema of the input. */
  readonly schema: Json
  readonly path: readonly string[]
  readonly query: readonly string[]
  /** `whole`: the member `body` is the whole body. */
  readonly body: 'none' | 'members' | 'whole'
}

/** The input of a native tool: members of path, query and body side by side, without the fixed ones. */
export async function routeInput(route: Route, tool: NativeTool): Promise<RouteInput> {
  const { toJsonSchema } = await import('@valibot/to-json-schema')
  const asJson = (schema: v.GenericSchema, part: 'query' | 'body'): Json => {
    const {
      $schema: _,
      title: __,
      ...json
    } = toJsonSchema(schema, {
      typeMode: part === 'body' ? 'input' : 'output',
      target: 'draft-2020-12',
      errorMode: 'ignore',
      ignoreActions: ['check', 'trim'],
    }) as Json
    return json
  }
  const path = [...route.path.matchAll(/\{([^}]+)\}/g)].map(([, name = '']) => name)
  const query = route.query ? asJson(route.query, 'query') : {}
  const queryMembers = isObject(query.properties) ? query.properties : {}
  const bodySchema = tool.input ?? (isSchema(route.body) ? route.body : undefined)
  const body = bodySchema ? asJson(bodySchema as v.GenericSchema, 'body') : undefined
  const bodyMembers = isObject(body?.properties) ? body.properties : {}
  const taken = new Set([...path, ...Object.keys(queryMembers)])
  const isFlat =
    body?.type === 'object' && isObject(body.properties) && !Object.keys(bodyMembers).some(name => taken.has(name))
  const fixed = new Set(Object.keys(tool.fixed ?? {}))
  const names = (value: unknown) => (Array.isArray(value) ? value.filter(name => typeof name === 'string') : [])
  const properties = {
    ...Object.fromEntries(path.map(name => [name, { type: 'string' }])),
    ...queryMembers,
    ...(body ? (isFlat ? bodyMembers : { body }) : {}),
  }
  // The agent's own workspace and session fill these members in; a caller without them gets an error from the request.
  const filled = new Set([
    'workspace_id',
    'session_id',
    'workspace',
    ...(route.path.startsWith('/api/workspaces/{id}') ? ['id'] : []),
  ])
  const required = [
    ...path.filter(name => !filled.has(name)),
    ...names(query.required),
    ...(body && !route.bodyOptional ? (isFlat ? names(body.required) : ['body']) : []),
  ]
  const isGiven = (name: string) => !fixed.has(name) && !filled.has(name)
  const { $defs } = (body ?? {}) as { $defs?: unknown }
  if (body && !isFlat) delete body.$defs
  return {
    schema: {
      type: 'object',
      properties: Object.fromEntries(Object.entries(properties).filter(([name]) => !fixed.has(name))),
      ...(required.some(isGiven) ? { required: required.filter(isGiven) } : {}),
      // Unknown members are refused, unless the route accepts any.
      ...(isFlat && body?.additionalProperties !== undefined && body.additionalProperties !== false
        ? {}
        : { additionalProperties: false }),
      ...($defs === undefined ? {} : { $defs }),
    },
    path,
    query: Object.keys(queryMembers),
    body: body ? (isFlat ? 'members' : 'whole') : 'none',
  }
}

/** The url and body of the request for an input. */
export function requestOf(
  route: Pick<Route, 'path'>,
  input: RouteInput,
  args: Readonly<Json>,
): { url: string; body?: unknown } {
  const rest: Json = { ...args }
  const take = (name: string) => {
    const value = rest[name]
    delete rest[name]
    return value
  }
  const path = route.path.replace(/\{([^}]+)\}/g, (_, name: string) => {
    const value = take(name)
    if (typeof value !== 'string' || /^\.{0,2}$/.test(value))
      throw toolFault('tool_invalid_input', ['schema_invalid'], `${name}: required`)
    return encodeURIComponent(value)
  })
  const query = new URLSearchParams()
  for (const name of input.query) {
    const value = take(name)
    for (const one of Array.isArray(value) ? value : [value])
      if (one !== undefined && one !== null)
        query.append(name, typeof one === 'object' ? JSON.stringify(one) : String(one))
  }
  const url = query.size > 0 ? `${path}?${query}` : path
  if (input.body === 'none') return { url }
  return { url, body: input.body === 'whole' ? rest.body : rest }
}
