import * as v from 'valibot'
import { event } from '../../../kernel/plugin.js'
import { SettingsWriteTarget } from '../../../schemas/settings.js'

/** A file other than the home's config.json was written; changes of config.json are in the audit. Contains no values. */
export const SettingsWritten = event(
  'settings.written',
  v.object({ target: SettingsWriteTarget, keys: v.array(v.string()), apply_record_id: v.string() }),
)
