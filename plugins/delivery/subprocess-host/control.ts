import { messageOf } from '../../../kernel/plugin.js'
import { type ControlLaunch, type ControlProcess, ExtensionErrors } from '../extensions/api.js'
import type { RuntimeContext } from './api.js'
import { HostApi } from './host-api.js'
import { Instance, type InstanceStart } from './instance.js'

/** Milliseconds for an unneeded process to exit by itself, and again after SIGTERM. */
const END_MS = 2000

/** Parameters of a process for a single piece of work. */
export interface ControlStart extends Pick<InstanceStart, 'host' | 'extension' | 'context' | 'grants' | 'times'> {
  /** Aborts when the extension is stopped. */
  readonly signal: AbortSignal
}

/**
 * Starts a process of an extension for a single piece of work and stops it afterwards in any case. It does not act for
 * the extension: it publishes nothing, is not supervised, and may call only the methods of the work.
 * @throws Fault `extension_not_running` with the reason of a failed start, and errors of the work
 */
export async function controlled<T>(
  { host, extension, context, grants, times, signal }: ControlStart,
  launch: ControlLaunch,
  work: (process: ControlProcess) => Promise<T>,
): Promise<T> {
  const { name } = extension
  const provisions = {
    membersFor: async () => launch.runtime,
    methodOf: (method: string) => launch.methods.get(method),
  }
  const mayCall = (method: string) => launch.methods.has(method) || launch.passes.includes(method)
  let instance: Instance | undefined
  const start = {
    host,
    extension,
    context,
    grants: { ...grants, permissions: grants.permissions.filter(mayCall), kinds: [], scopes: [] },
    times: { ...times, shutdown: Math.min(times.shutdown, END_MS), signalGrace: END_MS },
    api: new HostApi(host, provisions),
    logs: context.logs,
    provisions,
    isControl: true,
  }
  let stop = () => {}
  const stopped = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason)
  })
  stopped.catch(() => {})
  if (signal.aborted) stop()
  signal.addEventListener('abort', stop)
  const opened = Instance.open(start, one => {
    instance = one
    context.logs.note(`a process was started only for a check, pid ${one.pid}`)
    signal.throwIfAborted()
  })
  try {
    await Promise.race([opened, stopped]).catch(error => {
      throw ExtensionErrors.extension_not_running(
        `the process of ${name} does not start: ${context.logs.redact(messageOf(error))}`,
      )
    })
    const process = instance as unknown as Instance
    const over = process.over.then(why => {
      throw ExtensionErrors.extension_call_failed(`${name}: ${why}`)
    })
    over.catch(() => {})
    return await Promise.race([work(processOf(process, name, context)), over, stopped])
  } finally {
    signal.removeEventListener('abort', stop)
    // A start in progress must not leave a process behind.
    if (!instance) await opened.catch(() => {})
    await instance?.stop('the check is over')
  }
}

function processOf(instance: Instance, name: string, { logs }: RuntimeContext): ControlProcess {
  const implemented = new Set(instance.handshake?.implemented_methods)
  return {
    implements: method => implemented.has(method),
    call: async (method, params, timeoutMs) => {
      if (!implemented.has(method))
        throw ExtensionErrors.extension_method_missing(`${name} does not implement ${method}`)
      try {
        return await instance.request(method, params, timeoutMs)
      } catch (error) {
        throw ExtensionErrors.extension_call_failed(`${method} of ${name}: ${logs.redact(messageOf(error))}`)
      }
    },
  }
}
