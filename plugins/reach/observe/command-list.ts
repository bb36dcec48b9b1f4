import type { Command } from '../../../kernel/plugin.js'

const workspaceOption = { name: 'in', type: 'text', summary: 'show only this workspace: ID, name or path' } as const

const overview = (path: string): Command => ({
  path,
  summary: 'Show items that need attention, recent runs and their usage',
  options: [
    workspaceOption,
    { name: 'usage-window', type: 'text', values: ['7', '30', '90'], summary: 'days of usage; default 30' },
  ],
  load: () => import('./commands.js').then(module => ({ run: module.runOverview })),
})

/** The commands of the overview. */
export const commands: readonly Command[] = [
  overview('observe overview'),
  overview('overview'),
  {
    path: 'top',
    summary: 'Watch runs, sessions, queues and bridges',
    options: [
      workspaceOption,
      { name: 'once', type: 'boolean', summary: 'show the state once and exit' },
      {
        name: 'interval',
        type: 'integer',
        summary: 'seconds between two refreshes; default 2. With --json: print the state whenever it changes',
      },
    ],
    load: () => import('./commands.js').then(module => ({ run: module.runTop })),
  },
  {
    path: 'logs events',
    summary: 'Show events of the daemon: tasks, sessions, jobs, bridges',
    options: [
      { name: 'type', type: 'text', summary: 'event type: task.run_failed, or task.* for all with this prefix' },
      { name: 'errors', type: 'boolean', summary: 'show only events that report a failure' },
      workspaceOption,
      { name: 'session', type: 'text', summary: 'show only events of this session' },
      { name: 'agent', type: 'text', summary: 'show only events of sessions of this agent' },
      { name: 'run', type: 'text', summary: 'show only events of this run' },
      { name: 'actor', type: 'text', summary: 'show only events of this actor: ID, or kind/ID' },
      { name: 'provider', type: 'text', summary: 'show only events of this provider' },
      { name: 'outcome', type: 'text', summary: 'show only events with this outcome' },
      { name: 'component', type: 'text', summary: 'show only event types with this first word: task, bridge' },
      { name: 'since', type: 'text', summary: 'a duration before now or a time: 1h, 2030-01-31' },
      { name: 'after-seq', type: 'integer', summary: 'show only events after this position, oldest first' },
      { name: 'limit', type: 'integer', summary: 'number of events, at most 1000; default 200' },
      { name: 'follow', type: 'boolean', summary: 'also follow new events' },
    ],
    load: () => import('./commands.js').then(module => ({ run: module.runLogEvents })),
  },
]
