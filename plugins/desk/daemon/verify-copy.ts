import fs from 'node:fs/promises'
import { createRequire } from 'node:module'
import path from 'node:path'
import { Worker } from 'node:worker_threads'
import { type HostView, KernelErrors, type PluginKernel, type SqlValue } from '../../../kernel/plugin.js'
import { DaemonErrors } from './api.js'
import { copiedUnchanged, holdingCheckpoints } from './database.js'

/** Attempts at a copy if a checkpoint changes the database meanwhile. */
const TRIES = 3
const PREFIX = 'verify-'

/**
 * Source text instead of a module, because the path of a module differs between sources, bundles and tests. The copy has an empty
 * log: bytes 18 and 19 of its header are set so that SQLite opens it without one.
 */
const THREAD = `
const { parentPort, workerData } = require('node:worker_threads')
const file = require('node:fs').readFileSync(workerData.file)
if (file[18] === 2 && file[19] === 2) file.fill(1, 18, 20)
const opened = require(workerData.sqlite)().then(SQL => new SQL.Database(file))
parentPort.on('message', async ({ sql, params }) => {
  try {
    const statement = (await opened).prepare(sql)
    const rows = []
    try {
      for (statement.bind(params); statement.step(); ) rows.push(statement.get())
    } finally {
      statement.free()
    }
    parentPort.postMessage({ rows })
  } catch (error) {
    parentPort.postMessage({ error: String(error && error.message || error) })
  }
})`

type Answer = { readonly rows?: SqlValue[][]; readonly error?: string }

/** Reads a copy of a running daemon's database in a thread, so that large tables do not block the event loop. */
export async function readingCopy<T>(
  {
    home,
    ids,
    needs,
    scope,
  }: Pick<PluginKernel, 'home' | 'ids' | 'scope'> & { readonly needs: { readonly host: HostView } },
  use: (rows: (sql: string, params?: readonly SqlValue[]) => Promise<SqlValue[][]>) => Promise<T>,
): Promise<T> {
  const cache = home.path('cache')
  // Only one check runs at a time, so existing copies belong to a killed daemon.
  for (const name of await fs.readdir(cache).catch(() => []))
    if (name.startsWith(PREFIX)) await fs.rm(path.join(cache, name), { recursive: true, force: true })
  const folder = path.join(cache, `${PREFIX}${ids.hex(8)}`)
  await fs.mkdir(folder, { recursive: true, mode: 0o700 }).catch(unwritable)
  try {
    const file = path.join(folder, 'svc.db')
    await copyCatalog(needs.host, home.database, file).catch(unwritable)
    const thread = new Worker(THREAD, {
      eval: true,
      // The thread does not inherit the daemon's environment, which may hold secrets.
      env: {},
      workerData: { file, sqlite: createRequire(import.meta.url).resolve('sql.js/dist/sql-wasm.js') },
    })
    const end = () => void thread.terminate()
    scope.signal.addEventListener('abort', end)
    try {
      return await use((sql, params = []) => ask(thread, sql, params))
    } finally {
      scope.signal.removeEventListener('abort', end)
      await thread.terminate()
    }
  } finally {
    await fs.rm(folder, { recursive: true, force: true })
  }
}

function unwritable(error: unknown): never {
  const { code } = error as NodeJS.ErrnoException
  if (code === 'ENOSPC' || code === 'EDQUOT')
    throw KernelErrors.disk_full('there is not enough disk space for a copy of the database to check', { cause: error })
  throw error
}

/** Sends one statement and waits for its answer; one statement at a time. */
function ask(thread: Worker, sql: string, params: readonly SqlValue[]): Promise<SqlValue[][]> {
  return new Promise((resolve, reject) => {
    const settle = ({ rows, error = 'the check was ended' }: Answer) => {
      thread.off('message', settle)
      thread.off('error', failed)
      thread.off('exit', ended)
      if (rows) resolve(rows)
      else reject(new Error(error))
    }
    const failed = (error: Error) => settle({ error: error.message })
    const ended = () => settle({})
    thread.on('message', settle)
    thread.on('error', failed)
    thread.on('exit', ended)
    thread.postMessage({ sql, params })
  })
}

/** Copies a running daemon's database as of its last checkpoint; later writes stay in its log. */
async function copyCatalog(host: HostView, from: string, to: string): Promise<void> {
  await holdingCheckpoints(host, async () => {
    for (let tries = 1; ; tries++) {
      await host.checkpoint()
      if (await copiedUnchanged(from, to)) return
      if (tries === TRIES) throw DaemonErrors.verify_busy()
    }
  })
}
