import path from 'node:path'
import { Serial } from '../../../kernel/kit/serial.js'
import { type Actor, Fault, type PluginKernel } from '../../../kernel/plugin.js'
import type { Heartbeat, SidecarTextReply, Soul } from '../../../schemas/agents/sidecars.js'
import type { Workspace } from '../../desk/workspaces/api.js'
import type { Events } from '../../platform/events/api.js'
import { SidecarChanged, SidecarErrors } from './api.js'
import { SIDECARS, type SidecarLocation, type SidecarLocations, type Which } from './locations.js'
import { actorOf, type Operation, type RevisionActor, type RevisionRow, type Revisions } from './revisions.js'
import { MAX_SIDECAR_BYTES } from './settings.js'
import { digestOf, type SidecarSource } from './source.js'

/** The author and subject of a change. */
export interface SidecarRequest {
  readonly agent: string
  readonly workspace: Workspace | undefined
  readonly actor: Actor
}

/** Precondition of a change: the digest of the file as its author knew it, empty for no file. */
export interface Condition {
  readonly expected: string
  readonly key?: string | undefined
}

/** Result of a change; without a revision, the text was invalid and nothing was written. */
export interface Changed<S> {
  readonly snapshot: S
  readonly revision?: RevisionRow
}

/** Throws `sidecar_changed` (409) if a sidecar differs from the version its author read; an absent digest means no file. */
export function checkDigest(which: Which, agent: string, digest = '', expected = ''): void {
  if (digest === expected) return
  const { file } = SIDECARS[which]
  const now = digest === '' ? `agent ${agent} has no ${file}` : `the digest of ${file} is ${digest}`
  throw SidecarErrors.sidecar_changed(`nothing was changed: ${now}, expected_digest is ${expected || 'empty'}`, {
    details: { digest },
    next: SIDECARS[which].inspect(agent),
  })
}

/** Actor of a change made outside the daemon. */
const BY_HAND: RevisionActor = { kind: 'user', ref: 'file' }

/** One sidecar of all agents: reads, validates and changes it, with its history. */
export class SidecarFiles<S extends Soul | Heartbeat> {
  /** Serializes changes: no other request changes a file between its check and its change. */
  readonly #changes = new Serial()
  /** Folders of snapshots from files; paths given by packages are never opened. */
  readonly #folders = new WeakMap<S, string>()

  /** @param judge creates a snapshot of a text; never throws */
  constructor(
    private readonly which: Which,
    private readonly kernel: Pick<PluginKernel<{ events: typeof Events }>, 'db' | 'clock' | 'ids' | 'needs'>,
    private readonly locations: SidecarLocations,
    private readonly revisions: Revisions,
    private readonly judge: (source: SidecarSource) => S,
  ) {}

  /** Throws `agent_not_found` (404); all other problems are part of the snapshot. */
  async read(agent: string, workspace: Workspace | undefined): Promise<S> {
    const location = await this.#find(agent, workspace)
    if (!('by' in location)) return location
    const snapshot = this.judge(await this.locations.read(location, agent))
    if (location.by === 'file') this.#folders.set(snapshot, path.dirname(location.path))
    return snapshot
  }

  /** The text of the file, also when it is invalid: an editor needs the stored text. */
  async text(agent: string, workspace: Workspace | undefined): Promise<SidecarTextReply> {
    const location = await this.#find(agent, workspace)
    const source = 'by' in location ? await this.locations.read(location, agent) : undefined
    const snapshot = source ? this.judge(source) : (location as S)
    const { present, digest, source_path, validation_status, diagnostics } = snapshot
    return {
      ...{ present, validation_status, diagnostics },
      ...(source?.text !== undefined && !source.problem && { text: source.text }),
      ...(digest !== undefined && { digest }),
      ...(source_path !== undefined && { source_path }),
    }
  }

  /** The agent's folder for a snapshot from {@link read}; undefined if it is not a file. */
  folderOf(snapshot: S): string | undefined {
    return this.#folders.get(snapshot)
  }

  /** Validates a text as if it were the file. */
  async validate(agent: string, workspace: Workspace | undefined, text: string): Promise<S> {
    const location = await this.#find(agent, workspace)
    return 'by' in location ? this.#judgeText(location, agent, text) : location
  }

  /** @throws Fault `sidecar_changed`, `sidecar_read_only` (409) */
  write(request: SidecarRequest, text: string, condition: Condition): Promise<Changed<S>> {
    return this.#changes.run(async () => {
      const location = await this.#find(request.agent, request.workspace)
      if (!('by' in location)) return { snapshot: location }
      return this.#put(request, location, 'write', text, condition, digestOf(['write', text]))
    })
  }

  /** @throws Fault also `sidecar_revision_not_found` (404), `sidecar_revision_empty` (409) */
  rollback(
    request: SidecarRequest,
    to: { readonly id?: string | undefined; readonly digest?: string | undefined },
    condition: Condition,
  ): Promise<Changed<S>> {
    return this.#changes.run(async () => {
      const location = await this.#find(request.agent, request.workspace)
      if (!('by' in location)) return { snapshot: location }
      this.locations.checkWritable(location, request.agent)
      const { text } = this.revisions.target(this.which, location.path, to, request.agent)
      return this.#put(request, location, 'rollback', text, condition, digestOf(['rollback', to]))
    })
  }

  /** @throws Fault `sidecar_missing` (404), `sidecar_changed`, `sidecar_read_only` (409), `agent_invalid` (422) */
  remove(request: SidecarRequest, condition: Condition): Promise<Changed<S> & { readonly revision: RevisionRow }> {
    return this.#changes.run(async () => {
      const { agent, workspace } = request
      const location = await this.locations.find(this.which, agent, workspace)
      this.locations.checkWritable(location, agent)
      const source = await this.locations.read(location, agent)
      const before = this.judge(source)
      if (!before.present) {
        throw SidecarErrors.sidecar_missing(`agent ${agent} has no ${this.#file}`, {
          next: SIDECARS[this.which].history(agent),
        })
      }
      checkDigest(this.which, agent, before.digest, condition.expected)
      await this.locations.remove(location)
      const after = this.judge({ agentName: agent, sourcePath: location.path })
      const revision = await this.#record(
        request,
        location,
        'delete',
        { source, before, after, text: null },
        undefined,
        '',
      )
      return { snapshot: after, revision }
    })
  }

  async history(agent: string, workspace: Workspace | undefined, actor: Actor, page: Parameters<Revisions['page']>[3]) {
    const { path } = await this.locations.find(this.which, agent, workspace)
    return this.revisions.page(this.which, path, actor, page)
  }

  newest(snapshot: S): RevisionRow | undefined {
    return this.revisions.newest(this.which, snapshot.source_path ?? '')
  }

  get #file(): string {
    return SIDECARS[this.which].file
  }

  /** The place of the sidecar; for an invalid agent definition, an invalid snapshot. */
  async #find(agent: string, workspace: Workspace | undefined): Promise<SidecarLocation | S> {
    try {
      return await this.locations.find(this.which, agent, workspace)
    } catch (error) {
      if (!(error instanceof Fault) || error.code !== 'agent_invalid') throw error
      const problem = { code: 'agent_invalid', message: error.message } as const
      return this.judge({ agentName: agent, sourcePath: error.details?.path ?? '', problem })
    }
  }

  #judgeText(location: SidecarLocation, agentName: string, text: string): S {
    const source = { agentName, sourcePath: location.path, text }
    const size = Buffer.byteLength(text)
    if (size <= MAX_SIDECAR_BYTES) return this.judge(source)
    const message = `it has ${size} bytes, at most ${MAX_SIDECAR_BYTES} are read`
    return this.judge({ ...source, text: '', problem: { code: 'oversized_file', message } })
  }

  async #put(
    author: SidecarRequest,
    location: SidecarLocation,
    operation: Operation,
    text: string,
    { expected, key }: Condition,
    request: string,
  ): Promise<Changed<S>> {
    const { agent } = author
    this.locations.checkWritable(location, agent)
    const source = await this.locations.read(location, agent)
    const before = this.judge(source)
    const replayed = this.revisions.replay(this.which, location.path, key, request)
    if (replayed) return { snapshot: before, revision: replayed }
    checkDigest(this.which, agent, before.digest, expected)
    const judged = this.#judgeText(location, agent, text)
    if (!judged.valid) return { snapshot: judged }
    await this.locations.write(location, text)
    const after = this.judge(await this.locations.read(location, agent))
    const revision = await this.#record(author, location, operation, { source, before, after, text }, key, request)
    return { snapshot: after, revision }
  }

  /** Stores the revision of a changed file. A manual edit before it becomes a revision of its own. */
  async #record(
    { agent, workspace, actor }: SidecarRequest,
    { path }: SidecarLocation,
    operation: Operation,
    change: { readonly source: SidecarSource; readonly before: S; readonly after: S; readonly text: string | null },
    key: string | undefined,
    request: string,
  ): Promise<RevisionRow> {
    const {
      db,
      clock,
      ids,
      needs: { events },
    } = this.kernel
    const { source, before, after, text } = change
    const { kind, ref } = actorOf(actor)
    const about = { which: this.which, path, agent_name: agent }
    const now = clock.now()
    const row = {
      ...about,
      id: ids.id('rev'),
      operation,
      actor_kind: kind,
      actor_ref: ref ?? '',
      previous_digest: before.digest ?? null,
      new_digest: after.digest ?? null,
      snapshot_id: after.snapshot_id ?? null,
      text,
      idempotency_key: key ?? null,
      request,
      at: now,
    }
    await db.tx(t => {
      const known = this.revisions.newest(this.which, path)
      if (source.text !== undefined && known?.text !== source.text) {
        this.revisions.insert(t, {
          ...about,
          id: ids.id('rev'),
          operation: 'write',
          actor_kind: BY_HAND.kind,
          actor_ref: BY_HAND.ref ?? '',
          previous_digest: known?.new_digest ?? null,
          new_digest: before.digest ?? null,
          snapshot_id: before.snapshot_id ?? null,
          text: source.text,
          idempotency_key: null,
          request: '',
          at: Math.min(source.changedAt ?? now, now),
        })
      }
      this.revisions.insert(t, row)
      const payload = { agent_name: agent, sidecar: this.which, operation, revision_id: row.id }
      events.emit(t, SidecarChanged, payload, { actor, scope: workspace?.id, subject: agent })
    })
    return { ...row, place: '', seq: 0 }
  }
}
