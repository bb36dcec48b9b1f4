import { definePlugin, maybe, Settings, surfaceOf } from '../../../kernel/plugin.js'
import { Checks } from '../../desk/daemon/api.js'
import { Events } from '../../platform/events/api.js'
import { Reconcile } from '../../platform/reconcile/api.js'
import { Hooks } from '../../work/hooks/api.js'
import { Sessions } from '../../work/sessions/api.js'
import { Bridges } from '../bridges/api.js'
import { Metrics, Telemetry } from './api.js'
import { needs } from './needs.js'
import { routes } from './routes.js'
import type { TelemetryService } from './service.js'
import { restarting, settings } from './settings.js'

const { contribute, tap } = surfaceOf<TelemetryService>()

/** Metrics for a monitoring system, counted as things happen, and traces for a configured collector. */
export default definePlugin({
  name: 'telemetry',
  version: '0.1.0',
  requires: needs,
  provides: Telemetry,
  service: () => import('./service.js').then(module => module.TelemetryService),
}).surface({
  declares: [Metrics],
  settings,
  routes,
  registries: [
    contribute(Metrics, self => self.metrics),
    contribute(Checks, self => [
      {
        id: 'telemetry.traces',
        category: 'telemetry',
        run: () => import('./checks.js').then(({ checks }) => checks(self)),
      },
    ]),
  ],
  hooks: {
    admit: (self, incoming, route) => self.traces.admit(incoming, route),
    replied: (self, exchange) => self.replied(exchange),
    published: self => self.counts.published(),
    written: (self, _, written) => self.traces.written(written),
  },
  taps: [
    ...restarting.map(setting =>
      tap(
        Settings,
        changes => changes.of(setting),
        self => () => void self.traces.configure(),
      ),
    ),
    tap(
      Events,
      events => events.written,
      self => (t, event) => self.written(t, event),
    ),
    tap(
      Reconcile,
      reconcile => reconcile.passed,
      self => (kind, ids, failed, milliseconds) => self.passed(kind, ids, failed, milliseconds),
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
      maybe(Hooks),
      hooks => hooks.ran,
      self => run => self.traces.hookRun(run),
    ),
    tap(
      maybe(Sessions),
      sessions => sessions.points.turnStart,
      self => event => self.turnStarted(event),
    ),
    tap(
      maybe(Sessions),
      sessions => sessions.points.turnEnd,
      self => event => self.turnEnded(event),
    ),
    tap(
      maybe(Sessions),
      sessions => sessions.stopped,
      self => session => self.sessionStopped(session.id),
    ),
    tap(
      maybe(Sessions),
      sessions => sessions.prepare,
      self => (start, session) => self.prepared(start, session.id),
    ),
    tap(
      maybe(Sessions),
      sessions => sessions.points.promptPostAssemble,
      self => (prompt, session) => self.prompting(prompt, session.id),
    ),
    tap(
      maybe(Bridges),
      bridges => bridges.deliveryEnded,
      self => (_, standing) => self.counts.bridgeDelivery(standing),
    ),
  ],
})
