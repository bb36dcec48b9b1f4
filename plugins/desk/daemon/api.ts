import * as v from 'valibot'
import { command } from '../../../kernel/kit/commands/command-line.js'
import {
  type Actor,
  defineErrors,
  event,
  gate,
  hookTable,
  type Reads,
  registry,
  type Setting,
  type TapsOf,
  token,
} from '../../../kernel/plugin.js'
import type { HeldHome } from '../../../schemas/daemon/backup.js'
import type { DoctorQuery, DoctorReply, StatusQuery, StatusReply } from '../../../schemas/daemon.js'
import type { DiagnosticItem } from '../../../schemas/kernel/diagnostic.js'

/** The hooks of the daemon. */
export const points = hookTable({
  admission: gate<[what: string]>(
    'admission',
    'New work requests admission while the daemon is not draining. A tap may refuse it.',
  ),
})

/** API of the daemon plugin: admission of new work, the hold of a restored home, and the status and doctor reports. */
export interface DaemonApi extends TapsOf<typeof points> {
  readonly draining: boolean
  /** Whether the home was restored from a backup and is not confirmed yet: no work begins and nothing is sent out. */
  readonly held: boolean
  /**
   * Resolves when the hold ends or the signal aborts. True if the home had been held: work that became due meanwhile is skipped.
   */
  released(signal: AbortSignal): Promise<boolean>
  /** The backup that the home was restored from, while it is held. */
  hold(): HeldHome | undefined
  /** Ends the hold permanently. @throws Fault `home_not_held` */
  confirm(actor: Actor): Promise<void>
  /**
   * Throws `draining` (503) or the refusal of a guard unless the daemon accepts new work. `what` names the work, such as
   * `session`.
   */
  admit(what: string): Promise<void>
  /** The replies of `/api/status` and `/api/doctor`, for plugins that include them. */
  readonly reports: {
    status(query: StatusQuery): Promise<StatusReply>
    /** One member of the status, without the work for the others. */
    member<P extends 'automation' | 'skills'>(path: P): Promise<StatusReply[P]>
    doctor(query: DoctorQuery, signal: AbortSignal): Promise<DoctorReply>
  }
}

export const Daemon = token<DaemonApi>('daemon@1')

/** Consecutive failed health checks of a process that trigger an action; 0 disables it. */
export const HealthEscalation: Setting<number> = {
  path: 'daemon.subprocess_health_escalation_threshold',
  section: 'hooks-extensions',
  schema: v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(1000)),
  default: 3,
  apply: 'restart-required',
}

/** The workspace that a status request names; none is inferred. */
export interface StatusScope {
  /** Reference of a workspace as the caller gave it: id, name or path. */
  readonly workspace?: string
}

/**
 * Contributes to `/api/status`: objects are merged into the member's empty form, anything else replaces it.
 * A member that says nothing of its `status` has `ok`; one whose `read` throws or takes over 2 s has `degraded`.
 */
export interface StatusMember {
  /** Top-level member, or a dotted path into one, `health.active_agents`. */
  readonly path: string
  readonly read: (about: StatusScope) => unknown
}

export const StatusMembers = registry<StatusMember>(
  'daemon.status@1',
  v.looseObject({ path: v.string(), read: v.function() }),
)

/** Milliseconds before a probe that starts programs times out. */
export const PROBING_DEADLINE_MS = 150_000

/**
 * A doctor probe. It answers within 5 s or is reported as `probe_timeout`; one that throws as `probe_failed`.
 * When all is well it answers with nothing, or with an item of severity `info` whose code ends in `_ok` or `_ready`:
 * these are what `quiet` leaves out.
 */
export interface Check {
  /** `runtime.providers`; the filters `only` and `exclude` name it or its category. */
  readonly id: string
  readonly category: string
  readonly run: (signal: AbortSignal) => Promise<readonly DiagnosticItem[]>
  /** Runs instead of `run` if the caller asks to probe. It may start programs and has {@link PROBING_DEADLINE_MS}. */
  readonly probe?: (signal: AbortSignal) => Promise<readonly DiagnosticItem[]>
}

export const Checks = registry<Check>(
  'daemon.checks@1',
  v.looseObject({ id: v.string(), category: v.string(), run: v.function(), probe: v.optional(v.function()) }),
)

/** Tells names that `plugins.disabled` and `plugins.replace` may hold although no plugin has them, or none that runs. */
export const KnownNames = registry<() => readonly string[]>('daemon.known_names@1', v.function())

/** How urgent an item is. */
export type Severity = 'critical' | 'error' | 'warning' | 'info'

/** A doctor item with live data. A literal severity must be one of {@link Severity}. */
export function finding<S extends string>(
  item: Omit<DiagnosticItem, 'data_freshness' | 'severity'> & {
    readonly severity: S & (string extends S ? unknown : Severity)
  },
): DiagnosticItem {
  return { ...item, data_freshness: 'live' }
}

/** The daemon accepts requests. */
export const DaemonStarted = event('daemon.started', v.object({ version: v.string(), pid: v.number() }))
/** New work is refused from now on. */
export const DaemonDraining = event('daemon.draining', v.object({}))
/** New work is admitted again. */
export const DaemonActive = event('daemon.active', v.object({}))

/** The mark of a restored home. Its presence alone holds the home: an unreadable mark must not let work begin. */
export const HOLD_FILE = 'held.json'
/** Why a daemon that starts on a held home runs no extension. The text stays until it ends, so it is also true after the confirmation. */
export const HELD_AT_START = `the daemon started while the home was held; once it is confirmed (${command('backup confirm')}), run ${command('daemon restart')}`

/** A restored home begins its work. */
export const HomeConfirmed = event('home.confirmed', v.object({}))

export const DaemonErrors = defineErrors({
  home_held: {
    status: 503,
    message: 'the home was restored from a backup and is held: no work starts until it is confirmed',
    next: command('backup confirm'),
  },
  home_not_held: { status: 409, message: 'the home is not held', next: command('status') },
  draining: {
    status: 503,
    message: 'daemon is draining; new work admission is closed',
    next: command('undrain'),
  },
  unknown_component: {
    status: 400,
    message: 'no probe or category of that name; svc doctor lists them',
    next: command('doctor'),
  },
  verify_busy: {
    status: 503,
    message: 'the database was checkpointed while it was copied; try again',
    next: command('db verify'),
  },
  plugin_not_found: { status: 404, message: 'no such plugin', next: command('plugin list') },
})

export { copiedUnchanged, holdingCheckpoints } from './database.js'

/**
 * Opens a copy of the database of a home, in a temporary folder that is removed afterwards. The home stays as it is, whether a daemon
 * runs or not; a copy that was made while one writes may not open.
 */
export const withDatabaseCopy = async <T>(root: string, use: (db: Reads) => Promise<T>): Promise<T> =>
  (await import('./verify.js')).withCopy(root, use)
