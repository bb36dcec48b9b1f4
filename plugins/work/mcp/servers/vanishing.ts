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
import { type Seen, seen } from './seen-table.js'

/** Files are looked at so often while some server in them has a login or secrets. */
const LOOK_MS = 5 * 60_000
/** How long a server has to be missing. */
const GRACE_MS = 5 * 60_000
const RETRY_MS = 30_000
const LOOK = 'look'

/**
 * Takes the login and the secrets of a server along that somebody removed from a file with an editor. Servers of files that have
 * some are remembered; one that is missing for a while is gone. A file that cannot be read, that belongs to a workspace which is
 * not trusted as it is, or to an agent whose definition is not valid, says nothing.
 */
export class Vanishing {
  readonly #alarm: Alarm
  /** Declarations that were looked at; most have nothing. */
  readonly #known = new WeakSet<object>()

  constructor(
    private readonly kernel: K,
    private readonly sources: Sources,
    private readonly logins: Logins,
  ) {
    this.#alarm = new Alarm(kernel.clock, { retryMs: RETRY_MS })
  }

  /** Remembers those that have a login or secrets of their own. */
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
      const before = seen.get(this.kernel.db, { binding })
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
      for (const row of rows) seen.replace(t, row)
    })
    this.#wait()
  }

  /** A request removed the server, and what it had. */
  async drop(binding: string): Promise<void> {
    if (seen.get(this.kernel.db, { binding })) await this.kernel.db.tx(t => seen.delete(t, { binding }))
  }

  /** Looks at the start and every few minutes, until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    this.#alarm.set(LOOK, this.kernel.clock.now())
    await this.#alarm.run(signal, {
      fire: () => this.#look(),
      failed: error => this.kernel.log.error('servers that are gone keep their secrets', { why: messageOf(error) }),
    })
  }

  async #look(): Promise<void> {
    const { clock, db } = this.kernel
    const rows = seen.all(db)
    const there = new Map<Seen, boolean | undefined>()
    for (const row of rows) there.set(row, await this.#isThere(row))
    const now = clock.now()
    const { missed, back, gone } = absent(rows, row => there.get(row), now, GRACE_MS)
    if (missed.length + back.length > 0)
      await db.tx(t => {
        for (const { binding } of missed) seen.update(t, { binding }, { missing_since: now })
        for (const { binding } of back) seen.update(t, { binding }, { missing_since: null })
      })
    for (const row of gone) await this.#forget(row)
    this.#wait()
  }

  /** An extension is purged. What is only switched off or removed can come back. */
  async forgetExtension(name: string): Promise<void> {
    for (const row of seen.query(this.kernel.db, 'WHERE extension IS NOT NULL'))
      if (row.extension === name || row.extension?.startsWith(`${name}@`)) await this.#forget(row)
  }

  /** Undefined where nobody can tell. */
  async #isThere({ kind, workspace_id: id, agent, extension, binding }: Seen): Promise<boolean | undefined> {
    const { agents, workspaces } = this.kernel.needs
    // Agents and skills of an extension bring servers of their own, which are not looked for.
    if (extension !== null && kind !== 'extension') return undefined
    const workspace = id === null ? undefined : workspaces.get(id)
    // The deletion of a workspace is a pass of its own.
    if (id !== null && !workspace) return undefined
    if (extension === null && workspace && !(await agents.mayRunFilesOf(workspace))) return undefined
    const definition = agent === null ? undefined : await this.#definition(agent, workspace)
    if (definition === 'gone') return false
    if (definition === 'unknown') return undefined
    const { declared, problems, disabled } = await this.sources.all({ workspace, definition })
    if (problems.some(({ where }) => where === NAMED[kind]) || disabled.includes(NAMED[kind])) return undefined
    // One that is switched off brings nothing; one that was updated brings another server.
    const isOn = declared.some(({ source }) => source.kind === 'extension' && source.extension === extension)
    if (extension !== null && !isOn) return undefined
    return declared.some(one => bindingOf(one) === binding)
  }

  async #definition(name: string, workspace: Workspace | undefined): Promise<AgentDefinition | 'gone' | 'unknown'> {
    return this.kernel.needs.agents
      .find(name, workspace)
      .catch(error => (error instanceof Fault && error.code === NOT_FOUND ? 'gone' : 'unknown'))
  }

  /** The row goes last: after a kill in between it is done again. */
  async #forget({ binding, workspace_id: id, secrets }: Seen): Promise<void> {
    const { db, needs, log } = this.kernel
    const vault = needs.vault.current
    if (!vault) return
    const workspace = id === null ? undefined : needs.workspaces.get(id)
    const named = secrets.length === 0 ? new Set<string>() : await this.#named(workspace)
    // A source that cannot be read may name them.
    if (!named) return
    await this.logins.forget(binding)
    const unnamed = secrets.filter(reference => !named.has(reference))
    await db.tx(t => {
      forget(t, vault, unnamed)
      seen.delete(t, { binding })
    })
    log.info('a server is gone from its file, and its login and secrets with it', { secrets: unnamed.length })
  }

  /** References that servers of a place name; undefined when some source there cannot be read, or has servers that are switched off. */
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

  /** Nobody looks while there is nothing to look for. */
  #wait(): void {
    const isAny = this.kernel.db.row('SELECT 1 FROM mcp_seen LIMIT 1') !== undefined
    this.#alarm.set(LOOK, isAny ? this.kernel.clock.now() + LOOK_MS : undefined)
  }
}

/** Sources that a person writes. */
const OF_FILES: ReadonlySet<SourceKind> = new Set([
  'global-config',
  'global-mcp-sidecar',
  'workspace-config',
  'workspace-foreign',
  'workspace-mcp-sidecar',
  'agent',
  'agent-mcp-sidecar',
])

/** Whether its end is noticed: a person declared it in a file, or an extension brings it, which is purged. */
const isOwner = ({ source: { kind, extension } }: Declared) => extension !== undefined || OF_FILES.has(kind)
const NOT_FOUND = AgentErrors.agent_not_found().code
