import type { DaemonClient } from '../client.js'
import { CliFault, exitCodes } from '../fault.js'
import { rowsOf } from '../run-route.js'
import { pick } from '../show/cells.js'
import { cleanLine } from '../show/text.js'
import { calledOf, listOf, ofArchive, several, withDrafts } from './candidates.js'
import type { CommandData, RouteCommand } from './command-data.js'
import { idPrefixOf } from './example.js'
import type { Entry } from './find-command.js'
import type { Invocation } from './invocation.js'

/** Pages of a list that are searched for a name. */
const mostPages = 50
const mostTold = 5

/** Options with the ID of an item that also has a name. */
const optionsWithId = ['session', 'session-id', 'job-id', 'trigger-id', 'run-id'] as const

/** The kind and prefix of the ID that an argument takes; undefined when it takes no ID. */
export function wantedId(path: string, name: string, text: string): { name: string; prefix: string } | undefined {
  const wanted = wantedIds(path, name)
  return wanted.find(({ prefix }) => text.startsWith(prefix)) ?? wanted[0]
}

const wantedIds = (path: string, name: string) =>
  (several[`${path} ${name}`] ?? [name]).flatMap(name => {
    const prefix = idPrefixOf(path, name)
    return prefix === undefined ? [] : { name, prefix: `${prefix}_` }
  })

/**
 * Replaces references in arguments and options by IDs: a name, a unique ID prefix longer than `ses_`, or `@last` for the newest. A
 * whole ID is left alone without a request. A reference without a match is left alone too: the command then reports the missing
 * item.
 * @throws CliFault `ambiguous_reference` when several match.
 */
export async function withReferences(
  entry: Entry,
  invocation: Invocation,
  data: CommandData,
  client: DaemonClient,
): Promise<Invocation> {
  const [args, options] = [{ ...invocation.args }, { ...invocation.options }]
  const idOf = async (name: string, text: unknown): Promise<string | undefined> => {
    const wanted = typeof text === 'string' ? wantedId(entry.path, name, text) : undefined
    if (wanted === undefined || typeof text !== 'string') return undefined
    // A budget belongs to a task or to an agent, which is identified by its name.
    if (name === 'ref' && text !== '@last' && !text.startsWith(wanted.prefix)) return undefined
    if (/^[a-z]+_[0-9a-f]{16}$/.test(text)) return undefined
    const isKnown = text === '@last' || text.startsWith(wanted.prefix)
    // A name may belong to any of the accepted kinds; the first one is the usual one.
    for (const one of isKnown ? [wanted] : wantedIds(entry.path, name)) {
      const id = await idIn(one, text)
      if (id !== undefined) return id
    }
    return undefined
  }
  const idIn = async (wanted: { name: string; prefix: string }, text: string): Promise<string | undefined> => {
    const list = listOf(wanted.name, entry, data, {})?.list
    if (list === undefined) return undefined
    const find = async (more: Readonly<Record<string, string>>) =>
      chosen(text, wanted.prefix, await allRows(list, client, more), entry, list.path)
    const found = ofArchive(entry) ? undefined : await find({})
    // The list omits the archive, whose items have the same kinds of names.
    const hasArchive = list.options.some(({ name }) => name === 'archived') && (text !== '@last' || ofArchive(entry))
    return found ?? (hasArchive ? find({ archived: 'true' }) : undefined)
  }
  for (const [name, text] of Object.entries(invocation.args)) args[name] = (await idOf(name, text)) ?? text
  for (const name of optionsWithId) {
    const id = await idOf(`${name.replace(/-id$/, '')}_id`, invocation.options[name])
    if (id !== undefined) options[name] = id
  }
  const { subject } = invocation.options
  const about = several[`${entry.path} subject`] && (await idOf('subject', subject))
  if (about) options.subject = about
  return { ...invocation, args, options }
}

function chosen(
  text: string,
  prefix: string,
  rows: readonly unknown[],
  entry: Entry,
  list: string,
): string | undefined {
  const known = rows.flatMap(row => {
    const id = pick(row, 'id')
    return typeof id === 'string' ? [{ id, name: calledOf(row), at: String(newest(row) ?? '') }] : []
  })
  if (text === '@last') {
    const [last] = known.sort((a, b) => (a.at < b.at ? 1 : -1))
    if (!last) {
      const thing = list.split(' ').at(-2)?.replace(/s$/, '')
      const text = `@last means the newest ${thing}, but there is no ${thing} yet`
      throw new CliFault('not_found', text, { exit: exitCodes.notFound, next: `svc ${list}` })
    }
    return last.id
  }
  const exact = known.filter(({ id, name }) => id === text || name === text)
  const found =
    exact.length > 0
      ? exact
      : known.filter(({ id }) => text.startsWith(prefix) && text !== prefix && id.startsWith(text))
  if (found.length < 2) return found[0]?.id
  const candidates = found.slice(0, mostTold).map(({ id, name }) => (typeof name === 'string' ? `${id} (${name})` : id))
  const more = found.length > mostTold ? ` and ${found.length - mostTold} more` : ''
  throw new CliFault(
    'ambiguous_reference',
    `${cleanLine(text)} is ambiguous: ${cleanLine(candidates.join(', '))}${more}`,
    {
      exit: exitCodes.usage,
      next: `svc ${entry.path} ${found[0]?.id}`,
    },
  )
}

const newest = (row: unknown): unknown =>
  pick(row, 'created_at') ?? pick(row, 'queued_at') ?? pick(row, 'started_at') ?? pick(row, 'activated_at')

async function allRows(
  list: RouteCommand,
  client: DaemonClient,
  more: Readonly<Record<string, string>>,
): Promise<unknown[]> {
  const pages = list.options.some(({ option }) => option === 'cursor')
  const rows: unknown[] = []
  let cursor: unknown
  for (let page = 0; page < mostPages; page++) {
    const query = new URLSearchParams({
      ...withDrafts(list),
      ...more,
      ...(typeof cursor === 'string' ? { cursor } : {}),
    })
    const body = await client.request('GET', `${list.url}${query.size > 0 ? `?${query}` : ''}`)
    rows.push(...(rowsOf(body, list.view) ?? []))
    cursor = pick(body, 'page.next_cursor')
    if (!pages || typeof cursor !== 'string') break
  }
  return rows
}
