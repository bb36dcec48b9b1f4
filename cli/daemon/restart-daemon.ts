import { setTimeout as sleep } from 'node:timers/promises'
import { Operations, type StoredOperation } from '../../plugins/platform/restart/operations.js'
import { isOpen } from '../../plugins/platform/restart/states.js'
import type { RestartStatus, RestartTriggered } from '../../schemas/daemon/restart.js'
import type { StatusReply } from '../../schemas/daemon.js'
import { runningDaemon } from '../address.js'
import { CliFault } from '../fault.js'
import type { LocalContext } from '../local.js'
import { refuseInvalidConfig } from '../setup/offline-config.js'
import { bringUp, type Started, shownAddress } from './start-daemon.js'
import { stopRunning } from './stop-daemon.js'

/** Milliseconds between two checks, and the time limit of a restart. */
const POLL_MS = 50
const WAIT_MS = 90_000

/** Progress texts by status. */
const WAITING: Readonly<Record<RestartStatus, string>> = {
  pending: 'asking the daemon to stop',
  stopping: 'waiting for the daemon to stop',
  waiting_release: 'waiting for the daemon to release its lock',
  starting: 'waiting for the new daemon to be ready',
  ready: 'ready',
  failed: 'failed',
}

/**
 * `daemon restart`: requests a restart and follows its operation file, because no daemon answers between the two. A second call
 * joins the running restart; an abandoned restart is completed by starting a daemon.
 */
export async function restartDaemon(context: LocalContext): Promise<undefined> {
  await refuseInvalidConfig(context)
  const operations = new Operations(context.home)
  const before = operations.open()
  const answer = await ask(context, operations)
  if (answer === 'unknown') {
    const old = await stopRunning(context)
    return await report(context, await bringUp(context), old === undefined ? {} : { old_pid: old })
  }
  if (answer === undefined) return await report(context, await bringUp(context), before ?? {})
  const ended = await follow(context, operations, answer)
  if (ended.status === 'failed') {
    const text = `the restart failed: ${ended.failure_reason ?? 'it does not say why'}`
    const next = (await runningDaemon(context.home)) === undefined ? 'svc daemon start' : 'svc logs'
    throw new CliFault('restart_failed', text, { next, details: { operation_id: ended.operation_id } })
  }
  return await report(context, await bringUp(context), ended)
}

/**
 * ID of the operation to follow; undefined when no daemon runs and none is being started, `unknown` for a daemon version without
 * restarts.
 */
async function ask({ client, home }: LocalContext, operations: Operations): Promise<string | 'unknown' | undefined> {
  const before = operations.open()
  try {
    const reply = (await client.request('POST', '/api/settings/actions/restart')) as RestartTriggered
    return reply.operation_id
  } catch (error) {
    const { code } = error as CliFault
    if (code === 'route_not_found') return 'unknown'
    // A restart may have begun during the request.
    const open = operations.open() ?? before
    if (open && (await isCarriedOut(home, open))) return open.operation_id
    if (code === 'no_daemon') return undefined
    throw error
  }
}

/** Whether a process still carries out the operation: one of the two daemons, or the helper between them. */
async function isCarriedOut(home: string, { helper_pid: helper, external }: StoredOperation): Promise<boolean> {
  // A service manager may take its time between the two daemons.
  if (external) return true
  if ((await runningDaemon(home)) !== undefined) return true
  const { inspectProcess } = await import('../../plugins/platform/processes/inspect.js')
  return helper !== undefined && inspectProcess(helper, process.platform)?.ended === false
}

async function follow(
  { home, progress, signal }: LocalContext,
  operations: Operations,
  id: string,
): Promise<StoredOperation> {
  const until = Date.now() + WAIT_MS
  for (;;) {
    const operation = operations.read(id)
    if (!operation) {
      const text = `the daemon restarts (${id}), but not the one of ${home}`
      throw new CliFault('restart_foreign', text, { next: 'svc status' })
    }
    const { status } = operation
    if (!isOpen(status) || !(await isCarriedOut(home, operation))) {
      // The last process may have written the end just now.
      return operations.read(id) ?? operation
    }
    if (Date.now() > until) {
      const text = `the restart ${id} has been ${status} for more than ${WAIT_MS / 1000} s; it continues in the background`
      throw new CliFault('restart_timeout', text, { next: 'svc daemon restart' })
    }
    const changed = async () => {
      while (operations.read(id)?.status === status && (await isCarriedOut(home, operation)) && Date.now() <= until)
        await sleep(POLL_MS, undefined, { signal })
    }
    await progress.during(WAITING[status], changed, 'the restart goes on: svc status')
  }
}

/** `before`: the previous daemon and its operation, if any. */
async function report(
  { out, client }: LocalContext,
  started: Started,
  { old_pid, operation_id }: Partial<Pick<StoredOperation, 'old_pid' | 'operation_id'>>,
): Promise<undefined> {
  const { pid } = started.identity.daemon
  const { where, ...served } = shownAddress(started.identity)
  const status = old_pid === undefined ? 'started' : 'restarted'
  if (out.json)
    out.value({ status, pid, ...(old_pid && { old_pid }), ...(operation_id && { operation_id }), ...served })
  else if (old_pid === undefined) out.line(`no daemon was running: daemon started (pid ${pid}), ${where}`)
  else out.line(`daemon restarted (pid ${old_pid}, now ${pid}), ${where}`)
  // A restart keeps the mode in which the daemon was started.
  const { daemon } = (await client.request('GET', '/api/status').catch(() => ({ daemon: {} }))) as Pick<
    StatusReply,
    'daemon'
  >
  if (!out.json && daemon.safe_mode !== undefined)
    out.note(`no extensions run: ${daemon.safe_mode}. To run them: svc daemon stop && svc daemon start`)
  return undefined
}
