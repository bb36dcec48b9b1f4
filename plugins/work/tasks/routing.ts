import { describe, throws } from '../../../kernel/kit/annotations/index.js'
import { routeOf } from '../../../kernel/plugin.js'
import { ArchiveErrors } from '../../desk/archives/api.js'
import { TaskErrors } from './api.js'
import type { TaskService } from './service.js'

/** Errors of routes that read the catalog or the archive, besides those for unknown IDs. */
export const READING = [TaskErrors.task_archive_off, ArchiveErrors.archive_missing, ArchiveErrors.archive_damaged]
/** Errors of a task that a route changes, and of a run. */
export const CHANGING = [TaskErrors.task_not_found, TaskErrors.task_archived]
export const RUN = [TaskErrors.task_run_not_found, TaskErrors.task_run_conflict]

export const about = describe('Tasks')
/**
 * A route of tasks and runs. Routes that queue runs declare no errors, because the plugin that decides about network participation
 * adds its own. The errors of the other helpers apply to routes without `throws`.
 */
export const route = routeOf<TaskService>(about)
export const readingTask = routeOf<TaskService>(about, throws(TaskErrors.task_not_found, ...READING))
export const readingRun = routeOf<TaskService>(about, throws(TaskErrors.task_run_not_found, ...READING))
export const changingTask = routeOf<TaskService>(about, throws(...CHANGING))
