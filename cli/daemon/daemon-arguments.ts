/** Argument of the daemon's program that disables all extensions. */
export const SAFE_MODE = '--safe-mode'
/** Argument that runs the restart helper for the operation with the following ID. */
export const RESTART = '--restart'
/**
 * Node arguments for a background daemon. The size of the young generation is V8's own default in MiB: with 4, a write takes a
 * quarter more processor time. An idle daemon gives the memory back.
 */
export const NODE_FLAGS: readonly string[] = ['--max-semi-space-size=16']
/** Argument for a daemon under a service manager, which restarts by exiting with one of {@link serviceExits}. */
export const SERVICE = '--service'
/** Service managers, which differ in their handling of exit codes. */
export type Service = 'systemd' | 'launchd'

/** The service manager that started this program, by its arguments; undefined without one. */
export function serviceOf(argv: readonly string[]): Service | undefined {
  const argument = argv.find(word => word === SERVICE || word.startsWith(`${SERVICE}=`))
  if (argument === undefined) return undefined
  return argument === `${SERVICE}=launchd` ? 'launchd' : 'systemd'
}

/** Exit codes of the daemon for its service manager. */
export const serviceExits = {
  /** Start it again: a restart was requested (EX_TEMPFAIL). */
  restart: 75,
  /** Do not start it again: the next start would fail too, until a person changes something (EX_CONFIG). */
  hopeless: 78,
  /** Do not start it again: another daemon holds the home. */
  alreadyRunning: 5,
} as const
