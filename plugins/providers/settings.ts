import * as v from 'valibot'
import type { Setting } from '../../kernel/plugin.js'

/** The provider of agents that name neither a provider nor a command; empty: none. */
export const DefaultProvider: Setting<string> = {
  path: 'defaults.provider',
  section: 'general',
  schema: v.pipe(v.string(), v.maxLength(64)),
  default: '',
  apply: 'restart-required',
}
