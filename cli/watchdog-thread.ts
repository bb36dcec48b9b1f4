import { spawn } from 'node:child_process'
import { closeSync, writeSync } from 'node:fs'
import { type Debugger, Session } from 'node:inspector'
import { parentPort, workerData } from 'node:worker_threads'
import { isStopAsked } from './daemon/home-notes.js'
import { openLog } from './daemon/log-file.js'
import { noteEnd, type Succession } from './daemon/restart-limit.js'
import { writeSuspect } from './daemon/suspect.js'
import { BEATS, STOPPING, type WatchdogData } from './daemon/watchdog-data.js'

/** Who holds the main thread. */
export interface Culprit {
  /** Name of a plugin, or `unknown`. */
  readonly owner: string
  /** Function and place, for people. */
  readonly where: string
}

const tickMs = 1000
/** Ticks of this thread without a beat of the other; a machine that was suspended has neither. */
const namedAfter = 2
const endedAfter = 5
/** A thread in a call of the system cannot be paused. */
const pauseMs = 1000

const { beats, home, successor, log } = workerData as WatchdogData
const shared = new Int32Array(beats)

let seen = -1
let missed = 0
let culprit: Culprit | undefined
let looking = false

setInterval(async () => {
  const beat = Atomics.load(shared, BEATS)
  if (beat !== seen) {
    if (culprit) parentPort?.postMessage({ culprit, seconds: missed })
    seen = beat
    missed = 0
    culprit = undefined
    return
  }
  missed++
  if (looking || (missed !== namedAfter && missed < endedAfter)) return
  looking = true
  culprit = (await whoHoldsTheMainThread()) ?? culprit ?? { owner: 'unknown', where: 'a call that does not return' }
  looking = false
  // It may have come back while it was looked at.
  if (missed >= endedAfter && Atomics.load(shared, BEATS) === seen) end(culprit)
}, tickMs)

/** Pauses the main thread for a moment and reads its stack; undefined when it does not stop. */
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

/** Whose the code is: by the top frame of a drop-in, else by the guarded call that runs, else unknown. */
async function nameOf(
  session: Session,
  frames: readonly Debugger.CallFrame[],
  scripts: ReadonlyMap<string, string>,
): Promise<Culprit> {
  const urlOf = (frame: Debugger.CallFrame) => scripts.get(frame.location.scriptId) ?? frame.url
  for (const frame of frames) {
    const owner = /\/cache\/extensions\/[0-9a-f]+\/([^/]+)\//.exec(urlOf(frame))?.[1]
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

/** The kernel's guarded calls, and work that is done on behalf of somebody, know for whom they run as `owner` or `cell.owner`. */
function guardedBy(session: Session, { callFrameId }: Debugger.CallFrame): Promise<string | undefined> {
  const expression = "typeof cell === 'object' ? cell.owner : typeof owner === 'string' ? owner : undefined"
  return new Promise(resolve => {
    session.post('Debugger.evaluateOnCallFrame', { callFrameId, expression, silent: true }, (error, reply) => {
      resolve(error === null && typeof reply?.result?.value === 'string' ? reply.result.value : undefined)
    })
  })
}

/** Only a signal ends the process: `process.exit` in a worker ends the worker. */
function end({ owner, where }: Culprit): void {
  let succession: Succession = 'none'
  try {
    writeSuspect(home, { owner, where, at: new Date().toISOString(), pid: process.pid, blocked_seconds: missed })
    succession = noteEnd(home, owner)
  } catch {
    // A successor that nothing counts could be followed by others for ever.
  }
  const isStopping = Atomics.load(shared, STOPPING) === 1 || isStopAsked(home)
  const text = `the daemon does not come back from ${where} of ${owner}: it is ended, and ${follows(succession, isStopping, owner)}`
  try {
    if (successor && succession !== 'none' && !isStopping) succeed(successor)
    else writeSync(2, `error: ${text}\n`)
  } finally {
    process.kill(process.pid, 'SIGKILL')
  }
}

function follows(succession: Succession, isStopping: boolean, owner: string): string {
  if (isStopping) return 'no other is started, for it was told to stop'
  if (succession === 'normal') return `${owner} left out of the next start`
  if (succession === 'safe mode') return 'the next start is in safe mode'
  return 'no other is started, for that happened too often; svc daemon start --safe-mode'
}

/** Starts the next daemon, which waits for the lock of this one. */
function succeed(args: readonly string[]): void {
  try {
    const file = openLog(log)
    spawn(process.execPath, args, { cwd: home, detached: true, stdio: ['ignore', file, file] }).unref()
    closeSync(file)
  } catch {}
}
