const MIB = 2 ** 20

/** Limits of an extension from any source; content beyond them is not installed. */
export const limits = {
  /** Bytes of a packed archive. */
  archiveBytes: 32 * MIB,
  /** Total bytes of all files. */
  treeBytes: 64 * MIB,
  /** Maximum compression ratio of an archive larger than `ratioFrom` bytes when unpacked. */
  ratio: 100,
  ratioFrom: MIB,
  files: 5000,
  /** Nesting depth of a file's folder. */
  depth: 24,
  /** Bytes of a whole path, and of one name in it; common file systems allow names of 255. */
  pathBytes: 512,
  nameBytes: 255,
  /** Bytes of one extended header of an archive. */
  paxBytes: 8 * 1024,
  /** Bytes of a clone. */
  cloneBytes: 128 * MIB,
  /** Milliseconds for a download, and for one git command. */
  downloadMs: 120_000,
  gitMs: 120_000,
} as const
