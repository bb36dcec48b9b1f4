import { effect, signal } from '@preact/signals'
import { api, signedIn } from './api.js'
import { SharedStream } from './shared-stream.js'

/** An event of the daemon; its members beside the type depend on it. */
export interface DaemonEvent {
  readonly type: string
  readonly session_id?: string
  readonly task_id?: string
}

/** Events of the daemon, by one stream for all tabs. */
export const daemonEvents = new SharedStream('events', () => '/api/logs/stream')

const listeners = new Set<(event: DaemonEvent) => void>()

/** Counts the times after which everything is to be read again: events are missing, or the stream was cut. */
export const missed = signal(0)

/** Calls `read` for each event until the returned function is called. */
export function onEvent(read: (event: DaemonEvent) => void): () => void {
  listeners.add(read)
  return () => listeners.delete(read)
}

let unfollow: (() => void) | undefined

effect(() => {
  if (!signedIn.value) {
    unfollow?.()
    unfollow = undefined
    return
  }
  unfollow ??= daemonEvents.follow(({ event, data }) => {
    if (event === 'gap' || event === 'reset') missed.value++
    else for (const read of listeners) read(data as DaemonEvent)
  })
})

let wasCut = false
effect(() => {
  const link = daemonEvents.link.value
  if (link === 'live' && wasCut) {
    wasCut = false
    // Events resume where they were cut; states that no event reports are read again.
    queueMicrotask(() => missed.value++)
  } else if (link !== 'live') wasCut = true
})

/** Whether the daemon answers, for a page that was signed out by an error. */
export const probe = () => api('GET /api/status/identity')
