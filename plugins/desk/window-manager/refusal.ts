import { throws } from '../../../kernel/kit/annotations/index.js'
import type { Annotation } from '../../../kernel/plugin.js'
import type { WindowManagerErrorBody, WindowManagerErrorCode } from '../../../schemas/window-manager.js'

/** The HTTP status of each refusal, as in the contract's table of codes. */
export const refusalStatus = {
  window_manager_workspace_not_found: 404,
  window_manager_revision_conflict: 409,
  window_manager_invalid_command: 422,
  window_manager_invalid_topology: 422,
  window_manager_desktop_not_found: 404,
  window_manager_window_not_found: 404,
  window_manager_client_not_found: 404,
  window_manager_destination_required: 422,
  window_manager_final_desktop: 409,
  window_manager_history_boundary: 409,
  window_manager_layout_not_found: 404,
  window_manager_slow_consumer: 503,
  window_manager_unavailable: 503,
  // Codes of a later revision of the contract; no window can be pinned here yet.
  window_manager_not_stacked: 422,
  window_manager_window_pinned: 409,
} as const satisfies Record<WindowManagerErrorCode, 404 | 409 | 422 | 503>

/** A code without its prefix. */
type Short<C = WindowManagerErrorCode> = C extends `window_manager_${infer S}` ? S : never

/** Declares the refusals of a route, each with the status of its code. */
export const refusals = (...shorts: readonly Short[]): Annotation =>
  throws(
    ...shorts.map(short => {
      const code = `window_manager_${short}` as const
      return { code, status: refusalStatus[code] }
    }),
  )

type More = Pick<WindowManagerErrorBody, 'current_revision' | 'conflicts' | 'diagnostics'> & {
  /** The command or step that resolves the problem. */
  readonly next?: string
}

/** Why a request was refused without changes. The contract requires a separate body format that includes the workspace. */
export class Refusal extends Error {
  override readonly name = 'Refusal'

  constructor(
    readonly code: WindowManagerErrorCode,
    message: string,
    readonly more: More = {},
  ) {
    super(message)
  }

  toBody(workspaceId: string): WindowManagerErrorBody {
    const { next, ...rest } = this.more
    return {
      code: this.code,
      error: this.message,
      workspace_id: workspaceId,
      ...rest,
      ...(next === undefined ? {} : { details: { next } }),
    }
  }
}

/** Throws a {@link Refusal}. */
export function refuse(short: Short, message: string, more?: More): never {
  throw new Refusal(`window_manager_${short}`, message, more)
}
