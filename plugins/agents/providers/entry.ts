import * as v from 'valibot'
import { parseSecretRef } from '../../../kernel/kit/secret-ref.js'
import { ProviderSettings } from '../../../schemas/settings/entries.js'
import { looksSecret } from './environment.js'

export const ProviderName = v.pipe(v.string(), v.regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, 'a name of a-z, 0-9, _ and -'))

const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/
/** Variables that determine the started program, or that the daemon sets itself. */
const RESERVED = /^(?:SVC_|LD_|DYLD_|PATH$|HOME$|NODE_OPTIONS$)/

const isPlain = (name: string) => VARIABLE.test(name) && !RESERVED.test(name) && !looksSecret(name)

/** Settings of a provider in the configuration or an extension. A slot refers to a secret and never contains it. */
export const ProviderEntry = v.pipe(
  ProviderSettings,
  v.check(
    ({ credential_slots: slots = [] }) =>
      slots.every(({ secret_ref: ref, target_env: name }) => parseSecretRef(ref) && VARIABLE.test(name)),
    'a slot has a secret_ref like env:NAME or vault:… and a target_env that is the name of a variable',
  ),
  v.check(
    ({ credential_slots: slots = [] }) =>
      slots.every(({ secret_ref: ref }) => {
        const { scheme, rest = '' } = parseSecretRef(ref) ?? {}
        return scheme !== 'vault' || rest.startsWith('providers/')
      }),
    'a slot has a secret of providers: vault:providers/…',
  ),
  v.check(
    ({ env_allow: names = [] }) => names.every(name => VARIABLE.test(name)),
    'env_allow lists names of variables, not their values',
  ),
  v.check(
    ({ env = {}, asking_env: asking = {} }) => [env, asking].every(one => Object.keys(one).every(isPlain)),
    'env and asking_env hold neither secrets, which belong in credential_slots, nor PATH, HOME and SVC_ variables',
  ),
)
