import type { WorkerScope } from './scope.js'

/** A push message: ids, and a title for the kind of event. */
interface Message {
  readonly title: string
  readonly tag: string
  /** The fragment of the address that a click opens. */
  readonly place: string
}

const ID = /^[\w.:-]{1,200}$/
const idIn = (value: unknown) => (typeof value === 'string' && ID.test(value) ? encodeURIComponent(value) : undefined)

/** The notification for a message. Browsers require one for every message, even an unreadable one. */
export function messageOf(data: { json(): unknown } | null): Message {
  let said: Readonly<Record<string, unknown>> = {}
  try {
    said = (data?.json() ?? {}) as typeof said
  } catch {
    // An unreadable message gets the default texts below.
  }
  const { title, tag } = said
  const [session, task] = [idIn(said.session), idIn(said.task)]
  return {
    title: typeof title === 'string' && title !== '' ? title.slice(0, 120) : 'Something needs you',
    tag: typeof tag === 'string' ? tag.slice(0, 300) : 'svc',
    place: session ? `#/sessions/${session}` : task ? `#/work/${task}` : '#/home',
  }
}

export function showMessages(scope: WorkerScope, page: string): void {
  scope.addEventListener('push', event => {
    const { title, tag, place } = messageOf(event.data)
    const icon = '/console/assets/icon-192.png'
    event.waitUntil(scope.registration.showNotification(title, { tag, icon, data: { place } }))
  })
  scope.addEventListener('notificationclick', event => {
    event.notification.close()
    const { place } = event.notification.data as Pick<Message, 'place'>
    event.waitUntil(open(scope, `${scope.location.origin}${page}`, place))
  })
}

/** Opens a place in an existing window of the console, or in a new one. */
async function open({ clients }: WorkerScope, page: string, place: string): Promise<void> {
  const windows = await clients.matchAll({ type: 'window', includeUncontrolled: true })
  const shown = windows.find(({ url }) => /^\/?(?:#|$)/.test(url.startsWith(page) ? url.slice(page.length) : 'other'))
  if (!shown) {
    await clients.openWindow(`${page}${place}`)
    return
  }
  await shown.focus().catch(() => {})
  await shown.navigate(`${shown.url.split('#')[0]}${place}`)
}
