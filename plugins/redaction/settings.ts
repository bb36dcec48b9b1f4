import * as v from 'valibot'
import type { Setting } from '../../kernel/plugin.js'

/** Whether registered values are replaced. */
export const RedactionEnabled: Setting<boolean> = {
  path: 'redact.enabled',
  section: 'general',
  schema: v.boolean(),
  default: true,
  apply: 'restart-required',
}
