/** Argument of the daemon's program that keeps all extensions from running. */
export const SAFE_MODE = '--safe-mode'
