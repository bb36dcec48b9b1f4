import { clip } from '../../../../kernel/kit/text.js'
import { Fault, messageOf } from '../../../../kernel/plugin.js'
import { type ToolCaller, type ToolOutcome, type ToolPlace, type ToolResult, toolFault } from '../api.js'
import { ToolCalled } from '../events.js'
import type { Entry } from '../registry/catalog.js'
import type { ToolsService } from '../service.js'
import { ToolSettings } from '../settings.js'
import { artifactUri } from './artifacts.js'
import { type BoundedResult, bounded } from './bounded.js'

type Input = Readonly<Record<string, unknown>>

/** The end of a call: a result, which may report a failure, or an error. */
type Ending = { readonly shown: BoundedResult } | { readonly failed: Fault }

/** Runs a tool that every rule allows, and records the call. @throws Fault `tool_*` */
export async function execute(tools: ToolsService, entry: Entry, input: Input, by: ToolCaller): Promise<ToolOutcome> {
  const { clock, db, needs } = tools.kernel
  const { id, risk } = entry.descriptor
  const began = clock.monotonic()
  const ran = await run(tools, entry, input, by)
  const ms = Math.round(clock.monotonic() - began)
  const { ending, title } = await applyTaps(tools, entry, input, by, ran, ms)
  if (risk !== 'read') {
    const payload = { ...aboutOf(id, by), risk, ...('failed' in ending && { error_code: ending.failed.code }) }
    await db.tx(t => void needs.events.emit(t, ToolCalled, payload, { actor: by.actor }))
  }
  if ('failed' in ending) throw ending.failed
  const { whole, ...kept } = ending.shown
  const origin = { workspace_id: by.workspaceId ?? 'global', session_id: by.sessionId ?? '', tool_id: id }
  const artifact = whole && (await tools.artifacts.store({ ...origin, mime_type: whole.mimeType }, whole.data))
  return {
    ...kept,
    toolId: id,
    ...(title !== id && { title }),
    truncated: whole !== undefined,
    durationMs: ms,
    ...(artifact && {
      artifact: { id: artifact.id, uri: artifactUri(artifact), bytes: artifact.bytes, sha256: artifact.sha256 },
    }),
  }
}

async function run(tools: ToolsService, { descriptor, backend }: Entry, input: Input, by: ToolCaller): Promise<Ending> {
  const { clock, config } = tools.kernel
  const toolId = descriptor.id
  const stop = new AbortController()
  const cancel = () => stop.abort(toolFault('tool_canceled', ['call_canceled'], undefined, { toolId }))
  const limit = config.get(ToolSettings.callTimeout) + (descriptor.waitsMs ?? 0)
  const timer = clock.timeout(limit, () =>
    stop.abort(toolFault('tool_timed_out', ['call_timed_out'], undefined, { toolId })),
  )
  by.signal.addEventListener('abort', cancel, { once: true })
  try {
    if (by.signal.aborted) cancel()
    const result = await Promise.race([
      stopped(stop.signal),
      // The rules have already judged the call, including its references.
      backend.call(descriptor, input, { ...by, signal: stop.signal, mayLeave: true }),
    ])
    return { shown: boundedFor(tools, descriptor, result) }
  } catch (error) {
    return { failed: failureOf(error, toolId) }
  } finally {
    timer.cancel()
    by.signal.removeEventListener('abort', cancel)
  }
}

/** The end of a call after all taps. Taps get the bounded result; a changed result is bounded again. */
async function applyTaps(
  tools: ToolsService,
  { descriptor }: Entry,
  input: Input,
  scope: ToolPlace,
  ending: Ending,
  ms: number,
): Promise<{ readonly ending: Ending; readonly title: string }> {
  const { id: toolId, risk } = descriptor
  const before =
    'failed' in ending
      ? { isError: true as const, error: ending.failed.message }
      : { isError: ending.shown.result.isError ?? false, result: ending.shown.result }
  const call = { toolId, risk, input, place: scope, ms, title: toolId, ...before }
  const { title, result, error } = await tools.called.run(call)
  const isSame = result === call.result && error === call.error
  if (isSame) return { ending, title }
  if ('failed' in ending) {
    const { code, status, message, next, details } = ending.failed
    return { ending: { failed: new Fault(code, status, error ?? message, { next, details }) }, title }
  }
  const changed = error === undefined ? (result ?? ending.shown.result) : failure(error)
  return { ending: { shown: boundedFor(tools, descriptor, changed) }, title }
}

const failure = (text: string): ToolResult => ({ content: [{ type: 'text', text }], isError: true })

function boundedFor(
  { kernel: { config, redact } }: ToolsService,
  { maxResultBytes }: Entry['descriptor'],
  result: ToolResult,
): BoundedResult {
  const most = Math.min(maxResultBytes ?? Number.POSITIVE_INFINITY, config.get(ToolSettings.maxResultBytes))
  return bounded(result, most, redact)
}

function failureOf(error: unknown, toolId: string): Fault {
  if (error instanceof Fault) {
    // Refusals of a backend with a tool code are kept; all other errors become backend failures.
    if (error.code.startsWith('tool_')) return error
    return toolFault('tool_backend_failed', [], error.message, { toolId, ...(error.next ? { next: error.next } : {}) })
  }
  return toolFault('tool_backend_failed', [], clip(messageOf(error), 1000), { toolId })
}

const stopped = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason)
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })

/** Place of a call in events. */
export const aboutOf = (toolId: string, { sessionId, workspaceId, agentName }: ToolPlace) => ({
  tool_id: toolId,
  ...(sessionId === undefined ? {} : { session_id: sessionId }),
  ...(workspaceId === undefined ? {} : { workspace_id: workspaceId }),
  ...(agentName === undefined ? {} : { agent_name: agentName }),
})
