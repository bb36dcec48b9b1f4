import * as v from 'valibot'
import { event } from '../../../kernel/plugin.js'
import { SettingsWriteTarget } from '../../../schemas/settings.js'

/** A file other than config.json of the home was written: what is in that one is told of by the audit. Values are not in it. */
export const SettingsWritten = event(
  'settings.written',
  v.object({ target: SettingsWriteTarget, keys: v.array(v.string()), apply_record_id: v.string() }),
)
