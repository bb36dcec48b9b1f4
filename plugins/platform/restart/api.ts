/** `svc/plugins/restart`: the daemon's own restart. */

import * as v from 'valibot'
import { command } from '../../../kernel/kit/commands/command-line.js'
import { defineErrors, event, registry, token } from '../../../kernel/plugin.js'

/** The process that carries out a restart between the two daemons. */
export interface Helper {
  readonly pid: number
  /** Lets it begin; it ends at once when there is no open operation of its id. The end of this process releases it too. */
  release(): void
}

/** Contributed by the daemon's program, which alone can start processes that outlive the daemon, and end the daemon. */
export interface Relauncher {
  /** Why this daemon cannot restart; absent when it can. */
  readonly refusal?: string
  /** A service manager starts the next daemon when this one has ended; nothing else is needed. */
  readonly external?: true
  /** Resolves when this daemon serves its doors. */
  readonly ready: Promise<void>
  /** Starts the helper of an operation; resolves once it runs, rejects when it does not. */
  prepare(operation: string): Promise<Helper>
  /** Begins the shutdown of this daemon. */
  stop(): void
}

/** Whether the daemon can restart. */
export interface RestartApi {
  /** Why it cannot; undefined when it can. */
  readonly refusal: string | undefined
}

export const Restart = token<RestartApi>('restart@1')

export const Relaunchers = registry<Relauncher>(
  'restart.relaunchers@1',
  v.looseObject({
    refusal: v.optional(v.string()),
    external: v.optional(v.literal(true)),
    prepare: v.function(),
    stop: v.function(),
  }),
)

/** A restart was requested. */
export const RestartRequested = event(
  'daemon.restart.requested',
  v.object({ operation_id: v.string(), pid: v.number() }),
)

export const RestartErrors = defineErrors({
  restart_not_found: { status: 404, message: 'no such restart', next: command('daemon restart') },
  restart_unsupported: {
    status: 500,
    message: 'this daemon cannot restart itself',
    next: `${command('daemon stop')} && ${command('daemon start')}`,
  },
  restart_failed: {
    status: 500,
    message: 'the restart could not begin; the daemon keeps running',
    next: command('logs'),
  },
})
