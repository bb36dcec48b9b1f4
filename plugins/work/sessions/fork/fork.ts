import { type Actor, messageOf } from '../../../../kernel/plugin.js'
import type { ForkSessionBody } from '../../../../schemas/sessions.js'
import { WorktreeErrors, workingFolderOf } from '../../worktrees/api.js'
import { SessionErrors } from '../api.js'
import type { SessionsContext } from '../context.js'
import type { SessionEventType } from '../events.js'
import { allowed } from '../gates.js'
import { createSession, removeSession } from '../lifecycle/catalog.js'
import type { SessionRow } from '../table.js'
import { infoOf } from '../wire.js'
import { warnOf } from './warnings.js'

/** Maximum number of events that are copied into the new session. */
const MAX_EVENTS = 1000
const COPIED: ReadonlySet<string> = new Set<SessionEventType>([
  'user_message',
  'agent_message',
  'thought',
  'plan',
  'tool_call',
  'tool_result',
  'done',
  'error',
])

/**
 * Continues a conversation as a new session in its own worktree; uncommitted changes stay in the original. A failed fork leaves no
 * session, no worktree, no branch and no new workspace.
 * @throws Fault `fork_unconfirmed`, `worktree_invalid` (400), `worktree_failed` (409), and the faults of creating a session
 */
export async function forkSession(
  context: SessionsContext,
  row: SessionRow,
  body: ForkSessionBody,
  actor: Actor,
): Promise<string> {
  const { kernel, table, slots, logs, points } = context
  const { workspaces, agents, daemon } = kernel.needs
  if (!body.confirmed) throw SessionErrors.fork_unconfirmed()
  await daemon.admit('session')
  slots.check()
  const workspace = workspaces.get(row.workspace_id)
  if (!workspace) throw WorktreeErrors.worktree_failed('the workspace of this session no longer exists')
  const info = infoOf(row)
  const name = body.worktree ?? body.new_worktree?.name ?? ''
  if (body.worktree === undefined) allowed(await points.worktreePreCreate.run({ root: workspace.rootDir, name }, info))
  const worktree = await kernel.needs.worktrees.requested(workspace, body)
  const root = workingFolderOf(worktree)
  const worktreeInfo = { name: worktree.name, folder: worktree.folder }
  let made: string | undefined
  let session: string | undefined
  const undo = async (what: string, work: () => Promise<unknown>) => {
    await work().catch(failed =>
      kernel.log.warn(`${what} of a failed fork could not be removed`, { error: messageOf(failed) }),
    )
  }
  try {
    // Checks that can refuse the session run before a workspace is registered for it.
    await agents.plan(row.agent_name, { ...workspace, rootDir: root })
    const isKnown = workspaces.list().some(({ rootDir }) => rootDir === root)
    const forkWorkspace = await workspaces.resolve(root)
    if (!isKnown) made = forkWorkspace.id
    const { id } = await createSession(context, {
      workspaceId: forkWorkspace.id,
      agentName: row.agent_name,
      name: row.name === '' ? undefined : `${row.name} (${worktree.name})`.slice(-200),
      model: row.model || undefined,
      reasoningEffort: row.reasoning_effort ?? undefined,
      speed: row.speed ?? undefined,
      permissions: row.permissions_asked ?? undefined,
      // Makes the sandbox at least as strict as that of the original session.
      parent: row.id,
      actor,
      cause: actor.cause,
    })
    session = id
    await kernel.db.tx(t =>
      table.update(t, id, { forked_from: row.id, worktree_id: worktree.name, selection: row.selection }),
    )
    await logs.use(row.id, from =>
      logs.use(id, async to => {
        const events = await from.query({ limit: MAX_EVENTS }, row.usage)
        for (const { type, turnId, content } of events) {
          if (COPIED.has(type)) to.append({ type: type as SessionEventType, turnId, content })
          await to.room()
        }
        const content = { marker: 'forked', from_session_id: row.id, worktree: worktree.name }
        to.append({ type: 'transcript_marker.created', turnId: '', content }, { sync: true })
        warnOf(to, worktree)
        await to.sync()
      }),
    )
    const point = body.worktree === undefined ? points.worktreeCreated : points.worktreeAdopted
    void point.call(worktreeInfo, info)
    return id
  } catch (error) {
    const [id, workspaceId] = [session, made]
    if (id !== undefined) await undo(`session ${id}`, () => removeSession(context, id))
    if (body.worktree === undefined)
      await undo('what hooks say', () => points.worktreePreRemove.run(worktreeInfo, info))
    await worktree.undo()
    if (workspaceId !== undefined)
      await undo(`workspace ${workspaceId}`, () => workspaces.remove(workspaceId, kernel.actor))
    if (body.worktree === undefined) void points.worktreeRemoved.call(worktreeInfo, info)
    throw error
  }
}
