import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import { homeOfEnv } from './address.js'
import { runDaemon } from './run-daemon.js'

// What `svc daemon start` runs detached. The exit is made here, for a handle that something left must not hold the process.
const exit = process.exit.bind(process)
// V8 would spend the first moments on optimizing SQLite for a load that is not there yet.
setFlagsFromString('--wasm-tiering-budget=200000000')
const root = dirname(fileURLToPath(import.meta.url))
const follows = '--successor'
const succeeds = process.argv.includes(follows)
const successor = [...process.execArgv, fileURLToPath(import.meta.url), follows]
const home = homeOfEnv(process.env)
exit(await runDaemon({ root, home, env: process.env, foreground: false, successor, succeeds }))
