/** A process that could not be started, or could not be ended. */
export class SpawnError extends Error {
  override readonly name = 'SpawnError'

  constructor(
    readonly code: 'command_not_found' | 'spawn_failed' | 'process_not_ended',
    message: string,
    readonly hint: string,
    cause?: unknown,
  ) {
    super(`${message}; ${hint}`, { cause })
  }
}
