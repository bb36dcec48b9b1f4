import { describe, throws } from '../../../kernel/kit/annotations/index.js'
import { routeOf } from '../../../kernel/plugin.js'
import { ArchiveErrors } from '../../desk/archives/api.js'
import { DaemonErrors } from '../../desk/daemon/api.js'
import { PARTICIPATION_ERRORS } from '../sessions/api.js'
import { TaskErrors } from './api.js'
import type { TaskService } from './service.js'

/** Errors of routes that read the catalog or the archive, besides those for unknown IDs. */
export const READING = [TaskErrors.task_archive_off, ArchiveErrors.archive_missing, ArchiveErrors.archive_damaged]
/** Errors of a task that a route changes, and of a run. */
export const CHANGING = [TaskErrors.task_not_found, TaskErrors.task_archived]
export const RUN = [TaskErrors.task_run_not_found, TaskErrors.task_run_conflict]

/** Errors of queueing a run. */
export const RESERVING = [
  ...CHANGING,
  ...PARTICIPATION_ERRORS,
  TaskErrors.task_conflict,
  TaskErrors.task_invalid,
  TaskErrors.task_key_conflict,
  TaskErrors.task_run_open,
  TaskErrors.task_attempts_exhausted,
]
/** Errors of queueing a run, for a route that a daemon refuses while it drains or its home is held. */
export const QUEUEING = [...RESERVING, DaemonErrors.draining, DaemonErrors.home_held]
/** Errors of a run that follows another. */
export const FOLLOWING = [
  ...QUEUEING,
  ...RUN,
  TaskErrors.task_chain_too_long,
  TaskErrors.task_force_limit,
  TaskErrors.task_force_refused,
]

export const about = describe('Tasks')
/** A route of tasks and runs. The errors of the other helpers apply to routes without `throws`. */
export const route = routeOf<TaskService>(about)
export const readingTask = routeOf<TaskService>(about, throws(TaskErrors.task_not_found, ...READING))
export const readingRun = routeOf<TaskService>(about, throws(TaskErrors.task_run_not_found, ...READING))
export const changingTask = routeOf<TaskService>(about, throws(...CHANGING))
