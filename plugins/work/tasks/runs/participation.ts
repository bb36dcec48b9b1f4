import type { Tx } from '../../../../kernel/plugin.js'
import type { ParticipationRequest, ParticipationSource, ResolvedParticipation } from '../../../../schemas/network.js'
import type { CoordinationChannel } from '../../../../schemas/tasks.js'
import {
  localParticipation,
  type ParticipationAnswer,
  type Participations,
  type ParticipationWish,
  type SessionInfo,
  SessionParticipation,
} from '../../sessions/api.js'
import type { K } from '../needs.js'
import type { TaskRow } from '../tasks/task-row.js'
import type { RunRow } from './run-row.js'

/**
 * Thrown out of a transaction in which a run needs the answer of asynchronous hooks. The caller asks the hooks and repeats the
 * work.
 */
export class UnaskedError extends Error {
  constructor(
    readonly taskId: string,
    readonly ask: () => Promise<ParticipationAnswer>,
  ) {
    super('hooks must decide about the network participation')
  }
}

/** The input for the decision about a run's network participation. */
export interface RunWish {
  readonly runId: string
  readonly task: TaskRow
  /** The request that queues the run. */
  readonly request: ParticipationRequest | null | undefined
  /** The execution profile of the task. */
  readonly profile: ParticipationRequest | null | undefined
}

/** Decides about the network participation of runs when they are queued. Without a network all runs are local. */
export class RunParticipation {
  #answers: ReadonlyMap<string, ParticipationAnswer> = new Map()

  constructor(private readonly kernel: Pick<K, 'collect'>) {}

  /** Runs work with the answers of hooks, by task. */
  with<T>(answers: ReadonlyMap<string, ParticipationAnswer>, work: () => T): T {
    this.#answers = answers
    try {
      return work()
    } finally {
      this.#answers = new Map()
    }
  }

  /** @throws UnaskedError when hooks have to be asked; Fault `participation_invalid`, `participation_denied`, `network_disabled` */
  resolve(t: Tx, { runId, task, ...requests }: RunWish): ResolvedParticipation {
    const wish: ParticipationWish = {
      owner: { kind: 'task_run', id: runId },
      workspaceId: task.workspace_id ?? undefined,
      taskId: task.id,
      asked: requestsOf(task, requests),
    }
    const network = this.#network()
    if (!network) return localParticipation(wish.asked.find(({ request }) => request)?.source ?? 'built_in_local')
    const resolved = network.resolve(t, wish, this.#answers.get(task.id))
    if (resolved === 'unasked') throw new UnaskedError(task.id, () => network.ask(wish))
    return resolved
  }

  /** Adds the session that works on a run to the channel of the run, if it has one. */
  claimed(t: Tx, run: RunRow, session: SessionInfo): void {
    if (channelOfRun(run) !== undefined) this.#network()?.join(t, { kind: 'task_run', id: run.id }, session)
  }

  #network(): Participations | undefined {
    return this.kernel.collect(SessionParticipation)[0]?.entry
  }
}

/** Requests in order of precedence. The request of an automation's task comes from its job. */
function requestsOf(
  task: TaskRow,
  { request, profile }: Pick<RunWish, 'request' | 'profile'>,
): ParticipationWish['asked'] {
  const own = task.participation === null ? undefined : (JSON.parse(task.participation) as ParticipationRequest)
  const isOfJob = task.origin_kind === 'automation' && task.origin_ref.startsWith('run:')
  const source: ParticipationSource = isOfJob ? 'automation_job' : 'task_profile'
  return [
    { source: 'explicit_request', request },
    { source: 'task_profile', request: profile },
    { source, request: own },
  ]
}

/** The channel named in the deciding request. */
export function askedChannel(task: TaskRow, requests: Pick<RunWish, 'request' | 'profile'>): string | null {
  const request = requestsOf(task, requests).find(one => one.request)?.request
  return request?.mode === 'live' && request.channel_strategy === 'named' ? request.channel_id : null
}

/** Most runs have one of a few participations, and a reply shows it several times. */
const parsed = new Map<string, ResolvedParticipation>()

/** The resolved participation of a run; null for a run of an earlier version. */
export function participationOf({ participation: text }: Pick<RunRow, 'participation'>): ResolvedParticipation | null {
  if (text === null) return null
  const known = parsed.get(text)
  if (known) return known
  if (parsed.size >= 100) parsed.clear()
  const participation: ResolvedParticipation = JSON.parse(text)
  parsed.set(text, participation)
  return participation
}

/** Kinds of messages in the channel of a run. */
const MESSAGE_KINDS = ['status', 'request', 'reply', 'blocker', 'handoff', 'result', 'review_request'] as const

/** The channel in which the agents of a run coordinate; undefined for a local run. */
export function channelOfRun({ id, task_id, participation }: RunRow): CoordinationChannel | undefined {
  const resolved = participationOf({ participation })
  if (resolved?.mode !== 'live') return undefined
  const { channel_id: channel, workspace_id } = resolved
  return {
    ...{ id: channel, display_name: channel, run_id: id, task_id, workspace_id },
    allowed_message_kinds: [...MESSAGE_KINDS],
  }
}
