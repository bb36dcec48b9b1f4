import * as v from 'valibot'
import { surfaceOf, type Tap } from '../../../../kernel/plugin.js'
import { HookEvent } from '../../../../schemas/hooks.js'
import { points, type Recorded, SessionErrors, type SessionInfo, Sessions } from '../../sessions/api.js'
import type { Fixed, HookPayload } from '../api.js'
import { GUARD } from '../declared.js'
import { isReading } from '../record-payload.js'
import type { HooksService } from '../service.js'

const { tap } = surfaceOf<HooksService>()

/** Session hooks with a session as their argument; their names are events. */
const OF_SESSIONS = [
  'postCreate',
  'postResume',
  'recoveryStarted',
  'recoverySucceeded',
  'recoveryExhausted',
  'agentCrashed',
  'agentStopped',
] as const satisfies (keyof typeof points)[]

/** Session hooks with a journal entry as their argument; their names are events. */
const OF_JOURNALS = [
  'messagePersisted',
  'eventRecording',
  'eventRecorded',
  'turnStart',
  'turnEnd',
  'messageStart',
  'messageEnd',
  'toolPostCall',
  'toolPostError',
  'permissionResolved',
  'permissionDenied',
  'contextCompacted',
] as const satisfies (keyof typeof points)[]

const eventOf = (point: keyof typeof points): HookEvent => v.parse(HookEvent, points[point].name)

const notificationTaps = OF_SESSIONS.map(point => {
  const event = eventOf(point)
  return tap(
    Sessions,
    sessions => sessions.points[point],
    service => (session: SessionInfo) => service.tell(event, session),
  )
})

const recorded = OF_JOURNALS.map(point => {
  const event = eventOf(point)
  return tap(
    Sessions,
    sessions => sessions.points[point],
    service => (record: Recorded) => service.recorded(event, record),
  )
})

const decided: readonly Tap<HooksService>[] = [
  tap(
    Sessions,
    sessions => sessions.points.preCreate,
    service => async wish => {
      const { sessionName, agentName, sessionType, workspaceId, isPlaced, cause } = wish
      const original = {
        session_name: sessionName,
        agent_name: agentName,
        session_type: sessionType,
        ...service.workspaceFields(workspaceId),
      }
      const fixed = isPlaced ? PLACED : undefined
      const done = await service.askBefore('session.pre_create', agentName, workspaceId, original, { cause, fixed })
      if (!done) return undefined
      const { payload } = done
      const resolvedId = await workspaceIdOf(service.kernel.needs.workspaces, payload, original)
      const deny = done.deny ?? (resolvedId === undefined ? unplaced(payload) : undefined)
      return {
        ...wish,
        sessionName: String(payload.session_name),
        agentName: String(payload.agent_name),
        sessionType: payload.session_type as SessionInfo['type'],
        workspaceId: resolvedId ?? workspaceId,
        ...(deny !== undefined && { deny }),
      }
    },
  ),
  tap(
    Sessions,
    sessions => sessions.points.preResume,
    service => async (wish, session) => {
      const invalid = await service.adopt(session)
      if (invalid !== undefined) return { ...wish, deny: invalid }
      const done = await service.ask('session.pre_resume', session)
      if (!done) return undefined
      return { sessionName: String(done.payload.session_name), ...(done.deny !== undefined && { deny: done.deny }) }
    },
  ),
  tap(
    Sessions,
    sessions => sessions.points.preStop,
    service => async (wish, session) => {
      const fixed = wish.isRefusable ? undefined : UNREFUSABLE
      const done = await service.ask('session.pre_stop', session, { stop_reason: wish.reason }, fixed)
      return done?.deny === undefined ? undefined : { ...wish, deny: done.deny }
    },
  ),
  tap(
    Sessions,
    sessions => sessions.points.inputPreSubmit,
    service => async (input, session) => {
      const { message, contextBlocks = [], source = 'user' } = input
      const original = { message, context_blocks: contextBlocks, input_class: source }
      const done = await service.ask('input.pre_submit', session, original)
      if (!done) return undefined
      const { payload, deny } = done
      return {
        source,
        message: String(payload.message),
        contextBlocks: payload.context_blocks as readonly string[],
        ...(deny !== undefined && { deny }),
      }
    },
  ),
  tap(
    Sessions,
    sessions => sessions.points.promptPostAssemble,
    service => async (prompt, session) => {
      const { texts, contextBlocks = [], source = 'user' } = prompt
      const original = { prompt: texts, context_blocks: contextBlocks, input_class: source }
      const done = await service.ask('prompt.post_assemble', session, original)
      if (!done) return undefined
      const { payload, deny } = done
      return {
        ...prompt,
        source,
        texts: payload.prompt as readonly string[],
        contextBlocks: payload.context_blocks as readonly string[],
        ...(deny !== undefined && { deny }),
      }
    },
  ),
  tap(
    Sessions,
    sessions => sessions.points.agentPreStart,
    service => async (line, session) => {
      const invalid = await service.adopt(session)
      if (invalid !== undefined) return { ...line, deny: invalid }
      const [command = '', ...args] = line.argv
      const done = await service.ask('agent.pre_start', session, { command, args, cwd: line.cwd })
      const guardedBy = service.guardOf(session)
      const guarded = guardedBy === undefined ? {} : { guardedBy: { ...line.guardedBy, [GUARD]: guardedBy } }
      if (!done) return guardedBy === undefined ? undefined : { ...line, ...guarded }
      const { payload, deny } = done
      return {
        ...line,
        ...guarded,
        argv: [String(payload.command), ...(payload.args as readonly string[])],
        cwd: String(payload.cwd),
        ...(deny !== undefined && { deny }),
      }
    },
  ),
  tap(
    Sessions,
    sessions => sessions.points.agentSpawned,
    service => (session, pid) => service.tell('agent.spawned', session, { pid }),
  ),
  tap(
    Sessions,
    sessions => sessions.points.attentionChanged,
    service => (session, wanted) => service.tell('session.attention.changed', session, { wanted }),
  ),
  tap(
    Sessions,
    sessions => sessions.healthUpdated,
    service => health => {
      const session = service.session(health.session_id)
      if (session) service.tell('session.health.update.after', session, { health })
    },
  ),
  tap(
    Sessions,
    sessions => sessions.stopped,
    service => session => {
      service.tell('session.post_stop', session, {
        stop_reason: session.stopReason ?? '',
        ...(session.stopDetail !== undefined && { stop_detail: session.stopDetail }),
      })
      service.ended(session.id)
    },
  ),
  tap(
    Sessions,
    sessions => sessions.permission,
    service => async request => {
      const session = service.session(request.sessionId)
      if (!session) return undefined
      const { toolKind, title, command, paths } = request
      const done = await service.ask('permission.request', session, {
        tool_name: toolKind,
        tool_read_only: isReading(toolKind),
        decision_class: toolKind,
        title,
        ...(command !== undefined && { command }),
        ...(paths && { paths }),
        decision: request.isRefused ? 'deny' : 'allow',
      })
      request.judgeAs(String(done?.payload.decision_class ?? toolKind))
      return done?.deny === undefined ? undefined : SessionErrors.hook_denied(done.deny)
    },
  ),
  tap(
    Sessions,
    sessions => sessions.points.toolPreCall,
    service => async (call, session) => {
      const [command = '', ...args] = call.argv ?? []
      const input = call.argv ? { command, args } : { path: call.title }
      const about = { tool_name: call.kind, tool_read_only: call.kind === 'read', title: call.title, input }
      const done = await service.ask('tool.pre_call', session, about, CLIENT_CALL)
      if (!done) return undefined
      if (done.deny !== undefined) return { ...call, deny: done.deny }
      return changedCall(call, input, done.payload.input as Readonly<Record<string, unknown>>)
    },
  ),
  tap(
    Sessions,
    sessions => sessions.points.worktreePreCreate,
    service => async (wish, session) => {
      const done = await service.ask('worktree.pre_create', session, { root: wish.root, worktree: wish.name })
      return done?.deny === undefined ? undefined : { ...wish, deny: done.deny }
    },
  ),
  tap(
    Sessions,
    sessions => sessions.points.messageDelta,
    service => (record: Recorded) => service.deltas.noticed(record),
  ),
  tap(
    Sessions,
    sessions => sessions.points.worktreePreRemove,
    service => async (worktree, session) => {
      const { name, folder } = worktree
      await service.ask('worktree.pre_remove', session, { worktree: name, folder })
      return worktree
    },
  ),
  ...(['Created', 'Adopted', 'Removed'] as const).map(what =>
    tap(
      Sessions,
      sessions => sessions.points[`worktree${what}`],
      service =>
        ({ name, folder }, session) =>
          service.tell(`worktree.${what.toLowerCase()}` as HookEvent, session, { worktree: name, folder }),
    ),
  ),
]

const PLACED: Fixed = {
  members: ['workspace_id', 'workspace'],
  why: 'this session continues a worktree, or inherits its rights from another session',
}
const UNREFUSABLE: Fixed = { members: ['deny'], why: 'the session has ended, or must end' }
const CLIENT_CALL: Fixed = {
  members: ['name', 'namespace', 'read_only'],
  why: 'an agent asks for its own file access and commands through fixed ACP methods',
}

/** The ID of the workspace that a patch names by ID or by reference; undefined for none, or for two different ones. */
async function workspaceIdOf(
  workspaces: HooksService['kernel']['needs']['workspaces'],
  { workspace_id: id, workspace: reference }: HookPayload,
  original: HookPayload,
): Promise<string | undefined> {
  const named =
    reference === original.workspace ? undefined : await workspaces.find(String(reference)).catch(() => null)
  if (named === null || (named && id !== original.workspace_id && named.id !== id)) return undefined
  return (named ?? workspaces.get(String(id)))?.id
}

/** The denial for a hook that moves a session to an unknown workspace. */
const unplaced = ({ workspace, workspace_id }: HookPayload): string =>
  `a hook moved this session to a workspace that does not exist (workspace ${workspace}, workspace_id ${workspace_id})`

type Call = { readonly kind: string; readonly title: string; readonly argv?: readonly string[] }

/** Applies a changed command. The path of a file access cannot be changed. */
function changedCall<C extends Call>(call: C, before: object, input: Readonly<Record<string, unknown>>): C | undefined {
  if (input === before) return undefined
  const { command, args = [] } = input
  if (!call.argv) return { ...call, deny: `a hook changed the input of a ${call.kind}; only commands can be changed` }
  const isCommand = typeof command === 'string' && Array.isArray(args) && args.every(arg => typeof arg === 'string')
  if (!isCommand) return { ...call, deny: 'a hook changed the input of this call to an invalid command' }
  const argv = [command, ...args]
  return { ...call, argv, title: argv.join(' ') }
}

/** Taps on the points of sessions. */
export const sessionTaps: readonly Tap<HooksService>[] = [...notificationTaps, ...recorded, ...decided]
