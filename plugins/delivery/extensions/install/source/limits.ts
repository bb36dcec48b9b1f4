const MIB = 2 ** 20

/** What an extension may weigh, from whatever source; beyond it nothing is installed. */
export const limits = {
  /** Bytes of an archive as it is packed. */
  archiveBytes: 32 * MIB,
  /** Bytes of all files together. */
  treeBytes: 64 * MIB,
  /** How many times its packed size an archive may have unpacked, once that is more than `ratioFrom` bytes. */
  ratio: 100,
  ratioFrom: MIB,
  files: 5000,
  /** Folders that one file lies in. */
  depth: 24,
  /** Bytes of a whole path, and of one name in it; the file systems that are common take 255. */
  pathBytes: 512,
  nameBytes: 255,
  /** Bytes of one extended header of an archive. */
  paxBytes: 8 * 1024,
  /** Bytes that a clone may bring. */
  cloneBytes: 128 * MIB,
  /** Milliseconds for a download, and for one call of git. */
  downloadMs: 120_000,
  gitMs: 120_000,
} as const
