import * as v from 'valibot'
import { parseSecretRef } from '../../../kernel/kit/secret-ref.js'
import type { Setting } from '../../../kernel/plugin.js'
import { ProviderSettings } from '../../../schemas/settings/entries.js'

/** The provider of agents that name neither a provider nor a command; empty: none. */
export const DefaultProvider: Setting<string> = {
  path: 'defaults.provider',
  section: 'general',
  schema: v.pipe(v.string(), v.maxLength(64)),
  default: '',
  apply: 'restart-required',
}

const NAME = v.pipe(v.string(), v.regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, 'a name of a-z, 0-9, _ and -'))

const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/

/** A slot names a secret and never holds one. */
const Entry = v.pipe(
  ProviderSettings,
  v.check(
    ({ credential_slots: slots = [] }) =>
      slots.every(({ secret_ref: ref, target_env: name }) => parseSecretRef(ref) && VARIABLE.test(name)),
    'a slot has a secret_ref like env:NAME or vault:… and a target_env that is the name of a variable',
  ),
  v.check(
    ({ env_allow: names = [] }) => names.every(name => VARIABLE.test(name)),
    'env_allow lists names of variables, not their values',
  ),
)

/** Providers of the operator, and what is otherwise about built-in ones, by name. */
export const ProviderEntries: Setting<Record<string, ProviderSettings>> = {
  path: 'providers',
  section: 'providers',
  schema: v.pipe(v.record(NAME, Entry), v.maxEntries(200)),
  default: {},
  apply: 'session-rebind',
  merge: 'by-name',
}
