import { type Actor, ok } from '../../../kernel/plugin.js'
import type {
  DeleteSidecarBody,
  Heartbeat,
  RollbackHeartbeatBody,
  SidecarHistoryQuery,
  SidecarQuery,
  Soul,
  ValidateSoulBody,
  WriteSidecarBody,
} from '../../../schemas/agents/sidecars.js'
import type { Workspace } from '../../desk/workspaces/api.js'
import { SidecarErrors } from './api.js'
import type { Changed, SidecarFiles, SidecarRequest } from './files.js'
import type { RevisionRow } from './revisions.js'

type Headers = Readonly<Record<string, string | undefined>>

/** Wire names and callbacks of one sidecar. */
export interface DeskOptions<S, C, R> {
  readonly find: (workspace: string) => Promise<Workspace>
  /** The reply to a change: the resulting snapshot and its history entry. */
  readonly change: (snapshot: S, row: RevisionRow) => C
  readonly revision: (row: RevisionRow) => R
  /** Called after a change. */
  readonly changed: (snapshot: S, agent: string, workspace: Workspace | undefined) => Promise<unknown>
}

/**
 * Implements the routes of one sidecar; both sidecars have the same. An invalid text is answered with 422 and its
 * snapshot.
 * @typeParam C the reply to a change
 * @typeParam R an entry of the history
 */
export class SidecarDesk<S extends Soul | Heartbeat, C, R> {
  constructor(
    private readonly files: SidecarFiles<S>,
    private readonly options: DeskOptions<S, C, R>,
  ) {}

  async write(agent: string, body: WriteSidecarBody, actor: Actor, headers: Headers) {
    const request = await this.#requestOf(agent, body, actor, headers)
    return this.#answer(request, await this.files.write(request, body.body, condition(body)))
  }

  async rollback(agent: string, body: RollbackHeartbeatBody, actor: Actor, headers: Headers) {
    const request = await this.#requestOf(agent, body, actor, headers)
    const to = { id: body.revision_id, digest: body.target_digest }
    return this.#answer(request, await this.files.rollback(request, to, condition(body)))
  }

  async remove(agent: string, body: DeleteSidecarBody, actor: Actor, headers: Headers) {
    const request = await this.#requestOf(agent, body, actor, headers)
    const { snapshot, revision } = await this.files.remove(request, condition(body))
    await this.options.changed(snapshot, agent, request.workspace)
    return ok(this.options.change(snapshot, revision))
  }

  /** Validates a text, or the stored file. */
  async validate(agent: string, { body, workspace_id }: ValidateSoulBody) {
    const workspace = await this.workspace(workspace_id)
    const snapshot = await (body === undefined
      ? this.files.read(agent, workspace)
      : this.files.validate(agent, workspace, body))
    return snapshot.validation_status === 'invalid' ? { status: 422 as const, body: snapshot } : ok(snapshot)
  }

  async text(agent: string, { workspace_id }: SidecarQuery) {
    return ok(await this.files.text(agent, await this.workspace(workspace_id)))
  }

  async history(agent: string, actor: Actor, { workspace_id, ...page }: SidecarHistoryQuery) {
    const { rows, ...more } = await this.files.history(agent, await this.workspace(workspace_id), actor, page)
    return ok({ revisions: rows.map(this.options.revision), ...more })
  }

  /** The workspace of a request; undefined without one. */
  async workspace(reference: string | undefined): Promise<Workspace | undefined> {
    return reference ? await this.options.find(reference) : undefined
  }

  async #answer({ agent, workspace }: SidecarRequest, { snapshot, revision }: Changed<S>) {
    if (!revision) return { status: 422 as const, body: snapshot }
    await this.options.changed(snapshot, agent, workspace)
    return ok(this.options.change(snapshot, revision))
  }

  async #requestOf(
    agent: string,
    { workspace_id }: { readonly workspace_id?: string | undefined },
    actor: Actor,
    headers: Headers,
  ): Promise<SidecarRequest> {
    if (headers['if-match'] !== undefined) throw SidecarErrors.heartbeat_if_match_header_unsupported()
    return { agent, workspace: await this.workspace(workspace_id), actor }
  }
}

const condition = (body: { readonly expected_digest: string; readonly idempotency_key?: string | undefined }) => ({
  expected: body.expected_digest,
  key: body.idempotency_key,
})
