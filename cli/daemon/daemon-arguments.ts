/** Argument of the daemon's program that keeps all extensions from running. */
export const SAFE_MODE = '--safe-mode'
/** Argument that has it carry out the restart whose id follows, between the daemon that ends and the next one. */
export const RESTART = '--restart'
/**
 * Arguments of Node for a daemon in the background: at most 4 MiB a half of the young generation, where Node grows to 16. A start
 * that allocates 60 MiB would touch all of them, and their pages stay with the idle process.
 */
export const NODE_FLAGS: readonly string[] = ['--max-semi-space-size=4']
