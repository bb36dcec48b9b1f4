import { definePlugin, maybe, surfaceOf } from '../../../kernel/plugin.js'
import { Checks, StatusMembers } from '../../desk/daemon/api.js'
import { Workspaces } from '../../desk/workspaces/api.js'
import { Events } from '../../platform/events/api.js'
import { InboxSources, Sessions } from '../../work/sessions/api.js'
import { Tasks } from '../../work/tasks/api.js'
import { Bridges } from '../bridges/api.js'
import {
  AgentNotice,
  AttentionAsked,
  AttentionExpired,
  AttentionSources,
  NotificationChannels,
  NotificationErrors,
  Notifications,
} from './api.js'
import { commands } from './command-list.js'
import { needs } from './needs.js'
import { routes } from './routes.js'
import type { NotificationsService } from './service.js'
import { BridgeNotificationTimeout } from './settings.js'
import { migrations } from './tables.js'

const { contribute, tap } = surfaceOf<NotificationsService>()

export default definePlugin({
  name: 'notifications',
  version: '0.1.0',
  requires: needs,
  provides: Notifications,
  service: () => import('./service.js').then(module => module.NotificationsService),
}).surface({
  declares: [AttentionSources, NotificationChannels],
  tables: migrations,
  errors: [NotificationErrors],
  settings: [BridgeNotificationTimeout],
  events: [AgentNotice, AttentionAsked, AttentionExpired],
  owned: [
    { by: Workspaces, table: 'notifications_notice', column: 'workspace_id' },
    { by: Workspaces, table: 'notifications_trouble', column: 'workspace_id' },
    { by: Sessions, table: 'notifications_trouble', column: 'source_id' },
    { by: Tasks, table: 'notifications_trouble', column: 'source_id' },
    { by: Tasks, table: 'notifications_subscription', column: 'task_id' },
  ],
  registries: [
    contribute(Checks, service => [{ id: 'notifications', category: 'notifications', run: service.check }]),
    contribute(StatusMembers, service => [{ path: 'attention', read: () => service.mishaps.status() }]),
    contribute(InboxSources, service => [{ read: most => service.mishaps.inbox(most) }]),
  ],
  services: [{ name: 'dispatch', run: (service, signal) => service.dispatcher.run(signal) }],
  taps: [
    tap(
      Events,
      events => events.written,
      service => (t, event) => service.written(t, event),
    ),
    tap(
      maybe(Sessions),
      sessions => sessions.points.eventRecorded,
      service => event => service.recorded(event),
    ),
    tap(
      maybe(Bridges),
      bridges => bridges.deliveryEnded,
      service => (key, standing) => service.deliveryEnded(key, standing),
    ),
  ],
  commands,
  routes,
})
