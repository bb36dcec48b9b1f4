import type { Command } from '../../../../kernel/plugin.js'

const id = { name: 'id', summary: 'id of a bridge' }

/** Instance commands that need more than one request. */
export const instanceCommands: readonly Command[] = [
  {
    path: 'bridge secret-bindings put',
    summary: 'Bind a secret slot of a bridge to a value from standard input or a hidden prompt',
    args: [id, { name: 'slot', summary: 'name of the slot, as svc bridge providers --json lists it' }],
    options: [
      { name: 'kind', type: 'text', summary: 'a label, such as token; default: secret' },
      { name: 'value-stdin', type: 'boolean', summary: 'read the value from standard input even on a terminal' },
    ],
    load: () => import('../commands.js').then(module => ({ run: module.runPutSecret })),
  },
  {
    path: 'bridge setup',
    summary: 'Set up a bridge step by step: settings, tokens, start and checks',
    args: [{ name: 'platform', summary: 'platform, as svc bridge providers lists it' }],
    options: [
      { name: 'workspace', type: 'workspace', summary: 'workspace whose agent answers; default: that of this folder' },
      { name: 'extension', type: 'text', summary: 'extension to use if several provide the platform' },
    ],
    load: () => import('../commands.js').then(module => ({ run: module.runSetup })),
  },
  {
    path: 'bridge manifest slack',
    summary: 'Print the manifest of the Slack app of a bridge',
    args: [id],
    load: () => import('../commands.js').then(module => ({ run: module.runSlackManifest })),
  },
]
