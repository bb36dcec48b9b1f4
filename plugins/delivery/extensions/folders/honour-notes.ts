import type { PluginKernel } from '../../../../kernel/plugin.js'
import type { Events } from '../../../platform/events/api.js'
import { ExtensionDisabled } from '../api.js'
import { flags } from '../tables.js'
import { disableNotes, removeDisableNote } from './disable-notes.js'

/** Disables extensions as the notes request. Must run before anything is loaded. */
export async function honourDisableNotes({
  db,
  clock,
  home,
  log,
  needs: { events },
}: Pick<PluginKernel<{ events: typeof Events }>, 'db' | 'clock' | 'home' | 'log' | 'needs'>): Promise<void> {
  for (const name of disableNotes(home.root)) {
    await db.tx(t => {
      flags.replace(t, { name, enabled: false, updated_at: clock.now() })
      events.emit(t, ExtensionDisabled, { name }, { subject: name })
    })
    removeDisableNote(home.root, name)
    log.info('an extension was disabled while the daemon did not answer', { extension: name })
  }
}
