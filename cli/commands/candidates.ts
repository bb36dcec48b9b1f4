import { findAddress } from '../address.js'
import type { Io } from '../io.js'
import { rowsOf } from '../run-route.js'
import { pick } from '../show/cells.js'
import { cleanLine } from '../show/text.js'
import type { CommandData, RouteCommand } from './command-data.js'
import { idPrefixOf } from './example.js'
import { type Entry, findCommand } from './find-command.js'

/** A person waits about 300 ms after a key press, and the start of this process takes part of that. */
const WITHIN_MS = 200
/** The number that bash shows without asking first. */
const mostShown = 100

/** Arguments with IDs of several kinds, as names of their lists: the first one applies to names and `@last`. */
export const several: Readonly<Record<string, readonly string[]>> = {
  'agent heartbeat wake session': ['session_id'],
  'audit list subject': ['session_id', 'run_id', 'job_id', 'trigger_id', 'task_id'],
  'why id': ['session_id', 'run_id', 'job_id', 'trigger_id', 'task_id'],
  'bridge manifest slack id': ['bridge_id'],
  'bridge secret-bindings delete id': ['bridge_id'],
  'bridge secret-bindings list id': ['bridge_id'],
  'bridge secret-bindings put id': ['bridge_id'],
  'bridge webhook register id': ['bridge_id'],
  'budget remove ref': ['task_id'],
  'budget set ref': ['task_id'],
  'budget show ref': ['task_id'],
  'task child create id': ['task_id'],
  'task dependency add depends_on_task_id': ['task_id'],
  'task dependency add id': ['task_id'],
  'task dependency remove depends_on_id': ['task_id'],
  'task dependency remove id': ['task_id'],
  'task notification add bridge_instance_id': ['bridge_id'],
  'task notification add id': ['task_id'],
  'task notification list id': ['task_id'],
  'task notification remove id': ['task_id'],
  'task notification show id': ['task_id'],
  'task profile reset id': ['task_id'],
  'task profile set id': ['task_id'],
  'task profile show id': ['task_id'],
  'task profile worktree id': ['task_id'],
  'task retry id': ['run_id'],
  'task review list id': ['task_id'],
  'task run enqueue id': ['task_id'],
  'task run list id': ['task_id'],
  'task triage archive id': ['task_id'],
  'task triage dismiss id': ['task_id'],
  'task triage read id': ['task_id'],
  'hooks runs session': ['session_id'],
}

/** Arguments whose list needs the arguments before them: the command of that list. */
const below: Readonly<Record<string, string>> = {
  'bridge discard delivery_id': 'bridge deliveries',
  'bridge resend delivery_id': 'bridge deliveries',
  'bridge resolve name': 'bridge targets',
  'config get key': 'config list',
  'config set key': 'config list',
  'config set value': 'config list',
  'config show key': 'config list',
  'config unset key': 'config list',
}

/** Includes drafts, which lists omit although they have IDs. */
export const withDrafts = ({ options }: RouteCommand): Readonly<Record<string, string>> =>
  options.some(({ name }) => name === 'include_drafts') ? { include_drafts: 'true' } : {}

/** Whether a command works on the archive. */
export const ofArchive = ({ path }: Pick<Entry, 'path'>): boolean => path === 'session unarchive'

/** The list with the candidates for the word being typed. */
interface Wanted {
  readonly list: RouteCommand
  /** Name of the argument or option, with `_`. */
  readonly name: string
  /** The arguments before it: rows with members of these names must have these values. */
  readonly earlierArguments: Readonly<Record<string, string>>
  /** URL of the list, if its path contains earlier arguments. */
  readonly url?: string
}

/**
 * `completion words`, called by the shell scripts during typing: candidates for the last word of the command line in `SVC_WORDS`
 * (without the first word, one word per line), from data of the daemon. One per line, with a tab and a note. Prints nothing when it
 * is late or anything fails.
 */
export async function printCandidates(
  io: Pick<Io, 'env' | 'stdout' | 'candidatesMs'>,
  entries: readonly Entry[],
  data: CommandData,
): Promise<undefined> {
  try {
    const words = (io.env.SVC_WORDS ?? '').split('\n').slice(0, -1)
    const wanted = wantedAt(words, entries, data)
    if (wanted === undefined) return undefined
    const until = uptime() + (io.candidatesMs ?? WITHIN_MS)
    const { socket } = await findAddress(io.env)
    const typed = words.at(-1) as string
    const linesOf = (rows: readonly unknown[]) => {
      const lines = new Set<string>()
      for (const row of rows) {
        for (const line of [...lineOf(row, wanted), ...nameOf(row, wanted, typed)])
          if (line.startsWith(typed)) lines.add(line)
        if (lines.size >= mostShown) break
      }
      return [...lines].slice(0, mostShown)
    }
    const wantsAll = typed !== '' || !isPaged(wanted.list)
    // Some lists allow only shorter pages.
    const first = wantsAll ? [] : await rowsAt(socket, wanted, until, mostShown).catch(() => [])
    let lines = linesOf(first)
    // A page that is empty or had rows filtered out says nothing about the rest of the list.
    if (first.length === 0 || (first.length === mostShown && lines.length < mostShown))
      lines = linesOf(await rowsAt(socket, wanted, until))
    io.stdout.write(lines.join(''))
  } catch {}
  return undefined
}

/** Milliseconds since the start of this process. `performance.now()` would load a module of Node. */
const uptime = () => process.uptime() * 1000

const isPaged = (list: RouteCommand) => list.options.some(({ name }) => name === 'limit')

/** Rows of a list, filtered by the earlier arguments; `limit`: first page only, because a long list takes longer. */
async function rowsAt(
  socket: string,
  { list, earlierArguments, url = list.url }: Wanted,
  until: number,
  limit?: number,
): Promise<readonly unknown[]> {
  const known = [...list.args, ...list.options].filter(({ name }) => Object.hasOwn(earlierArguments, name))
  const query = new URLSearchParams(known.map(({ name }): [string, string] => [name, earlierArguments[name] as string]))
  for (const [name, value] of Object.entries(withDrafts(list))) query.set(name, value)
  if (limit !== undefined) query.set('limit', String(limit))
  const reply = await ask(socket, `${url}${query.size > 0 ? `?${query}` : ''}`, until)
  return rowsOf(reply, list.view) ?? []
}

/**
 * The body of a GET. Written by hand, because loading Node's HTTP takes a tenth of the available time; HTTP 1.0, whose replies end
 * with their connection and have no chunks.
 */
async function ask(socket: string, path: string, until: number): Promise<unknown> {
  // An `import()` would load Node's module resolution.
  const { connect } = process.getBuiltinModule('node:net')
  return new Promise((resolve, reject) => {
    let reply = ''
    const connection = connect({ path: socket })
    // An `AbortSignal` takes several times as long to make.
    const leftMs = Math.max(0, until - uptime())
    const late = setTimeout(() => connection.destroy(new Error('the daemon is late')), leftMs)
    connection.on('close', () => clearTimeout(late))
    connection.setEncoding('utf8').on('data', (text: string) => {
      reply += text
    })
    connection.on('error', reject).on('end', () => {
      const [, body] = /^HTTP\/1\.[01] 200 [\s\S]*?\r\n\r\n([\s\S]*)$/.exec(reply) ?? []
      if (body === undefined) reject(new Error('the daemon refused'))
      else resolve(JSON.parse(body))
    })
    connection.write(`GET ${path} HTTP/1.0\r\nHost: localhost\r\nAccept: application/json\r\n\r\n`)
  })
}

/** The list for the last word; undefined when it is not a value from a list. */
function wantedAt(words: readonly string[], entries: readonly Entry[], data: CommandData): Wanted | undefined {
  const found = findCommand(words.slice(0, -1), entries)
  if (found.is !== 'command') return undefined
  const { entry, rest } = found
  const takesValue = new Set(['-o', '--output', '--data', '--plan'])
  for (const option of entry.options)
    if (option.type !== 'boolean') takesValue.add(`--${'option' in option ? option.option : option.name}`)
  const earlierArguments: Record<string, string> = {}
  let at = 0
  for (let i = 0; i < rest.length; i++) {
    const word = rest[i] as string
    const name = entry.args[at]?.name
    if (takesValue.has(word)) {
      if (i === rest.length - 1) return listOf(word.slice(2).replaceAll('-', '_'), entry, data, {})
      i++
    } else if (!word.startsWith('-') && name !== undefined) {
      earlierArguments[name] = word
      at++
    }
  }
  const name = entry.args[at]?.name
  return name === undefined ? undefined : listOf(name, entry, data, earlierArguments)
}

/** `session_id`, `--agent`, `--job-id`: the list with that name; `id`, `name` and the like: the list next to the command. */
export function listOf(
  name: string,
  entry: Entry,
  data: CommandData,
  earlierArguments: Wanted['earlierArguments'],
): Wanted | undefined {
  const above = below[`${entry.path} ${name}`]
  if (above !== undefined) {
    const list = data.routes.find(({ path }) => path === above)
    const url = list?.url.replace(/\{(\w+)\}/g, (_, of: string) => encodeURIComponent(earlierArguments[of] ?? ''))
    const row = name === 'value' && earlierArguments.key !== undefined ? { key: earlierArguments.key } : {}
    return list && { list, name, earlierArguments: row, ...(url !== undefined && { url }) }
  }
  const [other] =
    earlierArguments.kind === 'agent' && name === 'ref' ? ['agent'] : (several[`${entry.path} ${name}`] ?? [])
  // The earlier arguments belong to another item of the same kind.
  if (other !== undefined && other !== name) return listOf(other, entry, data, {})
  const word = name.replace(/_(?:id|name)$/, '')
  // Runs of tasks differ from runs of jobs, and the list of one task would need its ID.
  if (isTaskRun(name, entry.path)) {
    const list = data.routes.find(({ path }) => path === 'task run all')
    return list && { list, name: 'run_id', earlierArguments: {} }
  }
  const group = entry.path.split(' ').slice(0, -1).join(' ')
  // Arguments are checked last, because that parses the command.
  const listAt = (fits: (path: string) => boolean) =>
    data.routes.find(route => route.path.endsWith(' list') && fits(route.path) && !route.args.some(arg => arg.required))
  const list =
    listAt(path => [word, `${word}s`].includes(path.split(' ').at(-2) as string)) ??
    (['id', 'name', 'kind'].includes(name) ? listAt(path => path === `${group} list`) : undefined)
  return list && { list, name, earlierArguments }
}

/** Whether an argument takes the ID of a task run. */
const isTaskRun = (name: string, path: string) => idPrefixOf(path, name) === 'trun'

/** The name of an item with an ID; names may be ambiguous. */
export const calledOf = (row: unknown): unknown =>
  pick(row, 'name') ?? pick(row, 'identifier') ?? pick(row, 'display_name')

/** An item with an ID can also be named. Names are offered only after a typed prefix, because else each item would appear twice. */
function nameOf(row: unknown, { name }: Wanted, typed: string): string[] {
  const [id, title] = [pick(row, 'id'), calledOf(row)]
  const hasBoth = typeof id === 'string' && typeof title === 'string' && title !== '' && cleanLine(title) === title
  // A bridge target has a route instead of an ID, and accepts both.
  const route = pick(row, 'canonical_route')
  if (name === 'name' && typeof route === 'string' && typeof title === 'string' && cleanLine(title) === title)
    return typed === '' ? [] : [`${title}\t${cleanLine(route)}\n`]
  return hasBoth && typed !== '' && /(?:^|_)id$/.test(name) ? [`${title}\t${cleanLine(id)}\n`] : []
}

function lineOf(row: unknown, { list: { view }, name, earlierArguments }: Wanted): string[] {
  for (const [other, value] of Object.entries(earlierArguments)) {
    const member = pick(row, other)
    if (member !== undefined && member !== value) return []
  }
  const choices = name === 'value' ? pick(row, 'choices') : undefined
  if (name === 'value') return Array.isArray(choices) ? choices.map(choice => `${choice}\t\n`) : []
  const [id, title] = [pick(row, 'id'), pick(row, 'name')]
  // An item without an ID and name is identified by the first column of its list.
  const [first] = view && 'rows' in view ? view.columns : []
  const called = pick(row, name) ?? pick(row, `${name}_id`) ?? title ?? id ?? (first && pick(row, first.path))
  // An item without an ID is identified by its name.
  const value = /(?:^|_)id$/.test(name) ? (id ?? called) : called
  if (typeof value !== 'string' || value === '' || cleanLine(value) !== value) return []
  const note = [
    title,
    pick(row, 'display_name'),
    pick(row, 'title'),
    pick(row, 'task_title'),
    pick(row, 'agent_name'),
    pick(row, 'state'),
  ].find(text => typeof text === 'string' && text !== value)
  return [`${value}\t${typeof note === 'string' ? cleanLine(note) : ''}\n`]
}
