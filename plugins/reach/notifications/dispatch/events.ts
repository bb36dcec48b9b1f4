/** Long on purpose: a single table of all events that matter to people, with their meanings. */
import { command } from '../../../../kernel/kit/commands/command-line.js'
import type { Severity } from '../presets/filter.js'

/** The payload of an event. */
export type Payload = Readonly<Record<string, unknown>>

/** Facts about an event for its text. */
export interface Known {
  readonly payload: Payload
  /** Display name of its subject: `Deploy docs (task_1)`. */
  readonly subject: string
  /** Id of its subject. */
  readonly id: string
  readonly run?: string | undefined
  readonly task?: string | undefined
  readonly session?: string | undefined
}

/** Meaning of an event for people. */
export interface Meaning {
  readonly severity: Severity | ((payload: Payload) => Severity)
  /** One line without a final full stop. */
  readonly title: (known: Known) => string
  /** The reason, from the event's payload. */
  readonly why?: (payload: Payload) => unknown
  /** Command to run next. */
  readonly next?: (known: Known) => string | undefined
  /** Outcome for its subject. Failures are counted until the next success. */
  readonly outcome?: 'failure' | 'success' | ((payload: Payload) => 'failure' | 'success' | undefined)
}

const showTask = ({ task }: Known) => (task === undefined ? undefined : command('task get', task))
const showRun = ({ run, task }: Known) =>
  run === undefined ? showTask({ task } as Known) : command('task run show', run)
const showSession = ({ session }: Known) => (session === undefined ? undefined : command('session status', session))
const failed = ({ status }: Payload) => status === 'failed'
/** Whether a job's occurrence did not run, because nothing could run it or no slot was free in time. */
const missed = ({ status, error }: Payload) => status === 'canceled' && MISSED.test(String(error))
export const MISSED = /^(?:misfire_grace_exceeded|concurrency_limit)\b/

const task = (severity: Severity, said: string, more: Partial<Meaning> = {}): Meaning => ({
  severity,
  title: ({ subject }) => `${said}: ${subject}`,
  why: ({ error, reason, message }) => error ?? reason ?? message,
  next: showRun,
  ...more,
})
const session = (severity: Severity, said: string, more: Partial<Meaning> = {}): Meaning => ({
  severity,
  title: ({ subject }) => `${said}: ${subject}`,
  why: ({ reason, stop_detail: detail }) => reason ?? detail,
  next: showSession,
  ...more,
})
const provider = (severity: Severity, said: string, more: Partial<Meaning> = {}): Meaning => ({
  severity,
  title: ({ subject }) => `${said}: ${subject}`,
  why: ({ message }) => message,
  next: ({ id }) => command('provider info', id),
  outcome: 'failure',
  ...more,
})
const bridge = (severity: Severity, said: string, more: Partial<Meaning> = {}): Meaning => ({
  severity,
  title: ({ subject }) => `${said}: ${subject}`,
  why: ({ message }) => message,
  next: ({ id }) => `svc bridge get ${id}`,
  outcome: 'failure',
  ...more,
})
const extension = (said: string): Meaning => ({
  severity: 'error',
  title: ({ subject }) => `${said}: ${subject}`,
  why: ({ error }) => error,
  next: () => command('extension list'),
  outcome: 'failure',
})

/** Events that matter to people. All others have the severity `info` and their name as text. */
export const MEANINGS: Readonly<Record<string, Meaning>> = {
  'task.run_enqueued': task('info', 'Task run queued'),
  'task.run_claimed': task('info', 'Task run claimed'),
  'task.run_started': task('info', 'Task run started'),
  'task.run_completed': task('info', 'Task run completed', { outcome: 'success' }),
  'task.run_failed': task('error', 'Task run failed', { outcome: 'failure' }),
  'task.run_operator_forced_fail': task('error', 'Task run was made to fail', { outcome: 'failure' }),
  'task.run_canceled': task('warning', 'Task run canceled'),
  'task.run_needs_attention': task('error', 'Task run needs attention', { outcome: 'failure' }),
  'task.run_starved': task('warning', 'No session claims a task run'),
  'task.run_lease_expired': task('warning', 'Lease of a task run expired'),
  'task.run_review_requested': task('warning', 'Review requested', { next: showTask }),
  'task.run_review_circuit_opened': task('error', 'Reviews of a task end without a verdict', { next: showTask }),
  'task.needs_attention': task('error', 'Task needs attention', {
    next: ({ task: id }) => (id === undefined ? undefined : command('task recover', id)),
    outcome: 'failure',
  }),
  'task.recovered': task('info', 'Task recovered', { outcome: 'success', next: showTask }),
  'task.budget_exceeded': task('error', 'Budget of a task is used up', { outcome: 'failure', next: showTask }),
  'task.block.created': task('warning', 'Task is blocked', {
    next: ({ task: id }) => (id === undefined ? undefined : command('task blocks', id)),
  }),
  'task.completion.hallucination_blocked': task('warning', 'Result of a task run refused'),
  'scheduler.stalled': {
    severity: 'error',
    title: () => 'Scheduler starts no task runs although some wait',
    next: () => command('scheduler status'),
    outcome: 'failure',
  },
  'session.unhealthy': session('error', 'Session failed', { outcome: 'failure' }),
  'session.hung': session('error', 'Session is unresponsive', { outcome: 'failure' }),
  'session.recovered': session('info', 'Session works again', { outcome: 'success' }),
  'session.stopped': session('info', 'Session stopped'),
  'provider.auth_required': provider('error', 'Provider needs a login', {
    next: ({ id }) => command('provider auth status', id),
  }),
  'provider.rate_limited': provider('warning', 'Provider limits requests'),
  'provider.permission_denied': provider('error', 'Provider denies access'),
  'provider.unavailable': provider('error', 'Provider is unavailable'),
  'provider.recovered': provider('info', 'Provider works again', { outcome: 'success' }),
  'automation.run.ended': {
    severity: payload => (failed(payload) ? 'error' : payload.status === 'canceled' ? 'warning' : 'info'),
    title: ({ subject, payload }) =>
      missed(payload)
        ? `${payload.trigger_id ? 'Trigger' : 'Job'} was not run: ${subject}`
        : `Automation run ${payload.status}: ${subject}`,
    why: ({ error }) => error,
    next: ({ payload }) => command('automation runs get', String(payload.id)),
    outcome: payload =>
      failed(payload) || missed(payload) ? 'failure' : payload.status === 'completed' ? 'success' : undefined,
  },
  'bridge.ready': bridge('info', 'Bridge is connected', { outcome: 'success' }),
  'bridge.degraded': bridge('warning', 'Bridge is degraded'),
  'bridge.auth_required': bridge('error', 'Bridge needs a login', { next: ({ id }) => `svc bridge verify ${id}` }),
  'bridge.error': bridge('error', 'Bridge failed', { next: ({ id }) => `svc bridge verify ${id}` }),
  'bridge.delivery_failed': bridge('error', 'Message was not delivered', { why: ({ reason }) => reason }),
  'plugin.failed': {
    severity: 'error',
    title: ({ subject }) => `Plugin failed: ${subject}`,
    why: ({ error }) => error,
    next: ({ subject }) => command('plugin show', subject),
    outcome: 'failure',
  },
  'plugin.loaded': { severity: 'info', title: ({ subject }) => `Plugin runs: ${subject}`, outcome: 'success' },
  'extension.reload.failed': extension('Extension could not be reloaded'),
  'extension.install.failed': extension('Extension could not be installed'),
  'extension.update.failed': extension('Extension could not be updated'),
  'tool.approval_requested': {
    severity: 'warning',
    title: ({ subject }) => `Tool call waits for approval: ${subject}`,
    next: () => command('tool approvals'),
  },
  'attention.asked': {
    severity: 'warning',
    title: ({ payload }) => `${payload.title}`,
    why: ({ detail }) => detail,
    next: ({ payload }) => (typeof payload.command === 'string' ? payload.command : undefined),
  },
  'attention.expired': {
    severity: 'warning',
    title: ({ payload }) => `Not answered in time: ${payload.title}`,
    next: showSession,
    outcome: 'failure',
  },
  'agent.notice': {
    severity: 'info',
    title: ({ payload }) => `${payload.agent_name}: ${payload.title}`,
    why: ({ body }) => body,
    next: showSession,
  },
  'daemon.draining': {
    severity: 'warning',
    title: () => 'The daemon accepts no new work',
    next: () => command('status'),
  },
}
