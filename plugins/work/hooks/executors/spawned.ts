import { finished } from 'node:stream/promises'
import { keep, OutputStart, type ProcessHandle } from '../../../platform/processes/api.js'
import type { HookPayload } from '../api.js'
import { claudeInput, claudePatch } from '../claude-format.js'
import type { DeclaredHook } from '../declared.js'
import { hookEvents } from '../hook-events.js'
import type { K } from '../needs.js'
import { parsePatch } from '../patch.js'
import type { Cutoff } from './cutoff.js'
import { type Program, startHook } from './launch.js'

/** Maximum captured bytes of each output stream. */
const OUTPUT = 64 * 1024
/** Maximum characters of standard error that an error or a denial quotes. */
const COMPLAINT = 1000
/** Exit status with which a sync hook denies; its standard error is the reason. */
const DENIED = 2
/** Milliseconds from end of input to SIGTERM, and from SIGTERM to SIGKILL. */
const STOP = { graceMs: 100, termMs: 500 }

/** Starts a hook program for one event: payload on standard input, patch on standard output. */
export async function runSpawned(
  kernel: K,
  hook: DeclaredHook,
  program: Program,
  payload: HookPayload,
  cutoff: Cutoff,
): Promise<unknown> {
  const workspaceId = typeof payload.workspace_id === 'string' ? payload.workspace_id : hook.workspaceId
  cutoff.check()
  const handle = await startHook(kernel, hook, program, workspaceId, Number(payload.dispatch_depth ?? 1))
  const stop = () => void end(kernel, handle)
  cutoff.tell(stop)
  try {
    const streams = [handle.stdout, handle.stderr] as const
    const over = Promise.all(streams.map(stream => finished(stream).catch(() => {})))
    const [patch, errors] = streams.map(stream => keep(stream, new OutputStart(OUTPUT))) as [OutputStart, OutputStart]
    // A program may exit without reading its input.
    handle.stdin.on('error', () => {})
    // The cutoff may have passed while spawning; then the listener is not called.
    cutoff.check()
    const isClaude = program.format === 'claude'
    const input = isClaude ? claudeInput(hook.event, payload, hook.metadata) : payload
    handle.stdin.end(`${JSON.stringify(input)}\n`)
    const { code, signal: killed } = await handle.exited
    await over
    // Secrets are taken out before the cut, which could leave the first half of one.
    const complaint = kernel.redact.text(errors.text().trim(), COMPLAINT)
    if (code === DENIED && mayDeny(hook)) return { deny: complaint || true }
    if (code !== 0)
      throw new Error(`the program ended with ${killed ?? `exit code ${code}`}${complaint && `: ${complaint}`}`)
    if (patch.truncated) throw new Error(`the patch on standard output is longer than ${OUTPUT} bytes`)
    return isClaude ? claudePatch(hook.event, payload, patch.text()) : parsePatch(patch.text())
  } finally {
    cutoff.tell(undefined)
    // Also stops the rest of its process group.
    stop()
  }
}

const end = (kernel: K, handle: ProcessHandle) =>
  handle.stop(STOP).catch(error => {
    kernel.log.warn('a hook program does not stop', { pid: handle.pid, error: String(error) })
  })

/** Whether exit status 2 of a hook is a denial: its event can be denied, and the operation waits for it. */
const mayDeny = ({ event, mode }: DeclaredHook): boolean => mode === 'sync' && hookEvents[event].patch.includes('deny')
