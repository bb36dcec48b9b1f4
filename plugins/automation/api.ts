import * as v from 'valibot'
import { type Actor, defineErrors, event, type Fault, type Hook, type Tx, token } from '../../kernel/plugin.js'
import type { SuggestBody, Suggestion } from '../../schemas/automation.js'

export { JobKind, type JobRecord, JobSpec } from './job-kind.js'
export { TriggerKind, TriggerSpec } from './triggers/trigger-kind.js'

export type RunStatus = 'scheduled' | 'running' | 'delegated' | 'completed' | 'failed' | 'canceled'

/** A run that is about to be dispatched. */
export interface Fire {
  readonly runId: string
  /** Of a run of a job. */
  readonly jobId?: string
  readonly jobName?: string
  /** Of a run of a trigger. */
  readonly triggerId?: string
  readonly triggerName?: string
  readonly agentName: string
  /** Where it works. */
  readonly workspaceId?: string | undefined
  readonly attempt: number
  /** Epoch milliseconds of the occurrence; absent for one that was triggered by hand. */
  readonly scheduledAt?: number | undefined
  /** Id of the newest event about the run. */
  readonly cause?: string | undefined
}

/** Something of its own that an extension tells triggers of. */
export interface ExtensionEvent {
  /** `ext.<extension>.<name>`, a name that its manifest declares below `[resources] events`. */
  readonly event: string
  /** Where it happened: the triggers of that workspace see it. Default: that of a link to one, else those of none. */
  readonly workspaceId?: string
  /** Plain JSON, at most 64 KiB. */
  readonly data?: Readonly<Record<string, unknown>>
  /** Id of the event of the log that led to it: so a trigger that feeds itself is found out. */
  readonly cause?: string
}

/** A hook that was run. */
export interface HookCompletion {
  readonly hook: string
  readonly event: string
  readonly source: string
  readonly mode: string
  readonly required: boolean
  /** Empty: about none. */
  readonly sessionId: string
  readonly workspaceId: string
  readonly depth: number
  readonly outcome: string
  /** Epoch milliseconds. */
  readonly at: number
  readonly error: string | undefined
  /** Id of the event that the hook was run for, where that is known. */
  readonly cause?: string | undefined
}

/** A request that the program of a hook makes, and what the hook was run for: a session, an event of the log. */
export interface HookAsked {
  readonly id: string
  readonly whoms: readonly { readonly sessionId?: string; readonly cause?: string | undefined }[]
}

/** Whom a run is for. */
export interface RunAbout {
  readonly agentName: string
  /** Where it works. */
  readonly workspaceId?: string | undefined
  /** It failed, and its definition has it tried again. */
  readonly willRetry: boolean
}

/** The prompt of a run that is about to be dispatched; with `deny`, the reason in words, it becomes `canceled`. */
export interface FirePrompt {
  readonly prompt: string
  readonly deny?: string
}

export interface AutomationApi {
  /** Is the scheduler at work? */
  readonly running: boolean
  /** May a claimed run be dispatched; a refusal makes it `canceled`. */
  readonly preFire: Hook<(fire: Fire) => Promise<Fault | undefined>>
  /** The same where nobody refused: taps may change the prompt of the run, and refuse as well. One that fails has no say. */
  readonly prompting: Hook<(asked: FirePrompt, fire: Fire) => Promise<FirePrompt | undefined>>
  /** Proposes a job or trigger to the people of a workspace, for plugins and extensions; see the errors `suggestion_…`. */
  suggest(actor: Actor, workspace: string, wish: SuggestBody): Promise<Suggestion>
  /**
   * Tells triggers of something, as the extension that requires this: they see it when the transaction is durable. Throws 403
   * `event_undeclared`, 404 `workspace_not_found`, 413 `event_too_large`, 429 `event_rate`: 100 at once, 10 a second.
   */
  emit(t: Tx, event: ExtensionEvent): { readonly id: string }
  /** Tells triggers of `hook.<name>.completed` that a hook was run; nothing is written when there is none. */
  hookCompleted(t: Tx, run: HookCompletion): void
  /** Whom a run is for, by its id; undefined when it or its definition is gone. */
  about(run: string): RunAbout | undefined
  /** The program of a hook asks for something: what follows from that follows from the runs of triggers before the hook. */
  hookAsks(request: HookAsked): Promise<void>
}

export const Automation = token<AutomationApi>('automation@1')

const run = v.object({
  id: v.string(),
  /** Of a run of a job; one of a trigger has `trigger_id`. */
  job_id: v.optional(v.string()),
  trigger_id: v.optional(v.string()),
  status: v.string(),
  session_id: v.optional(v.string()),
  error: v.optional(v.string()),
})
export const RunCreated = event('automation.run.created', run)
export const RunStarted = event('automation.run.started', run)
export const RunEnded = event('automation.run.ended', run)

/** What triggers may be about and nothing else in the log tells: `ext.<extension>.<name>`, `hook.<name>.completed`. */
export const Observation = event(
  'automation.observation',
  v.object({
    event: v.string(),
    source: v.picklist(['hook', 'extension']),
    data: v.record(v.string(), v.unknown()),
  }),
)
export interface Observation {
  readonly event: string
  readonly source: 'hook' | 'extension'
  readonly data: Readonly<Record<string, unknown>>
}

export const AutomationErrors = defineErrors({
  job_not_found: { status: 404, message: 'no such job', next: 'svc automation jobs list' },
  run_not_found: { status: 404, message: 'no such run', next: 'svc automation runs list' },
  trigger_not_found: { status: 404, message: 'no such trigger', next: 'svc automation triggers list' },
  job_invalid: { status: 400, message: 'the job is not valid', next: 'svc automation jobs create --help' },
  job_damaged: {
    status: 409,
    message: 'the stored definition of this job is not valid; write it anew or delete it',
    next: 'svc doctor',
  },
  trigger_invalid: {
    status: 400,
    message: 'the trigger is not valid',
    next: 'svc automation triggers create --help',
  },
  trigger_damaged: {
    status: 409,
    message: 'the stored definition of this trigger is not valid; write it anew or delete it',
    next: 'svc doctor',
  },
  trigger_name_taken: { status: 409, message: 'another trigger has this name', next: 'svc automation triggers list' },
  trigger_read_only: {
    status: 409,
    message: 'this trigger is defined by the configuration or a package; only enabled may be changed here',
    next: 'svc automation triggers list',
  },
  webhook_id_taken: {
    status: 409,
    message: 'another trigger has this webhook_id',
    next: 'svc automation triggers list',
  },
  webhook_vault_missing: {
    status: 503,
    message: 'there is no vault that could keep the secret',
    next: 'set the secret in the environment of the daemon and give webhook_secret_ref env:NAME',
  },
  webhook_not_found: { status: 404, message: 'there is no such webhook' },
  webhook_headers_invalid: {
    status: 400,
    message: 'the headers that sign a delivery are missing or malformed',
    next: 'sign it by the scheme of the trigger: svc automation triggers get <trigger>',
  },
  webhook_secret_missing: {
    status: 400,
    message: 'this webhook has no secret, and takes no delivery without one',
    next: 'store the one that svc automation triggers get <trigger> names: svc vault put <reference>',
  },
  webhook_signature_invalid: { status: 401, message: 'the signature does not belong to this body and time' },
  webhook_stale: { status: 401, message: 'the time of the delivery is more than 5 minutes away from now' },
  webhook_replayed: { status: 409, message: 'this delivery was taken before' },
  webhook_rate_limit: { status: 429, message: 'too many deliveries to this webhook; send it again later' },
  loop_invalid: {
    status: 422,
    message: 'the loop target is not valid',
    next: 'svc automation jobs create --help',
  },
  job_name_taken: { status: 409, message: 'another job has this name', next: 'svc automation jobs list' },
  job_read_only: {
    status: 409,
    message: 'this job is defined by the configuration or a package; only enabled may be changed here',
    next: 'svc automation jobs list',
  },
  lifecycle_command: {
    status: 400,
    message: 'the prompt looks like a command that stops or restarts the daemon, which a run must not do',
    next: 'svc automation jobs create --help',
  },
  event_foreign: {
    status: 403,
    message: 'extensions alone tell of events of their own',
    next: 'svc automation triggers create --help',
  },
  event_undeclared: {
    status: 403,
    message: 'the manifest of the extension declares no such event below [resources] events',
    next: 'svc extension list',
  },
  event_too_large: { status: 413, message: 'the data of an event has at most 64 KiB' },
  event_rate: { status: 429, message: 'this extension tells of too many events; try again later' },
  suggestion_invalid: {
    status: 400,
    message: 'this cannot be suggested',
    next: 'svc automation suggestions propose --help',
  },
  suggestion_foreign: {
    status: 403,
    message: 'an agent suggests for its own workspace only',
    next: 'svc whoami',
  },
  suggestion_not_found: {
    status: 404,
    message: 'no such suggestion',
    next: 'svc automation suggestions list',
  },
  suggestion_resolved: {
    status: 409,
    message: 'this suggestion was answered already',
    next: 'svc automation suggestions list',
  },
  suggestion_limit: {
    status: 409,
    message: 'this workspace has 50 suggestions that wait for an answer',
    next: 'svc automation suggestions list',
  },
  simulation_invalid: {
    status: 400,
    message: 'this cannot be simulated',
    next: 'svc automation simulate --help',
  },
  simulation_busy: {
    status: 429,
    message: 'another simulation is going on; try again when it has ended',
    next: 'svc automation simulate',
  },
  concurrency_limit: {
    status: 409,
    message: 'automation.max_concurrent_jobs runs are going on; wait for one to end',
    next: 'svc automation runs list --status running',
  },
  fire_limit: {
    status: 409,
    message: 'the fire limit is reached; wait or raise fire_limit',
    next: 'svc automation runs list',
  },
  workspace_required: {
    status: 422,
    message: 'there is no workspace to run in; register one: svc workspace add <dir>',
    next: 'svc workspace add',
  },
  automation_disabled: {
    status: 503,
    message: 'automation is switched off by automation.enabled, or is stopping',
    next: 'svc doctor --only scheduler',
  },
})
