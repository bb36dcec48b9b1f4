import { effect, signal } from '@preact/signals'
import { api, signedIn } from './api.js'
import { SharedStream } from './shared-stream.js'

/** An event of the daemon. The other members depend on its type. */
export interface DaemonEvent {
  readonly type: string
  readonly session_id?: string
  readonly task_id?: string
}

/** Events of the daemon; all tabs share one stream. */
export const daemonEvents = new SharedStream('events', () => '/api/logs/stream')

const listeners = new Set<(event: DaemonEvent) => void>()

/** Increases whenever the views have to reload: events were missed, or the stream was interrupted. */
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
    // The stream resumes after the last event; a state without events has to be reloaded.
    queueMicrotask(() => missed.value++)
  } else if (link !== 'live') wasCut = true
})

/** Whether the daemon accepts the session, for a page that an error signed out. */
export const probe = () => api('GET /api/status/identity')
