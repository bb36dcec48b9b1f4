import { definePlugin, type EventType, maybe, perConsumer, surfaceOf } from '../../../kernel/plugin.js'
import { SecretOwners } from '../../access/vault/api.js'
import { ResourceFamilies } from '../../delivery/extensions/api.js'
import { Changes } from '../../desk/changes/api.js'
import { Checks, StatusMembers } from '../../desk/daemon/api.js'
import { Workspaces } from '../../desk/workspaces/api.js'
import { Events } from '../../platform/events/api.js'
import { Hooks } from '../hooks/api.js'
import { InboxSources, SessionCreated, SessionStopped } from '../sessions/api.js'
import {
  Automation,
  AutomationErrors,
  JobKind,
  Observation,
  RunCreated,
  RunEnded,
  RunStarted,
  TriggerKind,
} from './api.js'
import { archivedTables } from './archive/table.js'
import { commands } from './command-list.js'
import { bootColumns, countIndexes, cursorTables } from './cursors.js'
import { keptZoneTable } from './default-zone.js'
import { DefinitionSettings } from './from-config.js'
import { jobRoutes } from './jobs/routes.js'
import { needs } from './needs.js'
import { triggerOverlayTable } from './overlays.js'
import { leftTable } from './runs/left-sessions.js'
import { runRoutes } from './runs/routes.js'
import { placeTable } from './runs/run-place.js'
import {
  deliveryColumns,
  fewerIndexes,
  runTable,
  slotIndex,
  taskColumns,
  triggerColumns,
  waitColumn,
  waitIndex,
} from './runs/run-tables.js'
import type { AutomationService } from './service.js'
import { AutomationSettings } from './settings.js'
import { simulationRoutes } from './simulate/routes.js'
import { suggestionRoutes } from './suggestions/routes.js'
import { suggestionTable } from './suggestions/suggestions.js'
import { hookRequestsTable } from './triggers/hook-requests.js'
import { triggerRoutes } from './triggers/routes.js'
import { secretPath } from './triggers/trigger-kind.js'
import { webhookRoutes } from './webhooks/routes.js'
import { webhookTable } from './webhooks/webhook-ids.js'
import { deliveryTable } from './webhooks/webhooks.js'

const { contribute, reconciler, tap } = surfaceOf<AutomationService>()

/** Events handled per batch: their runs share a commit instead of one disk sync each. */
const EVENTS_AT_ONCE = 32

export default definePlugin({
  name: 'automation',
  version: '0.1.0',
  requires: needs,
  provides: perConsumer(Automation, (service: AutomationService, consumer) => service.for(consumer)),
  service: () => import('./service.js').then(m => m.AutomationService),
}).surface({
  kinds: [JobKind, TriggerKind],
  events: [RunCreated, RunStarted, RunEnded, Observation],
  errors: [AutomationErrors],
  settings: [...Object.values(AutomationSettings), ...Object.values(DefinitionSettings)],
  tables: [
    { id: '001-cursor', sql: cursorTables },
    { id: '002-run', sql: runTable },
    { id: '003-delivery', sql: deliveryColumns },
    { id: '004-boot', sql: bootColumns },
    { id: '005-counts', sql: countIndexes },
    { id: '006-triggers', sql: `${triggerColumns}\n${triggerOverlayTable}` },
    { id: '007-webhooks', sql: `${webhookTable}\n${deliveryTable}` },
    { id: '008-suggestions', sql: suggestionTable },
    { id: '009-tasks', sql: taskColumns },
    { id: '010-asked', sql: hookRequestsTable },
    { id: '011-place', sql: placeTable },
    { id: '012-waiting', sql: waitColumn },
    { id: '013-left-sessions', sql: leftTable },
    // Named without a number, because the previous version still starts on a home that has it.
    { id: 'kept-zone', sql: keptZoneTable },
    { id: '014-archive', sql: archivedTables },
    { id: 'slots', sql: slotIndex },
    { id: 'fewer-run-indexes', sql: fewerIndexes },
    { id: 'wait-ends', sql: waitIndex },
  ],
  owned: [
    { by: Workspaces, table: 'automation_place', column: 'workspace_id' },
    { by: Workspaces, table: 'automation_suggestion', column: 'workspace' },
  ],
  reconcilers: [
    reconciler({
      kind: JobKind,
      projected: service => service.projected(),
      run: (service, batch) => service.reconcile(batch),
    }),
    reconciler({ kind: TriggerKind, run: (service, batch) => service.triggers.reconcile(batch) }),
  ],
  services: [
    { name: 'scheduler', run: (service, signal) => service.schedule(signal) },
    { name: 'retention', run: (service, signal) => service.forgetDeleted(signal) },
    { name: 'archive', run: (service, signal) => service.archive.run(signal) },
  ],
  taps: [
    tap(
      maybe(Changes),
      changes => changes.undoing,
      service => undoing => service.mayUndo(undoing),
    ),
    tap(
      maybe(Changes),
      changes => changes.planning,
      service => (notes, planning) => service.planNotes(notes, planning),
    ),
    tap(
      maybe(Hooks),
      hooks => hooks.completed,
      service => (t, run) => {
        service.emitted.completed(t, run)
        return undefined
      },
    ),
    tap(
      maybe(Hooks),
      hooks => hooks.asking,
      service => async request => {
        await service.noteRequest(request)
        return undefined
      },
    ),
    ...[SessionCreated, SessionStopped, RunEnded, Observation].map(type =>
      tap(
        Events,
        // One cursor per event type: a shared cursor would be written for every event in the log.
        events =>
          events.of<unknown>({
            cursor: `triggers.${type.name}`,
            type: type as EventType<unknown>,
            atOnce: EVENTS_AT_ONCE,
          }),
        service => event => service.fires.observe(event),
      ),
    ),
  ],
  quiesce: [{ phase: 'automation', run: service => service.quiesce() }],
  routes: [...jobRoutes, ...triggerRoutes, ...runRoutes, ...webhookRoutes, ...simulationRoutes, ...suggestionRoutes],
  commands,
  registries: [
    contribute(InboxSources, service => [{ read: () => service.suggestions.waiting() }]),
    contribute(ResourceFamilies, service => [service.emitted.family]),
    contribute(SecretOwners, () => [
      { what: 'trigger', deleted: { record: TriggerKind.name }, paths: id => [secretPath(id)] },
    ]),
    contribute(StatusMembers, service => [{ path: 'automation', read: () => service.status() }]),
    contribute(Checks, service => [{ id: 'scheduler', category: 'automation', run: () => service.check() }]),
  ],
  hooks: {
    running: service => service.configure(),
    write: {
      [JobKind.name]: (service, _, change) => service.jobs.guard(change),
      [TriggerKind.name]: (service, _, change) => service.triggers.guard(change),
    },
  },
})
