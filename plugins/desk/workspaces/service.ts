import { command, placeholder } from '../../../kernel/kit/commands/command-line.js'
import { shown } from '../../../kernel/kit/text.js'
import { type Actor, type Fault, KernelErrors, messageOf, type RecordScope, type Tx } from '../../../kernel/plugin.js'
import type { CreateWorkspaceBody, PatchWorkspaceBody, WorkspaceDetail } from '../../../schemas/workspaces.js'
import type { Check } from '../daemon/api.js'
import {
  points,
  SCRATCH_ID,
  SCRATCH_NAME,
  type Workspace,
  WorkspaceCreated,
  WorkspaceDeleted,
  WorkspaceErrors,
  Workspaces,
  type WorkspacesApi,
  WorkspaceUpdated,
} from './api.js'
import { rootItems } from './checks.js'
import { detailOf } from './detail.js'
import { WorkspaceFinder } from './finder.js'
import { rootFor } from './folder-root.js'
import { Homes } from './homes.js'
import { Identities } from './identities.js'
import { LocalDisk } from './local-disk.js'
import { inUse, type Members, membersOf, payloadOf, withoutAbsent } from './members.js'
import { freeName } from './names.js'
import type { K } from './needs.js'
import { canonicalDirectory, checkAbsolute } from './paths.js'
import { Scratch } from './scratch.js'
import { type StoredWorkspace, workspaces } from './table.js'

/** Registered root directories. */
export class WorkspacesService implements WorkspacesApi {
  readonly saving
  readonly deleting
  readonly #finder: WorkspaceFinder
  readonly #homes: Homes
  readonly #disk: LocalDisk
  readonly #scratch: Scratch
  readonly #identities: Identities

  constructor(private readonly kernel: K) {
    const { saving, deleting } = kernel.hooks.of(points)
    this.saving = saving
    this.deleting = deleting
    this.#homes = new Homes(kernel.home.root, kernel.needs.host.userHome)
    this.#disk = new LocalDisk(kernel.home.root, kernel.clock)
    this.#finder = new WorkspaceFinder(kernel, this.#homes, this.#disk)
    this.#scratch = new Scratch(kernel)
    this.#identities = new Identities(kernel)
  }

  /** Refuses a record scope with an unknown workspace. */
  scopeRefusal({ kind, id = '' }: RecordScope): Fault | undefined {
    if (kind !== 'workspace' || this.get(id)) return undefined
    return KernelErrors.invalid_scope(`scope.id is not the id of a workspace: ${shown(id)}`, {
      next: command('workspace list'),
    })
  }

  /** Updates the path of the workspace `scratch` if the home was moved or copied. */
  async start(): Promise<void> {
    this.kernel.needs.ownership.owns(Workspaces, id => this.get(id) !== undefined)
    if (!this.get(SCRATCH_ID)) return
    await this.scratch().catch(error => this.kernel.log.warn(messageOf(error)))
  }

  scratch(): Promise<StoredWorkspace> {
    return this.#scratch.use()
  }

  isLocal(folder: string): boolean {
    return this.#disk.has(folder)
  }

  get(id: string): StoredWorkspace | undefined {
    return workspaces.get(this.kernel.db, { id })
  }

  list(): Workspace[] {
    return workspaces.all(this.kernel.db, {}, 'ORDER BY created_at, rowid')
  }

  /** All workspaces, or the one that contains an absolute path. */
  async around(path: string | undefined, actor: Actor): Promise<Workspace[]> {
    if (path === undefined) return this.list()
    const found = await this.#find(checkAbsolute(path, 'path'), actor)
    return found ? [found] : []
  }

  async find(reference: string, actor: Actor = this.kernel.actor): Promise<Workspace> {
    const found = await this.#find(reference, actor)
    if (found) return found
    throw WorkspaceErrors.workspace_not_found(`no workspace encloses ${shown(reference)}`, {
      next: command('workspace add', placeholder('dir')),
    })
  }

  async resolve(reference: string, actor: Actor = this.kernel.actor): Promise<Workspace> {
    return (
      (await this.#find(reference, actor)) ?? this.#register({ root_dir: reference }, actor, { known: known => known })
    )
  }

  /**
   * The workspace of a command that runs in a folder: the nearest root that a person registered, else the root of its project;
   * the latter is registered if necessary. Throws `workspace_too_wide` (409).
   */
  async resolveFolder(folder: string, actor: Actor): Promise<{ workspace: Workspace; registered: boolean }> {
    if (this.#scratch.isMeant(folder)) return { workspace: await this.scratch(), registered: false }
    const real = await canonicalDirectory(folder, 'path')
    const chosen = await this.#finder.chosen(real, actor)
    if (chosen) return { workspace: chosen, registered: false }
    const rootDir = await rootFor(real, this.#homes)
    let registered = true
    const workspace = await this.#register({ root_dir: rootDir }, actor, {
      isChosen: false,
      known: known => {
        registered = false
        return known
      },
    })
    return { workspace, registered }
  }

  async #find(reference: string, actor: Actor): Promise<StoredWorkspace | undefined> {
    return this.#scratch.isMeant(reference) ? this.scratch() : this.#finder.find(reference, actor)
  }

  /** Throws `workspace_exists` and `workspace_name_taken` (409), `workspace_root_invalid` and others (400). */
  async create(body: CreateWorkspaceBody, actor: Actor): Promise<Workspace> {
    const made = await this.#register(body, actor, {
      known: known => {
        if (!known.isChosen) return known
        throw WorkspaceErrors.workspace_exists(`${known.rootDir} is the workspace ${known.name} (${known.id}) already`)
      },
    })
    // A command had registered the workspace before: a person's choice is recorded in it.
    return made.isChosen ? made : this.#change(made, body, actor)
  }

  /** `null` resets a member to its default: no agent, no sandbox, no additional directories, the name of the folder. */
  async update(reference: string, body: PatchWorkspaceBody, actor: Actor): Promise<Workspace> {
    const known = this.#scratch.isMeant(reference) ? await this.scratch() : await this.#finder.registered(reference)
    if (known.id === SCRATCH_ID && body.name && body.name !== SCRATCH_NAME)
      throw WorkspaceErrors.workspace_reserved(`the workspace ${SCRATCH_NAME} keeps its name`)
    return this.#change(known, body, actor)
  }

  async #change(known: StoredWorkspace, body: PatchWorkspaceBody, actor: Actor): Promise<Workspace> {
    const { id, rootDir } = known
    const members = await membersOf(body, rootDir)
    await this.#ask({ ...known, ...withoutAbsent(members) })
    return this.kernel.db.tx(t => {
      const current = this.get(id)
      if (!current) throw WorkspaceErrors.workspace_not_found()
      const changed = { ...this.#withMembers(current, members), isChosen: true }
      const same = JSON.stringify(changed) === JSON.stringify(current)
      return same ? current : this.#store(t, { ...changed, updatedAt: this.kernel.clock.now() }, actor)
    })
  }

  /** Removes the registration and the records of its scope, but no files of the project. */
  async remove(reference: string, actor: Actor): Promise<void> {
    if (this.#scratch.isMeant(reference)) {
      const why = `the workspace ${SCRATCH_NAME} cannot be removed: work that belongs to no project runs in it`
      throw WorkspaceErrors.workspace_reserved(why)
    }
    const { id } = await this.#finder.registered(reference)
    await this.kernel.db.tx(t => {
      const workspace = this.get(id)
      if (!workspace) throw WorkspaceErrors.workspace_not_found()
      this.deleting.check(t, workspace)
      const records = this.kernel.records.list({ scope: { kind: 'workspace', id } })
      const projected = records.find(record => record.owner.kind === 'bundle.activation')
      if (projected) throw inUse(workspace, projected)
      for (const record of records) {
        // Uses each record's source as the actor's: deleting a scope deletes all of its records, whatever their source.
        const own = { ...actor, source: record.source }
        this.kernel.records.delete(t, own, { kind: record.kind, id: record.id })
      }
      workspaces.delete(t, { id })
      const { events, ownership } = this.kernel.needs
      ownership.tombstone(t, Workspaces, id)
      events.emit(t, WorkspaceDeleted, payloadOf(workspace), { actor, scope: id, subject: id })
    })
  }

  /** A workspace with members from other plugins. */
  async detail(reference: string, actor: Actor): Promise<WorkspaceDetail> {
    return detailOf(this.kernel, await this.find(reference, actor))
  }

  checks(): readonly Check[] {
    return [{ id: 'workspaces.roots', category: 'workspaces', run: () => rootItems(this.list()) }]
  }

  /** Registers a root; `known` handles an already registered one. A moved folder keeps its workspace. */
  async #register(
    body: CreateWorkspaceBody,
    actor: Actor,
    { known, isChosen = true }: { known: (workspace: StoredWorkspace) => StoredWorkspace; isChosen?: boolean },
  ): Promise<StoredWorkspace> {
    const rootDir = await canonicalDirectory(body.root_dir, 'root_dir')
    const members = await membersOf(body, rootDir)
    if (this.#scratch.isMeant(rootDir)) return known(await this.scratch())
    if (this.#homes.isOfDaemon(rootDir)) {
      const how = rootDir === this.#homes.daemon ? 'is the home of the daemon' : 'belongs to the daemon'
      const text = `the folder ${shown(rootDir)} ${how}, which is no workspace`
      throw WorkspaceErrors.workspace_root_invalid(text, { next: 'choose the folder of a project' })
    }
    const before = workspaces.get(this.kernel.db, { rootDir })
    if (before) return known(before)
    this.#checkFree(members.name)
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
    await this.#ask({ ...fresh, ...withoutAbsent(members) })
    const identity = await this.#identities.of(rootDir)
    const moved = identity === '' ? undefined : await this.#identities.movedFrom(identity)
    const { clock, ids, db } = this.kernel
    return db.tx(t => {
      const meanwhile = workspaces.get(this.kernel.db, { rootDir })
      if (meanwhile) return known(meanwhile)
      const now = clock.now()
      const old = moved && this.get(moved.id)
      if (old) return this.#store(t, { ...this.#withMembers({ ...old, rootDir }, members), updatedAt: now }, actor)
      const named = this.#withMembers(
        { ...fresh, id: ids.id('ws'), identity, isChosen, createdAt: now, updatedAt: now },
        { ...members, name: members.name ?? null },
      )
      workspaces.insert(t, named)
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

  #withMembers(old: StoredWorkspace, members: Members): StoredWorkspace {
    const taken = (name: string) => this.#holderOf(name, old.id) !== undefined
    if (members.name) this.#checkFree(members.name, old.id)
    return {
      ...old,
      name: members.name ?? (members.name === null ? freeName(old.rootDir, taken) : old.name),
      addDirs: members.addDirs ?? old.addDirs,
      defaultAgent: members.defaultAgent ?? old.defaultAgent,
      sandboxRef: members.sandboxRef ?? old.sandboxRef,
    }
  }

  #checkFree(name: string | null | undefined, id?: string): void {
    const holder = name ? this.#holderOf(name, id) : undefined
    if (holder === undefined) return
    throw WorkspaceErrors.workspace_name_taken(`the name ${shown(String(name))} belongs to the workspace at ${holder}`)
  }

  /** Root of another workspace with this name. */
  #holderOf(name: string, id: string | undefined): string | undefined {
    const holder =
      name === SCRATCH_NAME
        ? { id: SCRATCH_ID, rootDir: this.#scratch.rootDir }
        : workspaces.get(this.kernel.db, { name })
    return holder && holder.id !== id ? holder.rootDir : undefined
  }

  #store(t: Tx, workspace: StoredWorkspace, actor: Actor): StoredWorkspace {
    workspaces.update(t, { id: workspace.id }, workspace)
    this.kernel.needs.events.emit(t, WorkspaceUpdated, payloadOf(workspace), {
      actor,
      scope: workspace.id,
      subject: workspace.id,
    })
    return workspace
  }
}
