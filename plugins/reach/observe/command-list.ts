import type { Command } from '../../../kernel/plugin.js'

const place = { name: 'in', type: 'text', summary: 'show only this workspace: ID, name or path' } as const

const overview = (path: string): Command => ({
  path,
  summary: 'Show what needs attention, what ran and what it used',
  options: [
    place,
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
      place,
      { name: 'once', type: 'boolean', summary: 'show the state once and exit' },
      {
        name: 'interval',
        type: 'integer',
        summary: 'seconds between two looks; default 2. With --json: print a state whenever it changes',
      },
    ],
    load: () => import('./commands.js').then(module => ({ run: module.runTop })),
  },
]
