import path from 'node:path'
import { columnsOf } from '../../../kernel/kit/annotations/show.js'
import { command as commandLine, placeholder } from '../../../kernel/kit/commands/command-line.js'
import type { CommandContext } from '../../../kernel/plugin.js'
import type {
  ListWindowClientsReply,
  ValidateLayoutReply,
  WindowCommandReply,
  WindowDiagnostic,
  WindowManagerErrorBody,
  WindowManagerState,
  WindowPreviewReply,
} from '../../../schemas/window-manager.js'
import { type CliCommand, type CliVerb, cliVerbs } from './cli-table.js'
import { desktopLines } from './desktop-lines.js'
import type { LayoutDocument } from './document/document.js'

/** `svc desktop list` */
export async function runDesktops(context: CommandContext): Promise<void> {
  const { client, out } = context
  const state = (await client.request('GET', await basePath(context))) as WindowManagerState
  if (out.json) return out.value(state)
  for (const { id } of state.desktops) out.id(id)
  show(context, state)
  if (Object.keys(state.windows).length === 0) out.line(out.color('dim', 'no windows; open one: svc window open <app>'))
}

/** Verbs that send one command, such as `svc desktop create` and `svc window move`. */
export async function runVerb(context: CommandContext): Promise<void> {
  const { command, args = [], options = [], fixed = {} }: CliCommand = cliVerbs[context.path as CliVerb]
  const payload: Record<string, unknown> = structuredClone(fixed)
  for (const part of args) put(payload, part.member, decoded(context, part.name, part.as, context.args[part.name]))
  for (const { name, member, as } of options) {
    const value = context.options[name]
    if (as !== 'minus') put(payload, member, decoded(context, name, as, value))
    else if (value === true) put(payload, member, -Number(payload[member]))
  }
  await perform(context, command, payload)
}

/** `svc layout get` */
export async function runLayout(context: CommandContext): Promise<void> {
  printDocument(context, await context.client.request('GET', `${await basePath(context)}/layout`))
}

/** `svc layout apply` */
export async function runApply(context: CommandContext): Promise<void> {
  await perform(context, 'layout.replace', await layoutPayload(context))
}

/** `svc layout preview` */
export async function runPreview(context: CommandContext): Promise<void> {
  const options = { ...context.options, preview: true }
  await perform({ ...context, options }, 'layout.replace', await layoutPayload(context))
}

/** `svc layout validate <file>` */
export async function runValidate(context: CommandContext): Promise<number> {
  const { args, client, out } = context
  const input = (await jsonFile(context, String(args.file))) as { document?: LayoutDocument }
  const url = `${await basePath(context)}/layout/validate`
  const reply = (await client.request('POST', url, { document: input.document ?? input })) as ValidateLayoutReply
  const { diagnostics = [] } = reply
  if (out.json) out.value(reply)
  else if (reply.valid) out.line('valid')
  else out.table(diagnostics, columnsOf<WindowDiagnostic>()(['path', { of: 'message', header: 'What' }, 'code']))
  return reply.valid ? 0 : 7
}

/** `svc layout export` */
export async function runExport(context: CommandContext): Promise<void> {
  const { options, client, out } = context
  const base = await basePath(context)
  const document = (await client.request('GET', `${base}/layout`)) as LayoutDocument
  const id = String(options.save ?? 'layout')
  const spec = {
    version: 1,
    id,
    display_name: String(options.name ?? id),
    aspect: options.aspect ?? 'any',
    overflow: options.overflow ?? 'stack',
    document: { ...document, workspace_id: '' },
  }
  if (options.save === undefined) return printDocument(context, spec)
  const url = `${base}/layout-profiles/${encodeURIComponent(id)}`
  const reply = await client.request('PUT', url, { scope: { kind: 'global' }, spec })
  if (out.json) return out.value(reply)
  out.line(`saved layout ${id}; apply it: ${commandLine('layout apply', id)}`)
}

/** Runs or previews a command at the current revision and prints the result. */
async function perform(context: CommandContext, command_id: string, payload: unknown): Promise<void> {
  const { client, out, options } = context
  const base = await basePath(context)
  const { revision, screen, known } = await meantBy(context, base, command_id)
  const isPreview = options.preview === true
  const body = { expected_revision: revision, command_id, payload, ...(screen !== undefined && { client_id: screen }) }
  const reply = (await client.request('POST', `${base}/${isPreview ? 'preview' : 'commands'}`, body)) as
    | WindowCommandReply
    | WindowPreviewReply
  if (out.json) return out.value(reply)
  const changed = 'applied' in reply ? reply.applied : reply.changed
  if (!changed && !reply.client) out.line('nothing to change')
  for (const id of idsIn(reply.snapshot)) if (known && !isPreview && !known.has(id)) out.id(id)
  show(context, reply.snapshot, reply.client?.active_desktop_id)
  if (isPreview) out.line(out.color('dim', 'a preview: nothing was changed'))
}

/** The current revision and screen. A damaged document has no screen, but a revision at which another layout can replace it. */
async function meantBy(context: CommandContext, base: string, command_id: string) {
  try {
    const state = (await context.client.request('GET', base)) as WindowManagerState
    return { revision: state.revision, screen: await screenOf(context, base), known: new Set(idsIn(state)) }
  } catch (error) {
    const { current_revision: revision } =
      (error as { more?: { body?: Partial<WindowManagerErrorBody> } }).more?.body ?? {}
    if (command_id !== 'layout.replace' || revision === undefined) throw error
    return { revision, screen: undefined }
  }
}

/** Ids of desktops and windows. */
const idsIn = ({ desktops, windows }: WindowManagerState) => [...desktops.map(({ id }) => id), ...Object.keys(windows)]

/** The screen that a command applies to: the named one, or the only one. */
async function screenOf(
  { options, client, path: verb, fault }: CommandContext,
  base: string,
): Promise<string | undefined> {
  if (options.client !== undefined) return String(options.client)
  const { clients } = (await client.request('GET', `${base}/clients`)) as ListWindowClientsReply
  const [only] = clients
  if (clients.length === 1) return only?.client_id
  if (verb === 'desktop switch')
    fault(
      'client_not_found',
      clients.length === 0
        ? 'no screen shows this workspace now'
        : 'several screens show this workspace; choose one with --client',
      commandLine('desktop clients', placeholder('workspace')),
    )
  return undefined
}

/** Base URL of the window manager, for the named workspace or the one around the current folder. */
async function basePath({ options, cwd, client }: CommandContext): Promise<string> {
  const option = options.workspace === undefined ? '.' : String(options.workspace)
  const reference = /^[./~]/.test(option) ? path.resolve(cwd, option) : option
  const url = `/api/workspaces/${encodeURIComponent(reference)}`
  const { workspace } = (await client.request('GET', url)) as { workspace: { id: string } }
  return `/api/workspaces/${workspace.id}/window-manager`
}

async function layoutPayload(context: CommandContext): Promise<unknown> {
  const { args, options, fault } = context
  if ((args.layout === undefined) === (options.file === undefined))
    fault(
      'usage',
      'give the id of a saved layout, or a document with --file',
      commandLine('layout list', placeholder('workspace')),
    )
  if (options.file !== undefined) {
    const input = (await jsonFile(context, String(options.file))) as { document?: LayoutDocument }
    return { document: input.document ?? input }
  }
  const size = options.viewport === undefined ? undefined : /^(\d{1,6})x(\d{1,6})$/.exec(String(options.viewport))
  if (size === null) fault('usage', '--viewport takes a width and a height, such as 1920x1080')
  return {
    layout_id: args.layout,
    ...(size && { viewport: { width: Number(size[1]), height: Number(size[2]) } }),
  }
}

/** Prints a document as JSON also for people: it can be saved and read again with `--file`. */
function printDocument({ out }: CommandContext, document: unknown): void {
  if (out.json) out.value(document)
  else out.line(JSON.stringify(document, undefined, 2))
}

async function jsonFile({ readFile, fault }: CommandContext, file: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(file))
  } catch (error) {
    if (error instanceof SyntaxError) return fault('usage', `${file} is not valid JSON: ${error.message}`)
    throw error
  }
}

function decoded({ fault }: CommandContext, name: string, as = 'text', value?: string | number | boolean) {
  if (value === undefined || (as !== 'number' && as !== 'integer')) return value
  const number = Number(value)
  if (Number.isNaN(number) || (as === 'integer' && !Number.isInteger(number)))
    fault('usage', `${name} takes ${as === 'integer' ? 'an integer' : 'a number'}, not ${JSON.stringify(value)}`)
  return number
}

/** Sets a member of the payload; `route.pathname` sets a member of an object. */
function put(payload: Record<string, unknown>, member: string, value: unknown): void {
  if (value === undefined) return
  const [outer = member, inner] = member.split('.')
  payload[outer] = inner === undefined ? value : { ...(payload[outer] as object | undefined), [inner]: value }
}

function show({ out }: CommandContext, state: WindowManagerState, shown?: string): void {
  for (const { text, style } of desktopLines(state, shown))
    out.line(style === undefined ? text : out.color(style, text))
}
