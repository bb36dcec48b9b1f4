/** The file calls that the mirror watches; WebAssembly imports of the SQLite build. */
export type FileCall = 'openat' | 'fd_write' | 'fd_read' | 'fd_seek' | 'fd_sync' | 'fd_close' | 'ftruncate' | 'unlink'

/** Which build of sql.js this program was made for, and how its file calls are named there. */
export interface SqlitePin {
  readonly version: string
  /** SHA-256 of sql-wasm.wasm, hex. */
  readonly sha256: string
  /** Name of the import module. */
  readonly module: string
  readonly imports: Readonly<Record<FileCall, string>>
}

/** The release build minifies its import names; `npm run sqljs:pin` finds them again for another version. */
export const SQLITE_PIN: SqlitePin = {
  version: '1.16.0',
  sha256: '43bbcdd44287e5a2db3b6b5af34b1a3485a7a441285d247976c1ebe3c61f8dbf',
  module: 'a',
  imports: {
    openat: 'x',
    fd_write: 'q',
    fd_read: 't',
    fd_seek: 'E',
    fd_sync: 'K',
    fd_close: 'e',
    ftruncate: 'J',
    unlink: 'o',
  },
}
