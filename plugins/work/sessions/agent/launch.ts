import { realpath } from 'node:fs/promises'
import path from 'node:path'
import { command } from '../../../../kernel/kit/commands/command-line.js'
import { type Contribution, type Db, Fault, messageOf, type Tx, within } from '../../../../kernel/plugin.js'
import { type LaunchPlan, type PermissionMode, unheldText } from '../../../agents/agents/api.js'
import { BUILT_IN_PROVIDER, type Provider, type ProvidersApi } from '../../../agents/providers/api.js'
import { type Workspace, WorkspaceErrors } from '../../../desk/workspaces/api.js'
import type { ProcessHandle } from '../../../platform/processes/api.js'
import {
  type AgentClient,
  AgentFailure,
  AgentGuards,
  type AgentProcess,
  bounded,
  type CallWatch,
  type ClientContext,
  contains,
  type LeftOut,
  permissionDenied,
  resolveInside,
  type Sight,
  type StartedAgent,
  type Territory,
} from '../../acp/api.js'
import {
  type Briefing,
  SessionBriefings,
  type SessionCommand,
  type SessionConfinement,
  type SessionInfo,
  type SessionLaunch,
  type SessionRights,
  type SessionStart,
} from '../api.js'
import type { SessionsContext } from '../context.js'
import { SessionErrors } from '../errors.js'
import { allowed, permissionGate } from '../gates.js'
import { Remembered } from '../lifecycle/remembered.js'
import { type AcpMcpServer, type SessionMcpServer, SessionMcpServers } from '../mcp-servers.js'
import type { K } from '../needs.js'
import { confinementOf } from '../row.js'
import { otherProviderOf, wishOf } from '../runtime/selection.js'
import { SessionSettings } from '../settings.js'
import type { SessionRow } from '../table.js'
import { infoOf } from '../wire.js'

/** Checked input for the start of a process. */
export interface Launch {
  readonly plan: LaunchPlan
  readonly workspace: Workspace
  readonly territory: Territory
}

/** Callbacks of a process to its session. */
export interface LaunchListener
  extends Pick<ClientContext, 'turnId' | 'isAttended' | 'known' | 'record' | 'note' | 'warn'>,
    Pick<StartedAgent, 'update' | 'room' | 'activity'> {
  /** Aborts when the session is being stopped; a start in progress is then ended. */
  readonly signal: AbortSignal
}

/** An agent process together with the parts that share its lifetime. */
export interface RunningAgent extends Omit<AgentClient, 'connect'> {
  readonly agent: AgentProcess
  readonly argv: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  /** Sent before the first prompt of a conversation that the agent does not know. */
  readonly preamble: string
  /** Reason for which the permission mode does not hold for the agent's own tools; undefined: it asks, as far as is known. */
  readonly unheld: string | undefined
  /** The agent mode used for a permission mode: an asking mode when operations need a check first. */
  readonly asksIn: (mode: PermissionMode) => PermissionMode
  readonly guards: AgentGuards
  /** Reason for which this process cannot be made to ask for a later guard; undefined: it can, as far as is known. */
  readonly cannotAsk: string | undefined
  readonly confinement: SessionConfinement | undefined
  readonly provider: string
}

/**
 * Checks what a process of this session needs; starts nothing. A session that is older than the briefing contributors gets its
 * briefing here, once. Throws the faults of workspaces, agents and briefing contributors.
 */
export async function planLaunch(context: SessionsContext, row: SessionRow): Promise<Launch> {
  const { kernel, briefings } = context
  const workspace = kernel.needs.workspaces.get(row.workspace_id)
  if (!workspace)
    throw WorkspaceErrors.workspace_not_found(`the workspace ${row.workspace_id} of this session no longer exists`)
  const root = await realpath(workspace.rootDir).catch(() => {
    throw WorkspaceErrors.workspace_root_missing(
      `the root ${workspace.rootDir} of workspace ${workspace.name} no longer exists`,
    )
  })
  const plan = await kernel.needs.agents.plan(row.agent_name, workspace, otherProviderOf(row))
  const addedParts = await readBriefing(kernel, infoOf(row), workspace, briefings.names(row.id))
  if (addedParts.length > 0)
    await kernel.db.tx(t => briefings.insert(t, row.id, addedParts, row.acp_session_id !== null))
  const rights = rightsOf(row)
  const all = rights ? await roots(rights.roots[0] ?? root, rights.roots) : await roots(root, workspace.addDirs)
  return { plan, workspace, territory: { roots: all, forbidden: kernel.home.root } }
}

/** Starts the process, opens its session and notifies. Throws {@link AgentFailure} or a fault; no process is left running then. */
export async function launch(...args: Parameters<typeof start>): Promise<RunningAgent> {
  const [{ points }, row, info] = args
  const isRecovery = row.state === 'starting'
  if (isRecovery) void points.recoveryStarted.call(info)
  const running = await start(...args).catch(error => {
    if (isRecovery) void points.recoveryExhausted.call(info)
    throw error
  })
  const { handle } = running.agent
  void points.agentSpawned.call(info, handle.pid)
  void handle.exited.then(() => points.agentStopped.call(info))
  if (isRecovery) {
    void points.recoverySucceeded.call(info)
    void points.postResume.call(info)
  }
  return running
}

async function start(
  context: SessionsContext,
  row: SessionRow,
  info: SessionInfo,
  { plan, workspace, territory }: Launch,
  load: string | undefined,
  briefing: string,
  listener: LaunchListener,
): Promise<RunningAgent> {
  const { kernel, points } = context
  const command = allowed(await points.agentPreStart.run({ argv: plan.argv, cwd: territory.roots[0]! }, info))
  const cwd = await resolveInside(territory, command.cwd)
  const owner = `${row.id} ${row.agent_name}`
  const provider = kernel.needs.providers.get(plan.provider) ?? kernel.needs.providers.get(BUILT_IN_PROVIDER)
  const environment = await kernel.needs.providers.environment(provider ?? kernel.needs.providers.builtIn)
  const program = kernel.needs.providers.programOf(plan.argv)
  const mode = row.type === 'dream' ? 'approve-all' : (row.permissions_asked ?? plan.permissions)
  const rights = rightsOf(row)
  const guards = new AgentGuards(command.guardedBy)
  if (guards.required !== undefined && program?.neverAsks) throw unguarded(guards.required, program.displayName)
  // Only an agent that asks can be refused. With a guard or a limited tool set it therefore asks in every mode.
  const mustAsk = () => rights?.tools !== undefined || guards.first !== undefined
  const isBound = mode !== 'approve-all' || mustAsk()
  const learnsToAsk = isBound || command.isGuardable === true
  const confinement = confinementOf(row)
  const isSandboxed = confinement?.kind === 'sandbox'
  const argv = [...command.argv, ...((learnsToAsk && isSandboxed && program?.sandboxedArgs) || [])]
  const note = isBound && isSandboxed ? program?.sandboxedNote : undefined
  const asksIn = (mode: PermissionMode) => (mode === 'approve-all' && mustAsk() ? 'approve-reads' : mode)
  const warning = 'mcp_server_left_out'
  const leftOut = (text: string) => listener.warn(listener.turnId() ?? '', { warning, text })
  const sessionStart: SessionStart = await context.prepare.run(
    {
      env: { ...environment, ...(learnsToAsk && program?.askingEnv), ...ownVariables(context, row) },
      mcpServers: await serversFor(kernel, plan.definition, workspace, rights?.mcpServers, {
        sessionId: row.id,
        leftOut,
      }),
      preamble: envelope(row, workspace, cwd, [plan.definition.prompt, note, briefing].filter(Boolean).join('\n\n')),
    },
    info,
  )
  const surround = () =>
    surroundingsOf(context, {
      session: info,
      provider: program ?? provider ?? kernel.needs.providers.builtIn,
      roots: territory.roots,
      mcpServers: sessionStart.mcpServers,
      confinement,
      argv,
      cwd,
      env: sessionStart.env,
    })
  let [surroundings, cleanedUp] = [await surround(), Promise.resolve()]
  /** Starts a command of the session with the changes of its surroundings. */
  const spawn = (label: string, command: SessionCommand) =>
    kernel.needs.processes.spawn({ ...surroundings.change(command), label, stdio: 'pipe', onBehalfOf: owner })
  const watch: CallWatch = {
    async before(call) {
      const { deny, ...changes } = await points.toolPreCall.run(call, info)
      if (deny !== undefined) throw permissionDenied(`permission denied: ${deny}`)
      return changes
    },
    after({ kind, title, argv: [command, ...args] = [] }, error) {
      const input = command === undefined ? { path: title } : { command, args }
      const outcome = error === undefined ? { status: 'completed' } : { status: 'failed', error: bounded(error) }
      const content = { kind, title, raw_input: input, ...outcome }
      const result = { sessionId: row.id, type: 'tool_result', turnId: listener.turnId() ?? '', content } as const
      void (error === undefined ? points.toolPostCall : points.toolPostError).call(result)
    },
  }
  const client = kernel.needs.acp.clientFor({
    ...listener,
    sessionId: row.id,
    agentName: row.agent_name,
    mode,
    tools: rights?.tools,
    guards,
    territory: () => ({ ...territory, readOnly: surroundings.protected, sightOf: surroundings.sightOf }),
    env: sessionStart.env,
    spawn: ({ label, argv, cwd, env }) => spawn(`${row.id} ${label}`, { argv, cwd, env }),
    watch,
    isAttended: () => !['dream', 'spawned'].includes(row.type) && listener.isAttended(),
    gate: permissionGate(context, row.id),
  })
  const connect = async (loadId: string | undefined) => {
    listener.signal.throwIfAborted()
    const handle = await spawn(owner, { argv, cwd, env: sessionStart.env }).catch(error => {
      throw new AgentFailure('startup_failure', messageOf(error), error)
    })
    cleanedUp = surroundings.watch(handle)
    const abort = () => void handle.stop({ graceMs: 200, termMs: 1000 }).catch(() => {})
    listener.signal.addEventListener('abort', abort, { once: true })
    try {
      if (listener.signal.aborted) abort()
      return await client.connect({
        ...listener,
        owner,
        handle,
        cwd,
        addDirs: territory.roots.slice(1),
        mcpServers: sessionStart.mcpServers,
        mode: asksIn(mode),
        load: loadId,
        fault: error => kernel.needs.report(owner, 'stdout', error),
        leftOut: (servers, why) => leftOut(`the agent ${whyLeftOut(why)}; it does without ${servers.join(', ')}`),
        askingModes: (program ?? provider)?.askingModes ?? [],
        withholds: (program ?? provider)?.withholds ?? [],
        mcpTransports: (program ?? provider)?.mcpTransports,
        login: loginText(program ?? provider, isSandboxed),
        withheld: () => withheldText(kernel.needs.providers, program, provider),
        log: (text, fields) => kernel.log.warn(text, { session: row.id, ...fields }),
      })
    } catch (error) {
      if (!(error instanceof AgentFailure)) throw error
      const failure = error.wantsLogin ? error.withHint(withheldText(kernel.needs.providers, program, provider)) : error
      failure.startedWith = { argv, cwd, env: sessionStart.env }
      throw failure
    } finally {
      listener.signal.removeEventListener('abort', abort)
    }
  }
  const agent = await connect(load).catch(async error => {
    // Some agents that advertise session loading exit when a session is loaded.
    const whileLoading = error instanceof AgentFailure && error.kind === 'load_session_failure'
    if (!whileLoading || listener.signal.aborted) throw error
    kernel.log.warn('an agent ended while it was loading its session; starting it without', { session: row.id })
    // The cleanup after the first process must finish before the surroundings are prepared again.
    await cleanedUp
    surroundings = await surround()
    return connect(undefined)
  })
  const unheld = isBound && program?.neverAsks ? unheldText(program.displayName, asksIn(mode)) : undefined
  return {
    ...client,
    agent,
    argv,
    cwd,
    env: sessionStart.env,
    preamble: sessionStart.preamble,
    unheld,
    asksIn,
    guards,
    cannotAsk: cannotAsk(program, learnsToAsk, confinement),
    confinement,
    provider: plan.provider,
  }
}

/** Reason for which an agent runs without some MCP servers, for people. */
function whyLeftOut(why: LeftOut): string {
  if ('refusal' in why) return `takes no MCP servers (${why.refusal})`
  return why.transport === 'http' ? 'reaches no MCP servers over HTTP' : 'starts no MCP servers that are programs'
}

/** The refusal to start an agent that never asks although a guard requires it. */
const unguarded = (guardedBy: string, agent: string) =>
  SessionErrors.agent_unguarded(
    `${guardedBy} must approve each operation, but ${agent} never asks: it would act without the guard`,
  )

/** Some agents read only at their start, from command or environment, that they have to ask. */
function cannotAsk(
  program: Provider | undefined,
  learnsToAsk: boolean,
  confinement: SessionConfinement | undefined,
): string | undefined {
  if (program?.neverAsks) return `${program.displayName} never asks`
  const canAskAtStart = program?.askingEnv || (program?.sandboxedArgs && confinement?.kind === 'sandbox')
  return canAskAtStart && !learnsToAsk ? `${program.displayName} can be set to ask only at its start` : undefined
}

/** Existing canonical roots without duplicates: the workspace's own first, then its further folders. */
async function roots(root: string, addDirs: readonly string[]): Promise<string[]> {
  const all = [root]
  for (const dir of addDirs) {
    const canonical = path.isAbsolute(dir) ? await realpath(dir).catch(() => undefined) : undefined
    if (canonical !== undefined && !all.some(root => contains(root, canonical))) all.push(canonical)
  }
  return all
}

/** The rights of a spawned session; undefined for any other session. */
const rightsOf = ({ rights }: SessionRow) => (rights === null ? undefined : (JSON.parse(rights) as SessionRights))

function ownVariables({ kernel }: SessionsContext, row: SessionRow): Record<string, string> {
  const bin = kernel.env.SVC_BIN_DIR
  const { model } = wishOf(row)
  return {
    SVC_HOME: kernel.home.root,
    SVC_SESSION_ID: row.id,
    SVC_AGENT: row.agent_name,
    SVC_AGENT_NAME: row.agent_name,
    ...(model && { SVC_MODEL: model }),
    ...(bin && { SVC_BIN: path.join(bin, 'svc') }),
  }
}

/** The MCP servers for the process of a session. Throws {@link AgentFailure} with the missing part of a server. */
async function serversFor(
  { collect }: Pick<K, 'collect'>,
  ...readArguments: Parameters<SessionMcpServer['read']>
): Promise<AcpMcpServer[]> {
  const pending = collect(SessionMcpServers).map(({ entry }) => entry.read(...readArguments))
  const servers = await Promise.all(pending).catch(error => {
    throw new AgentFailure('startup_failure', messageOf(error), error)
  })
  return servers.flat()
}

/** Changes to the commands of a session, and the cleanup after them. */
interface Surroundings {
  change(command: SessionCommand): SessionCommand
  /** Paths that the daemon does not write on behalf of the agent. */
  readonly protected: readonly string[]
  /** Visibility of an absolute path in the sandbox; undefined without a sandbox. */
  readonly sightOf: ((file: string) => Sight) | undefined
  /** Resolves when the agent's process and its group have ended and what they left is cleaned up; never rejects. */
  watch(handle: ProcessHandle): Promise<void>
}

/**
 * Collects the changes to the commands of a session. Throws the refusal; a session that was made with a sandbox is refused when no
 * plugin applies it.
 */
async function surroundingsOf(
  { kernel, launching }: Pick<SessionsContext, 'kernel' | 'launching'>,
  launch: Omit<SessionLaunch, 'around' | 'protect' | 'sees' | 'afterwards'>,
): Promise<Surroundings> {
  const changes: ((command: SessionCommand) => SessionCommand)[] = []
  const guarded: string[] = []
  let sightOf: Surroundings['sightOf']
  const cleanups: (() => Promise<void>)[] = []
  const refusal = await launching.ask({
    ...launch,
    around: change => void changes.push(change),
    protect: paths => void guarded.push(...paths),
    sees: sight => {
      sightOf = sight
    },
    afterwards: cleanup => void cleanups.push(cleanup),
  })
  if (refusal) throw refusal
  if (launch.confinement?.kind === 'sandbox' && changes.length === 0) {
    throw SessionErrors.sandbox_unavailable(
      'this session was created with a sandbox, but no sandbox can be started here',
    )
  }
  const cleanUp = async (handle: ProcessHandle) => {
    await handle.exited
    await handle.stop({ graceMs: 0, termMs: 0 })
    for (const cleanup of cleanups) await cleanup()
  }
  return {
    protected: guarded,
    sightOf,
    change: command => changes.reduce((changed, change) => change(changed), command),
    watch: async handle => {
      if (cleanups.length === 0) return
      await cleanUp(handle).catch(error =>
        kernel.log.error('files left by a process were not cleaned up', {
          session: launch.session.id,
          error: messageOf(error),
        }),
      )
    },
  }
}

/** One part of a briefing (agent instructions besides the definition), named after its contributor. */
export interface BriefingPart {
  readonly name: string
  readonly text: string
}

/** Reads and writes briefings. A briefing is stored with the session for which it was read. */
export class BriefingTable {
  readonly #texts = new Remembered(id => this.#of(id))

  constructor(private readonly db: Db) {}

  /** All parts as one text, empty for none, and whether the text changed since the session began. */
  of(sessionId: string): { readonly text: string; readonly changed: boolean } {
    return this.#texts.get(sessionId)
  }

  #of(sessionId: string) {
    const sql = 'SELECT text, changed FROM sessions_briefing WHERE session_id = ? ORDER BY name'
    const parts = this.db.all<{ text: string; changed: number }>(sql, [sessionId])
    const texts = parts.map(({ text }) => text).filter(text => text !== '')
    return { text: texts.join('\n\n'), changed: parts.some(({ changed }) => changed === 1) }
  }

  /** Contributors that were already read for this session, including those without a text. */
  names(sessionId: string): ReadonlySet<string> {
    const rows = this.db.all<{ name: string }>('SELECT name FROM sessions_briefing WHERE session_id = ?', [sessionId])
    return new Set(rows.map(({ name }) => name))
  }

  /** The rows of a session are moved in this transaction. */
  readonly forget = (sessionId: string): void => this.#texts.changed(sessionId)

  /** @param late the agent may know the conversation already, so the next prompt has to carry the text */
  insert(t: Tx, sessionId: string, parts: readonly BriefingPart[], late = false): void {
    this.#texts.changed(sessionId)
    const sql = 'INSERT INTO sessions_briefing (session_id, name, text, changed) VALUES (?, ?, ?, ?)'
    for (const { name, text } of parts) t.run(sql, [sessionId, name, text, late && text !== '' ? 1 : 0])
  }

  /** @param t may be a transaction of another plugin */
  change(t: Tx, sessionId: string, { name, text }: BriefingPart): void {
    this.#texts.changed(sessionId)
    this.db.within(t).run(
      `INSERT INTO sessions_briefing (session_id, name, text, changed) VALUES (?, ?, ?, 1)
       ON CONFLICT (session_id, name) DO UPDATE SET text = excluded.text, changed = 1`,
      [sessionId, name, text],
    )
  }
}

/**
 * Reads the briefing parts of a session that is about to be made, or of an older session that has none from a contributor yet.
 * Contributors in `known` are not read again. A refusal or a failure of one contributor refuses the session.
 */
export async function readBriefing(
  { collect, clock, log, config }: K,
  session: SessionInfo,
  workspace: Workspace,
  known: ReadonlySet<string> = new Set(),
): Promise<BriefingPart[]> {
  const { path } = SessionSettings.briefingTimeout
  const ms = config.get(SessionSettings.briefingTimeout)
  const read = async ({ owner, entry }: Contribution<Briefing>) => {
    let isPending = true
    const answer = (async () => entry.read(session, workspace))().finally(() => {
      isPending = false
    })
    try {
      return { name: entry.name, text: (await within(clock, ms || Number.POSITIVE_INFINITY, answer)) ?? '' }
    } catch (error) {
      if (error instanceof Fault) throw error
      const why = isPending ? `no answer within ${ms / 1000} s (${path})` : messageOf(error)
      log.error(`${owner} did not provide its part of the session context: ${why}`, { agent: session.agentName })
      throw SessionErrors.session_briefing_failed(`the ${entry.name} of agent ${session.agentName}: ${why}`, {
        ...(isPending && { next: command('config set', path, `${(ms * 2) / 1000}s`) }),
      })
    }
  }
  return Promise.all(
    collect(SessionBriefings)
      .filter(({ entry }) => !known.has(entry.name))
      .map(read),
  )
}

/** The text that replaces an earlier briefing, sent with the next prompt. */
export function renewed(text: string): string {
  return text === ''
    ? 'Earlier information about yourself, apart from your task, no longer applies.'
    : `From now on, this replaces earlier information about yourself:\n\n${text}`
}

/** First words of the start-up instructions of an agent. */
export const ENVELOPE_HEAD = 'You are the agent '

/** The start-up instructions of an agent, sent before its first prompt. */
function envelope(row: SessionRow, workspace: Workspace, cwd: string, body: string): string {
  return `${ENVELOPE_HEAD}${row.agent_name}, in session ${row.id}, workspace ${workspace.name} at ${cwd}.\n\n${body}`
}

/** Maximum number of withheld variables that an error names. */
const WITHHELD_NAMED = 5

/** Names that the environment of an agent lacks because they look like secrets; undefined when none of them can matter. */
function withheldText(
  providers: ProvidersApi,
  program: Provider | undefined,
  provider: Provider | undefined,
): string | undefined {
  const names = providers.withheld({ ...(provider ?? providers.builtIn), ...program, ...passedBy(provider) })
  if (names.length === 0) return undefined
  const named = names.slice(0, WITHHELD_NAMED)
  const rest = names.length > named.length ? ` and ${names.length - named.length} more` : ''
  const entry = provider?.name ?? BUILT_IN_PROVIDER
  return `the daemon has ${named.join(', ')}${rest} and does not pass on variables that look like secrets; allow one: svc config set providers.${entry} '{"env_allow":["${named[0]}"]}'`
}

const passedBy = (provider: Provider | undefined) => ({
  envAllow: provider?.envAllow ?? [],
  slots: provider?.slots ?? [],
})

/** Login instructions for a provider with an agent of its own. A provider with an endpoint uses a key and has no login. */
function loginText(provider: Provider | undefined, isSandboxed: boolean): string | undefined {
  if (provider === undefined || provider.needsEndpoint) return undefined
  const { name, argv, ownFiles = [], ownFilesEnv = [] } = provider
  // The sandbox shows login files of the home folder only where the provider declares them.
  if (isSandboxed && ownFiles.length + ownFilesEnv.length === 0) {
    return `the sandbox hides its files in the home folder; make them visible: svc config set providers.${name}.own_files '[".config/…"]'`
  }
  return argv.length > 0 ? `log in, then send the prompt again: ${command('provider auth login', name)}` : undefined
}
