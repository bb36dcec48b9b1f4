/** Argument of the daemon's program that keeps all extensions from running. */
export const SAFE_MODE = '--safe-mode'
/** Argument that has it carry out the restart whose id follows, between the daemon that ends and the next one. */
export const RESTART = '--restart'
