import { createHash } from 'node:crypto'
import { canonicalJson } from '../../../../kernel/kit/canonical.js'

/** A built-in preset. */
export interface BuiltIn {
  readonly name: string
  /** Increases with each change of the definition. */
  readonly version: string
  readonly events: readonly string[]
  readonly filter: string
}

/** The built-in presets. They have no targets and are disabled until a person enables them. */
export const BUILT_IN: readonly BuiltIn[] = [
  {
    name: 'task_terminal',
    version: '1',
    events: ['task.run_*'],
    filter: [
      'task.run_completed',
      'task.run_failed',
      'task.run_operator_forced_fail',
      'task.run_canceled',
      'task.run_needs_attention',
    ]
      .map(name => `event_type = ${name}`)
      .join(' OR '),
  },
  {
    name: 'session_unhealthy',
    version: '1',
    events: ['session.unhealthy', 'session.hung', 'session.recovered'],
    filter: '',
  },
  {
    name: 'provider_failure',
    version: '1',
    events: ['provider.auth_required', 'provider.rate_limited', 'provider.permission_denied', 'provider.unavailable'],
    filter: '',
  },
]

/** Hash of a built-in preset's definition, to detect changes. */
export const hashOf = ({ events, filter }: Pick<BuiltIn, 'events' | 'filter'>): string =>
  createHash('sha256').update(canonicalJson({ events, filter })).digest('hex').slice(0, 16)
