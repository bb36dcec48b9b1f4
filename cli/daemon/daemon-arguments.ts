/** Argument of the daemon's program that disables all extensions. */
export const SAFE_MODE = '--safe-mode'
/** Argument that runs the restart helper for the operation with the following ID. */
export const RESTART = '--restart'
/**
 * Node arguments for a background daemon: semi-spaces of the young generation of at most 4 MiB instead of 16. A start that
 * allocates 60 MiB would touch all of that memory, and the idle process would keep it.
 */
export const NODE_FLAGS: readonly string[] = ['--max-semi-space-size=4']
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
