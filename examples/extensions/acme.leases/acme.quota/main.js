import { defineErrors, definePlugin, surfaceOf, token } from 'svc/plugin'

/** A token is known by its id: no code of the other extension is imported. */
const Leases = token('acme.leases@1')
const Errors = defineErrors({
  acme_quota_reached: { status: 409, message: 'this holder has two leases', next: 'svc acme leases list' },
})
const { tap } = surfaceOf()

// Without a service, `service` is the kernel of this plugin.
export default definePlugin({ name: 'acme.quota', version: '1.0.0', requires: { leases: Leases } }).surface({
  errors: [Errors],
  taps: [
    tap(
      Leases,
      leases => leases.claiming,
      service =>
        (t, { holder }) =>
          service.needs.leases.heldBy(t, holder) < 2 ? undefined : Errors.acme_quota_reached(),
    ),
  ],
})
