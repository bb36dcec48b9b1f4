import { mkdir } from 'node:fs/promises'
import { KernelErrors, messageOf, within } from 'svc/plugin'
import { finding } from 'svc/plugins/daemon'
import {
  isInside,
  SCRATCH_ID,
  WorkspaceCreated,
  WorkspaceDeleted,
  WorkspaceDetailMembers,
  WorkspaceErrors,
  Workspaces,
  WorkspaceUpdated,
} from 'svc/plugins/workspaces'
import { checkedLabel, checkedName, directories, freeName } from './names.js'
import { absolute, directory, followed, identify, lookAt, quoted, trimmed, upwards } from './places.js'
import { COLUMNS, fromRow } from './rows.js'

const MEMBER_MS = 5000

/** Workspaces in the rows of the plugin whose place this one takes. */
export class Registered {
  constructor(kernel) {
    this.kernel = kernel
    this.saving = kernel.hooks.gate('saving')
    this.deleting = kernel.hooks.guard('deleting')
    kernel.needs.ownership.owns(Workspaces, id => this.get(id) !== undefined)
  }

  /** Refuses a record scope that names no workspace. */
  scopeRefusal({ kind, id = '' }) {
    if (kind !== 'workspace' || this.get(id)) return undefined
    return KernelErrors.invalid_scope(`scope.id is not the id of a workspace: ${quoted(id)}`)
  }

  get(id) {
    return this.#select('WHERE id = ?', id)[0]
  }

  list() {
    return this.#select('ORDER BY created_at, rowid')
  }

  /** All, or the one that an absolute path belongs to. */
  async around(path, actor) {
    if (path === undefined) return this.list()
    const found = await this.#find(absolute(path, 'path'), actor)
    return found ? [found] : []
  }

  async find(reference, actor = this.kernel.actor) {
    const found = await this.#find(reference, actor)
    if (found) return found
    throw WorkspaceErrors.workspace_not_found(`no workspace encloses ${quoted(reference)}`)
  }

  async resolve(reference, actor = this.kernel.actor) {
    return (await this.#find(reference, actor)) ?? this.#register({ root_dir: reference }, actor, known => known)
  }

  /** For a command that runs in a folder. */
  async place(reference, actor) {
    const found = await this.#find(reference, actor)
    if (found) return { workspace: found, registered: false }
    return { workspace: await this.resolve(reference, actor), registered: true }
  }

  /** The workspace of work that belongs to no project, made with its first use. */
  async scratch() {
    const folder = this.kernel.home.path('scratch')
    await mkdir(folder, { recursive: true, mode: 0o700 })
    return (
      this.get(SCRATCH_ID) ?? this.#register({ id: SCRATCH_ID, root_dir: folder }, this.kernel.actor, known => known)
    )
  }

  create(body, actor) {
    return this.#register(body, actor, known => {
      throw WorkspaceErrors.workspace_exists(`${known.rootDir} is the workspace ${known.name} (${known.id}) already`)
    })
  }

  async change(reference, body, actor) {
    const { id, rootDir } = await this.#registered(reference)
    const changes = await this.#changes(body, rootDir)
    await this.#ask({ ...this.get(id), ...changes })
    return this.kernel.db.tx(t => {
      const before = this.get(id)
      if (!before) throw WorkspaceErrors.workspace_not_found()
      const after = this.#named({ ...before, ...changes })
      if (JSON.stringify(after) === JSON.stringify(before)) return before
      return this.#store(t, { ...after, updatedAt: this.kernel.clock.now() }, WorkspaceUpdated, actor)
    })
  }

  async remove(reference, actor) {
    const { id } = await this.#registered(reference)
    const { db, records } = this.kernel
    await db.tx(t => {
      const workspace = this.get(id)
      if (!workspace) throw WorkspaceErrors.workspace_not_found()
      this.deleting.check(t, workspace)
      const own = records.list({ scope: { kind: 'workspace', id } })
      const held = own.find(({ owner }) => owner.kind === 'bundle.activation')
      if (held)
        throw WorkspaceErrors.workspace_in_use(`${held.kind} ${held.id} in it is of the activation ${held.owner.id}`)
      for (const { kind, id: record, source } of own) records.delete(t, { ...actor, source }, { kind, id: record })
      t.run('DELETE FROM workspaces_workspace WHERE id = ?', [id])
      // Rows of other plugins go with it.
      this.kernel.needs.ownership.tombstone(t, Workspaces, id)
      this.#tell(t, WorkspaceDeleted, workspace, actor)
    })
  }

  /** What other plugins know of it; whoever fails leaves its member empty. */
  async detail(workspace) {
    const { clock, collect, log } = this.kernel
    const detail = { agents: [], providers: [], sessions: [], skills: [] }
    const ask = async ({ owner, entry: { member, read } }) => {
      try {
        detail[member] = [...(await within(clock, MEMBER_MS, (async () => read(workspace))()))]
      } catch (error) {
        log.warn(`${owner} did not give the ${member} of workspace ${workspace.name}: ${messageOf(error)}`)
      }
    }
    await Promise.all(collect(WorkspaceDetailMembers).map(ask))
    return detail
  }

  /** For doctor: roots that are not what they were. */
  async rootItems() {
    const all = this.list()
    const items = await Promise.all(all.map(async workspace => ({ workspace, found: await lookAt(workspace.rootDir) })))
    const wrong = items.filter(({ found }) => found.real === undefined)
    const category = 'workspaces'
    if (wrong.length === 0) {
      const message = `${all.length === 1 ? 'the workspace root exists' : `the roots of all ${all.length} workspaces exist`}`
      const fine = { id: 'workspaces.roots', code: 'workspaces_ok', title: 'Workspaces' }
      return [finding({ ...fine, category, severity: 'info', message })]
    }
    return wrong.map(({ workspace: { id, name, rootDir }, found }) => {
      const closed = found.missing === false
      return finding({
        id: `workspaces.roots.${id}`,
        code: closed ? 'workspace_root_unreachable' : 'workspace_root_missing',
        category,
        severity: 'warning',
        title: `Workspace ${name} has no root`,
        message: `the root ${rootDir} ${told(found)}`,
        ...(closed ? {} : { suggested_command: `svc workspace remove ${id}` }),
      })
    })
  }

  #select(rest, ...params) {
    return this.kernel.db.all(`SELECT ${COLUMNS} FROM workspaces_workspace ${rest}`, params).map(fromRow)
  }

  #byRoot(root) {
    return this.#select('WHERE root_dir = ?', root)[0]
  }

  /** By id or name; undefined for what may be a path. */
  #called(reference) {
    const text = trimmed(reference, 'the workspace')
    const [found] = [...this.#select('WHERE id = ?', text), ...this.#select('WHERE name = ?', text)]
    if (found || /^[.~]|[/\\]/.test(text)) return found
    throw WorkspaceErrors.workspace_not_found(`no workspace has the id or name ${quoted(text)}`)
  }

  /** The registration itself, also when its root is gone: a path has to be the root. */
  async #registered(reference) {
    const called = this.#called(reference)
    if (called) return called
    const wanted = absolute(reference, 'the workspace')
    const found = this.#byRoot(wanted) ?? this.#byRoot(await followed(wanted))
    if (found) return found
    throw WorkspaceErrors.workspace_not_found(`no workspace has the root ${quoted(wanted)}`)
  }

  async #find(reference, actor) {
    const called = this.#called(reference)
    if (called) return this.#present(called, actor)
    const wanted = absolute(reference, 'the workspace')
    const real = await followed(wanted)
    // As written it counts only for a root that was moved behind a link: a link in a workspace does not pull in where it leads.
    for (const form of new Set([real, wanted])) {
      const enclosing = 'WHERE root_dir IN (SELECT value FROM json_each(?)) ORDER BY length(root_dir) DESC LIMIT 1'
      const [nearest] = this.#select(enclosing, JSON.stringify(upwards(form)))
      const found = nearest && (await this.#present(nearest, actor))
      if (found && isInside(real, found.rootDir)) return found
    }
    return undefined
  }

  /** Its root is there; one that was moved behind a link is followed. */
  async #present(workspace, actor) {
    const { id, name, rootDir } = workspace
    const found = await lookAt(rootDir)
    if (found.real === rootDir) return workspace
    if (found.real === undefined) {
      const text = `the root of workspace ${name}, ${rootDir}, ${told(found)}`
      throw WorkspaceErrors.workspace_root_missing(text, { next: 'svc doctor --only workspaces' })
    }
    return this.kernel.db.tx(t => {
      const before = this.get(id)
      if (!before) throw WorkspaceErrors.workspace_not_found()
      if (this.#byRoot(found.real)) throw WorkspaceErrors.workspace_exists(`${found.real} is another workspace`)
      const after = { ...before, rootDir: found.real, updatedAt: this.kernel.clock.now() }
      return this.#store(t, after, WorkspaceUpdated, actor)
    })
  }

  async #register(body, actor, known) {
    const { clock, db, ids } = this.kernel
    const rootDir = await directory(body.root_dir, 'root_dir')
    const changes = await this.#changes(body, rootDir)
    const before = this.#byRoot(rootDir)
    if (before) return known(before)
    this.#named({ ...changes, id: '', rootDir })
    const none = { name: null, addDirs: [], defaultAgent: '', sandboxRef: '' }
    await this.#ask({ id: '', rootDir, createdAt: 0, updatedAt: 0, ...none, ...changes })
    const identity = await this.#identify(rootDir)
    const moved = await this.#movedAway(identity)
    return db.tx(t => {
      const meanwhile = this.#byRoot(rootDir)
      if (meanwhile) return known(meanwhile)
      const now = clock.now()
      const old = moved && this.get(moved.id)
      const fresh = { id: body.id ?? ids.id('ws'), ...none, identity, createdAt: now }
      const wanted = this.#named({ ...(old ?? fresh), ...changes, rootDir, updatedAt: now })
      return this.#store(t, wanted, old ? WorkspaceUpdated : WorkspaceCreated, actor)
    })
  }

  async #ask({ name, ...wanted }) {
    const refused = await this.saving.ask({ ...wanted, name: name ?? '' })
    if (refused) throw refused
  }

  /** What a body asks for; the name `null` is that of the folder. */
  async #changes({ name, add_dirs, default_agent, sandbox_ref }, rootDir) {
    return {
      ...(name === undefined ? {} : { name: name === null ? null : checkedName(name) }),
      ...(add_dirs === undefined ? {} : { addDirs: await directories(add_dirs ?? [], rootDir) }),
      ...(default_agent === undefined ? {} : { defaultAgent: checkedLabel(default_agent ?? '', 'default_agent') }),
      ...(sandbox_ref === undefined ? {} : { sandboxRef: checkedLabel(sandbox_ref ?? '', 'sandbox_ref') }),
    }
  }

  /** With a name that nobody else has: the one that it wants, or one made of its folder. */
  #named(workspace) {
    const { id, name, rootDir } = workspace
    const holder = wanted => this.#select('WHERE name = ? AND id <> ?', wanted, id)[0]
    if (name) {
      const other = holder(name)
      if (!other) return workspace
      throw WorkspaceErrors.workspace_name_taken(`${quoted(name)} is the workspace at ${other.rootDir}`)
    }
    return { ...workspace, name: freeName(rootDir, holder) }
  }

  #store(t, workspace, event, actor) {
    const { id, name, rootDir, addDirs, defaultAgent, sandboxRef, identity, createdAt, updatedAt } = workspace
    t.run(
      `INSERT INTO workspaces_workspace (${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET name = excluded.name, root_dir = excluded.root_dir, add_dirs = excluded.add_dirs,
         default_agent = excluded.default_agent, sandbox_ref = excluded.sandbox_ref, updated_at = excluded.updated_at`,
      [id, name, rootDir, JSON.stringify(addDirs), defaultAgent, sandboxRef, identity, createdAt, updatedAt],
    )
    this.#tell(t, event, workspace, actor)
    return this.get(id)
  }

  #tell(t, event, { id, name, rootDir }, actor) {
    this.kernel.needs.events.emit(t, event, { id, name, root_dir: rootDir }, { actor, scope: id, subject: id })
  }

  /** A folder that cannot be written is a workspace all the same. */
  async #identify(rootDir) {
    const isCopy = async ulid =>
      this.#select('WHERE identity = ?', ulid).length > 0 && (await this.#movedAway(ulid)) === undefined
    try {
      return await identify(rootDir, isCopy, this.kernel)
    } catch (error) {
      this.kernel.log.warn(
        `the workspace ${rootDir} has no identity file, because it could not be written: ${messageOf(error)}`,
      )
      return ''
    }
  }

  /** The workspace of that identity whose root is gone. */
  async #movedAway(identity) {
    if (identity === '') return undefined
    for (const workspace of this.#select('WHERE identity = ?', identity)) {
      if ((await lookAt(workspace.rootDir)).missing) return workspace
    }
    return undefined
  }
}

const told = ({ missing, why }) =>
  missing === false
    ? `${why}; give the user of the daemon access to it`
    : `${missing ? why : 'is no longer a directory'}; put it back, register its new place, or remove the workspace`
