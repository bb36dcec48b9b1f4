import * as v from 'valibot'
import type { Setting } from '../../../kernel/plugin.js'
import type { ProviderSettings } from '../../../schemas/settings/entries.js'
import { ProviderEntry, ProviderName } from './entry.js'

/** The provider of agents that name neither a provider nor a command; empty: none. */
export const DefaultProvider: Setting<string> = {
  path: 'defaults.provider',
  section: 'general',
  schema: v.pipe(v.string(), v.maxLength(64)),
  default: '',
  apply: 'restart-required',
}

/** Providers of the operator, and what is otherwise about built-in ones, by name. */
export const ProviderEntries: Setting<Record<string, ProviderSettings>> = {
  path: 'providers',
  section: 'providers',
  schema: v.pipe(v.record(ProviderName, ProviderEntry), v.maxEntries(200)),
  default: {},
  apply: 'session-rebind',
  merge: 'by-name',
}
