import type { Readable } from 'node:stream'
import type { ProcessHandle } from '../../processes/api.js'
import type { HookPayload } from '../api.js'
import type { DeclaredHook } from '../declared.js'
import { parsePatch } from '../patch.js'
import type { Cutoff } from './cutoff.js'
import { type LaunchKernel, type Program, startHook } from './launch.js'

/** Maximum captured bytes of each output stream. */
const OUTPUT = 8 * 1024
const CUT = '… (truncated)'
/** Milliseconds from end of input to SIGTERM, and from SIGTERM to SIGKILL. */
const STOP = { graceMs: 100, termMs: 500 }

/** Starts a hook program for one event: payload on standard input, patch on standard output. */
export async function runSpawned(
  kernel: LaunchKernel,
  hook: DeclaredHook,
  program: Program,
  payload: HookPayload,
  cutoff: Cutoff,
): Promise<unknown> {
  const place = typeof payload.workspace_id === 'string' ? payload.workspace_id : hook.workspaceId
  cutoff.check()
  const handle = await startHook(kernel, hook, program, place, Number(payload.dispatch_depth ?? 1))
  const stop = () => void end(kernel, handle)
  cutoff.tell(stop)
  try {
    const [out, err] = [gather(handle.stdout), gather(handle.stderr)]
    // A program may exit without reading its input.
    handle.stdin.on('error', () => {})
    // The cutoff may have passed while spawning; then the listener is not called.
    cutoff.check()
    handle.stdin.end(`${JSON.stringify(payload)}\n`)
    const { code, signal: killed } = await handle.exited
    const [text, complaint] = await Promise.all([out, err])
    if (code !== 0)
      throw new Error(`the program ended with ${killed ?? `exit code ${code}`}${complaint && `: ${complaint.trim()}`}`)
    return parsePatch(text)
  } finally {
    cutoff.tell(undefined)
    // Also stops the rest of its process group.
    stop()
  }
}

const end = (kernel: LaunchKernel, handle: ProcessHandle) =>
  handle.stop(STOP).catch(error => {
    kernel.log.warn('a hook program does not stop', { pid: handle.pid, error: String(error) })
  })

/** The first bytes of a stream with a truncation mark. Reads to the end, so that the program does not block. */
export function gather(stream: Readable): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  return new Promise(resolve => {
    const done = () => {
      const whole = Buffer.concat(chunks)
      resolve(bytes > OUTPUT ? whole.subarray(0, OUTPUT).toString() + CUT : whole.toString())
    }
    stream.on('data', (chunk: Buffer) => {
      if (bytes < OUTPUT) chunks.push(chunk)
      bytes += chunk.length
    })
    stream.once('close', done)
    stream.once('error', done)
  })
}
