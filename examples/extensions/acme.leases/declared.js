import { secretRef, text } from 'svc/kit'
import { defineErrors, event, token } from 'svc/plugin'
import * as v from 'valibot'

export const TABLE = 'acme_leases_lease'
export const Key = text(200)
export const Seconds = v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(24 * 60 * 60))

/** Others require it to tap `claiming` and to ask `heldBy(reads, holder)`. */
export const Leases = token('acme.leases@1')

export const Changed = event(
  'acme.lease.changed',
  v.object({ what: v.picklist(['claimed', 'released', 'expired']), key: v.string(), holder: v.string() }),
)

export const Errors = defineErrors({
  acme_lease_token_invalid: {
    status: 403,
    message: 'this token was not signed here, or with another key',
    next: 'claim the lease anew: svc acme leases claim',
  },
})

/** How long a lease lasts that names no time. */
export const DefaultSeconds = {
  path: 'plugins.acme.leases.default_lease_seconds',
  section: 'general',
  schema: Seconds,
  default: 60,
  apply: 'live',
}

/** Where the key lies that tokens are signed with; the setting never has the key itself. */
export const SigningKey = {
  path: 'plugins.acme.leases.signing_key',
  section: 'general',
  schema: secretRef({ env: '', vault: 'extensions/acme.leases/' }),
  default: 'env:ACME_LEASES_KEY',
  apply: 'live',
}
