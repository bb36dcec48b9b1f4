import * as v from 'valibot'
import { issueText } from '../../../../kernel/kit/issue-text.js'
import type { WindowDiagnostic } from '../../../../schemas/window-manager.js'
import type { WindowDocument } from '../document/document.js'
import { diagnose } from '../document/topology.js'
import { settle } from '../document/tree.js'
import { Refusal, refuse } from '../refusal.js'
import { type CommandId, commandTable, type Payload } from './command-table.js'
import * as desktops from './desktop-commands.js'
import * as layouts from './layout-commands.js'
import { type CommandContext, type Effect, type Reducer, summary } from './reducer.js'
import * as windows from './window-commands.js'

/** Commands that operate on the history instead of the document. */
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

/** The decoded payload of a command; throws a Refusal that names every invalid member. */
export function decodePayload<C extends CommandId>(id: C, payload: unknown): Payload<C> {
  const decoded = v.safeParse(commandTable[id].payload, payload)
  if (decoded.success) return decoded.output as Payload<C>
  const diagnostics: WindowDiagnostic[] = decoded.issues.slice(0, 50).map(issue => ({
    code: 'payload.invalid',
    path: v.getDotPath(issue) ?? 'payload',
    message: issueText(issue),
  }))
  const [first] = diagnostics
  return refuse('invalid_command', `the payload of ${id} is not valid: ${first?.path}: ${first?.message}`, {
    diagnostics,
  })
}

/** The document after a command, or a refusal. Pure except for newly created ids: the given document is not changed. */
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
