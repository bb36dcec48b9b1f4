import type { Command } from '../../kernel/plugin.js'
import { InboxLane, ReviewOutcome, ReviewPolicy, TaskPriority, TaskStatus } from '../../schemas/tasks.js'

/** Commands of `svc task` beside those of routes. */
export const commands: readonly Command[] = [
  {
    path: 'task inbox',
    summary: 'List the tasks that wait for you, by the reason',
    options: [
      { name: 'lane', type: 'text', values: InboxLane.options, summary: 'only those for one reason' },
      { name: 'status', type: 'text', values: TaskStatus.options, summary: 'only those of one status' },
      { name: 'priority', type: 'text', values: TaskPriority.options, summary: 'only those of one priority' },
      { name: 'unread', type: 'boolean', summary: 'only those that were not read' },
      { name: 'query', type: 'text', summary: 'looked for in title and identifier' },
      { name: 'in', type: 'text', summary: 'only those of one workspace: its id, name or path' },
      { name: 'limit', type: 'integer', summary: 'how many; default 50, at most 200' },
    ],
    load: () => import('./commands.js').then(module => ({ run: module.runInbox })),
  },
  {
    path: 'task review request',
    summary: 'Ask for a review of a run that is over',
    args: [{ name: 'run-id', summary: 'id of the run' }],
    options: [
      { name: 'within', type: 'text', summary: 'how long a verdict is waited for: 30m, 1d; default 1d' },
      {
        name: 'policy',
        type: 'text',
        values: ReviewPolicy.options,
        summary: 'which ends are reviewed; default always',
      },
      { name: 'reason', type: 'text', summary: 'what the reviewer is to look at' },
      { name: 'round', type: 'integer', summary: 'default: the one after the latest' },
    ],
    load: () => import('./commands.js').then(module => ({ run: module.runRequestReview })),
  },
  {
    path: 'task review verdict',
    summary: 'Record what a review came to; what is rejected is done again',
    args: [
      { name: 'id', summary: 'id of the review' },
      { name: 'outcome', summary: ReviewOutcome.options.join(', ') },
    ],
    options: [
      { name: 'reason', type: 'text', summary: 'why, required' },
      { name: 'guidance', type: 'text', summary: 'what the next round is to do' },
      { name: 'text', type: 'text', summary: 'the whole review' },
      { name: 'confidence', type: 'text', summary: 'from 0 to 1' },
    ],
    load: () => import('./commands.js').then(module => ({ run: module.runReviewVerdict })),
  },
]
