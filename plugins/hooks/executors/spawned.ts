import type { Readable } from 'node:stream'
import type { ProcessHandle } from '../../processes/api.js'
import type { HookPayload } from '../api.js'
import type { DeclaredHook } from '../declared.js'
import { parsePatch } from '../patch.js'
import type { Cutoff } from './cutoff.js'
import { type LaunchKernel, launchOf, type Program } from './launch.js'

/** Bytes of each output that count. */
const OUTPUT = 8 * 1024
const CUT = '… (truncated)'
/** Milliseconds between the end of input, SIGTERM and SIGKILL, when its time is over. */
const STOP = { graceMs: 100, termMs: 500 }

/** Starts the program of a hook for one happening: the payload on its standard input, the answer on its standard output. */
export async function runSpawned(
  kernel: LaunchKernel,
  hook: DeclaredHook,
  program: Program,
  payload: HookPayload,
  cutoff: Cutoff,
): Promise<unknown> {
  const place = typeof payload.workspace_id === 'string' ? payload.workspace_id : hook.workspaceId
  const request = await launchOf(kernel, hook, program, place, Number(payload.dispatch_depth ?? 1))
  cutoff.check()
  const handle = await kernel.needs.processes.spawn(request)
  const stop = () => void end(kernel, handle)
  cutoff.tell(stop)
  try {
    const [out, err] = [gather(handle.stdout), gather(handle.stderr)]
    // A program may end without having read what it was told.
    handle.stdin.on('error', () => {})
    // Its time may be over before it has begun; then nobody is told of it any more.
    cutoff.check()
    handle.stdin.end(`${JSON.stringify(payload)}\n`)
    const { code, signal: killed } = await handle.exited
    const [text, complaint] = await Promise.all([out, err])
    if (code !== 0)
      throw new Error(`it ended with ${killed ?? `exit code ${code}`}${complaint && `: ${complaint.trim()}`}`)
    return parsePatch(text)
  } finally {
    cutoff.tell(undefined)
    // What it left of its group goes with it.
    stop()
  }
}

const end = (kernel: LaunchKernel, handle: ProcessHandle) =>
  handle.stop(STOP).catch(error => {
    kernel.log.warn('the program of a hook does not end', { pid: handle.pid, error: String(error) })
  })

/** The first bytes of a stream, and a mark where there was more. Reads on to the end, so that the program is not held up. */
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
