import * as v from 'valibot'
import { issueText } from '../../kernel/plugin.js'
import type { WindowDiagnostic, WindowPreferences } from '../../schemas/window-manager.js'
import { type CommandId, commandTable, type Payload } from './command-table.js'
import * as desktops from './desktop-commands.js'
import type { WindowDocument } from './document.js'
import type { SavedLayout } from './layout-apply.js'
import * as layouts from './layout-commands.js'
import { Refusal, refuse } from './refusal.js'
import { diagnose } from './topology.js'
import { type Mint, settle } from './tree.js'
import * as windows from './window-commands.js'

/** What a command knows beside the document. */
export interface CommandContext {
  readonly mint: Mint
  /** Of the document that the command is done on. */
  readonly revision: number
  /** The desktop that the client looks at, where one asked. */
  readonly activeDesktop?: string | undefined
  /** What holds where the document does not say otherwise. */
  readonly settings: Pick<WindowPreferences, 'new_window_policy' | 'raise_on_focus'>
  /** Saved layouts of this workspace and of all. */
  layout(id: string): SavedLayout | undefined
}

/** What a command means for the client that asked, beside the document. */
export interface Effect {
  readonly focus?: string
  readonly show?: string
  /** Nothing was arranged, whatever the command can do else: it makes no history. */
  readonly onlyFocus?: true
}

/** A command on a draft, which it changes in place; `settle` and the check of all invariants come after it. Throws a Refusal. */
export type Reducer<C extends CommandId> = (
  draft: WindowDocument,
  payload: Payload<C>,
  context: CommandContext,
) => Effect | undefined

/** Commands that are done on the history instead. */
export type HistoryCommand = 'layout.undo' | 'layout.redo'

export const isHistoryCommand = (id: CommandId): id is HistoryCommand => id === 'layout.undo' || id === 'layout.redo'

const reducers: { readonly [C in Exclude<CommandId, HistoryCommand>]: Reducer<C> } = {
  'desktop.create': desktops.create,
  'desktop.update': desktops.update,
  'desktop.reorder': desktops.reorder,
  'desktop.switch': desktops.show,
  'desktop.delete': desktops.remove,
  'window.open': windows.open,
  'window.navigate': windows.navigate,
  'window.close': windows.close,
  'window.focus': windows.focus,
  'window.move': windows.move,
  'window.swap': windows.swap,
  'window.toggle_floating': windows.toggleFloating,
  'window.zoom': windows.zoom,
  'layout.arrange': layouts.arrange,
  'layout.resize': layouts.resize,
  'layout.balance': layouts.balance,
  'layout.replace': layouts.replace,
}

export type Reduced =
  | { readonly is: 'done'; readonly document: WindowDocument; readonly effect: Effect }
  | { readonly is: 'refused'; readonly refusal: Refusal }

/** The payload of a command, decoded; a Refusal that names every member that does not fit. */
export function decodePayload<C extends CommandId>(id: C, payload: unknown): Payload<C> {
  const decoded = v.safeParse(commandTable[id].payload, payload)
  if (decoded.success) return decoded.output as Payload<C>
  const diagnostics: WindowDiagnostic[] = decoded.issues.slice(0, 50).map(issue => ({
    code: 'payload.invalid',
    path: v.getDotPath(issue) ?? 'payload',
    message: issueText(issue),
  }))
  const [first] = diagnostics
  return refuse('invalid_command', `the payload of ${id} does not fit: ${first?.path}: ${first?.message}`, {
    diagnostics,
  })
}

/** The document after a command, or why not. Pure but for the ids that the context mints: the document given is not changed. */
export function reduce<C extends Exclude<CommandId, HistoryCommand>>(
  document: WindowDocument,
  id: C,
  payload: unknown,
  context: CommandContext,
): Reduced {
  try {
    const decoded = decodePayload(id, payload)
    const draft = structuredClone(document)
    const effect = reducers[id](draft, decoded, context) ?? {}
    settle(draft)
    const diagnostics = diagnose(draft, document.workspace_id)
    if (diagnostics.length > 0) refuse('invalid_topology', summary(diagnostics), { diagnostics })
    return { is: 'done', document: draft, effect }
  } catch (error) {
    if (error instanceof Refusal) return { is: 'refused', refusal: error }
    throw error
  }
}

/** The first thing that is wrong, and how many more there are. */
export function summary(diagnostics: readonly WindowDiagnostic[]): string {
  const [first] = diagnostics
  const more = diagnostics.length > 1 ? `, and ${diagnostics.length - 1} more` : ''
  return `the document would not be valid: ${first?.path}: ${first?.message}${more}`
}
