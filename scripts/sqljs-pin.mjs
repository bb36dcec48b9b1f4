// Finds the names of the file calls in the installed release build of sql.js by observing which import is called when, and prints
// them with the SHA-256 of the wasm file, as kernel/store/sqlite-pin.ts needs them. `--json` prints JSON.
import { createHash } from 'node:crypto'
import fs from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import vm from 'node:vm'

const MARKER = Buffer.from('the mirror watches this text')

const require = createRequire(import.meta.url)
const gluePath = require.resolve('sql.js/dist/sql-wasm.js')
const folder = path.dirname(gluePath)
const { version } = JSON.parse(fs.readFileSync(path.join(folder, '../package.json'), 'utf8'))
const wasm = fs.readFileSync(path.join(folder, 'sql-wasm.wasm'))

/** Import calls: phase, module, name, arguments, result, and the memory that the arguments point to. */
const calls = []
let phase = 'load'
let memory

const textAt = pointer => {
  const bytes = Buffer.from(memory.buffer)
  if (typeof pointer !== 'number' || pointer <= 0 || pointer >= bytes.length) return ''
  return bytes.toString('latin1', pointer, Math.min(bytes.indexOf(0, pointer), pointer + 256))
}
/** Whether the only buffer of a buffer vector contains the marker; false for any other argument. */
const vectorHasMarker = pointer => {
  const bytes = Buffer.from(memory.buffer)
  if (typeof pointer !== 'number' || pointer <= 0 || pointer + 8 > bytes.length || pointer % 4 !== 0) return false
  const start = bytes.readUInt32LE(pointer)
  return bytes.subarray(start, start + bytes.readUInt32LE(pointer + 4)).includes(MARKER)
}

const watch = imports =>
  Object.fromEntries(
    Object.entries(imports).map(([module, functions]) => [
      module,
      Object.fromEntries(
        Object.entries(functions).map(([name, original]) => [
          name,
          (...args) => {
            const call = { phase, module, name, args, path: textAt(args[1]), before: vectorHasMarker(args[1]) }
            calls.push(call)
            call.result = original(...args)
            call.after = vectorHasMarker(args[1])
            return call.result
          },
        ]),
      ),
    ]),
  )

const loaded = { exports: {} }
vm.compileFunction(fs.readFileSync(gluePath, 'utf8'), ['exports', 'require', 'module', '__filename', '__dirname'], {
  filename: gluePath,
})(loaded.exports, require, loaded, gluePath, folder)
const SQL = await loaded.exports({
  useOldExtensionFunctions: false,
  instantiateWasm(imports, done) {
    WebAssembly.instantiate(wasm, watch(imports)).then(({ instance }) => {
      memory = Object.values(instance.exports).find(value => value instanceof WebAssembly.Memory)
      done(instance)
    })
    return {}
  },
})

phase = 'open'
const db = new SQL.Database()
db.run('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE t (text)')
phase = 'commit'
db.run(`BEGIN IMMEDIATE; INSERT INTO t VALUES ('${MARKER}'); COMMIT`)
phase = 'checkpoint'
db.run('PRAGMA wal_checkpoint(TRUNCATE)')
phase = 'close'
const { filename } = db
db.close()

/** The only import name among the calls that pass the test. */
const only = (what, test) => {
  const names = [...new Set(calls.filter(test).map(call => call.name))]
  if (names.length !== 1) throw new Error(`${what}: expected one import, found ${names.join(', ') || 'none'}`)
  return names[0]
}
const opened = suffix => call =>
  call.args.length === 4 &&
  call.path.endsWith(filename + suffix) &&
  call.result >= 3 &&
  typeof call.args[1] === 'number'
const descriptor = suffix => calls.find(opened(suffix))?.result
const isWal = call => call.args[0] === descriptor('-wal')

const fdSync = only('fd_sync', call => call.phase === 'commit' && call.args.length === 1 && isWal(call))
const walPathBefore = new Set(
  calls.filter(call => call.phase !== 'close' && call.path.endsWith('-wal')).map(call => call.name),
)
const found = {
  openat: only('openat', opened('')),
  fd_write: only('fd_write', call => call.phase === 'commit' && call.args.length === 4 && isWal(call) && call.before),
  fd_read: only(
    'fd_read',
    call => call.phase === 'checkpoint' && call.args.length === 4 && isWal(call) && !call.before && call.after,
  ),
  fd_seek: only(
    'fd_seek',
    call => call.phase === 'commit' && call.args.length === 4 && isWal(call) && typeof call.args[1] === 'bigint',
  ),
  fd_sync: fdSync,
  fd_close: only(
    'fd_close',
    call => call.phase === 'close' && call.args.length === 1 && isWal(call) && call.name !== fdSync,
  ),
  ftruncate: only(
    'ftruncate',
    call => call.phase === 'checkpoint' && call.args.length === 2 && isWal(call) && call.args[1] === 0n,
  ),
  unlink: only(
    'unlink',
    call => call.phase === 'close' && call.path.endsWith(`${filename}-wal`) && !walPathBefore.has(call.name),
  ),
}
const pin = {
  version,
  sha256: createHash('sha256').update(wasm).digest('hex'),
  module: calls.find(call => call.name === found.openat).module,
  imports: found,
}

if (process.argv.includes('--json')) {
  console.log(JSON.stringify(pin))
} else {
  console.log(`sql.js ${pin.version}, sql-wasm.wasm SHA-256 ${pin.sha256}`)
  console.log(
    `module ${pin.module}: ${Object.entries(found)
      .map(([call, name]) => `${call}=${name}`)
      .join(' ')}`,
  )
}
