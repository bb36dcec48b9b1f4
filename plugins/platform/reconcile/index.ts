import { definePlugin, Faults, perConsumer } from '../../../kernel/plugin.js'
import { Reconcile, ReconcileErrors } from './api.js'
import type { ReconcileLoop } from './loop.js'

/** Follows records: keeps the runtime in line with them, by the reconcilers on all surfaces. */
export default definePlugin({
  name: 'reconcile',
  version: '0.1.0',
  requires: { report: Faults },
  provides: perConsumer(Reconcile, (self: ReconcileLoop, { name }) => self.for(name)),
  service: () => import('./loop.js').then(module => module.ReconcileLoop),
}).surface({
  errors: [ReconcileErrors],
  hooks: {
    known: (self, change) => self.known(change),
    written: (self, t, written) => self.written(t, written),
    projected: self => self.projected(),
    running: self => self.running(),
  },
})
