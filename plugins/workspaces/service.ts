import { shown } from '../../kernel/kit/text.js'
import {
  type Actor,
  type Fault,
  type Gate,
  type Guard,
  type Host,
  KernelErrors,
  messageOf,
  type PluginKernel,
  type RecordScope,
  type Tx,
} from '../../kernel/plugin.js'
import type { CreateWorkspaceBody, PatchWorkspaceBody, WorkspaceDetail } from '../../schemas/workspaces.js'
import type { Check, Daemon } from '../daemon/api.js'
import type { Events } from '../events/api.js'
import {
  SCRATCH_ID,
  SCRATCH_NAME,
  type Workspace,
  WorkspaceCreated,
  WorkspaceDeleted,
  WorkspaceErrors,
  type WorkspacesApi,
  WorkspaceUpdated,
} from './api.js'
import { rootItems } from './checks.js'
import { detailOf } from './detail.js'
import { WorkspaceFinder } from './finder.js'
import { Homes } from './homes.js'
import { ensureIdentity } from './identity.js'
import { inUse, type Members, payloadOf, withoutAbsent } from './members.js'
import { checkLabel, checkName, freeName } from './names.js'
import { canonicalDirectories, canonicalDirectory, directoryAt } from './paths.js'
import { Scratch } from './scratch.js'
import { type StoredWorkspace, WorkspaceTable } from './table.js'

/** Registered root directories. */
export class WorkspacesService implements WorkspacesApi {
  readonly saving: Gate<[workspace: Workspace]>
  readonly deleting: Guard<[workspace: Workspace]>
  readonly #table: WorkspaceTable
  readonly #finder: WorkspaceFinder
  readonly #scratch: Scratch

  constructor(
    private readonly kernel: PluginKernel<{ host: typeof Host; daemon: typeof Daemon; events: typeof Events }>,
  ) {
    this.saving = kernel.hooks.gate('saving')
    this.deleting = kernel.hooks.guard('deleting')
    this.#table = new WorkspaceTable(kernel.db)
    this.#finder = new WorkspaceFinder(kernel, this.#table, new Homes(kernel.home.root, kernel.needs.host.userHome))
    this.#scratch = new Scratch(kernel, this.#table)
  }

  /** Refuses a record scope that names no workspace. */
  scopeRefusal({ kind, id = '' }: RecordScope): Fault | undefined {
    if (kind !== 'workspace' || this.#table.get(id)) return undefined
    return KernelErrors.invalid_scope(`scope.id is not the id of a workspace: ${shown(id)}`, {
      next: 'svc workspace list',
    })
  }

  /** The workspace `scratch` of a home that was moved or copied moves with it. */
  async start(): Promise<void> {
    if (!this.#table.get(SCRATCH_ID)) return
    await this.scratch().catch(error => this.kernel.log.warn(messageOf(error)))
  }

  scratch(): Promise<StoredWorkspace> {
    return this.#scratch.use()
  }

  get(id: string): Workspace | undefined {
    return this.#table.get(id)
  }

  list(): Workspace[] {
    return this.#table.list()
  }

  async find(reference: string, actor: Actor = this.kernel.actor): Promise<Workspace> {
    const found = await this.#find(reference, actor)
    if (found) return found
    throw WorkspaceErrors.workspace_not_found(`no workspace encloses ${shown(reference)}`, {
      next: 'svc workspace add <dir>',
    })
  }

  async resolve(reference: string, actor: Actor = this.kernel.actor): Promise<Workspace> {
    return (await this.#find(reference, actor)) ?? this.#register({ root_dir: reference }, actor, known => known)
  }

  async #find(reference: string, actor: Actor): Promise<StoredWorkspace | undefined> {
    return this.#scratch.isMeant(reference) ? this.scratch() : this.#finder.find(reference, actor)
  }

  /** Throws `workspace_exists` and `workspace_name_taken` (409), `workspace_root_invalid` and others (400). */
  create(body: CreateWorkspaceBody, actor: Actor): Promise<Workspace> {
    return this.#register(body, actor, known => {
      throw WorkspaceErrors.workspace_exists(`${known.rootDir} is the workspace ${known.name} (${known.id}) already`)
    })
  }

  /** `null` sets a member back to its default: no agent, no sandbox, no further directories, the name of the folder. */
  async update(reference: string, body: PatchWorkspaceBody, actor: Actor): Promise<Workspace> {
    const known = this.#scratch.isMeant(reference) ? await this.scratch() : await this.#finder.registered(reference)
    const { id, rootDir } = known
    if (id === SCRATCH_ID && body.name && body.name !== SCRATCH_NAME)
      throw WorkspaceErrors.workspace_reserved(`the workspace ${SCRATCH_NAME} keeps its name`)
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
    if (this.#scratch.isMeant(reference)) {
      const why = `the workspace ${SCRATCH_NAME} cannot be removed: work that belongs to no project runs in it`
      throw WorkspaceErrors.workspace_reserved(why)
    }
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

  /** The workspace and what other plugins know of it. */
  async detail(reference: string, actor: Actor): Promise<WorkspaceDetail> {
    return detailOf(this.kernel, await this.find(reference, actor))
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
    if (this.#scratch.isMeant(rootDir)) return known(await this.scratch())
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
        { ...fresh, id: ids.id('ws'), identity, isChosen: true, createdAt: now, updatedAt: now },
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
    const taken = (name: string) => this.#holderOf(name, old.id) !== undefined
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
    const holder = name ? this.#holderOf(name, id) : undefined
    if (holder === undefined) return
    throw WorkspaceErrors.workspace_name_taken(`the name ${shown(String(name))} belongs to the workspace at ${holder}`)
  }

  /** Root of the other workspace that has a name. */
  #holderOf(name: string, id: string | undefined): string | undefined {
    const holder = name === SCRATCH_NAME ? { id: SCRATCH_ID, rootDir: this.#scratch.rootDir } : this.#table.byName(name)
    return holder && holder.id !== id ? holder.rootDir : undefined
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
