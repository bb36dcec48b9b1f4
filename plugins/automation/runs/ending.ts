/** How a run ended. */
export interface Ending {
  readonly status: 'completed' | 'failed' | 'canceled' | 'delegated'
  /** What goes on with it. */
  readonly task?: { readonly id: string; readonly run: string }
  readonly error?: string | undefined
}

/** Of what this daemon does not have. */
export const unsupported = (text: string): Ending => ({
  status: 'failed',
  error: `${text}, which this daemon does not have; give the job an agent_name and a prompt instead`,
})
