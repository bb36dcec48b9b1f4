import { definePlugin, Faults, perConsumer } from '../../../kernel/plugin.js'
import { Reconcile, ReconcileErrors } from './api.js'
import type { ReconcileLoop } from './loop.js'

/** Follows records: keeps the runtime in line with them, by the reconcilers on all surfaces. */
export default definePlugin({
  name: 'reconcile',
  version: '0.1.0',
  requires: { report: Faults },
  provides: perConsumer(Reconcile, (service: ReconcileLoop, { name }) => service.for(name)),
  service: () => import('./loop.js').then(module => module.ReconcileLoop),
}).surface({
  errors: [ReconcileErrors],
  hooks: {
    known: (service, change) => service.known(change),
    written: (service, t, written) => service.written(t, written),
    projected: service => service.projected(),
    running: service => service.running(),
  },
})
