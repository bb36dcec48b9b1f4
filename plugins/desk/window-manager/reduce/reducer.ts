import type { WindowDiagnostic, WindowPreferences } from '../../../../schemas/window-manager.js'
import type { WindowDocument } from '../document/document.js'
import type { Mint } from '../document/tree.js'
import type { SavedLayout } from '../layouts/apply.js'
import type { CommandId, Payload } from './command-table.js'

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

/** The first thing that is wrong, and how many more there are. */
export function summary(diagnostics: readonly WindowDiagnostic[]): string {
  const [first] = diagnostics
  const more = diagnostics.length > 1 ? `, and ${diagnostics.length - 1} more` : ''
  return `the document would not be valid: ${first?.path}: ${first?.message}${more}`
}
