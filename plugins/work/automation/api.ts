import * as v from 'valibot'
import { command, placeholder } from '../../../kernel/kit/commands/command-line.js'
import {
  type Actor,
  defineErrors,
  event,
  gate,
  hookTable,
  pipeline,
  type TapsOf,
  type Tx,
  token,
} from '../../../kernel/plugin.js'
import type { SuggestBody, Suggestion } from '../../../schemas/automation.js'

export { JobKind, type JobRecord, JobSpec } from './job-kind.js'
export { TriggerKind, TriggerSpec } from './triggers/trigger-kind.js'

export type RunStatus = 'scheduled' | 'running' | 'delegated' | 'completed' | 'failed' | 'canceled'

/** A run that is about to be dispatched. */
export interface Fire {
  readonly runId: string
  /** Set for runs of jobs. */
  readonly jobId?: string
  readonly jobName?: string
  /** Set for runs of triggers. */
  readonly triggerId?: string
  readonly triggerName?: string
  readonly agentName: string
  /** ID of the workspace that the run works in. */
  readonly workspaceId?: string | undefined
  readonly attempt: number
  /** Epoch milliseconds of the occurrence; absent for a manual run. */
  readonly scheduledAt?: number | undefined
  /** Id of the newest event about the run. */
  readonly cause?: string | undefined
}

/** An event that an extension emits for triggers. */
export interface ExtensionEvent {
  /** `ext.<extension>.<name>`, with a name that the manifest declares in `[resources] events`. */
  readonly event: string
  /** The workspace whose triggers see the event. Default: the workspace the extension is linked to, else global triggers. */
  readonly workspaceId?: string
  /** Plain JSON, at most 64 KiB. */
  readonly data?: Readonly<Record<string, unknown>>
  /** Id of the logged event that caused this one; used to detect triggers that fire themselves. */
  readonly cause?: string
}

/** The agent and workspace of a run. */
export interface RunAbout {
  readonly agentName: string
  /** The workspace that the run works in. */
  readonly workspaceId?: string | undefined
  /** The run failed and its definition retries it. */
  readonly willRetry: boolean
}

/** The prompt of a run about to be dispatched. Setting `deny` (the reason) cancels the run. */
export interface FirePrompt {
  readonly prompt: string
  readonly deny?: string
}

/** The hooks of automation. Hook programs may take their time; each one has a time limit of its own. */
export const points = hookTable({
  preFire: gate<[fire: Fire]>('preFire', 'Before a claimed run is dispatched. A refusal cancels the run.', {
    deadlineMs: 600_000,
  }),
  prompting: pipeline<FirePrompt, [fire: Fire]>(
    'prompting',
    'Before a claimed run is dispatched, when `preFire` has passed. A tap may change the prompt or deny the run.',
    { deadlineMs: 600_000 },
  ),
})

export interface AutomationApi extends TapsOf<typeof points> {
  /** Whether the scheduler is running. */
  readonly running: boolean
  /** Suggests a job or trigger for a user to accept, on behalf of a plugin or extension. Throws `suggestion_…` errors. */
  suggest(actor: Actor, workspace: string, wish: SuggestBody): Promise<Suggestion>
  /**
   * Emits an event as the extension that requires this token. Triggers see it once the transaction is durable. Throws 403
   * `event_undeclared`, 404 `workspace_not_found`, 413 `event_too_large`, 429 `event_rate` (burst 100, sustained 10/s).
   */
  emit(t: Tx, event: ExtensionEvent): { readonly id: string }
  /** The agent and workspace of a run, by its ID; undefined if the run or its definition is gone. */
  about(run: string): RunAbout | undefined
}

export const Automation = token<AutomationApi>('automation@1')

const run = v.object({
  id: v.string(),
  /** Set for runs of jobs; runs of triggers have `trigger_id`. */
  job_id: v.optional(v.string()),
  trigger_id: v.optional(v.string()),
  status: v.string(),
  session_id: v.optional(v.string()),
  error: v.optional(v.string()),
})
export const RunCreated = event('automation.run.created', run)
export const RunStarted = event('automation.run.started', run)
export const RunEnded = event('automation.run.ended', run)

/** Trigger events that are not in the log otherwise: `ext.<extension>.<name>` and `hook.<name>.completed`. */
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

const GET_TRIGGER = command('automation triggers get', placeholder('trigger'))

export const AutomationErrors = defineErrors({
  job_not_found: { status: 404, message: 'job not found', next: command('automation jobs list') },
  run_not_found: { status: 404, message: 'run not found', next: command('automation runs list') },
  run_archive_off: {
    status: 503,
    message: 'the run is in the archive, and the plugin archives does not run',
    next: command('plugin show', 'archives'),
  },
  trigger_not_found: { status: 404, message: 'trigger not found', next: command('automation triggers list') },
  job_in_use: {
    status: 409,
    message: 'a run of this job is in progress',
    next: command('automation runs list'),
  },
  job_invalid: { status: 400, message: 'invalid job', next: command('automation jobs create', '--help') },
  job_damaged: {
    status: 409,
    message: 'the stored definition of this job is invalid; delete the job and create it again',
    next: command('doctor'),
  },
  trigger_invalid: {
    status: 400,
    message: 'invalid trigger',
    next: command('automation triggers create', '--help'),
  },
  trigger_damaged: {
    status: 409,
    message: 'the stored definition of this trigger is invalid; delete the trigger and create it again',
    next: command('doctor'),
  },
  trigger_name_taken: {
    status: 409,
    message: 'trigger name already in use',
    next: command('automation triggers list'),
  },
  trigger_read_only: {
    status: 409,
    message: 'this trigger is defined in the configuration or a package; only enabled can be changed here',
    next: command('automation triggers list'),
  },
  webhook_id_taken: {
    status: 409,
    message: 'webhook_id already in use by another trigger',
    next: command('automation triggers list'),
  },
  webhook_vault_missing: {
    status: 503,
    message: 'cannot store webhook_secret_value: the vault is not available',
    next: 'set the secret in the environment of the daemon and use webhook_secret_ref env:NAME',
  },
  webhook_not_found: { status: 404, message: 'webhook not found' },
  trigger_not_webhook: {
    status: 400,
    message: 'this trigger is not fired by webhook deliveries',
    next: command('automation triggers list'),
  },
  webhook_headers_invalid: {
    status: 400,
    message: 'missing or malformed signature headers',
    next: `use the signature scheme of the trigger: ${GET_TRIGGER}`,
  },
  webhook_secret_missing: {
    status: 400,
    message: 'delivery refused: the signing secret of this webhook is not set',
    next: `store the secret that ${GET_TRIGGER} shows: ${command('vault put', placeholder('reference'))}`,
  },
  webhook_signature_invalid: { status: 401, message: 'the signature does not match the body and timestamp' },
  webhook_stale: {
    status: 401,
    message: 'the delivery timestamp differs too much from the current time',
  },
  webhook_replayed: { status: 409, message: 'duplicate delivery: it was already accepted' },
  webhook_rate_limit: { status: 429, message: 'too many deliveries to this webhook; retry later' },
  loop_invalid: {
    status: 422,
    message: 'invalid loop target',
    next: command('automation jobs create', '--help'),
  },
  job_name_taken: { status: 409, message: 'job name already in use', next: command('automation jobs list') },
  job_read_only: {
    status: 409,
    message: 'this job is defined in the configuration or a package; only enabled can be changed here',
    next: command('automation jobs list'),
  },
  lifecycle_command: {
    status: 400,
    message: 'the prompt contains a command that stops or restarts the daemon; a run must not do that',
    next: command('automation jobs create', '--help'),
  },
  event_foreign: {
    status: 403,
    message: 'only extensions can emit events',
    next: command('automation triggers create', '--help'),
  },
  event_undeclared: {
    status: 403,
    message: 'the extension does not declare this event in [resources] events of its manifest',
    next: command('extension list'),
  },
  event_too_large: { status: 413, message: 'the event data is larger than 64 KiB' },
  event_rate: {
    status: 429,
    message: 'this extension emits too many events (limit: burst 100, then 10/s); retry later',
  },
  suggestion_invalid: {
    status: 400,
    message: 'invalid suggestion',
    next: command('automation suggestions propose', '--help'),
  },
  suggestion_foreign: {
    status: 403,
    message: 'an agent can only make suggestions for its own workspace',
    next: command('whoami'),
  },
  suggestion_not_found: {
    status: 404,
    message: 'suggestion not found',
    next: command('automation suggestions list'),
  },
  suggestion_resolved: {
    status: 409,
    message: 'this suggestion was already accepted or dismissed',
    next: command('automation suggestions list'),
  },
  suggestion_limit: {
    status: 409,
    message: 'this workspace already has 50 pending suggestions; accept or dismiss some first',
    next: command('automation suggestions list'),
  },
  simulation_invalid: {
    status: 400,
    message: 'invalid simulation request',
    next: command('automation simulate', '--help'),
  },
  simulation_busy: {
    status: 429,
    message: 'another simulation is running; retry when it has finished',
    next: command('automation simulate'),
  },
  concurrency_limit: {
    status: 409,
    message: 'concurrency limit reached (automation.max_concurrent_jobs); wait for a run to end',
    next: command('automation runs list', '--status', 'running'),
  },
  fire_limit: {
    status: 409,
    message: 'fire limit reached; wait or raise fire_limit',
    next: command('automation runs list'),
  },
  automation_disabled: {
    status: 503,
    message: 'automation is disabled (automation.enabled is false) or the daemon is stopping',
    next: command('doctor', '--only', 'scheduler'),
  },
})
