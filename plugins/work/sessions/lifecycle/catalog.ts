import { mkdir, readdir, rename, rm } from 'node:fs/promises'
import * as v from 'valibot'
import { Paging } from '../../../../kernel/kit/page.js'
import { shown } from '../../../../kernel/kit/text.js'
import type { Actor, Fault, Tx } from '../../../../kernel/plugin.js'
import type { ParticipationRequest, ResolvedParticipation } from '../../../../schemas/network.js'
import type { CreateSessionBody, ListSessionsQuery, ListSessionsReply } from '../../../../schemas/sessions.js'
import type { Undoing } from '../../../desk/changes/api.js'
import { type Workspace, WorkspaceErrors } from '../../../desk/workspaces/api.js'
import { workingFolderOf } from '../../worktrees/api.js'
import { readBriefing } from '../agent/launch.js'
import {
  type CreateSession,
  localParticipation,
  type NewSession,
  type Participations,
  type ParticipationWish,
  type SessionConfinement,
  SessionCreated,
  SessionErrors,
  type SessionInfo,
  Sessions,
} from '../api.js'
import { type SessionsContext, sessionSecrets } from '../context.js'
import { warnOf } from '../fork/warnings.js'
import { allowed } from '../gates.js'
import { checkNotHidden } from '../runtime/selection.js'
import { DefaultAgent } from '../settings.js'
import { walk } from '../states.js'
import { NEW_ROW, type SessionFilter, type SessionRow } from '../table.js'
import { infoOf, sessionToWire } from '../wire.js'
import type { OpenSessions } from './open-sessions.js'
import { NOT_STOPPED } from './stopping.js'

const DEFAULT_PAGE = 50
const MAX_PAGE = 200
const paging = new Paging({
  place: v.tuple([v.number(), v.string()]),
  invalid: SessionErrors.session_cursor_invalid,
})
/** Prefix of folders being removed: their rows are deleted, or are about to be. */
const TRASH = '.removed-'

/** The default agent of a session in a workspace, or without one. */
export function agentFor({ kernel }: SessionsContext, workspace?: { readonly defaultAgent?: string | null }): string {
  return workspace?.defaultAgent || kernel.config.get(DefaultAgent)
}

/** Creates a session: validated and stored, without a process until its first prompt. */
export async function createSession(context: SessionsContext, request: CreateSession): Promise<SessionInfo> {
  const { kernel, table, slots, briefings, points, logs } = context
  await kernel.needs.daemon.admit('session')
  const requestedWorkspace = kernel.needs.workspaces.get(request.workspaceId)
  if (!requestedWorkspace) throw WorkspaceErrors.workspace_not_found(`no workspace ${request.workspaceId}`)
  const isPlaced = [request.worktree, request.parent, request.lineage, request.rights].some(one => one !== undefined)
  const { sessionName, agentName, sessionType, workspaceId } = allowed(
    await points.preCreate.run({
      sessionName: request.name === undefined ? '' : checkedName(request.name),
      agentName: request.agentName || agentFor(context, requestedWorkspace),
      sessionType: request.type ?? 'user',
      workspaceId: requestedWorkspace.id,
      isPlaced,
      cause: request.cause,
    }),
  )
  const workspace = isPlaced ? requestedWorkspace : kernel.needs.workspaces.get(workspaceId)
  if (!workspace) throw WorkspaceErrors.workspace_not_found(`no workspace ${workspaceId}`)
  const name = sessionName === '' ? '' : checkedName(sessionName)
  const plan = await kernel.needs.agents.plan(agentName, workspace)
  const model = request.model ?? plan.model
  checkNotHidden(kernel, plan.provider, model)
  slots.check()
  const id = kernel.ids.id('ses')
  const participation = await participationOf(context, id, workspace.id, request.participation)
  const now = kernel.clock.now()
  const { worktree } = request
  const rights = request.rights ?? (worktree && { roots: [...new Set([workingFolderOf(worktree), worktree.folder])] })
  const row: SessionRow = {
    id,
    name,
    type: sessionType,
    agent_name: plan.definition.name,
    workspace_id: workspace.id,
    workspace_path: workspace.rootDir,
    provider: plan.provider,
    model,
    reasoning_effort: request.reasoningEffort ?? plan.effortFor(model) ?? null,
    speed: request.speed ?? null,
    state: walk('starting', 'active'),
    ...NOT_STOPPED,
    ...NEW_ROW,
    ...(worktree ? { worktree_id: worktree.name } : {}),
    permissions_asked: request.permissions ?? null,
    permissions: request.permissions ?? plan.permissions,
    sandbox: null,
    lineage: request.lineage ? JSON.stringify(request.lineage) : null,
    rights: rights ? JSON.stringify(rights) : null,
    last_activity_at: now,
    created_at: now,
    updated_at: now,
  }
  const confinement = await confine(context, infoOf(row), {
    permissions: request.permissions ?? plan.permissions,
    sandbox: request.sandbox,
    unattended: request.unattended ?? false,
    parent: request.parent,
    broughtBy: plan.definition.command === undefined ? undefined : plan.definition.extension,
  })
  const briefing = await readBriefing(kernel, infoOf(row), workspace)
  await mkdir(kernel.home.path('sessions', row.id), { recursive: true, mode: 0o700 })
  try {
    await writeMeta(context, row)
    const info = await kernel.db.tx(t => {
      const payload = { id: row.id, agent_name: row.agent_name, workspace_id: row.workspace_id }
      const about = { actor: request.actor, scope: row.workspace_id, subject: row.id }
      const { id } = kernel.needs.events.emit(t, SessionCreated, payload, { cause: request.cause, ...about })
      table.insert(t, {
        ...row,
        cause: id,
        sandbox: confinement ? JSON.stringify(confinement) : null,
        participation: participation === undefined ? null : JSON.stringify(participation(t)),
      })
      briefings.insert(t, row.id, briefing)
      if (participation) context.participations()?.join(t, { kind: 'session', id: row.id }, infoOf(row))
      return infoOf(row)
    })
    if (worktree?.warnings?.length) await logs.use(row.id, async log => warnOf(log, worktree))
    void points.postCreate.call(info)
    if (worktree) void points.worktreeAdopted.call({ name: worktree.name, folder: worktree.folder }, info)
    return info
  } catch (error) {
    await rm(kernel.home.path('sessions', row.id), { recursive: true, force: true })
    throw error
  }
}

/**
 * Decides how a new session is confined. Throws the refusal, and `sandbox_unavailable` (422) when no plugin provides the sandbox
 * asked for.
 */
async function confine(
  { creating }: Pick<SessionsContext, 'creating'>,
  session: SessionInfo,
  about: Pick<NewSession, 'permissions' | 'sandbox' | 'unattended' | 'parent' | 'broughtBy'>,
): Promise<SessionConfinement | undefined> {
  let chosen: SessionConfinement | undefined
  const refused = await creating.ask({
    ...about,
    session,
    confine(how) {
      chosen = how
    },
  })
  if (refused) throw refused
  const isAsked = about.sandbox !== undefined && about.sandbox !== 'none'
  if (isAsked && chosen?.kind !== 'sandbox') throw SessionErrors.sandbox_unavailable()
  return chosen
}

/** The plugin that decides about participation. @throws Fault `participation_unavailable` */
function participationsOf({ participations }: SessionsContext): Participations {
  const found = participations()
  if (!found) throw SessionErrors.participation_unavailable()
  return found
}

/** Decides the participation of a new session, in the transaction that stores it; undefined: none was requested. */
async function participationOf(
  context: SessionsContext,
  id: string,
  workspaceId: string,
  request: ParticipationRequest | null | undefined,
): Promise<((t: Tx) => ResolvedParticipation) | undefined> {
  if (!request) return undefined
  if (request.mode !== 'live') return () => localParticipation('explicit_request')
  const wish: ParticipationWish = {
    owner: { kind: 'session', id },
    workspaceId,
    asked: [{ source: 'explicit_request', request }],
  }
  const answer = await participationsOf(context).ask(wish)
  return t => {
    const resolved = participationsOf(context).resolve(t, wish, answer)
    if (resolved === 'unasked') throw SessionErrors.participation_unavailable()
    return resolved
  }
}

/** Throws for an invalid name. */
export async function renameSession(context: SessionsContext, row: SessionRow, name: string): Promise<void> {
  const { table, kernel } = context
  const change = { name: checkedName(name), updated_at: kernel.clock.now() }
  await kernel.db.tx(t => table.update(t, row.id, change))
  await writeMeta(context, { ...row, ...change })
}

/** Asks the hooks whether a stopped session may start again, and applies their new name. Throws `hook_denied` (403). */
export async function checkResume(context: SessionsContext, row: SessionRow): Promise<void> {
  const { sessionName = row.name } = allowed(await context.points.preResume.run({ sessionName: row.name }, infoOf(row)))
  if (sessionName !== row.name) await renameSession(context, row, sessionName)
}

/** Creates a session from a request body. The whole body is validated before anything is stored. */
export async function createFromBody(
  context: SessionsContext,
  body: CreateSessionBody,
  actor: Actor,
): Promise<SessionInfo> {
  const { kernel } = context
  const { workspaces, daemon, agents } = kernel.needs
  const { workspace, workspace_path: path } = body
  const reference = path ?? workspace
  if (!reference || (path !== undefined && workspace !== undefined)) throw SessionErrors.workspace_choice()
  if (body.name !== undefined) checkedName(body.name)
  if (body.prompt?.trim() === '') throw SessionErrors.prompt_text_missing('the prompt has no text')
  if (body.network_participation?.mode === 'live') participationsOf(context)
  await daemon.admit('session')
  const found = path === undefined ? await workspaces.find(reference) : await workspaces.resolve(reference)
  const agentName = body.agent_name || agentFor(context, found)
  if (body.provider) {
    const { provider } = await agents.plan(agentName, found)
    if (provider !== body.provider) throw SessionErrors.provider_fixed(`the agent ${agentName} runs with ${provider}`)
  }
  return createSession(context, {
    workspaceId: found.id,
    agentName,
    name: body.name,
    model: body.model,
    reasoningEffort: body.reasoning_effort,
    speed: body.speed,
    permissions: body.permissions,
    sandbox: body.sandbox,
    participation: body.network_participation,
    actor,
    cause: actor.cause,
  })
}

/** Writes `meta.json` for people who look into the folder; the row stays the source of truth. */
async function writeMeta({ kernel }: SessionsContext, row: SessionRow): Promise<void> {
  const { id, name, type, agent_name, workspace_id, workspace_path, provider, model, created_at } = row
  const meta = {
    schema: 'svc.session.meta.v1',
    id,
    name,
    type,
    agent_name,
    workspace_id,
    workspace_path,
    provider,
    model,
  }
  const created = new Date(created_at).toISOString()
  await kernel.needs
    .file('sessions', id, 'meta.json')
    .write(`${JSON.stringify({ ...meta, created_at: created }, undefined, 2)}\n`)
}

/** Removes a stopped session from the catalog together with its folder, atomically. */
export async function removeSession({ kernel, table, logs }: SessionsContext, id: string): Promise<void> {
  await logs.close(id)
  const folder = kernel.home.path('sessions', id)
  const trash = kernel.home.path('sessions', `${TRASH}${id}`)
  await rm(trash, { recursive: true, force: true })
  const moved = await rename(folder, trash).then(
    () => true,
    error => {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
      throw error
    },
  )
  try {
    await kernel.db.tx(t => {
      table.remove(t, id)
      kernel.needs.ownership.tombstone(t, Sessions, id)
      for (const path of sessionSecrets.paths(id)) kernel.needs.vault.current?.forget(t, path)
    })
  } catch (error) {
    if (moved) await rename(trash, folder)
    throw error
  }
  logs.forget(id)
  await rm(trash, { recursive: true, force: true })
}

/** Completes interrupted removals: the row decides whether a folder in the trash is deleted or restored. */
export async function emptyTrash({ kernel, table, archive }: SessionsContext): Promise<void> {
  const root = kernel.home.path('sessions')
  await mkdir(root, { recursive: true, mode: 0o700 })
  for (const name of await readdir(root)) {
    if (!name.startsWith(TRASH)) continue
    const id = name.slice(TRASH.length)
    if (table.get(id) || archive.has(id))
      await rename(kernel.home.path('sessions', name), kernel.home.path('sessions', id))
    else await rm(kernel.home.path('sessions', name), { recursive: true, force: true })
  }
}

/** One page of the catalog. @throws Fault `session_cursor_invalid` */
export async function listSessions(
  { kernel, table, archive }: SessionsContext,
  query: ListSessionsQuery,
  actor: Actor,
  open: Pick<OpenSessions, 'peek'>,
): Promise<ListSessionsReply> {
  const workspace = query.workspace ? await kernel.needs.workspaces.find(query.workspace) : undefined
  const filter: SessionFilter = {
    workspaceId: workspace?.id,
    state: query.state,
    type: query.type,
    agent: query.agent,
    text: query.q,
    resumable: query.resumable,
    archived: query.archived ?? false,
    sort: query.sort === 'last_activity' ? 'last_activity_at' : 'created_at',
  }
  const limit = Math.min(query.limit || DEFAULT_PAGE, MAX_PAGE)
  const of = { actor, query: { ...filter } }
  const place = { ...filter, after: paging.after(of, query.cursor) }
  const inCatalog = table.list(place, limit + 1)
  // A first page with room left has all of them.
  const isWhole = place.after === undefined && inCatalog.length <= limit
  const total = isWhole ? inCatalog.length : table.count(filter)
  const found = await archive.list(place, limit + 1, inCatalog)
  const { rows, ...more } = paging.cut(of, found, limit, row => [row[filter.sort], row.id])
  return {
    sessions: rows.map(row => sessionToWire(row, open.peek(row.id), kernel.clock.now(), query.include_health)),
    page: { limit, total, ...more },
  }
}

/** A valid session name. Throws `session_name_invalid` (400). */
function checkedName(name: string): string {
  const trimmed = name.trim()
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what is refused
  if (trimmed === '' || trimmed.length > 200 || /[\u0000-\u001f\u007f]/.test(trimmed)) {
    throw SessionErrors.session_name_invalid()
  }
  return trimmed
}

/** Reason for which a change of an agent cannot be undone: sessions run with the present definition. */
export function guardUndo({ table, kernel }: SessionsContext, { path, params }: Undoing): Fault | undefined {
  const { name = '' } = params
  const busy = path.startsWith('/api/agents/{name}') ? table.busyWith(kernel.db, name) : 0
  if (busy === 0) return undefined
  return SessionErrors.session_busy(
    `${busy === 1 ? '1 session is' : `${busy} sessions are`} at work for the agent ${shown(name)}; undo it after that`,
  )
}

/** Reason for which a workspace cannot be deleted: it has active sessions. */
export function guardWorkspace({ table }: SessionsContext, t: Tx, { id, name }: Workspace): Fault | undefined {
  const active = table.activeIn(t, id)
  if (active === 0) return undefined
  return WorkspaceErrors.workspace_in_use(`${active} active sessions use the workspace ${name}; stop them first`)
}
