import * as v from 'valibot'
import type { Setting } from '../../../kernel/plugin.js'
import { mapOf } from '../../../schemas/kernel/map-of.js'
import type { ProviderSettings } from '../../../schemas/settings/entries.js'
import { ProviderEntry, ProviderName } from './entry.js'

/** Default provider of agents without a provider and a command; empty: none. */
export const DefaultProvider: Setting<string> = {
  path: 'defaults.provider',
  section: 'general',
  schema: v.pipe(v.string(), v.maxLength(64)),
  default: '',
  apply: 'restart-required',
}

/** The operator's providers and changes of built-in ones, by name. */
export const ProviderEntries: Setting<Record<string, ProviderSettings>> = {
  path: 'providers',
  section: 'providers',
  schema: v.pipe(mapOf(ProviderName, ProviderEntry), v.maxEntries(200)),
  default: {},
  apply: 'session-rebind',
  merge: 'by-name',
}
