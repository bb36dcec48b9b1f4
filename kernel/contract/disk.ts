import type { Fault } from './errors.js'

/** Free space for writing; kernel/store/README.md, "A full disk". */
export interface DiskRoom {
  /** False while space is short, as it was seen last. */
  readonly writable: boolean
  /** Bytes that are free now; Infinity where the system does not tell. */
  look(): Promise<number>
  /** 507 `disk_full` while space is short. To be asked before new work or a new write; what frees or stops goes on. */
  refusal(): Promise<Fault | undefined>
}
