import { resolve } from 'node:path'
import type { CliView } from '../kernel/kit/annotations/index.js'
import type { DaemonClient } from './client.js'
import type { Parameter, RouteCommand } from './commands/command-data.js'
import { GLOBAL, takesScope } from './commands/command-options.js'
import { usageLine } from './commands/help.js'
import { type Invocation, parseJson } from './commands/invocation.js'
import { expandShorthands, shorthandsFor } from './commands/shorthands.js'
import { CliFault, exitCodes, usageFault } from './fault.js'
import type { Io } from './io.js'
import { readText } from './run.js'
import { cellText, idOf, pick } from './show/cells.js'
import type { Output } from './show/output.js'
import { jsonText } from './show/text.js'
import { noteFindings } from './tasks/findings.js'
import { currentWorkspace, openWorkspace, workspaceId, workspaceReference } from './workspace-context.js'

interface World {
  readonly io: Io
  readonly out: Output
  readonly client: DaemonClient
}

/** Commands whose reply contains a verdict: exit code 1 for a bad one. */
const findsErrors: Readonly<Record<string, (reply: unknown) => boolean>> = {
  doctor: reply => pick(reply, 'status') === 'error',
}

/** Runs a command generated from a route: sends its request and prints the reply. Resolves to the exit code. */
export async function runRoute(entry: RouteCommand, invocation: Invocation, world: World): Promise<number> {
  const values = await decodeInvocation(entry, invocation, world)
  const params = { ...values.path, ...(await findHidden(entry, values.path, world.client)) }
  if (invocation.options.follow === true && entry.follow) {
    const query = new URLSearchParams(entry.follow.query as Record<string, string>).toString()
    await follow(entry, `${fillPath(entry.follow.path, params)}${query && `?${query}`}`, world)
    return exitCodes.done
  }
  const query = new URLSearchParams(values.query).toString()
  const url = `${fillPath(entry.url, params)}${query && `?${query}`}`
  if (entry.stream) {
    await follow(entry, url, world)
    return exitCodes.done
  }
  if (invocation.options.watch === true) {
    const ask = () => world.client.request(entry.method, url)
    const { watchReplies } = await import('./watch-route.js')
    await watchReplies(ask, (reply, out) => show(entry, reply, params, out), world)
    return exitCodes.done
  }
  const empty = Object.keys(values.body).length === 0
  const body = entry.body === 'none' || (entry.body === 'optional' && empty) ? undefined : values.body
  const reply = await world.client.request(entry.method, url, body)
  const args = { ...values.query, ...params }
  show(entry, reply, args, world.out)
  await noteFindings(entry.path, { reply, args }, world)
  notePage(entry, reply, world.out)
  return findsErrors[entry.path]?.(reply) ? exitCodes.failed : exitCodes.done
}

/** Notes that a list was cut, so that it is not mistaken for the whole. */
function notePage(entry: RouteCommand, body: unknown, out: Output): void {
  // Most replies have this in `page`; replies that spread `Paging.cut` have it next to the rows.
  const at = pick(body, 'page') === undefined ? '' : 'page.'
  if (out.json || pick(body, `${at}has_more`) !== true) return
  const takes = (name: string) => entry.options.some(({ option }) => option === name)
  const cursor = pick(body, `${at}next_cursor`)
  const next = takes('cursor') && cursor ? `--cursor ${cursor}` : takes('limit') ? '--limit <more>' : undefined
  const total = pick(body, `${at}total`)
  const count = rowsOf(body, entry.view)?.length
  const shown = `${count ?? 'part'}`
  // The totals of tasks and sessions leave out those in the archive, which the pages contain.
  const isTotal = typeof total === 'number' && (count === undefined || total > count)
  out.note(
    `${isTotal ? `${shown} of ${total} shown` : `${shown} shown, more follow`}${next ? `; next page: ${next}` : ''}`,
  )
}

interface Values {
  readonly path: Record<string, string>
  readonly query: Record<string, string>
  readonly body: Record<string, unknown>
}

async function decodeInvocation(entry: RouteCommand, invocation: Invocation, world: World): Promise<Values> {
  const { io, client } = world
  const values: Values = { path: {}, query: {}, body: await wholeBody(invocation.options.data, io) }
  const isGlobal = invocation.options[GLOBAL] === true && entry.options.some(isGlobalOption)
  const contextOf = ({ fromContext, in: at }: Parameter) =>
    // A session implies its workspace, unless the path names one.
    fromContext && !isGlobal && (invocation.options.session === undefined || at === 'path')
      ? currentWorkspace(io, client)
      : undefined
  const short = expandShorthands(entry, invocation.options)
  Object.assign(values.body, short)
  type Typed = string | boolean | readonly string[] | undefined
  const put = async (parameter: Parameter, value: Typed, label: string) => {
    if (value !== undefined) {
      const read = decodeValue(parameter, value, label, io.cwd)
      const decoded = takesId(parameter, entry) ? await workspaceId(String(read), client, io.env) : read
      if (parameter.in === 'body') {
        if (parameter.name in short) throw usageFault(`give either ${label} or a short form of it, not both`)
        values.body[parameter.name] = decoded
      } else if (parameter.in !== 'shorthand') values[parameter.in][parameter.name] = String(decoded)
    } else if (parameter.fromContext && parameter.in === 'path') {
      throw usageFault(
        'no workspace encloses this directory; name one, by id, name or path',
        entry.options.includes(parameter)
          ? `svc ${entry.path} --${parameter.option} <id>`
          : `svc ${entry.path} <${parameter.name}>`,
      )
    } else if (parameter.required && !(parameter.in === 'body' && parameter.name in values.body)) {
      throw usageFault(`${[label, ...shorthandsFor(entry, parameter)].join(' or ')} is missing`, usageLine(entry))
    }
  }
  for (const parameter of entry.options) {
    if (parameter.in === 'shorthand') continue
    const variable = parameter.variable === undefined ? undefined : io.env[parameter.variable]
    await put(
      parameter,
      invocation.options[parameter.option] ?? variable ?? (await contextOf(parameter)),
      `--${parameter.option}`,
    )
  }
  for (const parameter of entry.args) {
    if (
      invocation.options[parameter.option] !== undefined &&
      entry.options.some(({ name }) => name === parameter.name)
    ) {
      if (invocation.args[parameter.name] === undefined) continue
      throw usageFault(`give ${parameter.name} or --${parameter.option}, not both`, usageLine(entry))
    }
    const chosen = parameter.in === 'body' && parameter.name in values.body ? undefined : parameter.default
    await put(parameter, invocation.args[parameter.name] ?? chosen ?? (await contextOf(parameter)), parameter.name)
  }
  applyScope(entry, invocation, values, isGlobal)
  if (entry.scoped) {
    const { scope } = entry.scoped
    const isAsked = entry.options.some(({ name, in: at }) => name === scope && at === 'query')
    await fillScope(entry.scoped, isAsked ? values.query : values.body, world)
  }
  return values
}

const isGlobalOption = ({ name, in: at }: Parameter) => name === GLOBAL && at === 'shorthand'
/** A workspace that has to be opened is resolved later. */
const takesId = ({ name, type, in: at }: Parameter, { scoped }: RouteCommand) =>
  type === 'workspace' && name === 'workspace_id' && at !== 'path' && scoped?.workspace !== name

/** Derives the scope from `--global`, or from a workspace without a scope. */
function applyScope({ options }: RouteCommand, invocation: Invocation, values: Values, isGlobal: boolean): void {
  const isNamed = invocation.options.workspace !== undefined
  if (isGlobal && isNamed) throw usageFault('give --workspace or --global, not both')
  const member = options.find(takesScope)
  if (!member || member.in === 'path' || member.in === 'shorthand' || !(isGlobal || isNamed)) return
  const wanted = isGlobal ? 'global' : 'workspace'
  const members = values[member.in] as Record<string, unknown>
  members[member.name] ??= wanted
  if (members[member.name] !== wanted && isGlobal)
    throw usageFault(`--global and --scope ${members[member.name]} exclude each other`)
}

/** Default owner of an item: the current workspace, else none. */
async function fillScope(
  { scope, workspace, opens }: NonNullable<RouteCommand['scoped']>,
  members: Record<string, unknown>,
  world: World,
): Promise<void> {
  const { io, client } = world
  const named = typeof members[workspace] === 'string' ? members[workspace] : undefined
  if (named === undefined && members[scope] === 'global') return
  const reference = opens
    ? await openWorkspace(world, named)
    : named === undefined
      ? await currentWorkspace(io, client)
      : workspaceReference(named, io.cwd)
  members[scope] ??= reference === undefined ? 'global' : 'workspace'
  if (reference === undefined) return
  const about = await client.request('GET', `/api/workspaces/${encodeURIComponent(reference)}`)
  members[workspace] = pick(about, 'workspace.id')
}

async function wholeBody(data: Invocation['options'][string], io: Io): Promise<Record<string, unknown>> {
  if (typeof data !== 'string') return {}
  const text = data === '-' || data.startsWith('@') ? await readText(data.replace(/^@/, ''), io) : data
  const body = parseJson(text, '--data')
  if (typeof body === 'object' && body !== null && !Array.isArray(body)) return body as Record<string, unknown>
  throw usageFault('--data takes a JSON object')
}

/** A parsed value in the form of the request. */
function decodeValue(
  { type }: Parameter,
  value: string | boolean | readonly string[],
  label: string,
  cwd: string,
): unknown {
  if (typeof value !== 'string') return value
  if (type === 'file') return resolve(cwd, value)
  if (type === 'workspace') return workspaceReference(value, cwd)
  if (type === 'list') return [value]
  if (type === 'json') return parseJson(value, label)
  if (type === 'boolean') return value === 'true'
  return type === 'integer' || type === 'number' ? Number(value) : value
}

/** Path parameters that clients look up with another route. */
async function findHidden(
  entry: RouteCommand,
  params: Record<string, string>,
  client: DaemonClient,
): Promise<Record<string, string>> {
  const found: Record<string, string> = {}
  for (const [name, { path, pick: at }] of Object.entries(entry.find ?? {})) {
    const url = fillPath(path, { ...params, ...found })
    const value = pick(await client.request('GET', url), at)
    if (typeof value !== 'string' || value === '') throw new CliFault('protocol', `the reply of ${url} has no ${name}`)
    found[name] = value
  }
  return found
}

function fillPath(template: string, params: Readonly<Record<string, string>>): string {
  return template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = params[name] ?? ''
    // These values would change the path.
    if (value === '' || value === '.' || value === '..')
      throw usageFault(`${name} must not be ${JSON.stringify(value)}`)
    return encodeURIComponent(value)
  })
}

async function follow({ view }: RouteCommand, url: string, { client, out }: World): Promise<void> {
  for await (const { event, data } of client.stream(url)) {
    if (event === 'error') throw streamFault(data)
    if (out.json) {
      // A stream has no end, so a document format also prints one line per item.
      out.row(data)
    } else if (view && 'rows' in view) {
      out.line(view.columns.map(column => cellText(data, column, Date.now())).join('  '))
    } else out.line(`${event === undefined ? '' : `${out.color('dim', event)}  `}${jsonText(data)}`)
  }
}

function streamFault(data: unknown): CliFault {
  const { error, code } = (typeof data === 'object' && data !== null ? data : {}) as { error?: unknown; code?: unknown }
  return new CliFault(
    typeof code === 'string' ? code : 'stream',
    typeof error === 'string' ? error : 'the stream failed',
    { body: data },
  )
}

function show(
  { view, done }: RouteCommand,
  body: unknown,
  params: Readonly<Record<string, string>>,
  out: Output,
): void {
  const rows = rowsOf(body, view)
  if (out.mode === 'json' || out.mode === 'toon') {
    if (body !== undefined) out.value(body)
  } else if (out.mode === 'jsonl') {
    if (body !== undefined) out.value(rows ?? body)
  } else if (out.quiet) {
    for (const row of rows ?? [body]) printId(row, out, view)
  } else if (body === undefined || (done !== undefined && view === undefined)) {
    out.line(fillText(done ?? 'done', params, body))
  } else if (view && 'rows' in view) showRows(rows ?? [], body, view, out)
  else if (view && 'item' in view) showItem(pick(body, view.item), body, view, out)
  // The value itself, or a sentence about it.
  else if (view && /^[\w.]+$/.test(view.text)) out.value(pick(body, view.text) ?? '')
  else if (view) out.line(fillText(view.text, params, body))
  else out.value(body)
}

function showRows(
  rows: readonly unknown[],
  body: unknown,
  view: Extract<CliView, { rows: string }>,
  out: Output,
): void {
  const texts = problemsOf(body, view)
  if (rows.length > 0 || texts.length === 0) out.table(rows, view.columns, view.empty)
  for (const text of texts) out.note(text)
}

function problemsOf(body: unknown, { problems }: { readonly problems?: string }): string[] {
  const texts = problems === undefined ? [] : pick(body, problems)
  return Array.isArray(texts) ? texts.map(noteOf) : []
}

/** A text, or a diagnostic as its place and message. */
function noteOf(problem: unknown): string {
  if (typeof problem !== 'object' || problem === null) return String(problem)
  const { path, message, failure } = problem as { path?: unknown; message?: unknown; failure?: { message?: unknown } }
  return [path, message ?? failure?.message].filter(Boolean).join(': ')
}

function showItem(item: unknown, body: unknown, view: Extract<CliView, { item: string }>, out: Output): void {
  const { fields, table } = view
  out.fields(item, fields)
  for (const text of problemsOf(body, view)) out.note(text)
  const rows = table && pick(item, table.path)
  if (!table || !Array.isArray(rows) || (rows.length === 0 && table.empty === undefined)) return
  out.line('')
  out.table(rows, table.columns, table.empty)
}

/** The rows of a view; without a view, the only list in the body. */
export function rowsOf(body: unknown, view: RouteCommand['view']): readonly unknown[] | undefined {
  if (view) {
    if (!('rows' in view)) return undefined
    // Several paths: the rows of all, in that order.
    return view.rows.split(' ').flatMap(path => pick(body, path) ?? [])
  }
  if (Array.isArray(body)) return body
  const lists = typeof body === 'object' && body !== null ? Object.values(body).filter(Array.isArray) : []
  return lists.length === 1 ? lists[0] : undefined
}

/** Prints the ID of a row of a list, or that of the object which a reply contains, such as `{ job: { id } }`. */
function printId(row: unknown, out: Output, view: RouteCommand['view']): void {
  const isRow = view !== undefined && 'rows' in view
  const columns = isRow ? view.columns : view && 'item' in view ? view.fields : []
  const item = view && 'item' in view ? pick(row, view.item) : row
  const nested = isRow || typeof row !== 'object' || row === null ? [] : Object.values(row)
  for (const thing of [item, row, ...nested]) {
    const id = idOf(thing, thing === row || thing === item ? columns : [])
    if (id !== undefined) {
      out.essential(id)
      return
    }
  }
}

function fillText(text: string, params: Readonly<Record<string, string>>, body: unknown): string {
  return text.replace(/\{([\w.]+)\}/g, (_, name: string) => String(params[name] ?? pick(body, name) ?? ''))
}
