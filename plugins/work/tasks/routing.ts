import { describe, throws } from '../../../kernel/kit/annotations/index.js'
import { routeOf } from '../../../kernel/plugin.js'
import { ArchiveErrors } from '../../desk/archives/api.js'
import { TaskErrors } from './api.js'
import type { TaskService } from './service.js'

/** Errors of what a route reads in the catalog or in the archive, beside that of a thing that is not there. */
export const READING = [TaskErrors.task_archive_off, ArchiveErrors.archive_missing, ArchiveErrors.archive_damaged]
/** Errors of a task that a route changes, and of a run. */
export const CHANGING = [TaskErrors.task_not_found, TaskErrors.task_archived]
export const RUN = [TaskErrors.task_run_not_found, TaskErrors.task_run_conflict]

export const about = describe('Tasks')
/**
 * A route of tasks and runs. Routes that queue runs declare no errors: the plugin that decides the part of a run in the network has its
 * own. The errors of the others below count where a route has no `throws` itself.
 */
export const route = routeOf<TaskService>(about)
export const readingTask = routeOf<TaskService>(about, throws(TaskErrors.task_not_found, ...READING))
export const readingRun = routeOf<TaskService>(about, throws(TaskErrors.task_run_not_found, ...READING))
export const changingTask = routeOf<TaskService>(about, throws(...CHANGING))
