/** A small text file that a person may edit as well: read whole, replaced whole, durably and atomically. */
export interface TextFile {
  /** The text; undefined when there is no file. @throws StoreError `file_unreadable`; Fault `file_not_regular`, `file_too_large` */
  read(): Promise<string | undefined>
  /** Resolves when the text is on the disk; a crash leaves the old text or the new one. @throws StoreError `disk_full`, `file_unwritable` */
  write(text: string): Promise<void>
}
