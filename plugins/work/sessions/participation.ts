import * as v from 'valibot'
import { registry, type Tx } from '../../../kernel/plugin.js'
import type { ParticipationRequest, ParticipationSource, ResolvedParticipation } from '../../../schemas/network.js'
import type { SessionInfo } from './api.js'

/** An execution that may take part in the network. */
export interface ParticipationOwner {
  readonly kind: 'session' | 'task_run' | 'automation_run' | 'loop_run'
  readonly id: string
}

/** The participation request of an execution that is about to be stored. */
export interface ParticipationWish {
  readonly owner: ParticipationOwner
  /** Undefined: the execution belongs to no workspace, and therefore to no channel. */
  readonly workspaceId: string | undefined
  /** The task of a run. The workspace's decision for this task is the fallback. */
  readonly taskId?: string | undefined
  /** Requests in order of precedence: the first defined one decides. */
  readonly asked: readonly {
    readonly source: ParticipationSource
    readonly request: ParticipationRequest | null | undefined
  }[]
}

/** The deciding request, after the hooks. */
export interface ParticipationAnswer {
  readonly source: ParticipationSource
  readonly request: ParticipationRequest
}

/** Decides how executions take part in the network. Each execution gets one decision, which never changes. */
export interface Participations {
  /** Runs the hooks on a request. @throws Fault `participation_invalid`, `participation_denied`, `network_disabled` */
  ask(wish: ParticipationWish): Promise<ParticipationAnswer>
  /**
   * Decides in the transaction that stores the execution. `unasked`: call {@link ask} first and pass its answer.
   * @throws Fault as {@link ask}
   */
  resolve(t: Tx, wish: ParticipationWish, answer?: ParticipationAnswer): ResolvedParticipation | 'unasked'
  /** Adds the session that works for an execution to the channel of that execution, if it has one. */
  join(t: Tx, owner: ParticipationOwner, session: SessionInfo): void
}

/** Contributes the network. Without it sessions cannot take part, and runs of tasks stay local. */
export const SessionParticipation = registry<Participations>(
  'sessions.participation@1',
  v.looseObject({ ask: v.function(), resolve: v.function(), join: v.function() }),
)

/** The resolved participation of an execution outside of the network. */
export const localParticipation = (source: ParticipationSource): ResolvedParticipation => ({
  mode: 'local',
  source,
  version: 'network-participation/v1',
})
