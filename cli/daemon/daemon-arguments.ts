/** Argument of the daemon's program that keeps all extensions from running. */
export const SAFE_MODE = '--safe-mode'
/** Argument that has it carry out the restart whose id follows, between the daemon that ends and the next one. */
export const RESTART = '--restart'
/**
 * Arguments of Node for a daemon in the background: at most 4 MiB a half of the young generation, where Node grows to 16. A start
 * that allocates 60 MiB would touch all of them, and their pages stay with the idle process.
 */
export const NODE_FLAGS: readonly string[] = ['--max-semi-space-size=4']
/** Argument for a daemon that a service manager started and starts anew: it restarts itself by ending with {@link serviceExits}. */
export const SERVICE = '--service'
/** The service managers that differ in what an exit code tells them. */
export type Service = 'systemd' | 'launchd'

/** Which manager started this program, by its arguments; undefined where none did. */
export function serviceOf(argv: readonly string[]): Service | undefined {
  const argument = argv.find(word => word === SERVICE || word.startsWith(`${SERVICE}=`))
  if (argument === undefined) return undefined
  return argument === `${SERVICE}=launchd` ? 'launchd' : 'systemd'
}

/** What the exit code of a daemon tells the service manager that started it. */
export const serviceExits = {
  /** Start it again: a restart was asked for (EX_TEMPFAIL). */
  restart: 75,
  /** Do not: another start would fail as this one did, until a person has changed something (EX_CONFIG). */
  hopeless: 78,
  /** Do not: another daemon holds the home. */
  alreadyRunning: 5,
} as const
