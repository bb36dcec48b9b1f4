import { realpath } from 'node:fs/promises'
import path from 'node:path'
import { shown } from '../../kernel/kit/text.js'
import {
  type Actor,
  type Fault,
  type Gate,
  type Guard,
  type Host,
  iso,
  KernelErrors,
  messageOf,
  type PluginKernel,
  type RecordScope,
  type Tx,
  within,
} from '../../kernel/plugin.js'
import type {
  CreateWorkspaceBody,
  PatchWorkspaceBody,
  WorkspaceDetail,
  Workspace as WorkspaceWire,
} from '../../schemas/workspaces.js'
import type { Check, Daemon } from '../daemon/api.js'
import type { Events } from '../events/api.js'
import {
  type DetailMember,
  type Workspace,
  WorkspaceCreated,
  WorkspaceDeleted,
  WorkspaceDetailMembers,
  WorkspaceErrors,
  type WorkspacesApi,
  WorkspaceUpdated,
} from './api.js'
import { rootItems } from './checks.js'
import { WorkspaceFinder } from './finder.js'
import { ensureIdentity } from './identity.js'
import { inUse, type Members, payloadOf, withoutAbsent } from './members.js'
import { checkLabel, checkName, freeName } from './names.js'
import { canonicalDirectories, canonicalDirectory, directoryAt } from './paths.js'
import { type StoredWorkspace, WorkspaceTable } from './table.js'

/** Milliseconds that a plugin has to give its member of a detail. */
const MEMBER_DEADLINE_MS = 5000

/** Registered root directories. */
export class WorkspacesService implements WorkspacesApi {
  readonly saving: Gate<[workspace: Workspace]>
  readonly deleting: Guard<[workspace: Workspace]>
  readonly #table: WorkspaceTable
  readonly #finder: WorkspaceFinder

  constructor(
    private readonly kernel: PluginKernel<{ host: typeof Host; daemon: typeof Daemon; events: typeof Events }>,
  ) {
    this.saving = kernel.hooks.gate('saving')
    this.deleting = kernel.hooks.guard('deleting')
    this.#table = new WorkspaceTable(kernel.db)
    this.#finder = new WorkspaceFinder(kernel, this.#table)
  }

  /** Refuses a record scope that names no workspace. */
  scopeRefusal({ kind, id = '' }: RecordScope): Fault | undefined {
    if (kind !== 'workspace' || this.#table.get(id)) return undefined
    return KernelErrors.invalid_scope(`scope.id is not the id of a workspace: ${shown(id)}`, {
      next: 'svc workspace list',
    })
  }

  /** On a fresh install the user's home is the default workspace, unless the service was given a home of its own. */
  async start(): Promise<void> {
    const { env, needs, home, clock, db, log } = this.kernel
    if (env.SVC_HOME || this.#table.seeded) return
    const userHome = await realpath(needs.host.userHome).catch(() => undefined)
    if (userHome === undefined || home.root !== path.join(userHome, '.svc')) return
    try {
      if (this.#table.list().length === 0) await this.create({ root_dir: userHome }, this.kernel.actor)
      await db.tx(t => this.#table.markSeeded(t, clock.now()))
    } catch (error) {
      log.warn(`the home directory ${userHome} cannot be the default workspace: ${messageOf(error)}`)
    }
  }

  get(id: string): Workspace | undefined {
    return this.#table.get(id)
  }

  list(): Workspace[] {
    return this.#table.list()
  }

  async find(reference: string, actor: Actor = this.kernel.actor): Promise<Workspace> {
    const found = await this.#finder.find(reference, actor)
    if (found) return found
    throw WorkspaceErrors.workspace_not_found(`no workspace encloses ${shown(reference)}`, {
      next: 'svc workspace add <dir>',
    })
  }

  async resolve(reference: string, actor: Actor = this.kernel.actor): Promise<Workspace> {
    return (await this.#finder.find(reference, actor)) ?? this.#register({ root_dir: reference }, actor, known => known)
  }

  /** Throws `workspace_exists` and `workspace_name_taken` (409), `workspace_root_invalid` and others (400). */
  create(body: CreateWorkspaceBody, actor: Actor): Promise<Workspace> {
    return this.#register(body, actor, known => {
      throw WorkspaceErrors.workspace_exists(`${known.rootDir} is the workspace ${known.name} (${known.id}) already`)
    })
  }

  /** `null` sets a member back to its default: no agent, no sandbox, no further directories, the name of the folder. */
  async update(reference: string, body: PatchWorkspaceBody, actor: Actor): Promise<Workspace> {
    const known = await this.#finder.registered(reference)
    const { id, rootDir } = known
    const given = await this.#membersOf(body, rootDir)
    await this.#ask({ ...known, ...withoutAbsent(given) })
    return this.kernel.db.tx(t => {
      const current = this.#table.get(id)
      if (!current) throw WorkspaceErrors.workspace_not_found()
      const changed = this.#withMembers(current, given)
      const same = JSON.stringify(changed) === JSON.stringify(current)
      return same ? current : this.#store(t, { ...changed, updatedAt: this.kernel.clock.now() }, actor)
    })
  }

  /** Removes the registration and the records of its scope, never files of the project. */
  async remove(reference: string, actor: Actor): Promise<void> {
    const { id } = await this.#finder.registered(reference)
    await this.kernel.db.tx(t => {
      const workspace = this.#table.get(id)
      if (!workspace) throw WorkspaceErrors.workspace_not_found()
      this.deleting.check(t, workspace)
      const records = this.kernel.records.list({ scope: { kind: 'workspace', id } })
      const projected = records.find(record => record.owner.kind === 'bundle.activation')
      if (projected) throw inUse(workspace, projected)
      for (const record of records) {
        // Acts for each record's source: who removes the scope removes all that is in it, whoever wrote it.
        const own = { ...actor, source: record.source }
        this.kernel.records.delete(t, own, { kind: record.kind, id: record.id })
      }
      this.#table.delete(t, id)
      this.kernel.needs.events.emit(t, WorkspaceDeleted, payloadOf(workspace), { actor, scope: id, subject: id })
    })
  }

  /** The workspace and what other plugins know of it; a member whose plugin is absent or fails is empty. */
  async detail(reference: string, actor: Actor): Promise<WorkspaceDetail> {
    const workspace = await this.find(reference, actor)
    const detail: Record<DetailMember['member'], unknown[]> = { agents: [], providers: [], sessions: [], skills: [] }
    await Promise.all(
      this.kernel.collect(WorkspaceDetailMembers).map(async ({ owner, entry: { member, read } }) => {
        try {
          const work = (async () => read(workspace))()
          detail[member] = [...(await within(this.kernel.clock, MEMBER_DEADLINE_MS, work))]
        } catch (error) {
          this.kernel.log.warn(
            `${owner} did not give the ${member} of workspace ${workspace.name}: ${messageOf(error)}`,
          )
        }
      }),
    )
    return { workspace: this.toWire(workspace), ...(detail as Omit<WorkspaceDetail, 'workspace'>) }
  }

  toWire(workspace: Workspace): WorkspaceWire {
    return {
      id: workspace.id,
      name: workspace.name,
      root_dir: workspace.rootDir,
      add_dirs: [...workspace.addDirs],
      default_agent: workspace.defaultAgent,
      sandbox_ref: workspace.sandboxRef,
      created_at: iso(workspace.createdAt),
      updated_at: iso(workspace.updatedAt),
    }
  }

  checks(): readonly Check[] {
    return [{ id: 'workspaces.roots', category: 'workspaces', run: () => rootItems(this.#table.list()) }]
  }

  /** Registers a root; `known` decides about one that is registered. A folder that was moved takes its workspace along. */
  async #register(
    body: CreateWorkspaceBody,
    actor: Actor,
    known: (workspace: StoredWorkspace) => StoredWorkspace,
  ): Promise<StoredWorkspace> {
    const rootDir = await canonicalDirectory(body.root_dir, 'root_dir')
    const given = await this.#membersOf(body, rootDir)
    const before = this.#table.byRoot(rootDir)
    if (before) return known(before)
    this.#checkFree(given.name)
    const fresh = {
      id: '',
      name: '',
      rootDir,
      addDirs: [],
      defaultAgent: '',
      sandboxRef: '',
      createdAt: 0,
      updatedAt: 0,
    }
    await this.#ask({ ...fresh, ...withoutAbsent(given) })
    const identity = await this.#identify(rootDir)
    const moved = identity === '' ? undefined : await this.#movedHere(identity)
    const { clock, ids, db } = this.kernel
    return db.tx(t => {
      const meanwhile = this.#table.byRoot(rootDir)
      if (meanwhile) return known(meanwhile)
      const now = clock.now()
      const old = moved && this.#table.get(moved.id)
      if (old) return this.#store(t, { ...this.#withMembers({ ...old, rootDir }, given), updatedAt: now }, actor)
      const named = this.#withMembers(
        { ...fresh, id: ids.id('ws'), identity, createdAt: now, updatedAt: now },
        { ...given, name: given.name ?? null },
      )
      this.#table.insert(t, named)
      this.kernel.needs.events.emit(t, WorkspaceCreated, payloadOf(named), {
        actor,
        scope: named.id,
        subject: named.id,
      })
      return named
    })
  }

  async #ask(wanted: Workspace): Promise<void> {
    const refused = await this.saving.ask(wanted)
    if (refused) throw refused
  }

  async #membersOf(body: PatchWorkspaceBody, rootDir: string): Promise<Members> {
    const { name, add_dirs, default_agent, sandbox_ref } = body
    return {
      name: typeof name === 'string' ? checkName(name) : name,
      addDirs: add_dirs === undefined ? undefined : await canonicalDirectories(add_dirs ?? [], rootDir),
      defaultAgent: default_agent === undefined ? undefined : checkLabel(default_agent ?? '', 'default_agent'),
      sandboxRef: sandbox_ref === undefined ? undefined : checkLabel(sandbox_ref ?? '', 'sandbox_ref'),
    }
  }

  #withMembers(old: StoredWorkspace, given: Members): StoredWorkspace {
    const taken = (name: string) => (this.#table.byName(name)?.id ?? old.id) !== old.id
    if (given.name) this.#checkFree(given.name, old.id)
    return {
      ...old,
      name: given.name ?? (given.name === null ? freeName(old.rootDir, taken) : old.name),
      addDirs: given.addDirs ?? old.addDirs,
      defaultAgent: given.defaultAgent ?? old.defaultAgent,
      sandboxRef: given.sandboxRef ?? old.sandboxRef,
    }
  }

  #checkFree(name: string | null | undefined, id?: string): void {
    const holder = name ? this.#table.byName(name) : undefined
    if (!holder || holder.id === id) return
    throw WorkspaceErrors.workspace_name_taken(
      `the name ${shown(holder.name)} belongs to the workspace at ${holder.rootDir}`,
    )
  }

  #store(t: Tx, workspace: StoredWorkspace, actor: Actor): StoredWorkspace {
    this.#table.update(t, workspace)
    this.kernel.needs.events.emit(t, WorkspaceUpdated, payloadOf(workspace), {
      actor,
      scope: workspace.id,
      subject: workspace.id,
    })
    return workspace
  }

  /** ULID of the folder; empty when it cannot be written, which is no reason to refuse it. */
  async #identify(rootDir: string): Promise<string> {
    const { clock, ids, log } = this.kernel
    const source = { now: () => clock.now(), hex: (bytes: number) => ids.hex(bytes) }
    try {
      const isCopy = async (ulid: string) =>
        this.#table.byIdentity(ulid).length > 0 && (await this.#movedHere(ulid)) === undefined
      return (await ensureIdentity(rootDir, source, isCopy)).workspaceId
    } catch (error) {
      log.warn(`the workspace ${rootDir} gets no identity file: ${messageOf(error)}`)
      return ''
    }
  }

  /** The workspace of that identity whose root is gone: its folder was moved. */
  async #movedHere(identity: string): Promise<StoredWorkspace | undefined> {
    for (const workspace of this.#table.byIdentity(identity)) {
      const found = await directoryAt(workspace.rootDir)
      if (found.is === 'gone' && found.missing) return workspace
    }
    return undefined
  }
}
