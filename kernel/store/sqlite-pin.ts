/** The release build minifies its import names; `npm run sqljs:pin` finds them again for another version. */
export const SQLITE_PIN = {
  version: '1.16.0',
  /** SHA-256 of sql-wasm.wasm, hex. */
  sha256: '43bbcdd44287e5a2db3b6b5af34b1a3485a7a441285d247976c1ebe3c61f8dbf',
  /** Name of the import module. */
  module: 'a',
  // biome-ignore format: one line, as the script prints it
  imports: { openat: 'x', fd_write: 'q', fd_read: 't', fd_seek: 'E', fd_sync: 'K', fd_close: 'e', ftruncate: 'J', unlink: 'o' },
}

/** The build of sql.js that this program uses, and the names of its file calls. */
export type SqlitePin = Readonly<typeof SQLITE_PIN>

/** The file calls that the mirror watches; WebAssembly imports of the SQLite build. */
export type FileCall = keyof SqlitePin['imports']
