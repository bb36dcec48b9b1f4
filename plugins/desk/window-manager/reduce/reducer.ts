import type { WindowDiagnostic, WindowPreferences } from '../../../../schemas/window-manager.js'
import type { WindowDocument } from '../document/document.js'
import type { Mint } from '../document/tree.js'
import type { SavedLayout } from '../layouts/apply.js'
import type { CommandId, Payload } from './command-table.js'

/** Inputs of a command in addition to the document. */
export interface CommandContext {
  readonly mint: Mint
  /** Revision of the document that the command is applied to. */
  readonly revision: number
  /** The current desktop of the client, if a client sent the command. */
  readonly activeDesktop?: string | undefined
  /** Defaults for values that the document does not set. */
  readonly settings: Pick<WindowPreferences, 'new_window_policy' | 'raise_on_focus'>
  /** A saved layout of this workspace or a global one. */
  layout(id: string): SavedLayout | undefined
}

/** Effects of a command on its client, in addition to the document. */
export interface Effect {
  readonly focus?: string
  readonly show?: string
  /** The command only changed the focus, so it creates no history entry. */
  readonly onlyFocus?: true
}

/** Applies a command to a draft, in place; `settle` and the check of all invariants follow. Throws a Refusal. */
export type Reducer<C extends CommandId> = (
  draft: WindowDocument,
  payload: Payload<C>,
  context: CommandContext,
) => Effect | undefined

/** The first problem and the number of further ones. */
export function summary(diagnostics: readonly WindowDiagnostic[]): string {
  const [first] = diagnostics
  const more = diagnostics.length > 1 ? `, and ${diagnostics.length - 1} more` : ''
  return `the document would not be valid: ${first?.path}: ${first?.message}${more}`
}
