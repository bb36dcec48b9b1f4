import { spawn } from 'node:child_process'
import { closeSync, readFileSync, writeSync } from 'node:fs'
import { type Debugger, type Runtime, Session } from 'node:inspector'
import { parentPort, workerData } from 'node:worker_threads'
import { locationInCopy } from '../plugins/delivery/extensions/load/copy-path.js'
import { isStopAsked } from './daemon/home-notes.js'
import { Liveness } from './daemon/liveness.js'
import { openLog } from './daemon/log-file.js'
import { mainLoop } from './daemon/main-loop.js'
import { noteEnd, type Succession } from './daemon/restart-limit.js'
import { writeSuspect } from './daemon/suspect.js'
import { type Ask, BEATS, monotonicMs, STOPPING, type WatchdogData } from './daemon/watchdog-data.js'

/** The owner of code that blocks the main thread. */
export interface Culprit {
  /** Name of a plugin, or `unknown`. */
  readonly owner: string
  /** Function and code location, for people. */
  readonly where: string
}

const tickMs = 1000
/** Milliseconds between two looks at a main thread that sleeps: a block that begins then is still named within three seconds. */
const asleepTickMs = 2500
/** Milliseconds that an answer takes at most; a main thread that ran for longer did other work too. */
const answerMs = 5
/** Seconds that the main thread is blocked before its owner is determined, and before the process ends. */
const namedAfter = 2
const endedAfter = 5
/** Maximum milliseconds to wait until the main thread is paused: a thread in a system call cannot be. */
const pauseMs = 1000

const { beats, home, successor, log } = workerData as WatchdogData
const shared = new Int32Array(beats)
const liveness = new Liveness(home, shared)
/** Without it the main thread counts as awake, and each tick asks it for a beat. */
const loop = mainLoop()

/** Seconds for which the main thread has run, and for which it was ready but waited for a CPU. */
interface Scheduled {
  readonly ran: number
  readonly waited: number
}

/** Scheduler data of the main thread, whose ID is the PID; zeros where the system has none. */
function scheduled(): Scheduled {
  try {
    const text = readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'utf8')
    const [ran = 0, waited = 0] = text.split(' ').map(Number)
    return { ran: ran / 1e9, waited: waited / 1e9 }
  } catch {
    return { ran: 0, waited: 0 }
  }
}

let lastBeat = 0
/** Whether a beat is due. A main thread that sleeps is not asked for one, because that would wake it. */
let asked = false
/** Seconds for which the main thread was blocked at its last beat, and ticks since: a suspended machine has none. */
let before = 0
let missed = 0
let atBeat = scheduled()
let held = 0
let culprit: Culprit | undefined
let looking = false
let lookedAt = monotonicMs()
let idleMs = loop?.idleMs() ?? 0

ask()
setTimeout(tick, tickMs, tickMs)

/** @param ms planned milliseconds since the last tick */
async function tick(ms: number): Promise<void> {
  const turnMs = loop?.turnMs() ?? 1
  const beat = Atomics.load(shared, BEATS)
  const now = scheduled()
  const isAwake = hasRun() || turnMs > 0
  const nextMs = isAwake ? tickMs : asleepTickMs
  setTimeout(tick, nextMs, nextMs)
  if (turnMs === 0 || !asked || beat !== lastBeat) {
    if (culprit) parentPort?.postMessage({ culprit, seconds: Math.round(held) })
    // The turn may have begun after the last tick. On an overloaded machine the main thread waits for a CPU and is not blocked.
    before = Math.max(0, Math.min(turnMs, ms) / 1000 - (now.waited - atBeat.waited))
    held = before
    missed = 0
    atBeat = now
    culprit = undefined
    lastBeat = beat
    asked = false
    if (isAwake) ask()
  } else {
    missed += ms / 1000
    held = before + Math.max(missed - (now.waited - atBeat.waited), now.ran - atBeat.ran)
  }
  liveness.tick(ms, (before + missed) * 1000)
  if (looking || held < namedAfter || (culprit && held < endedAfter)) return
  looking = true
  culprit = (await whoHoldsTheMainThread()) ?? culprit ?? { owner: 'unknown', where: 'a call that does not return' }
  looking = false
  // The main thread may have continued during the check.
  if (held >= endedAfter && Atomics.load(shared, BEATS) === lastBeat) end(culprit)
}

/** Asks the main thread for a beat. */
function ask(): void {
  asked = true
  parentPort?.postMessage({ askedAt: monotonicMs() } satisfies Ask)
}

/** Whether the main thread has run since the last tick, except for an answer. */
function hasRun(): boolean {
  const [at, idle] = [monotonicMs(), loop?.idleMs() ?? 0]
  const ranMs = at - lookedAt - (idle - idleMs)
  lookedAt = at
  idleMs = idle
  return ranMs > answerMs
}

/** Pauses the main thread briefly and reads its stack; undefined when it does not stop. */
async function whoHoldsTheMainThread(): Promise<Culprit | undefined> {
  const session = new Session()
  try {
    session.connectToMainThread()
    const scripts = new Map<string, string>()
    session.on('Debugger.scriptParsed', ({ params }) => scripts.set(params.scriptId, params.url))
    const paused = new Promise<Debugger.CallFrame[] | undefined>(resolve => {
      session.once('Debugger.paused', ({ params }) => resolve(params.callFrames))
      setTimeout(resolve, pauseMs, undefined)
    })
    session.post('Debugger.enable')
    session.post('Debugger.pause')
    const frames = await paused
    if (!frames) return undefined
    const found = await nameOf(session, frames, scripts)
    session.post('Debugger.resume')
    return found
  } catch {
    return undefined
  } finally {
    session.disconnect()
  }
}

/** The owner of the code: by the top frame of a drop-in, else by the running guarded call, else unknown. */
async function nameOf(
  session: Session,
  frames: readonly Debugger.CallFrame[],
  scripts: ReadonlyMap<string, string>,
): Promise<Culprit> {
  const urlOf = (frame: Debugger.CallFrame) => scripts.get(frame.location.scriptId) ?? frame.url
  for (const frame of frames) {
    const owner = locationInCopy(urlOf(frame))?.name
    if (owner !== undefined) return { owner, where: placeOf(frame, urlOf(frame)) }
  }
  const top = frames[0]
  const where = top ? placeOf(top, urlOf(top)) : 'no function'
  for (const frame of frames) {
    const owner = await guardedBy(session, frame)
    if (owner !== undefined) return { owner, where }
  }
  return { owner: 'unknown', where }
}

const placeOf = ({ functionName, location }: Debugger.CallFrame, url: string) =>
  `${functionName || 'a function'} (${url.replace(/^.*\/(?=[^/]+\/[^/]+$)/, '')}:${location.lineNumber + 1})`

/** Finds the owner of a running function among its variables, regardless of their names. */
const RUNS_FOR = `function () {
  for (const value of Object.values(this)) {
    const owner = typeof value === 'object' && value !== null ? value[Symbol.for('svc.runs-for')] : undefined
    if (typeof owner === 'string') return owner
  }
}`

/** Guarded calls of the kernel, and work on behalf of an owner, hold an object that identifies the owner. */
async function guardedBy(session: Session, { scopeChain }: Debugger.CallFrame): Promise<string | undefined> {
  for (const { type, object } of scopeChain) {
    const { objectId } = object
    if (objectId === undefined || !['local', 'block', 'closure'].includes(type)) continue
    const owner = await new Promise<unknown>(resolve => {
      const call: Runtime.CallFunctionOnParameterType = {
        objectId,
        functionDeclaration: RUNS_FOR,
        returnByValue: true,
        silent: true,
      }
      session.post('Runtime.callFunctionOn', call, (error, reply) =>
        resolve(error === null ? reply.result.value : undefined),
      )
    })
    if (typeof owner === 'string') return owner
  }
  return undefined
}

/** Only a signal ends the process: `process.exit` in a worker ends only the worker. */
function end({ owner, where }: Culprit): void {
  liveness.sample((before + missed) * 1000)
  liveness.flush()
  let succession: Succession = 'none'
  try {
    writeSuspect(home, {
      owner,
      where,
      at: new Date().toISOString(),
      pid: process.pid,
      blocked_seconds: Math.round(held),
    })
    succession = noteEnd(home, owner)
  } catch {
    // Without this count, successors could follow each other for ever.
  }
  const isStopping = Atomics.load(shared, STOPPING) === 1 || isStopAsked(home)
  const text = `the event loop of the daemon is blocked in ${where} of ${owner}: it is killed, and ${follows(succession, isStopping, owner)}`
  try {
    if (successor && succession !== 'none' && !isStopping) succeed(successor)
    else writeSync(2, `error: ${text}\n`)
  } finally {
    process.kill(process.pid, 'SIGKILL')
  }
}

function follows(succession: Succession, isStopping: boolean, owner: string): string {
  if (isStopping) return 'no other is started, because it was stopping'
  if (succession === 'normal') return `${owner} does not run after the next start`
  if (succession === 'safe mode') return 'the next start is in safe mode'
  return 'no other is started, because this happened too often; start it without extensions: svc daemon start --safe-mode'
}

/** Starts the next daemon, which waits for the lock of this one. */
function succeed(args: readonly string[]): void {
  try {
    const file = openLog(log)
    spawn(process.execPath, args, { cwd: home, detached: true, stdio: ['ignore', file, file] }).unref()
    closeSync(file)
  } catch {}
}
