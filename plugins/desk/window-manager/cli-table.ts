import type { Command, CommandArgument, CommandContext, CommandOption } from '../../../kernel/plugin.js'
import { type CommandId, commandTable } from './reduce/command-table.js'

/** A word on the command line and the member of the payload that it sets; a dot leads into an object. */
interface Part {
  readonly name: string
  readonly member: string
  /** `minus` negates the number of the member: a negative number on the command line would be read as an option. */
  readonly as?: 'text' | 'integer' | 'number' | 'boolean' | 'minus'
  readonly summary?: string
}

/** A command of the window manager as a verb of the command line. */
export interface CliCommand {
  readonly command: CommandId
  readonly args?: readonly (Part & { readonly optional?: boolean })[]
  readonly options?: readonly Part[]
  /** Members that the verb itself implies. */
  readonly fixed?: Readonly<Record<string, unknown>>
  /** Summary used instead of that in the command table. */
  readonly summary?: string
}

const desktop: Part = { name: 'desktop', member: 'desktop_id', summary: 'id of a desktop' }
const window: Part = { name: 'window', member: 'window_id', summary: 'id of a window' }
const neighbour: Part = { name: 'beside', member: 'target_window_id', summary: 'id of the window to move it next to' }
const edge: Part = { name: 'edge', member: 'edge', summary: 'left, right, top, bottom or center (on top of it)' }
const onDesktop: Part = { ...desktop, summary: 'id of the desktop; default: the current one, else the first' }

/** Verbs of `svc desktop`, `svc window` and `svc layout` that send a command, by their path. */
export const cliVerbs = {
  'desktop create': {
    command: 'desktop.create',
    args: [
      { name: 'name', member: 'name', optional: true, summary: 'name of the desktop; default: Desktop 2 and so on' },
    ],
    options: [
      { name: 'id', member: 'id', summary: 'generated if omitted' },
      { name: 'purpose', member: 'purpose', summary: 'standard (default) or focus' },
      { name: 'order', member: 'order', as: 'integer', summary: 'place in the list, from 0' },
    ],
  },
  'desktop update': {
    command: 'desktop.update',
    args: [desktop],
    options: [
      { name: 'name', member: 'name', summary: 'new name' },
      { name: 'purpose', member: 'purpose', summary: 'standard or focus' },
    ],
  },
  'desktop reorder': {
    command: 'desktop.reorder',
    args: [desktop, { name: 'order', member: 'order', as: 'integer', summary: 'place in the list, from 0' }],
  },
  'desktop switch': { command: 'desktop.switch', args: [desktop] },
  'desktop delete': {
    command: 'desktop.delete',
    args: [desktop],
    options: [{ name: 'move-to', member: 'move_to', summary: 'id of the desktop that takes its windows' }],
    summary: 'Delete a desktop; --move-to sets the desktop that takes its windows',
  },
  'window open': {
    command: 'window.open',
    args: [{ name: 'app', member: 'app', summary: 'what the window shows' }],
    options: [
      { name: 'id', member: 'id', summary: 'generated if omitted' },
      {
        name: 'instance',
        member: 'instance_key',
        summary: 'key of the window; a window with this key is focused instead',
      },
      onDesktop,
      neighbour,
      edge,
      { name: 'placement', member: 'placement', summary: 'tiled (default) or floating' },
    ],
  },
  'window close': { command: 'window.close', args: [window] },
  'window focus': { command: 'window.focus', args: [window] },
  'window navigate': {
    command: 'window.navigate',
    args: [window, { name: 'pathname', member: 'route.pathname', summary: 'what it shows' }],
    fixed: { route: { search: {} } },
  },
  'window move': {
    command: 'window.move',
    args: [window],
    options: [{ ...desktop, summary: 'id of the target desktop' }, neighbour, edge],
    summary: 'Move a window beside another (--beside, --edge) or to another desktop (--desktop)',
  },
  'window group': {
    command: 'window.move',
    args: [window, { name: 'onto', member: 'target_window_id', summary: 'id of the window to stack with' }],
    fixed: { edge: 'center' },
    summary: 'Stack a window with another',
  },
  'window swap': {
    command: 'window.swap',
    args: [window, { name: 'with', member: 'target_window_id', summary: 'id of the other window' }],
  },
  'window float': {
    command: 'window.toggle_floating',
    args: [window],
    options: [
      { name: 'minimized', member: 'minimized', as: 'boolean', summary: 'hide the window until it is focused' },
    ],
  },
  'window zoom': { command: 'window.zoom', args: [window] },
  'window resize': {
    command: 'layout.resize',
    args: [
      window,
      { name: 'axis', member: 'axis', summary: 'horizontal or vertical' },
      { name: 'delta', member: 'delta', as: 'number', summary: 'fraction of the split to grow by, such as 0.1' },
    ],
    options: [{ name: 'shrink', member: 'delta', as: 'minus', summary: 'shrink by this fraction instead' }],
    summary: 'Make a window larger or smaller',
  },
  'layout arrange': {
    command: 'layout.arrange',
    args: [{ name: 'mode', member: 'mode', summary: 'columns, rows, grid, main or stack' }],
    options: [onDesktop],
  },
  'layout balance': {
    command: 'layout.balance',
    options: [onDesktop],
    summary: 'Give the windows of a desktop the same size',
  },
  'layout undo': { command: 'layout.undo' },
  'layout redo': { command: 'layout.redo' },
} as const satisfies Readonly<Record<string, CliCommand>>

export type CliVerb = keyof typeof cliVerbs

type Runner = (context: CommandContext) => Promise<unknown>
const load = (pick: (module: typeof import('./commands.js')) => Runner) => async () => ({
  run: pick(await import('./commands.js')),
})

const common: readonly CommandOption[] = [
  { name: 'workspace', type: 'text', summary: 'id, name or path; default: the one around the current folder' },
]
const changing: readonly CommandOption[] = [
  ...common,
  { name: 'client', type: 'text', summary: 'id of the screen that it is for; default: the only one' },
  { name: 'preview', type: 'boolean', summary: 'show the effect without applying it' },
]

function verb(path: CliVerb): Command {
  const { command, args = [], options = [], summary }: CliCommand = cliVerbs[path]
  const argument = ({ name, summary: text, optional }: Part & { optional?: boolean }): CommandArgument => ({
    name,
    ...(text && { summary: text }),
    ...(optional && { optional }),
  })
  const option = ({ name, summary: text = '', as }: Part): CommandOption => ({
    name,
    type: as === 'minus' ? 'boolean' : as === 'integer' || as === 'boolean' ? as : 'text',
    summary: text,
  })
  return {
    path,
    summary: summary ?? commandTable[command].summary,
    args: args.map(argument),
    options: [...options.map(option), ...changing],
    load: load(module => module.runVerb),
  }
}

const layoutId = { name: 'layout', summary: 'id of a saved layout' }
const fitting: readonly CommandOption[] = [
  { name: 'file', type: 'text', summary: 'a layout document or a layout from a JSON file, - for standard input' },
  {
    name: 'viewport',
    type: 'text',
    summary: 'size of the screen, such as 1920x1080; without it, the aspect ratio is not checked',
  },
]

export const cliCommands: readonly Command[] = [
  {
    path: 'desktop list',
    summary: 'List desktops of a workspace and the windows on them',
    options: common,
    load: load(module => module.runDesktops),
  },
  ...(Object.keys(cliVerbs) as CliVerb[]).map(verb),
  {
    path: 'layout get',
    summary: 'Export the current arrangement as a layout document',
    options: common,
    load: load(module => module.runLayout),
  },
  {
    path: 'layout apply',
    summary: 'Apply a saved layout, or replace the arrangement with a layout document',
    args: [{ ...layoutId, optional: true }],
    options: [...fitting, ...changing],
    load: load(module => module.runApply),
  },
  {
    path: 'layout preview',
    summary: 'Show what layout apply would do',
    args: [{ ...layoutId, optional: true }],
    options: [...fitting, ...common],
    load: load(module => module.runPreview),
  },
  {
    path: 'layout validate',
    summary: 'Validate a layout document and list all errors',
    args: [{ name: 'file', summary: 'JSON file; - reads standard input' }],
    options: common,
    load: load(module => module.runValidate),
  },
  {
    path: 'layout export',
    summary: 'Export the arrangement as a reusable layout; --save stores it in the daemon',
    options: [
      ...common,
      { name: 'save', type: 'text', summary: 'id of the saved layout, available to all workspaces' },
      { name: 'name', type: 'text', summary: 'display name; default: the id' },
      { name: 'aspect', type: 'text', summary: 'any (default), landscape or portrait' },
      { name: 'overflow', type: 'text', summary: 'what to do with windows without a place: stack (default) or reject' },
    ],
    load: load(module => module.runExport),
  },
]
