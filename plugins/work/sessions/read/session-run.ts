import * as v from 'valibot'
import { type PluginKernel, registry } from '../../../../kernel/plugin.js'
import type { TaskRun } from '../../../../schemas/tasks/run.js'

/** Contributes the unfinished task run of a session. */
export interface SessionRunSource {
  readonly read: (sessionId: string) => TaskRun | undefined
}

export const SessionRuns = registry<SessionRunSource>('sessions.runs@1', v.looseObject({ read: v.function() }))

/** The run that a session works on; null for none. */
export function activeRunOf({ collect }: Pick<PluginKernel, 'collect'>, sessionId: string): TaskRun | null {
  for (const { entry } of collect(SessionRuns)) {
    const run = entry.read(sessionId)
    if (run) return run
  }
  return null
}
