import type { Command } from '../../../../kernel/plugin.js'

const id = { name: 'id', summary: 'id of a bridge' }

/** Commands of instances that are more than one request. */
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
]
