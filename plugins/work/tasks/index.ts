import { definePlugin, surfaceOf } from '../../../kernel/plugin.js'
import { WakeContexts } from '../../agents/heartbeats/api.js'
import { HeldWork } from '../../agents/self-service/api.js'
import { Checks, StatusMembers } from '../../desk/daemon/api.js'
import { InboxSources, SessionRuns, Sessions } from '../sessions/api.js'
import {
  SchedulerDrainCompleted,
  SchedulerDrainStarted,
  SchedulerPaused,
  SchedulerResumed,
  SchedulerStalled,
  TaskErrors,
  TaskEvents,
  Tasks,
} from './api.js'
import { BudgetErrors } from './budgets/errors.js'
import { budgetRoutes } from './budgets/routes.js'
import { claimRoutes } from './claims/routes.js'
import { commands } from './command-list.js'
import { needs } from './needs.js'
import { ProfileErrors } from './profiles/errors.js'
import { profileRoutes } from './profiles/routes.js'
import { ReviewErrors } from './reviews/errors.js'
import { reviewRoutes } from './reviews/routes.js'
import { runRoutes } from './runs/routes.js'
import { schedulerRoutes } from './scheduler/routes.js'
import type { TaskService } from './service.js'
import { TaskSettings } from './settings.js'
import { TASK_TABLES } from './tables.js'
import { taskRoutes } from './tasks/routes.js'
import { waitsRoutes } from './tasks/waits-routes.js'
import { viewRoutes } from './views/routes.js'

const { contribute, tap } = surfaceOf<TaskService>()

export default definePlugin({
  name: 'tasks',
  version: '0.1.0',
  requires: needs,
  provides: Tasks,
  service: () => import('./service.js').then(m => m.TaskService),
}).surface({
  events: [
    ...Object.values(TaskEvents),
    SchedulerPaused,
    SchedulerResumed,
    SchedulerDrainStarted,
    SchedulerDrainCompleted,
    SchedulerStalled,
  ],
  errors: [TaskErrors, ProfileErrors, ReviewErrors, BudgetErrors],
  settings: Object.values(TaskSettings),
  tables: TASK_TABLES,
  services: [
    { name: 'archive', run: (service, signal) => service.archive.run(signal) },
    { name: 'leases', run: (service, signal) => service.expire(signal) },
    { name: 'workers', run: (service, signal) => service.workers.run(signal) },
  ],
  registries: [
    contribute(StatusMembers, service => [{ path: 'tasks', read: () => service.status() }]),
    contribute(Checks, service => [{ id: 'tasks', category: 'tasks', run: async () => service.check() }]),
    contribute(HeldWork, service => [
      {
        mostLeases: 1,
        leases: session => service.bundles.leases(session),
        situation: session => service.bundles.situation(session),
      },
    ]),
    contribute(SessionRuns, service => [{ read: session => service.runOf(session) }]),
    contribute(InboxSources, service => [{ read: service.waiting }]),
    contribute(WakeContexts, service => [
      { name: 'task', read: session => service.news.task(session) },
      { name: 'inbox_summary', read: session => service.news.summary(session) },
    ]),
  ],
  taps: [
    tap(
      Sessions,
      sessions => sessions.points.retiring,
      service =>
        async ({ id }) =>
          service.runOf(id) ? TaskErrors.task_run_conflict(`session ${id} worked on a task run`) : undefined,
    ),
    tap(
      Sessions,
      sessions => sessions.stopped,
      service => session => service.health.sessionStopped(session),
    ),
    tap(
      Sessions,
      sessions => sessions.points.healthCheckFailed,
      service => (session, failures, isLast) => service.health.checkFailed(session, failures, isLast),
    ),
    tap(
      Sessions,
      sessions => sessions.stopped,
      service => session => {
        service.budgets.forget(session.id)
        return service.reviews.sessionStopped(session.id)
      },
    ),
    tap(
      Sessions,
      sessions => sessions.uses.updated,
      service => (session, use) => service.budgets.recordUsage(session, use),
    ),
    tap(
      Sessions,
      sessions => sessions.points.eventRecorded,
      service =>
        ({ sessionId, type, content, isCrash }) =>
          type === 'done' || type === 'error'
            ? service.budgets.turnEnded(sessionId, content.status === 'canceled' || isCrash === true)
            : undefined,
    ),
  ],
  commands,
  routes: [
    ...taskRoutes,
    ...waitsRoutes,
    ...runRoutes,
    ...claimRoutes,
    ...schedulerRoutes,
    ...viewRoutes,
    ...profileRoutes,
    ...reviewRoutes,
    ...budgetRoutes,
  ],
})
