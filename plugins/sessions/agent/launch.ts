import { realpath } from 'node:fs/promises'
import path from 'node:path'
import { type Fault, messageOf } from '../../../kernel/plugin.js'
import type { LaunchPlan } from '../../agents/api.js'
import { BUILT_IN_PROVIDER } from '../../providers/api.js'
import { type Workspace, WorkspaceErrors } from '../../workspaces/api.js'
import type { ToolCallFields } from '../acp/schemas.js'
import type { SessionInfo, SessionStart } from '../api.js'
import type { SessionsContext } from '../context.js'
import type { EventContent } from '../events.js'
import { contains, type Territory } from '../requests/paths.js'
import { Permissions } from '../requests/permissions.js'
import { Terminals } from '../requests/terminals.js'
import type { SessionRow } from '../table.js'
import { infoOf } from '../wire.js'
import { readBriefing } from './briefing.js'
import { AgentFailure } from './failure.js'
import { startableServers } from './mcp.js'
import type { AgentProcess } from './process.js'

/** What has to be known before a process can be started; all of it checked. */
export interface Launch {
  readonly plan: LaunchPlan
  readonly workspace: Workspace
  readonly territory: Territory
}

/** What a process tells its session while it lives. */
export interface LaunchListener {
  turnId(): string | undefined
  known(toolCallId: string): Partial<ToolCallFields> | undefined
  record(turnId: string, content: EventContent): void
  warn(turnId: string, content: EventContent): void
  update(params: unknown): void
  room(): Promise<void>
  activity(): void
  /** The session is being stopped: what is being started is ended. */
  readonly signal: AbortSignal
}

/** A process with everything that belongs to it and goes with it. */
export interface RunningAgent {
  readonly agent: AgentProcess
  readonly permissions: Permissions
  readonly terminals: Terminals
  readonly argv: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  /** Put before the first prompt of a conversation that the agent does not know. */
  readonly preamble: string
}

/**
 * Checks what a process of this session needs; starts nothing. One that was made before there was anything to be told takes
 * it now, once, and keeps it like any other. Throws the faults of workspaces and agents, and of who has something to tell.
 */
export async function planLaunch({ kernel, briefings }: SessionsContext, row: SessionRow): Promise<Launch> {
  const workspace = kernel.needs.workspaces.get(row.workspace_id)
  if (!workspace) throw WorkspaceErrors.workspace_not_found(`the workspace ${row.workspace_id} of this session is gone`)
  const root = await realpath(workspace.rootDir).catch(() => {
    throw WorkspaceErrors.workspace_root_missing(`the root ${workspace.rootDir} of workspace ${workspace.name} is gone`)
  })
  const plan = await kernel.needs.agents.plan(row.agent_name, workspace)
  const late = await readBriefing(kernel, infoOf(row), workspace, briefings.names(row.id))
  if (late.length > 0) await kernel.db.tx(t => briefings.insert(t, row.id, late, row.acp_session_id !== null))
  return { plan, workspace, territory: { roots: await roots(root, workspace.addDirs), forbidden: kernel.home.root } }
}

/** Starts the process and opens its session. Throws {@link AgentFailure} or a fault; nothing is left running then. */
export async function launch(
  context: SessionsContext,
  row: SessionRow,
  info: SessionInfo,
  { plan, workspace, territory }: Launch,
  load: string | undefined,
  briefing: string,
  listener: LaunchListener,
): Promise<RunningAgent> {
  const { kernel, limits } = context
  const { clock, ids } = kernel
  const cwd = territory.roots[0]!
  const owner = `${row.id} ${row.agent_name}`
  const provider = kernel.needs.providers.get(plan.provider) ?? kernel.needs.providers.get(BUILT_IN_PROVIDER)
  const base = await kernel.needs.providers.environment(provider ?? kernel.needs.providers.builtIn)
  const start: SessionStart = await context.prepare.run(
    {
      env: { ...base, ...ownVariables(context, row) },
      mcpServers: await startableServers(plan.definition, kernel),
      preamble: envelope(row, workspace, cwd, [plan.definition.prompt, briefing].filter(Boolean).join('\n\n')),
    },
    info,
  )
  const mode = row.type === 'dream' ? 'approve-all' : plan.permissions
  const permissions = new Permissions({
    mode,
    territory,
    clock,
    ids,
    timeoutMs: limits.permissionTimeout,
    turnId: () => listener.turnId(),
    known: id => listener.known(id),
    gate: (toolKind, title): Promise<Fault | undefined> =>
      context.permission.ask({ sessionId: row.id, toolKind, title }),
    record: (turnId, content) => listener.record(turnId, content),
    warn: (turnId, content) => listener.warn(turnId, content),
  })
  const terminals = new Terminals({
    clock,
    ids,
    env: start.env,
    spawn: request =>
      kernel.needs.processes.spawn({ ...request, label: `${row.id} ${request.label}`, onBehalfOf: owner }),
  })
  const connect = async (loadId: string | undefined) => {
    listener.signal.throwIfAborted()
    const handle = await kernel.needs.processes
      .spawn({ label: owner, argv: plan.argv, cwd, env: start.env, stdio: 'pipe', onBehalfOf: owner })
      .catch(error => {
        throw new AgentFailure('startup_failure', messageOf(error), error)
      })
    const abort = () => void handle.stop({ graceMs: 200, termMs: 1000 }).catch(() => {})
    listener.signal.addEventListener('abort', abort, { once: true })
    try {
      if (listener.signal.aborted) abort()
      // The SDK loads with the first process: a daemon that only waits does without it.
      const [{ AgentProcess }, { ClientMethods }] = await Promise.all([
        import('./process.js'),
        import('../requests/client-methods.js'),
      ])
      return await AgentProcess.connect({
        owner,
        handle,
        clock,
        cwd,
        addDirs: territory.roots.slice(1),
        mcpServers: start.mcpServers,
        mode,
        version: kernel.host.version,
        load: loadId,
        initializeMs: limits.initializeTimeout,
        newSessionMs: limits.newSessionTimeout,
        methods: new ClientMethods(territory, permissions, terminals),
        update: params => listener.update(params),
        room: () => listener.room(),
        activity: () => listener.activity(),
        fault: error => kernel.report(owner, 'stdout', error),
        refused: why => permissions.asking.refuse(why),
        log: (text, fields) => kernel.log.warn(text, { session: row.id, ...fields }),
      })
    } finally {
      listener.signal.removeEventListener('abort', abort)
    }
  }
  const agent = await connect(load).catch(error => {
    // Some that say they can load end when they are asked to.
    const whileLoading = error instanceof AgentFailure && error.kind === 'load_session_failure'
    if (!whileLoading || listener.signal.aborted) throw error
    kernel.log.warn('an agent ended while it was loading its session; starting it without', { session: row.id })
    return connect(undefined)
  })
  return { agent, permissions, terminals, argv: plan.argv, cwd, env: start.env, preamble: start.preamble }
}

/** Canonical roots that exist: the workspace's own first, then its further folders, each once. */
async function roots(root: string, addDirs: readonly string[]): Promise<string[]> {
  const all = [root]
  for (const dir of addDirs) {
    const real = path.isAbsolute(dir) ? await realpath(dir).catch(() => undefined) : undefined
    if (real !== undefined && !all.some(other => contains(other, real))) all.push(real)
  }
  return all
}

function ownVariables({ kernel }: SessionsContext, row: SessionRow): Record<string, string> {
  const bin = kernel.env.SVC_BIN_DIR
  return {
    SVC_HOME: kernel.home.root,
    SVC_SESSION_ID: row.id,
    SVC_AGENT: row.agent_name,
    SVC_AGENT_NAME: row.agent_name,
    ...(row.model && { SVC_MODEL: row.model }),
    ...(bin && { SVC_BIN: path.join(bin, 'svc') }),
  }
}

/** The start-up instructions of an agent, sent before its first prompt. */
function envelope(row: SessionRow, workspace: Workspace, cwd: string, body: string): string {
  return `You are the agent ${row.agent_name}, in session ${row.id}, workspace ${workspace.name} at ${cwd}.\n\n${body}`
}
