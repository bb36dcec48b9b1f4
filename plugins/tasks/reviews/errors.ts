import { defineErrors } from '../../../kernel/plugin.js'

const show = 'svc task review show <id>'

/** What is refused about reviews. */
export const ReviewErrors = defineErrors({
  task_review_not_found: { status: 404, message: 'no such review', next: 'svc task review list <task-id>' },
  task_review_invalid: { status: 400, message: 'the review is not valid', next: 'svc task review --help' },
  task_review_not_due: {
    status: 409,
    message: 'a run is reviewed when it is over, and ended as the policy says',
    next: 'svc task run show <id>',
  },
  task_review_conflict: { status: 409, message: 'the state of the review does not allow this', next: show },
  task_review_foreign: { status: 409, message: 'another session has this review', next: show },
  task_review_own_work: {
    status: 409,
    message: 'a session does not review its own run',
    next: 'svc task review route <id> --session-id <another>',
  },
})
