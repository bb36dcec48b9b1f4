import { command, placeholder } from '../../../../kernel/kit/commands/command-line.js'
import { defineErrors } from '../../../../kernel/plugin.js'

const show = command('task review show', placeholder('id'))

/** Review errors. */
export const ReviewErrors = defineErrors({
  task_review_not_found: {
    status: 404,
    message: 'review not found',
    next: command('task review list', placeholder('task-id')),
  },
  task_review_invalid: { status: 400, message: 'invalid review', next: command('task review request', '--help') },
  task_review_not_due: {
    status: 409,
    message: 'the run has not ended, or its outcome does not match the review policy',
    next: command('task run show', placeholder('id')),
  },
  task_review_conflict: { status: 409, message: 'the review status does not allow this operation', next: show },
  task_review_foreign: { status: 409, message: 'the review is assigned to another session', next: show },
  task_review_own_work: {
    status: 409,
    message: 'a session cannot review its own run',
    next: command('task review route', placeholder('id'), '--session-id', placeholder('another')),
  },
})
