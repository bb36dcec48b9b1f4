import { definePlugin, Faults, perConsumer } from '../../../kernel/plugin.js'
import { Journals } from '../journals/api.js'
import { EventErrors, Events, PluginFailed, PluginLoaded, PluginUnloaded, RecordDeleted, RecordPut } from './api.js'
import { eventMigrations } from './rows.js'
import type { EventsService } from './service.js'
import { EventSettings } from './settings.js'

/** The log of what happened: events written in the transaction of the state that they tell of, handed over once durable. */
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
  // Their tables were the kernel's own.
  inherits: [{ stream: 'kernel', prefixes: ['kernel_event', 'kernel_cursor'], migrations: eventMigrations }],
  // Its journal has positions of the catalog.
  ofCatalog: ['events'],
  hooks: {
    running: self => self.running(),
    written: (self, t, written) => self.written(t, written),
    changed: (self, name, state) => self.changed(name, state),
  },
})
