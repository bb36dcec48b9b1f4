import * as v from 'valibot'
import { parseSecretRef } from '../../../kernel/kit/secret-ref.js'
import type { Setting } from '../../../kernel/plugin.js'
import { mapOf } from '../../../schemas/kernel/map-of.js'
import { SandboxProfile } from '../../../schemas/settings/entries.js'

const NAME = v.pipe(v.string(), v.regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, 'a name of a-z, 0-9, _ and -'))
/** Variables may contain references to secrets, but never secrets. */
const Profile = v.pipe(
  SandboxProfile,
  v.check(
    ({ secret_env: secrets = {} }) => Object.values(secrets).every(ref => parseSecretRef(ref)),
    'secret_env has references like env:NAME or vault:…',
  ),
)

/** Profiles of sandboxes by name. */
export const Sandboxes: Setting<Record<string, SandboxProfile>> = {
  path: 'sandboxes',
  section: 'sandboxes',
  schema: v.pipe(mapOf(NAME, Profile), v.maxEntries(200), v.description('Profiles of sandboxes by name')),
  default: {},
  apply: 'session-rebind',
  merge: 'by-name',
}

/** The profile of sessions in workspaces without one. Empty: only jobs, spawned sessions and `approve-all` use a sandbox. */
export const DefaultSandbox: Setting<string> = {
  path: 'defaults.sandbox',
  section: 'general',
  schema: v.pipe(
    v.string(),
    v.regex(/^(?:[a-z0-9][a-z0-9_-]{0,63})?$/, 'the name of a profile, `default` or `none`'),
    v.description('Sandbox profile of workspaces without one; `default` for every session, `none` for no session'),
  ),
  default: '',
  apply: 'restart-required',
}
