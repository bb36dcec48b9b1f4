import { shellWord } from '../kernel/kit/commands/command-line.js'
import type { Plan } from '../schemas/daemon/changes.js'
import type { DaemonClient } from './client.js'
import type { Invocation } from './commands/invocation.js'
import { CliFault, exitCodes } from './fault.js'
import { pick } from './show/cells.js'
import type { Output } from './show/output.js'

const PLACE = '/api/workspaces/place'

/** Ends a dry run once the first request of the command is known. */
class PlanMade extends Error {
  override readonly name = 'PlanMade'

  constructor(readonly plan: Plan) {
    super('the plan is made')
  }
}

/**
 * A client for planned changes. In a dry run the first changing request becomes a plan and ends the command; with a plan the first
 * changing request is sent only if the plan still holds.
 */
export function planningClient(client: DaemonClient, { isDryRun, plan }: Invocation): DaemonClient {
  let isHeld = plan !== undefined
  const request: DaemonClient['request'] = async (method, path, body, options = {}) => {
    if (method === 'GET') return client.request(method, path, body, options)
    if (path === PLACE) {
      const around = await workspaceAround(client, String(pick(body, 'path')))
      if (around !== undefined) return { workspace: around, registered: false }
    }
    if (!isDryRun) {
      const headers = { ...options.headers, ...(isHeld && { 'svc-plan': plan as string }) }
      isHeld = false
      return client.request(method, path, body, { ...options, headers })
    }
    const reply = (await client.request('POST', '/api/changes/plan', {
      method,
      path,
      ...(body !== undefined && { body }),
    })) as {
      plan: Plan
    }
    if (reply.plan.changes_nothing) return client.request(method, path, body, options)
    throw new PlanMade(reply.plan)
  }
  return { request, stream: client.stream.bind(client) }
}

/** The existing workspace of a folder: looking it up registers nothing. */
async function workspaceAround(client: DaemonClient, folder: string): Promise<unknown> {
  const rows = pick(await client.request('GET', `/api/workspaces?path=${encodeURIComponent(folder)}`), 'workspaces')
  return Array.isArray(rows) ? rows[0] : undefined
}

/** Prints a plan, and the command that applies it. */
export function showPlan(plan: unknown, argv: readonly string[], out: Output): void {
  const { method, path, summary, members, notes = [], exists, can_be_undone: isUndoable, reason, digest } = plan as Plan
  if (out.json) {
    out.value(plan)
    return
  }
  if (exists === false && method !== 'PUT') {
    const text = `there is nothing at ${path}: the command would fail`
    throw new CliFault('plan_refused', text, { exit: exitCodes.notFound })
  }
  out.line(summary.split(';')[0] as string)
  out.line(out.color('dim', `${method} ${path}`))
  if (members.length > 0)
    out.table(members, [
      { header: 'Member', path: 'member' },
      { header: 'Before', path: 'before' },
      { header: 'After', path: 'after' },
    ])
  for (const note of notes) out.line(note)
  out.line(isUndoable ? 'It can be undone: svc undo' : `It cannot be undone: ${reason}`)
  const words = argv.filter(word => word !== '--dry-run').map(shellWord)
  out.line(`Nothing is changed. To change it: svc ${words.join(' ')} --plan ${digest}`)
}
