import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { homeOfEnv } from './address.js'
import { RESTART, SAFE_MODE, type Service, serviceExits, serviceOf } from './daemon/daemon-arguments.js'
import { loadDaemon } from './daemon/load-daemon.js'

// The process that `svc daemon start` runs detached. It exits explicitly, because a leftover handle must not keep it alive.
const exit = process.exit.bind(process)
const root = dirname(fileURLToPath(import.meta.url))
const follows = '--successor'
const succeeds = process.argv.includes(follows)
const safeMode = process.argv.includes(SAFE_MODE)
const newCatalog = process.argv.includes('--new-catalog')
const successor = [...process.execArgv, fileURLToPath(import.meta.url), follows, ...(safeMode ? [SAFE_MODE] : [])]
const home = homeOfEnv(process.env)
const restart = process.argv.indexOf(RESTART)
const service = serviceOf(process.argv)

/** Runs under a service manager, which starts the next daemon. */
async function runService(service: Service): Promise<number> {
  const { takeManager } = await import('./daemon/manager/manager.js')
  let managed: ReturnType<typeof takeManager>
  try {
    managed = takeManager(process.env, process.pid)
  } catch (error) {
    const { message, next } = error as Error & { next?: string }
    process.stderr.write(`error: ${message}\n${next ? `  next: ${next}\n` : ''}`)
    return service === 'launchd' ? 0 : serviceExits.hopeless
  }
  const runDaemon = await loadDaemon(root, home)
  return runDaemon({ root, home, env: process.env, foreground: false, service, managed, safeMode, newCatalog })
}

const runDetached = async () => {
  const runDaemon = await loadDaemon(root, home)
  return runDaemon({ root, home, env: process.env, foreground: false, successor, succeeds, safeMode, newCatalog })
}
const run =
  restart < 0
    ? service
      ? runService(service)
      : runDetached()
    : import('./daemon/restart-helper.js').then(({ runRestartHelper }) =>
        runRestartHelper({ home, operation: process.argv[restart + 1] ?? '', successor }),
      )
run.then(exit)
