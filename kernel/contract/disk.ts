import type { Fault } from './errors.js'

/** What a write that finds the disk full does; kernel/store/README.md, "A full disk". */
export interface Room {
  /**
   * Frees so many bytes and some more of what is kept for this moment; false when nothing is left. Synchronous, so that
   * the write which follows at once gets them and not whoever fills the disk.
   */
  spend(bytes: number): boolean
  /** Resolves when another try is worth it. */
  again(): Promise<void>
}

/** Free space for writing; kernel/store/README.md, "A full disk". */
export interface DiskRoom {
  /** False while space is short, as it was seen last. */
  readonly writable: boolean
  /** Bytes that are free now; Infinity where the system does not tell. */
  look(): Promise<number>
  /** 507 `disk_full` while space is short. To be asked before new work or a new write; what frees or stops goes on. */
  refusal(): Promise<Fault | undefined>
  /** Of the reserve, what files beside the catalog may spend. */
  readonly room: Room
}
