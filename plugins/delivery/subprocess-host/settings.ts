import * as v from 'valibot'
import type { Setting } from '../../../kernel/plugin.js'
import { Duration } from '../../../schemas/duration.js'
import { RateLimit } from '../../platform/resources/api.js'

const setting = <T>(path: string, schema: v.GenericSchema<unknown, T>, value: T): Setting<T> => ({
  path,
  section: 'hooks-extensions',
  schema,
  default: value,
  apply: 'restart-required',
})

/** Limits on calls of extension processes, and on the records that they publish. */
export const SubprocessSettings = {
  /** Timeout of one call of a process's method in milliseconds, unless the caller sets one. */
  callTimeout: setting('extensions.call_timeout', v.pipe(Duration, v.minValue(100)), 60_000),
  /** Bytes of resident memory of a process with its descendants, beyond which it is killed; 0: no limit. */
  maxMemory: setting('extensions.max_memory_bytes', v.pipe(v.number(), v.integer(), v.minValue(0)), 2 ** 31),
  /** Kinds of records that extensions may publish; empty is all. */
  allowedKinds: setting('extensions.resources.allowed_kinds', v.pipe(v.array(v.string()), v.maxLength(256)), []),
  /** Largest scope for publishing; empty: no limit. */
  maxScope: setting('extensions.resources.max_scope', v.picklist(['', 'global', 'workspace']), ''),
  /** Rate limit of snapshots per extension. */
  snapshotRate: setting('extensions.resources.snapshot_rate_limit', RateLimit, {
    requests: 0,
    window: '0s',
    queue: 0,
  } as RateLimit),
}

/** Values of the settings. */
export type SubprocessLimits = {
  readonly [K in keyof typeof SubprocessSettings]: (typeof SubprocessSettings)[K]['default']
} & {
  /** Failed health checks in a row after which the process is stopped; 0: never. */
  readonly escalation: number
}
