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

/** Metrics for a monitoring system, updated by events, and traces for a configured collector. */
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
    contribute(Metrics, service => service.metrics),
    contribute(Checks, service => [
      {
        id: 'telemetry.traces',
        category: 'telemetry',
        run: () => import('./checks.js').then(({ checks }) => checks(service)),
      },
    ]),
  ],
  hooks: {
    admit: (service, incoming, route) => service.traces.admit(incoming, route),
    replied: (service, exchange) => service.replied(exchange),
    published: service => service.counts.published(),
    written: (service, _, written) => service.traces.written(written),
  },
  taps: [
    ...restarting.map(setting =>
      tap(
        Settings,
        changes => changes.of(setting),
        service => () => void service.traces.configure(),
      ),
    ),
    tap(
      Events,
      events => events.written,
      service => (t, event) => service.written(t, event),
    ),
    tap(
      Reconcile,
      reconcile => reconcile.passed,
      service => (kind, ids, failed, milliseconds) => service.passed(kind, ids, failed, milliseconds),
    ),
    tap(
      maybe(Hooks),
      hooks => hooks.completed,
      service => (_, run) => {
        service.counts.hookRun(run)
        return undefined
      },
    ),
    tap(
      maybe(Hooks),
      hooks => hooks.ran,
      service => run => service.traces.hookRun(run),
    ),
    tap(
      maybe(Sessions),
      sessions => sessions.points.turnStart,
      service => event => service.turnStarted(event),
    ),
    tap(
      maybe(Sessions),
      sessions => sessions.points.turnEnd,
      service => event => service.turnEnded(event),
    ),
    tap(
      maybe(Sessions),
      sessions => sessions.stopped,
      service => session => service.sessionStopped(session.id),
    ),
    tap(
      maybe(Sessions),
      sessions => sessions.prepare,
      service => (start, session) => service.prepared(start, session.id),
    ),
    tap(
      maybe(Sessions),
      sessions => sessions.points.promptPostAssemble,
      service => (prompt, session) => service.prompting(prompt, session.id),
    ),
    tap(
      maybe(Bridges),
      bridges => bridges.deliveryEnded,
      service => (_, standing) => service.counts.bridgeDelivery(standing),
    ),
  ],
})
