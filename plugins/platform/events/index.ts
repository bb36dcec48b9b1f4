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
  provides: perConsumer(Events, (self: EventsService, consumer) => self.log.for(consumer)),
  service: () => import('./service.js').then(module => module.EventsService),
}).surface({
  errors: [EventErrors],
  events: [RecordPut, RecordDeleted, PluginLoaded, PluginFailed, PluginUnloaded],
  settings: Object.values(EventSettings),
  // These tables used to belong to the kernel.
  inherits: [{ stream: 'kernel', prefixes: ['kernel_event', 'kernel_cursor'], migrations: eventMigrations }],
  // Positions in its journal belong to the database.
  ofCatalog: ['events'],
  hooks: {
    running: self => self.running(),
    written: (self, t, written) => self.written(t, written),
    changed: (self, name, state) => self.changed(name, state),
  },
})
