/** Limits for reading a backup; a backup that exceeds one is refused. */
export const LIMITS = {
  /** Bytes of the manifest, which names each file. */
  manifestBytes: 256 * 1024 * 1024,
  headerBytes: 64 * 1024,
  entries: 5_000_000,
  /** Longest path below the home, in bytes. */
  path: 4096,
  depth: 64,
  fileBytes: 2 ** 40,
} as const
