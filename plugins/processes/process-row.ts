/** What is kept of a process that runs, so that the next daemon finds what this one left. */
export interface ProcessRow {
  readonly pid: number
  /** As {@link ProcessHandle.startTime}. */
  readonly startTime: string
  readonly group: number
  /** The plugin it was started for. */
  readonly owner: string
  readonly label: string
}

/** Where the rows are kept; both writes are durable when they resolve. */
export interface ProcessTable {
  add(row: ProcessRow): Promise<void>
  remove(pid: number, startTime: string): Promise<void>
  list(): ProcessRow[]
}
