import { definePlugin, Faults, perConsumer } from '../../../kernel/plugin.js'
import { Journals } from '../journals/api.js'
import { EventErrors, Events, PluginFailed, PluginLoaded, PluginUnloaded, RecordDeleted, RecordPut } from './api.js'
import { eventMigrations } from './rows.js'
import type { EventsService } from './service.js'
import { EventSettings } from './settings.js'

/** The log of events, which are written in the transaction of the state that they describe, and delivered once durable. */
export default definePlugin({
  name: 'events',
  version: '0.1.0',
  requires: { journals: Journals, report: Faults },
  provides: perConsumer(Events, (service: EventsService, consumer) => service.log.for(consumer)),
  service: () => import('./service.js').then(module => module.EventsService),
}).surface({
  errors: [EventErrors],
  events: [RecordPut, RecordDeleted, PluginLoaded, PluginFailed, PluginUnloaded],
  settings: Object.values(EventSettings),
  // Homes of earlier versions have these tables in the kernel's stream.
  inherits: [{ stream: 'kernel', prefixes: ['kernel_event', 'kernel_cursor'], migrations: eventMigrations }],
  // Positions in its journal belong to the database.
  ofCatalog: ['events'],
  hooks: {
    running: service => service.running(),
    written: (service, t, written) => service.written(t, written),
    changed: (service, name, state) => service.changed(name, state),
  },
})
