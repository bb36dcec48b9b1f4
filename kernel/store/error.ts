/** An error of the store or of a journal: a stable snake_case code, the problem as the message, and in `hint` the next step. */
export class StoreError extends Error {
  override readonly name = 'StoreError'

  constructor(
    readonly code: string,
    message: string,
    readonly hint: string,
    cause?: unknown,
  ) {
    super(message, cause === undefined ? undefined : { cause })
  }
}
