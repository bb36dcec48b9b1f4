import type { Command } from '../../kernel/plugin.js'

const SWITCHES = {
  enable: (noun: string) => `Enable a ${noun}`,
  disable: (noun: string) => `Disable a ${noun}; it keeps its history and starts nothing by itself`,
}

const suggestion = { name: 'id', summary: 'id of a suggestion' } as const
const workspace = { name: 'workspace', type: 'workspace', summary: 'id, name or path of a workspace' } as const

/** Commands of `svc automation` beside those of routes. */
export const commands: readonly Command[] = [
  ...(['Job', 'Trigger'] as const).flatMap(noun =>
    (['enable', 'disable'] as const).map(verb => ({
      path: `automation ${noun.toLowerCase()}s ${verb}`,
      summary: SWITCHES[verb](noun.toLowerCase()),
      args: [{ name: 'id', summary: `id or name of a ${noun.toLowerCase()}` }],
      load: () => import('./commands.js').then(module => ({ run: module[`${verb}${noun}`] })),
    })),
  ),
  {
    path: 'automation simulate',
    summary: 'Show what jobs would do in days to come, and triggers about recorded events',
    options: [
      { name: 'days', type: 'integer', summary: 'days to come of jobs, past days of triggers; default 30' },
      { name: 'part', type: 'text', values: ['all', 'jobs', 'triggers'], summary: 'only jobs, or only triggers' },
      { name: 'only', type: 'text', summary: 'list only this job or trigger, by id or name' },
      { name: 'failing', type: 'text', summary: 'ids or names whose runs fail, separated by commas, or *' },
      { name: 'run-seconds', type: 'integer', summary: 'how long each run takes; default: as its latest did, else 60' },
      { name: 'offline', type: 'text', summary: 'when the daemon does not run: <from>/<to>, several by commas' },
      { name: 'limit', type: 'integer', summary: 'occasions that are listed; default 1000, at most 20000' },
    ],
    load: () => import('./commands.js').then(module => ({ run: module.runSimulate })),
  },
  {
    path: 'automation suggestions list',
    summary: 'List jobs and triggers that agents and extensions suggest for a workspace',
    options: [
      { name: 'status', type: 'text', values: ['pending', 'accepted', 'dismissed'], summary: 'only of this status' },
      workspace,
    ],
    load: () => import('./commands.js').then(module => ({ run: module.runListSuggestions })),
  },
  {
    path: 'automation suggestions propose',
    summary: 'Suggest a job or trigger; a person accepts or dismisses it',
    args: [{ name: 'json', summary: '{"job":{…}} or {"trigger":{…}}, as a request that creates one has it' }],
    options: [workspace],
    load: () => import('./commands.js').then(module => ({ run: module.runPropose })),
  },
  {
    path: 'automation suggestions accept',
    summary: 'Create the job or trigger of a suggestion',
    args: [suggestion],
    options: [workspace],
    load: () => import('./commands.js').then(module => ({ run: module.runAccept })),
  },
  {
    path: 'automation suggestions dismiss',
    summary: 'Dismiss a suggestion',
    args: [suggestion],
    options: [workspace],
    load: () => import('./commands.js').then(module => ({ run: module.runDismiss })),
  },
]
