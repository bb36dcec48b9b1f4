import { definePlugin, maybe, surfaceOf } from '../../../kernel/plugin.js'
import { Events } from '../../platform/events/api.js'
import { Reconcile } from '../../platform/reconcile/api.js'
import { Hooks } from '../../work/hooks/api.js'
import { Sessions } from '../../work/sessions/api.js'
import { Bridges } from '../bridges/api.js'
import { Metrics } from './api.js'
import { needs } from './needs.js'
import { routes } from './routes.js'
import type { TelemetryService } from './service.js'

const { contribute, tap } = surfaceOf<TelemetryService>()

/** Figures for a monitoring system, counted while things happen. */
export default definePlugin({
  name: 'telemetry',
  version: '0.1.0',
  requires: needs,
  service: () => import('./service.js').then(module => module.TelemetryService),
}).surface({
  declares: [Metrics],
  routes,
  registries: [contribute(Metrics, self => self.metrics)],
  hooks: {
    replied: (self, exchange) => self.replied(exchange),
    published: self => self.counts.published(),
  },
  taps: [
    tap(
      Events,
      events => events.written,
      self => (t, event) => self.written(t, event),
    ),
    tap(
      Reconcile,
      reconcile => reconcile.passed,
      self => (kind, _, failed) => self.counts.pass(kind, failed),
    ),
    tap(
      maybe(Hooks),
      hooks => hooks.completed,
      self => (_, run) => {
        self.counts.hookRun(run)
        return undefined
      },
    ),
    tap(
      maybe(Sessions),
      sessions => sessions.points.turnStart,
      self => event => self.counts.turnStarted(event),
    ),
    tap(
      maybe(Sessions),
      sessions => sessions.points.turnEnd,
      self => event => self.counts.turnEnded(event),
    ),
    tap(
      maybe(Sessions),
      sessions => sessions.stopped,
      self => session => self.counts.sessionStopped(session.id),
    ),
    tap(
      maybe(Bridges),
      bridges => bridges.deliveryEnded,
      self => (_, standing) => self.counts.bridgeDelivery(standing),
    ),
  ],
})
