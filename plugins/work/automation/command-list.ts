import type { Command } from '../../../kernel/plugin.js'

const SWITCHES = {
  enable: (noun: string) => `Enable a ${noun}`,
  disable: (noun: string) => `Disable a ${noun}; its run history is kept`,
}

const suggestion = { name: 'id', summary: 'id of a suggestion' } as const
const workspace = { name: 'workspace', type: 'workspace', summary: 'id, name or path of a workspace' } as const

/** Commands of `svc automation` that are not generated from routes. */
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
    path: 'automation triggers test',
    summary: 'Print the URL of a webhook and a signed curl command',
    args: [{ name: 'id', summary: 'id or name of a webhook trigger' }],
    options: [{ name: 'body', type: 'text', summary: 'body of the delivery (default a small JSON object)' }],
    load: () => import('./commands.js').then(module => ({ run: module.runTestTrigger })),
  },
  {
    path: 'automation simulate',
    summary: 'Simulate jobs over the coming days and triggers over recorded events',
    options: [
      { name: 'days', type: 'integer', summary: 'number of days: future for jobs, past for triggers (default 30)' },
      {
        name: 'part',
        type: 'text',
        values: ['all', 'jobs', 'triggers'],
        summary: 'simulate only jobs or only triggers (default all)',
      },
      { name: 'only', type: 'text', summary: 'show only this job or trigger (id or name)' },
      {
        name: 'failing',
        type: 'text',
        summary: 'assume that runs of these jobs or triggers fail: comma-separated ids or names, or *',
      },
      {
        name: 'run-seconds',
        type: 'integer',
        summary: 'assumed duration of a run (default: median of recent runs, else 60)',
      },
      {
        name: 'offline',
        type: 'text',
        summary: 'assume that the daemon is down: <from>/<to>[,<from>/<to>...] in RFC 3339',
      },
      {
        name: 'limit',
        type: 'integer',
        summary: 'maximum number of fires and skips to show (default 1000, maximum 20000)',
      },
    ],
    load: () => import('./commands.js').then(module => ({ run: module.runSimulate })),
  },
  {
    path: 'automation suggestions list',
    summary: 'List jobs and triggers suggested by agents and extensions',
    options: [
      {
        name: 'status',
        type: 'text',
        values: ['pending', 'accepted', 'dismissed'],
        summary: 'show only suggestions with this status',
      },
      workspace,
    ],
    load: () => import('./commands.js').then(module => ({ run: module.runListSuggestions })),
  },
  {
    path: 'automation suggestions propose',
    summary: 'Suggest a job or trigger for a user to accept or dismiss',
    args: [{ name: 'json', summary: '{"job":{…}} or {"trigger":{…}}, with the fields of a create request' }],
    options: [workspace],
    load: () => import('./commands.js').then(module => ({ run: module.runPropose })),
  },
  {
    path: 'automation suggestions accept',
    summary: 'Accept a suggestion and create its job or trigger',
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
