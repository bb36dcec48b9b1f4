import type { EventType, PluginKernel } from '../../../../kernel/plugin.js'
import type { Events } from '../../../platform/events/api.js'
import { ExtensionReloaded, ExtensionReloadFailed } from '../api.js'
import type { Instance } from '../load/instance.js'
import type { Outcome } from '../states.js'

/** Reports the outcome of a load: the reason of a problem in the daemon's log, and the change as an event. */
export async function tellOutcome(
  { db, log, needs: { events } }: Pick<PluginKernel<{ events: typeof Events }>, 'db' | 'log' | 'needs'>,
  { name, key, link, problem, installed }: Instance,
  outcome: Outcome,
): Promise<void> {
  const emit = <T extends { name: string }>(type: EventType<T>, payload: T) =>
    db.tx(t => events.emit(t, type, payload, { subject: name }))
  const about = { name, ...(link ? { workspace: link.workspace } : {}) }
  if (problem) {
    log.error(`extension ${key}: ${problem.message}`, { extension: key, code: problem.code })
    if (outcome === 'worse') await emit(ExtensionReloadFailed, { ...about, error: problem.message })
  } else if (outcome === 'changed') {
    await emit(ExtensionReloaded, { ...about, version: installed?.version })
  }
}
