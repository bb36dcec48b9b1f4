/** The end of a run. */
export interface Ending {
  readonly status: 'completed' | 'failed' | 'canceled' | 'delegated'
  /** The task that continues the work. */
  readonly task?: { readonly id: string; readonly run: string }
  readonly error?: string | undefined
}

/** The run needs a feature that this daemon does not have. */
export const unsupported = (text: string): Ending => ({
  status: 'failed',
  error: `${text}, which is not available in this daemon; use agent_name and prompt instead`,
})
