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

/** Text of anything thrown; sql.js throws strings as well. */
export function reasonOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown)
}

/** The `code` of a system error, such as ENOENT. */
export function errnoOf(thrown: unknown): string | undefined {
  return thrown instanceof Error && 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : undefined
}
