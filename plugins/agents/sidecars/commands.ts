import { columnsOf } from '../../../kernel/kit/annotations/show.js'
import { command, placeholder } from '../../../kernel/kit/commands/command-line.js'
import type { CommandContext } from '../../../kernel/plugin.js'
import type { Heartbeat, HeartbeatRevision, Soul, SoulRevision, TimeWindow } from '../../../schemas/agents/sidecars.js'
import type { PolicyDiagnostic } from '../../../schemas/sessions/inspection.js'

type Which = 'soul' | 'heartbeat'
type Snapshot = (Heartbeat | Soul) &
  Partial<Pick<Heartbeat, 'preferences' | 'guidance_markdown' | 'summary'>> & { body?: string }

const FILES = { soul: 'SOUL.md', heartbeat: 'HEARTBEAT.md' } as const
/** Exit code of an invalid request. */
const INVALID = 7

const write = (which: Which, agent = '') => command(`agent ${which} write`, agent, '--file', FILES[which])

const findingColumns = columnsOf<PolicyDiagnostic>()([
  'severity',
  'line',
  'field',
  'code',
  { of: 'message', below: true },
])
const revisionColumns = columnsOf<{ id: string; created_at: string; what: string; by: string; new_digest: string }>()([
  'id',
  { of: 'created_at~ago', header: 'When' },
  'what',
  'by',
  { of: 'new_digest', header: 'Digest' },
])

/** The verbs of one sidecar. */
function verbsOf(which: Which) {
  return {
    async inspect(context: CommandContext) {
      return show(context, await snapshotOf(context, 'GET', `?${queryOf(context)}`))
    },
    async validate(context: CommandContext) {
      const { options, readFile } = context
      if (options.file === undefined) return show(context, await snapshotOf(context, 'GET', `?${queryOf(context)}`))
      const file = String(options.file)
      const body = { body: await readFile(file), ...inWorkspace(context) }
      return show(context, await snapshotOf(context, 'POST', '/validate', body), file)
    },
    async write(context: CommandContext) {
      const { options, readFile, fault } = context
      if (options.file === undefined) return fault('usage', `give the text with --file; - reads standard input`)
      const body = { body: await readFile(String(options.file)), ...(await condition(context)) }
      return changed(context, await snapshotOf(context, 'PUT', '', body))
    },
    async remove(context: CommandContext) {
      return changed(context, await snapshotOf(context, 'DELETE', '', await condition(context)))
    },
    async rollback(context: CommandContext) {
      const body = { revision_id: context.args.revision, ...(await condition(context)) }
      return changed(context, await snapshotOf(context, 'POST', '/rollback', body))
    },
    async history(context: CommandContext) {
      const { client, out, args, options } = context
      const query = queryOf(context, { limit: options.limit, cursor: options.cursor })
      const reply = (await client.request('GET', `${urlOf(context)}/history?${query}`)) as {
        revisions: (HeartbeatRevision | SoulRevision)[]
        next_cursor?: string
      }
      if (out.json) return out.value(reply)
      const rows = reply.revisions.map(row => ({
        ...row,
        what: 'operation' in row ? row.operation : row.action === 'put' ? 'write' : row.action,
        by: row.actor.ref ?? row.actor.kind,
      }))
      out.table(rows, revisionColumns, `no changes yet; ${write(which, args.name)}`)
      if (reply.next_cursor) out.line(out.color('dim', `more follow; next page: --cursor ${reply.next_cursor}`))
      if (rows.length > 0)
        out.line(out.color('dim', `next: ${command(`agent ${which} rollback`, args.name ?? '', placeholder('id'))}`))
    },
  }

  function urlOf({ args }: CommandContext): string {
    return `/api/agents/${encodeURIComponent(args.name ?? '')}/${which}`
  }

  function snapshotOf(context: CommandContext, method: string, rest: string, body?: unknown) {
    return snapshotOrRefusal(context.client.request(method, `${urlOf(context)}${rest}`, body))
  }

  /** The caller's digest, else that of the current file, so that a concurrent change is not overwritten. */
  async function condition(context: CommandContext) {
    const expectedDigest = context.options['expected-digest']
    if (expectedDigest !== undefined) return { expected_digest: expectedDigest, ...inWorkspace(context) }
    const { reply } = await snapshotOf(context, 'GET', `?${queryOf(context)}`)
    return { expected_digest: (reply as Snapshot).digest ?? '', ...inWorkspace(context) }
  }

  /** @param file the validated file, if it is not the agent's own */
  function show(
    context: CommandContext,
    { reply, refused }: { reply: unknown; refused: boolean },
    file?: string,
  ): number {
    const snapshot = reply as Snapshot
    const { out, args } = context
    const code = refused || snapshot.validation_status === 'invalid' ? INVALID : 0
    if (out.json) {
      out.value(reply)
      return code
    }
    if (!snapshot.present) {
      out.line(`agent ${args.name} has no ${FILES[which]}`)
      out.line(out.color('dim', `next: ${write(which, args.name)}`))
      return code
    }
    const { validation_status: status, source_path: at, digest, diagnostics = [], preferences, summary } = snapshot
    const color = status === 'valid' ? 'green' : status === 'invalid' ? 'red' : 'yellow'
    out.line(`${FILES[which]} of ${args.name}: ${out.color(color, status)}`)
    // An invalid policy contains defaults, which are not shown because they were not configured.
    const inForce = status === 'invalid' ? undefined : preferences
    const fields = [
      ['File', file ?? at],
      ['Summary', summary],
      ['Every', inForce?.min_interval],
      ['Hours', inForce?.active_hours?.map(hours).join(', ')],
      ['Quiet', inForce?.quiet_windows?.map(hours).join(', ')],
      ['Role', 'role' in snapshot.frontmatter ? snapshot.frontmatter.role : undefined],
      ['Digest', digest],
    ]
    for (const [title, value] of fields) if (value) out.line(`  ${`${title}:`.padEnd(9)} ${value}`)
    if (diagnostics.length > 0) out.table(diagnostics, findingColumns)
    const text = snapshot.guidance_markdown ?? snapshot.body ?? ''
    if (text !== '') out.line(`\n${text}`)
    return code
  }

  function changed(context: CommandContext, { reply, refused }: { reply: unknown; refused: boolean }): number {
    const { out, args } = context
    if (refused) {
      const code = show(
        context,
        { reply, refused },
        context.options.file === undefined ? undefined : String(context.options.file),
      )
      if (!out.json) out.line(out.color('red', 'nothing was written'))
      return code
    }
    if (out.json) {
      out.value(reply)
      return 0
    }
    const { revision } = reply as { revision: HeartbeatRevision | SoulRevision }
    const what = 'operation' in revision ? revision.operation : revision.action
    const done = what === 'delete' ? 'removed' : what === 'rollback' ? 'restored' : 'wrote'
    out.line(`${done} ${revision.source_path} (${revision.id})`)
    const next = which === 'heartbeat' ? `heartbeat status ${args.name}` : `soul inspect ${args.name}`
    out.line(out.color('dim', `next: svc agent ${next}`))
    return 0
  }
}

/** `svc session soul refresh <session>` */
export async function soulRefresh(context: CommandContext): Promise<number> {
  const { args, options, client, out } = context
  const { session } = (await client.request('GET', `/api/sessions/${encodeURIComponent(args.session_id ?? '')}`)) as {
    session: { id: string; agent_name: string; workspace_id: string }
  }
  const { id, agent_name: agent, workspace_id } = session
  // Without a digest from the caller, that of the current file is used.
  const read = async () => {
    const at = `/api/agents/${encodeURIComponent(agent)}/soul?${new URLSearchParams({ workspace_id })}`
    return ((await client.request('GET', at)) as Soul).digest ?? ''
  }
  const body = { expected_digest: options['expected-digest'] ?? (await read()) }
  const at = `/api/workspaces/${workspace_id}/sessions/${id}/soul/refresh`
  const answer = await snapshotOrRefusal(client.request('POST', at, body))
  const soul = answer.reply as Soul
  if (out.json) out.value(soul)
  else if (answer.refused) {
    out.line(`the persona of ${agent} is ${out.color('red', 'not valid')}: ${id} keeps its current persona`)
    out.table(soul.diagnostics ?? [], findingColumns)
  } else {
    out.line(soul.active ? `${id} now has the current persona of ${agent}` : `${id} now has no persona`)
    out.line(out.color('dim', `next: ${command('session prompt', id, '…')}`))
  }
  return answer.refused ? INVALID : 0
}

/** The snapshot in a reply, also in one with 422: an invalid text is shown with its findings. */
async function snapshotOrRefusal(response: Promise<unknown>): Promise<{ reply: unknown; refused: boolean }> {
  try {
    return { reply: await response, refused: false }
  } catch (error) {
    const reply = (error as { more?: { body?: unknown } }).more?.body
    if (!isSnapshot(reply)) throw error
    return { reply, refused: true }
  }
}

const isSnapshot = (value: unknown): value is Snapshot =>
  typeof value === 'object' && value !== null && 'validation_status' in value

const hours = ({ start, end, timezone }: TimeWindow) => `${start}–${end} ${timezone}`

const inWorkspace = ({ options: { workspace } }: CommandContext): { workspace_id?: string } =>
  typeof workspace === 'string' ? { workspace_id: workspace } : {}

function queryOf(context: CommandContext, more: Readonly<Record<string, unknown>> = {}): string {
  const entries = Object.entries({ ...inWorkspace(context), ...more }).filter(([, value]) => value !== undefined)
  return new URLSearchParams(entries.map(([name, value]): [string, string] => [name, String(value)])).toString()
}

export const {
  inspect: soulInspect,
  validate: soulValidate,
  write: soulWrite,
  remove: soulRemove,
  rollback: soulRollback,
  history: soulHistory,
} = verbsOf('soul')

export const {
  inspect: heartbeatInspect,
  validate: heartbeatValidate,
  write: heartbeatWrite,
  remove: heartbeatRemove,
  rollback: heartbeatRollback,
  history: heartbeatHistory,
} = verbsOf('heartbeat')
