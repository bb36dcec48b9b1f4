import { definePlugin, maybe, surfaceOf } from '../../../kernel/plugin.js'
import { Events } from '../../platform/events/api.js'
import { Hooks } from '../../work/hooks/api.js'
import { commands } from './command-list.js'
import { needs } from './needs.js'
import { routes } from './routes.js'
import type { ObserveService } from './service.js'
import { CountingEnabled } from './settings.js'
import { migrations } from './tables.js'

const { tap } = surfaceOf<ObserveService>()

/** The overview of the daemon, from events counted by hour and day. */
export default definePlugin({
  name: 'observe',
  version: '0.1.0',
  requires: needs,
  service: () => import('./service.js').then(module => module.ObserveService),
}).surface({
  tables: migrations,
  settings: [CountingEnabled],
  routes,
  commands,
  taps: [
    tap(
      Events,
      events => events.written,
      service => (_, event) => service.happened(event),
    ),
    tap(
      maybe(Hooks),
      hooks => hooks.completed,
      service => (t, run) => service.hookRun(t, run),
    ),
  ],
  services: [{ name: 'history', run: (service, signal) => service.history(signal) }],
})
