import type { Command } from '../../../kernel/plugin.js'
import { InboxLane, ReviewOutcome, ReviewPolicy, TaskPriority, TaskStatus } from '../../../schemas/tasks.js'

/** Commands of `svc task` that are not generated from a route. */
export const commands: readonly Command[] = [
  {
    path: 'task inbox',
    summary: 'List the tasks that need action from you, grouped by reason',
    options: [
      { name: 'lane', type: 'text', values: InboxLane.options, summary: 'show only this lane' },
      { name: 'status', type: 'text', values: TaskStatus.options, summary: 'show only tasks with this status' },
      { name: 'priority', type: 'text', values: TaskPriority.options, summary: 'show only tasks with this priority' },
      { name: 'unread', type: 'boolean', summary: 'show only unread tasks' },
      { name: 'query', type: 'text', summary: 'search text, matched against title and identifier' },
      { name: 'in', type: 'text', summary: 'show only tasks in this workspace: ID, name or path' },
      { name: 'limit', type: 'integer', summary: 'maximum number of tasks; default 50, at most 200' },
    ],
    load: () => import('./commands.js').then(module => ({ run: module.runInbox })),
  },
  {
    path: 'task review request',
    summary: 'Request a review of a run that has ended',
    args: [{ name: 'run-id', summary: 'run ID, ID prefix or @last' }],
    options: [
      { name: 'within', type: 'text', summary: 'deadline for the verdict, such as 30m or 1d; default 1d' },
      {
        name: 'policy',
        type: 'text',
        values: ReviewPolicy.options,
        summary: 'run outcomes to review; default always',
      },
      { name: 'reason', type: 'text', summary: 'what to review' },
      { name: 'round', type: 'integer', summary: 'review round; default: the round after the latest' },
    ],
    load: () => import('./commands.js').then(module => ({ run: module.runRequestReview })),
  },
  {
    path: 'task review verdict',
    summary: 'Record the verdict of a review; a rejected run is queued again',
    args: [
      { name: 'id', summary: 'review ID, ID prefix or @last' },
      { name: 'outcome', summary: ReviewOutcome.options.join(', ') },
    ],
    options: [
      { name: 'reason', type: 'text', summary: 'reason for the verdict (required)' },
      { name: 'guidance', type: 'text', summary: 'instructions for the next round' },
      { name: 'text', type: 'text', summary: 'full text of the review' },
      { name: 'confidence', type: 'text', summary: 'confidence in the verdict, from 0 to 1' },
    ],
    load: () => import('./commands.js').then(module => ({ run: module.runReviewVerdict })),
  },
]
