import type { Setting } from 'svc/plugin'
import * as v from 'valibot'

/** Put below every published note. */
export const Signature: Setting<string> = {
  path: 'plugins.acme.notes.signature',
  section: 'general',
  schema: v.pipe(v.string(), v.maxLength(200)),
  default: '',
  apply: 'live',
}
