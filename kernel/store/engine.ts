import { createHash } from 'node:crypto'
import fs from 'node:fs/promises'
import { createRequire } from 'node:module'
import path from 'node:path'
import vm from 'node:vm'
import { messageOf } from '../contract/errors.js'
import type { SqlValue } from '../contract/storage.js'
import { clip } from '../kit/text.js'
import { StoreError } from './error.js'
import { type FileEvents, FileWatcher, type Heap } from './file-watcher.js'
import { SQLITE_PIN, type SqlitePin } from './sqlite-pin.js'
import { type Imports, type Instance, WebAssembly } from './wasm.js'

/** A prepared statement of sql.js. */
export interface SqliteStatement {
  bind(values: readonly SqlValue[]): boolean
  step(): boolean
  get(params: null, options?: { readonly useBigInt: boolean }): SqlValue[]
  getColumnNames(): string[]
  reset(): boolean
  free(): boolean
}

/** The part of an sql.js database that is used here. */
export interface SqliteDatabase {
  readonly filename: string
  run(sql: string): unknown
  exec(sql: string): { readonly columns: string[]; readonly values: SqlValue[][] }[]
  prepare(sql: string): SqliteStatement
  iterateStatements(sql: string): Iterator<SqliteStatement, unknown> & { getRemainingSQL(): string }
  getRowsModified(): number
  export(): Uint8Array
  close(): void
}

export interface EngineOptions {
  /** Path of another file than that of the installed package. */
  readonly wasmPath?: string
  readonly pin?: SqlitePin
}

/** One instance of SQLite with a file system in memory of its own. */
export interface Engine {
  readonly pin: SqlitePin
  /** Opens an image (absent: an empty database). If its buffer continues behind it, the file grows into that without a copy. */
  open(image?: Uint8Array): SqliteDatabase
  /** Creates the write-ahead log of a database that has not read anything yet. */
  putWal(db: SqliteDatabase, bytes: Uint8Array): void
  /** Watchers of all changes to the files of a database, by its `filename`. */
  readonly watchers: Map<string, FileEvents>
}

type Init = (config: object) => Promise<Heap & { readonly Database: new (image?: Uint8Array) => SqliteDatabase }>

/** Loads a new instance of the pinned build: it shares nothing with other stores or other users of sql.js in this process. */
export async function loadEngine({ pin = SQLITE_PIN, ...options }: EngineOptions = {}): Promise<Engine> {
  const require = createRequire(import.meta.url)
  const gluePath = require.resolve('sql.js/dist/sql-wasm.js')
  const wasmPath = options.wasmPath ?? path.join(path.dirname(gluePath), 'sql-wasm.wasm')
  const [source, wasm] = await Promise.all([fs.readFile(gluePath, 'utf8'), fs.readFile(wasmPath)])
  const sha256 = createHash('sha256').update(wasm).digest('hex')
  if (sha256 !== pin.sha256) {
    const message = `${wasmPath} is not the SQLite build that this program was made for`
    const hint = `install sql.js ${pin.version} again; for another version, copy the output of \`npm run sqljs:pin\` into the pin`
    throw new StoreError('sqlite_pin', `${message} (SHA-256 ${sha256}, expected ${pin.sha256})`, hint)
  }
  const watcher = new FileWatcher(pin)
  // The loader of sql.js keeps one instance per process; its source is run here to get a separate one.
  const module: { exports: unknown } = { exports: {} }
  const names = ['exports', 'require', 'module', '__filename', '__dirname']
  const fast = FAST_TEXTS.reduce((text, [from, to]) => text.replace(from, () => to), source)
  const wrapper = vm.compileFunction(fast, names, { filename: gluePath })
  wrapper(module.exports, require, module, gluePath, path.dirname(gluePath))
  const compiled = await compile(wasm, sha256)
  const glue = await new Promise<Awaited<ReturnType<Init>>>((resolve, reject) => {
    const instantiateWasm = (imports: Imports, done: (instance: Instance) => void): object => {
      const start = async (): Promise<void> => {
        done(watcher.attach(await WebAssembly.instantiate(compiled, watcher.wrap(imports))))
      }
      start().catch(reject)
      return {}
    }
    const config = { useOldExtensionFunctions: false, print: () => {}, printErr: () => {}, instantiateWasm }
    ;(module.exports as Init)(config).then(resolve, reject)
  })
  return {
    pin,
    open: image => new glue.Database(image === undefined ? undefined : growing(image)),
    putWal: (db, bytes) => watcher.create(glue, `/${db.filename}-wal`, bytes),
    watchers: watcher.watchers,
  }
}

/**
 * Replacements in the source of sql.js, each of which occurs once in it. Its own functions convert texts for SQLite character by
 * character, and the conversion takes as long as a short statement. A parameter needs no memory of its own either: all are written to
 * one place, from which SQLite copies them.
 */
export const FAST_TEXTS = [
  [
    'l=a=>{for(',
    'all=a=>a.all??=Buffer.from(a.buffer),at=0,put=(a,b)=>{var d=a.length,c=0,e;if(d<40)' +
      '{for(;c<d&&(e=a.charCodeAt(c))<128;c++)E[b+c]=e;if(c===d)return d}return all(E).write(a,b,3*d)},' +
      'l=a=>Buffer.byteLength(a),slow=a=>{for(',
  ],
  [
    'L=(a,b,d,c)=>{',
    'L=(a,b,d,c)=>{if(b===E&&c>0)return c=all(E).write(a,d,Math.min(c-1,E.length-d-1),`utf8`),b[d+c]=0,c;',
  ],
  ['Ya.decode(E.subarray(a,Za(E,a,b,d)))', 'all(E).toString(void 0,a,Za(E,a,b,d))'],
  [
    'var p=fa(f);this.rb.push(p);this.db.handleError(uc(this.Va,h,p,l(f),0))',
    'if(f.length<2e4&&(at||=da(65536))){this.db.handleError(uc(this.Va,h,at,put(f,at),-1));return}' +
      'var p=fa(f);this.rb.push(p);this.db.handleError(uc(this.Va,h,p,l(f),0))',
  ],
] as const

/** Compiled modules of this process, by the SHA-256 of their bytes: instances share only code. */
const modules = new Map<string, Promise<object>>()

function compile(wasm: Uint8Array, sha256: string): Promise<object> {
  const module = modules.get(sha256) ?? WebAssembly.compile(wasm)
  modules.set(sha256, module)
  return module
}

/**
 * The in-memory file system keeps the array that `slice` returns as the file's buffer: it gets the whole one, with space to grow.
 */
function growing(image: Uint8Array): Uint8Array {
  const whole = new Uint8Array(image.buffer, image.byteOffset)
  return whole.length === image.length ? image : Object.defineProperty(image, 'slice', { value: () => whole })
}

/** An error of SQLite, with a code of this program. */
export function sqlError(thrown: unknown, sql: string): StoreError {
  if (thrown instanceof StoreError) return thrown
  const reason = messageOf(thrown)
  const code = reason.includes('constraint failed') ? 'constraint_failed' : 'sql_failed'
  return new StoreError(code, reason, `check the statement: ${clip(sql.trim(), 200)}`, thrown)
}
