import type { Notify, Pipeline, Reads, Tx } from '../../../../kernel/plugin.js'
import type { LiveParticipation, ParticipationRequest, ResolvedParticipation } from '../../../../schemas/network.js'
import { boundAmount, isWider } from '../../../../schemas/network-bounds.js'
import {
  localParticipation,
  type ParticipationAnswer,
  type ParticipationOwner,
  type Participations,
  type ParticipationWish,
  SessionErrors,
  type SessionInfo,
  type SessionStart,
} from '../../../work/sessions/api.js'
import { NetworkErrors, type PreResolve, type Resolved } from '../api.js'
import type { Channels } from '../channels/channels.js'
import { type Peers, peerIdOf } from '../channels/peers.js'
import type { Coordination } from '../coordination/coordination.js'
import { derivedChannel } from '../envelope.js'
import type { K } from '../needs.js'
import { NetworkEnabled } from '../settings.js'
import type { BoundsOf } from '../wakes/bounds.js'
import { boundsFor } from './bounds.js'
import { type ParticipationRow, participations } from './table.js'

type LiveRequest = Extract<ParticipationRequest, { mode: 'live' }>

/** Decides once per execution whether it takes part in a channel, and within which bounds. */
export class Participation implements Participations {
  constructor(
    private readonly kernel: K,
    private readonly channels: Channels,
    private readonly peers: Peers,
    private readonly coordination: Coordination,
    private readonly hooks: {
      readonly preResolve: Pipeline<PreResolve>
      readonly resolved: Notify<[Resolved]>
    },
  ) {}

  readonly ask = async (wish: ParticipationWish): Promise<ParticipationAnswer> => {
    const decided = this.#decide(this.kernel.db, wish)
    const { request, source } = decided
    if (request.mode !== 'live') return decided
    const { workspaceId, bounds } = this.#judge(wish, request)
    const liveRequest: LiveRequest = { ...request, bounds }
    const { owner, taskId } = wish
    const { deny, request: answer } = await this.hooks.preResolve.run({
      owner,
      workspaceId,
      taskId,
      source,
      request: liveRequest,
    })
    if (deny !== undefined) throw SessionErrors.participation_denied(deny)
    return { source, request: this.#narrowed(liveRequest, answer) }
  }

  readonly resolve = (
    t: Tx,
    wish: ParticipationWish,
    answer?: ParticipationAnswer,
  ): ResolvedParticipation | 'unasked' => {
    const own = this.kernel.db.within(t)
    const { source, request } = answer ?? this.#decide(own, wish)
    const resolved =
      request.mode === 'live' ? this.#live(own, wish, request, source, answer) : localParticipation(source)
    if (resolved === 'unasked') return resolved
    if (this.hooks.resolved.isUsed())
      this.kernel.db.onDurable(own, () => {
        void this.hooks.resolved.call({ owner: wish.owner, workspaceId: wish.workspaceId, resolved })
      })
    return resolved
  }

  readonly join = (t: Tx, { kind: ownerKind, id: ownerId }: ParticipationOwner, session: SessionInfo): void => {
    const own = this.kernel.db.within(t)
    const row = participations.get(own, { ownerKind, ownerId })
    if (!row || row.workspaceId !== session.workspaceId) return
    this.#ensure(own, row.workspaceId, row.channel, session.id)
    participations.update(own, { ownerKind, ownerId }, { sessionId: session.id })
    this.peers.join(own, row.channel, session)
  }

  /** Participation of a session in a channel: its own, or that of the newest execution it works for. */
  ofSession(sessionId: string, channel?: string, reads: Reads = this.kernel.db): ParticipationRow | undefined {
    const where = { sessionId, ...(channel !== undefined && { channel }) }
    const [row] = participations.all(reads, where, "ORDER BY owner_kind = 'session' DESC, resolved_at DESC LIMIT 1")
    return row
  }

  /** Participation of an execution; undefined if it is local. */
  of({ kind: ownerKind, id: ownerId }: ParticipationOwner): ParticipationRow | undefined {
    return participations.get(this.kernel.db, { ownerKind, ownerId })
  }

  /** Budget for the wakes of a session; one without an execution has the default bounds. */
  readonly budgetOf: BoundsOf = sessionId => {
    const row = this.ofSession(sessionId)
    const bounds = row?.participation.bounds ?? boundsFor(setting => this.kernel.config.get(setting))
    if (typeof bounds === 'string') throw new TypeError(bounds)
    return {
      owner: row ? { kind: row.ownerKind, id: row.ownerId } : { kind: 'session', id: sessionId },
      ...(row?.ownerKind === 'task_run' && { taskRunId: row.ownerId }),
      bounds: {
        maxWakes: bounds.max_wakes,
        maxWakeDepth: bounds.max_wake_depth,
        maxWakeWallTime: boundAmount(bounds.max_wake_wall_time),
        maxTotalWallTime: boundAmount(bounds.max_total_wall_time),
        maxInputTokens: bounds.max_input_tokens,
        maxOutputTokens: bounds.max_output_tokens,
        coalesceWindow: boundAmount(bounds.coalesce_window),
      },
    }
  }

  /** Adds the channel and peer id to the environment of a participating session. */
  prepared(start: SessionStart, session: SessionInfo): SessionStart | undefined {
    const row = this.ofSession(session.id)
    if (!row) return undefined
    return { ...start, env: { ...start.env, SVC_SESSION_CHANNEL: row.channel, SVC_PEER_ID: peerIdOf(session) } }
  }

  #decide(reads: Reads, { asked: requests, workspaceId, taskId, owner }: ParticipationWish): ParticipationAnswer {
    for (const { source, request } of requests) if (request) return { source, request }
    const coordinates = owner.kind === 'task_run' && workspaceId !== undefined
    // A disabled network must not keep tasks of a coordinated workspace from running.
    return coordinates && this.#isOn && this.coordination.isOn(reads, workspaceId, taskId)
      ? { source: 'workspace_coordination', request: { mode: 'live', channel_strategy: 'run' } }
      : { source: 'built_in_local', request: { mode: 'local' } }
  }

  get #isOn(): boolean {
    return this.kernel.config.get(NetworkEnabled)
  }

  /** @throws Fault `network_disabled`, `participation_invalid` */
  #judge(
    { workspaceId, owner }: ParticipationWish,
    { channel_strategy: strategy, bounds: requestedBounds }: LiveRequest,
  ) {
    if (!this.#isOn) throw NetworkErrors.network_disabled()
    if (workspaceId === undefined)
      throw SessionErrors.participation_invalid('it has no workspace, but channels belong to workspaces')
    if (strategy === 'loop_run' && owner.kind !== 'loop_run')
      throw SessionErrors.participation_invalid('channel_strategy: loop_run is only allowed within a loop run')
    const bounds = boundsFor(setting => this.kernel.config.get(setting), requestedBounds)
    if (typeof bounds === 'string') throw SessionErrors.participation_invalid(bounds)
    return { workspaceId, bounds }
  }

  #live(
    t: Tx,
    wish: ParticipationWish,
    request: LiveRequest,
    source: ParticipationAnswer['source'],
    answer: ParticipationAnswer | undefined,
  ): LiveParticipation | 'unasked' {
    const { owner } = wish
    const { workspaceId, bounds } = this.#judge(wish, request)
    if (answer === undefined && this.hooks.preResolve.isUsed()) return 'unasked'
    const { channel_strategy: strategy } = request
    const channel =
      request.channel_strategy === 'named' ? request.channel_id : derivedChannel(request.channel_strategy, owner.id)
    const live: LiveParticipation = {
      ...{ mode: 'live', source, version: 'network-participation/v1' },
      ...{ workspace_id: workspaceId, channel_id: channel, channel_strategy: strategy, bounds },
    }
    this.#ensure(t, workspaceId, channel, owner.id)
    participations.insert(t, {
      ...{ ownerKind: owner.kind, ownerId: owner.id, workspaceId, channel, participation: live },
      resolvedAt: this.kernel.clock.now(),
    })
    return live
  }

  /** Creates a channel declared by a bundle on its first use. */
  #ensure(t: Tx, workspaceId: string, channel: string, by: string): void {
    const declared = this.kernel.needs.bundles.current?.declaredChannels() ?? []
    const known = declared.find(
      ({ name, workspace_id: of }) => name === channel && (of === undefined || of === workspaceId),
    )
    this.channels.ensure(t, workspaceId, channel, by, known?.description)
  }

  /** Applies a hook's change of a request; one that asks for more is ignored. */
  #narrowed(liveRequest: LiveRequest, answer: ParticipationRequest): ParticipationRequest {
    if (answer.mode !== 'live') return answer
    if (!isWider(answer, liveRequest)) return { ...liveRequest, bounds: { ...liveRequest.bounds, ...answer.bounds } }
    this.kernel.log.warn('a hook requested more network participation than the caller; its change has no effect')
    return liveRequest
  }
}
