import * as v from 'valibot'
import type { Setting } from '../../kernel/plugin.js'

/** Processes of the daemon's own user need no token over loopback, where the system tells whose they are. */
export const TrustOwnUser: Setting<boolean> = {
  path: 'http.trust_own_user',
  section: 'general',
  schema: v.boolean(),
  default: false,
  apply: 'restart-required',
}
