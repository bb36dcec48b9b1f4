import * as v from 'valibot'
import { registry, type Tx } from '../../../kernel/plugin.js'
import type { ParticipationRequest, ParticipationSource, ResolvedParticipation } from '../../../schemas/network.js'
import type { SessionInfo } from './api.js'

/** What takes part in the network, or does not. */
export interface ParticipationOwner {
  readonly kind: 'session' | 'task_run' | 'automation_run' | 'loop_run'
  readonly id: string
}

/** What is asked of the network for an execution that is about to be made. */
export interface ParticipationWish {
  readonly owner: ParticipationOwner
  /** Undefined: it belongs to no workspace, and so to no channel. */
  readonly workspaceId: string | undefined
  /** The task of a run: what the workspace decided for it counts where nothing else does. */
  readonly taskId?: string | undefined
  /** Requests by precedence: the first one that is there decides. */
  readonly asked: readonly {
    readonly source: ParticipationSource
    readonly request: ParticipationRequest | null | undefined
  }[]
}

/** What decides, after hooks had a look. */
export interface ParticipationAnswer {
  readonly source: ParticipationSource
  readonly request: ParticipationRequest
}

/** Decides how executions take part in the network; it is decided once for each of them, and stays. */
export interface Participations {
  /** Asks the hooks about a wish. @throws Fault `participation_invalid`, `participation_denied`, `network_disabled` */
  ask(wish: ParticipationWish): Promise<ParticipationAnswer>
  /**
   * Decides in the transaction that stores the execution. `unasked`: hooks have to be asked first, and the answer be given.
   * @throws Fault as {@link ask}
   */
  resolve(t: Tx, wish: ParticipationWish, answer?: ParticipationAnswer): ResolvedParticipation | 'unasked'
  /** A session works for an execution: it takes part in its channel, if that has one. */
  join(t: Tx, owner: ParticipationOwner, session: SessionInfo): void
}

/** Contributes the network. Without it sessions cannot take part, and runs of tasks stay local. */
export const SessionParticipation = registry<Participations>(
  'sessions.participation@1',
  v.looseObject({ ask: v.function(), resolve: v.function(), join: v.function() }),
)

/** No part in the network. */
export const localParticipation = (source: ParticipationSource): ResolvedParticipation => ({
  mode: 'local',
  source,
  version: 'network-participation/v1',
})
