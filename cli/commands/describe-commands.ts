import { type JsonSchema, toJsonSchema } from '@valibot/to-json-schema'
import { isSchema, type Route } from '../../kernel/contract/route.js'
import {
  annotationsOf,
  Cli,
  type CliArgument,
  type CliShorthand,
  type RouteCli,
} from '../../kernel/kit/annotations/index.js'
import type { Parameter, RouteCommand } from './command-data.js'
import { GLOBAL, takesScope } from './command-options.js'
import { takesZone } from './shorthands.js'

/** Names of options that every command has, which members of a request cannot use. */
const reserved = new Set(['help', 'json', 'output', 'data', 'follow', 'watch'])

/** The command of each route that has one, as plain data. Throws an error with the route when its data are inconsistent. */
export function describeRoutes(routes: readonly Route[]): RouteCommand[] {
  return routes.flatMap(route => annotationsOf(route, Cli).map(cli => describeRoute(route, cli)))
}

function describeRoute(route: Route, cli: RouteCli): RouteCommand {
  const where = `${route.method} ${route.path} (svc ${cli.path})`
  if (route.body && !isSchema(route.body)) throw new Error(`${where}: a command sends JSON, and this route takes bytes`)
  const hidden = new Set(Object.keys(cli.find ?? {}))
  const inPath = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]): Parameter => {
    return { name: name as string, option: optionName(name as string), in: 'path', type: 'text', required: true }
  })
  const visible = inPath.filter(({ name }) => !hidden.has(name))
  // A workspace in the path that is not an argument of the command becomes the option --workspace.
  const named = new Set(cli.args?.map(({ name }) => name))
  const asOption = cli.args && cli.workspace !== undefined && !named.has(cli.workspace) ? cli.workspace : undefined
  const members = [
    ...membersOf(route.query, 'query'),
    ...membersOf(isSchema(route.body) ? route.body : undefined, 'body'),
  ]
    .filter(({ name }) => name !== asOption || !inPath.some(path => path.name === name))
    .map(member => {
      const option = cli.options?.[member.name] ?? (isWorkspace(member) ? 'workspace' : member.option)
      return option === member.option ? member : { ...member, option, alias: member.option }
    })
    // If a request accepts both, the reference is used.
    .flatMap((member, _, all) => {
      if (member.option !== 'workspace') return [member]
      const [reference, id] = ['workspace', 'workspace_id'].map(name => all.find(other => other.name === name))
      if (reference && id) return member === reference ? [{ ...member, alias: 'workspace-id' }] : []
      return [member]
    })
  const unknown = Object.keys(cli.options ?? {}).find(name => !members.some(member => member.name === name))
  if (unknown) throw new Error(`${where}: no query or body member is named ${unknown}`)
  const isMissing = cli.workspace !== undefined && ![...visible, ...members].some(({ name }) => name === cli.workspace)
  if (isMissing) throw new Error(`${where}: no parameter, query or body member is named ${cli.workspace}`)
  const all = [...visible, ...members].map(parameter => inContext(parameter, cli))
  const args = (cli.args ?? visible.map(({ name }) => ({ name }))).map(arg => argumentOf(arg, all, where))
  const forgotten = visible.find(
    ({ name }) => name !== asOption && !args.some(arg => arg.in === 'path' && arg.name === name),
  )
  if (forgotten) throw new Error(`${where}: nothing fills the path parameter ${forgotten.name}`)
  const { find, follow, view, done, shorthands, scoped } = cli
  const filled = new Set(scoped ? [scoped.scope, scoped.workspace] : [])
  const both = new Set(cli.args?.flatMap(({ name, option }) => (option ? [name] : [])))
  return {
    kind: 'route',
    path: cli.path,
    summary: route.summary,
    method: route.method,
    url: route.path,
    args,
    options: [
      ...withOptionNames(
        all
          .filter(
            ({ name, in: at }) =>
              (at !== 'path' || name === asOption) &&
              !args.some(arg => arg.name === name && arg.in === at && !both.has(name)),
          )
          .map(member => (member.in === 'path' ? { ...member, option: 'workspace', required: false } : member))
          .map(member => (filled.has(member.name) || both.has(member.name) ? { ...member, required: false } : member)),
      ),
      ...shorthandOptions(shorthands ?? []),
      ...globalOption([...members.map(parameter => inContext(parameter, cli))], scoped),
    ],
    body: route.body === undefined ? 'none' : route.bodyOptional ? 'optional' : 'required',
    stream: route.contentType === 'text/event-stream',
    ...(find && { find }),
    ...(follow && { follow }),
    ...(view && { view }),
    ...(done !== undefined && { done }),
    ...(shorthands && { shorthands }),
    ...(scoped && { scoped }),
  }
}

function inContext(parameter: Parameter, { workspace, environment }: RouteCli): Parameter {
  const variable = parameter.in === 'query' ? environment?.[parameter.name] : undefined
  if (variable !== undefined) return { ...parameter, variable }
  if (parameter.name !== workspace) return parameter
  const summary = `${parameter.summary ?? REFERENCE}; default: SVC_WORKSPACE, else that of this folder`
  return { ...parameter, type: 'workspace', fromContext: true, summary }
}

function argumentOf(arg: CliArgument, all: readonly Parameter[], where: string): Parameter {
  const found = all.find(({ name, in: at }) => name === arg.name && (arg.in === undefined || arg.in === at))
  if (!found) throw new Error(`${where}: no parameter, query or body member is named ${arg.name}`)
  const summary = arg.summary ?? found.summary
  return {
    ...found,
    type: arg.type === 'path' ? 'file' : (arg.type ?? found.type),
    // A body with alternative forms of a member requires none of them, but an argument is required.
    required: !arg.optional && arg.default === undefined,
    ...(arg.default !== undefined && { default: arg.default }),
    ...(summary !== undefined && { summary }),
  }
}

function membersOf(schema: Route['query'], at: 'query' | 'body'): Parameter[] {
  if (schema === undefined) return []
  const json = toJsonSchema(schema, { typeMode: 'output', target: 'draft-2020-12', errorMode: 'ignore' })
  return Object.entries(json.properties ?? {}).map(([name, member]) => {
    const { type, values, summary } = typeOf(member as JsonSchema)
    const { default: fallback } = member as JsonSchema
    return {
      name,
      option: optionName(name),
      in: at,
      type: isWorkspace({ name, type }) ? 'workspace' : type,
      required: fallback === undefined && (json.required?.includes(name) ?? false),
      ...(['string', 'number', 'boolean'].includes(typeof fallback) && { default: String(fallback) }),
      ...(values && { values }),
      ...(isWorkspace({ name, type })
        ? {
            summary:
              summary?.replace(
                /workspace id|(?:the workspace with this|id of the) id|ID of the workspace/,
                REFERENCE,
              ) ?? REFERENCE,
          }
        : summary !== undefined && { summary }),
    }
  })
}

const REFERENCE = 'id, name or path of a workspace'

/** Whether a member names a workspace in any form: `--workspace` accepts a reference everywhere. */
const isWorkspace = ({ name, type }: Pick<Parameter, 'name' | 'type'>) =>
  ['workspace', 'workspace_id'].includes(name) && ['workspace', 'text'].includes(type)

/** Adds `--global` to commands that work with and without a workspace. */
function globalOption(members: readonly Parameter[], scoped: RouteCli['scoped']): Parameter[] {
  const workspace = members.find(({ type }) => type === 'workspace')
  if (!workspace || members.some(({ option }) => option === GLOBAL)) return []
  const hasScope = members.some(takesScope)
  if (!hasScope && !(workspace.fromContext && !workspace.required)) return []
  const summary = scoped || !hasScope ? 'use no workspace, even inside one' : 'only global entries'
  return [{ name: GLOBAL, option: GLOBAL, in: 'shorthand', type: 'boolean', required: false, summary }]
}

function typeOf(schema: JsonSchema): Pick<Parameter, 'type' | 'values' | 'summary'> {
  const summary = schema.description === undefined ? {} : { summary: schema.description }
  const variants = [...(schema.anyOf ?? []), ...(schema.oneOf ?? [])] as JsonSchema[]
  const real = variants.filter(variant => variant.type !== 'null')
  if (real.length === 1) return { ...typeOf(real[0] as JsonSchema), ...summary }
  const values = schema.enum ?? (schema.const === undefined ? undefined : [schema.const])
  if (values?.every(value => typeof value === 'string')) return { type: 'text', values, ...summary }
  if (schema.type === 'string') return { type: 'text', ...summary }
  if (schema.type === 'integer' || schema.type === 'number' || schema.type === 'boolean') {
    return { type: schema.type, ...summary }
  }
  const items = schema.items as JsonSchema | undefined
  if (schema.type === 'array' && items?.type === 'string') return { type: 'list', ...summary }
  return { type: 'json', ...summary }
}

/** Two spellings of one member become one option, named after the first; reserved names get a prefix with their place. */
function withOptionNames(members: readonly Parameter[]): Parameter[] {
  const taken = new Set<string>()
  return members.flatMap(member => {
    const option = reserved.has(member.option) ? `${member.in}-${member.option}` : member.option
    if (taken.has(option)) return []
    taken.add(option)
    return [{ ...member, option }]
  })
}

function shorthandOptions(shorthands: readonly CliShorthand[]): Parameter[] {
  const optional = { in: 'shorthand', type: 'text', required: false } as const
  const options = shorthands.map(({ option, summary }) => ({ ...optional, name: option, option, summary }))
  const zoned = shorthands.filter(takesZone)
  if (zoned.length === 0) return options
  const summary = `time zone of ${zoned.map(({ option }) => `--${option}`).join(' and ')}: an IANA name such as Europe/Paris`
  return [...options, { ...optional, name: 'time-zone', option: 'time-zone', summary }]
}

/** `expected_version` and `expectedVersion` both become `expected-version`; the parser accepts letters and hyphens only. */
function optionName(name: string): string {
  return name
    .replace(/([a-z])([A-Z])/g, '$1-$2')
    .toLowerCase()
    .replace(/[^a-z]+/g, '-')
    .replace(/^-|-$/g, '')
}
