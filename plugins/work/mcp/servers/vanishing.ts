import { Alarm } from '../../../../kernel/kit/alarm.js'
import { canonicalJson } from '../../../../kernel/kit/canonical.js'
import { Fault, messageOf } from '../../../../kernel/plugin.js'
import { absent } from '../../../access/vault/api.js'
import { type AgentDefinition, AgentErrors } from '../../../agents/agents/api.js'
import type { Workspace } from '../../../desk/workspaces/api.js'
import type { K } from '../needs.js'
import { forget } from '../oauth/farewells.js'
import { bindingOf } from '../oauth/login-status.js'
import type { Logins } from '../oauth/logins.js'
import type { Declared, SourceKind } from '../sources/declaration.js'
import { NAMED, type Sources } from '../sources/sources.js'
import { ownSecrets, references } from './own-secrets.js'
import { type SeenServer, seenServers } from './seen-table.js'

/** Interval of file checks in milliseconds, while a server in them has a login or secrets. */
const LOOK_MS = 5 * 60_000
/** Milliseconds for which a server has to be missing. */
const GRACE_MS = 5 * 60_000
const RETRY_MS = 30_000
const LOOK = 'look'

/**
 * Removes the login and secrets of a server that a person deleted from a file. Servers with a login or secrets are
 * remembered; one that is missing for a while is removed. An unreadable file, an untrusted workspace or an invalid
 * agent definition counts as unknown, not as missing.
 */
export class Vanishing {
  readonly #alarm: Alarm
  /** Declarations already examined; most have nothing to remove. */
  readonly #known = new WeakSet<object>()

  constructor(
    private readonly kernel: K,
    private readonly sources: Sources,
    private readonly logins: Logins,
  ) {
    this.#alarm = new Alarm(kernel.clock, { retryMs: RETRY_MS })
  }

  /** Remembers servers with a login or secrets of their own. */
  noticed(declared: readonly Declared[]): void {
    const fresh = declared.filter(one => isOwner(one) && !this.#known.has(one.declaration))
    if (fresh.length === 0) return
    for (const { declaration } of fresh) this.#known.add(declaration)
    const owning = fresh.filter(
      one => ownSecrets(one).length > 0 || (one.declaration.url && this.logins.has(bindingOf(one))),
    )
    void this.remember(owning).catch(error =>
      this.kernel.log.warn('servers with secrets were not noted', { why: messageOf(error) }),
    )
  }

  async remember(declared: readonly Declared[]): Promise<void> {
    const rows = declared.filter(isOwner).flatMap(one => {
      const { kind, workspaceId, agent, extension } = one.source
      const binding = bindingOf(one)
      const before = seenServers.get(this.kernel.db, { binding })
      const secrets = [...new Set([...(before?.secrets ?? []), ...ownSecrets(one)])].sort()
      return before?.missing_since === null && canonicalJson(before.secrets) === canonicalJson(secrets)
        ? []
        : [
            {
              ...{ binding, kind, secrets, missing_since: null },
              ...{ workspace_id: workspaceId ?? null, agent: agent ?? null, extension: extension ?? null },
            },
          ]
    })
    if (rows.length === 0) return
    await this.kernel.db.tx(t => {
      for (const row of rows) seenServers.replace(t, row)
    })
    this.#wait()
  }

  /** Forgets a server that a request removed completely. */
  async drop(binding: string): Promise<void> {
    if (seenServers.get(this.kernel.db, { binding })) await this.kernel.db.tx(t => seenServers.delete(t, { binding }))
  }

  /** Checks at the start and every few minutes, until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    this.#alarm.set(LOOK, this.kernel.clock.now())
    await this.#alarm.run(signal, {
      fire: () => this.#check(),
      failed: error =>
        this.kernel.log.error('secrets of removed servers could not be deleted', { why: messageOf(error) }),
    })
  }

  async #check(): Promise<void> {
    const { clock, db } = this.kernel
    const rows = seenServers.all(db)
    const there = new Map<SeenServer, boolean | undefined>()
    for (const row of rows) there.set(row, await this.#isThere(row))
    const now = clock.now()
    const { missed, back, gone } = absent(rows, row => there.get(row), now, GRACE_MS)
    if (missed.length + back.length > 0)
      await db.tx(t => {
        for (const { binding } of missed) seenServers.update(t, { binding }, { missing_since: now })
        for (const { binding } of back) seenServers.update(t, { binding }, { missing_since: null })
      })
    for (const row of gone) await this.#forget(row)
    this.#wait()
  }

  /** Removes servers of a purged extension. A disabled or removed one can come back. */
  async forgetExtension(name: string): Promise<void> {
    for (const row of seenServers.query(this.kernel.db, 'WHERE extension IS NOT NULL'))
      if (row.extension === name || row.extension?.startsWith(`${name}@`)) await this.#forget(row)
  }

  /** Whether a server is still declared; undefined if that cannot be determined. */
  async #isThere({ kind, workspace_id: id, agent, extension, binding }: SeenServer): Promise<boolean | undefined> {
    const { agents, workspaces } = this.kernel.needs
    // Servers from agents and skills of an extension are not tracked.
    if (extension !== null && kind !== 'extension') return undefined
    const workspace = id === null ? undefined : workspaces.get(id)
    // The deletion of a workspace has its own cleanup.
    if (id !== null && !workspace) return undefined
    if (extension === null && workspace && !(await agents.mayRunFilesOf(workspace))) return undefined
    const definition = agent === null ? undefined : await this.#definition(agent, workspace)
    if (definition === 'gone') return false
    if (definition === 'unknown') return undefined
    const { declared, problems, disabled } = await this.sources.all({ workspace, definition })
    if (problems.some(({ where }) => where === NAMED[kind]) || disabled.includes(NAMED[kind])) return undefined
    // A disabled extension has no servers now, and an updated one can have others, so neither counts as a removal.
    const isOn = declared.some(({ source }) => source.kind === 'extension' && source.extension === extension)
    if (extension !== null && !isOn) return undefined
    return declared.some(one => bindingOf(one) === binding)
  }

  async #definition(name: string, workspace: Workspace | undefined): Promise<AgentDefinition | 'gone' | 'unknown'> {
    return this.kernel.needs.agents
      .find(name, workspace)
      .catch(error => (error instanceof Fault && error.code === NOT_FOUND ? 'gone' : 'unknown'))
  }

  /** The row is deleted last: after a crash, the work is repeated. */
  async #forget({ binding, workspace_id: id, secrets }: SeenServer): Promise<void> {
    const { db, needs, log } = this.kernel
    const vault = needs.vault.current
    if (!vault) return
    const workspace = id === null ? undefined : needs.workspaces.get(id)
    const named = secrets.length === 0 ? new Set<string>() : await this.#named(workspace)
    // An unreadable source may refer to these secrets.
    if (!named) return
    await this.logins.forget(binding)
    const unnamed = secrets.filter(reference => !named.has(reference))
    await db.tx(t => {
      forget(t, vault, unnamed)
      seenServers.delete(t, { binding })
    })
    log.info('a server was removed from its file; its login and secrets were deleted', { secrets: unnamed.length })
  }

  /** References of the servers in a place; undefined if a source cannot be read or has disabled servers. */
  async #named(workspace: Workspace | undefined): Promise<ReadonlySet<string> | undefined> {
    const definitions = await this.kernel.needs.agents.list(workspace)
    const named = new Set<string>()
    for (const definition of [undefined, ...definitions]) {
      const { declared, problems, disabled } = await this.sources.all({ workspace, definition })
      if (problems.length + disabled.length > 0) return undefined
      for (const { declaration } of declared) for (const reference of references(declaration)) named.add(reference)
    }
    return named
  }

  /** Schedules the next check only while there are remembered servers. */
  #wait(): void {
    const isAny = this.kernel.db.row('SELECT 1 FROM mcp_seen LIMIT 1') !== undefined
    this.#alarm.set(LOOK, isAny ? this.kernel.clock.now() + LOOK_MS : undefined)
  }
}

/** Sources that people edit as files. */
const OF_FILES: ReadonlySet<SourceKind> = new Set([
  'global-config',
  'global-mcp-sidecar',
  'workspace-config',
  'workspace-foreign',
  'workspace-mcp-sidecar',
  'agent',
  'agent-mcp-sidecar',
])

/** Whether the removal of a server is tracked: it is declared in a file, or its extension can be purged. */
const isOwner = ({ source: { kind, extension } }: Declared) => extension !== undefined || OF_FILES.has(kind)
const NOT_FOUND = AgentErrors.agent_not_found().code
