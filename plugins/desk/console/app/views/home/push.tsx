import { useState } from 'preact/hooks'
import { api, type ReplyOf } from '../../core/api.js'
import { useResource } from '../../core/resource.js'
import { text } from '../../text.js'
import { Action, Command, Fields, Problem } from '../../ui/parts.js'

type Push = ReplyOf<'GET /api/console/push'>

/** The preset target of all subscribed browsers. */
const TARGET = 'browser'
/** Events of the preset that the first subscription creates: questions and failures. */
const EVENTS = [
  ...['attention.asked', 'tool.approval_requested', 'task.run_failed', 'task.run_needs_attention'],
  ...['task.needs_attention', 'session.unhealthy', 'session.hung', 'provider.auth_required'],
]

/** Browsers offer push only for local pages and HTTPS. */
const isOffered = () => 'serviceWorker' in navigator && 'PushManager' in window && 'Notification' in window

const base64url = (bytes: ArrayBuffer | null): string =>
  btoa(String.fromCharCode(...new Uint8Array(bytes ?? new ArrayBuffer(0))))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '')

async function turnOn(publicKey: string): Promise<void> {
  if ((await Notification.requestPermission()) !== 'granted') throw new Error(text.push.denied)
  const { pushManager } = await navigator.serviceWorker.ready
  // A subscription that was made with an earlier key of the daemon is useless.
  await (await pushManager.getSubscription())?.unsubscribe()
  const made = await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: publicKey })
  const keys = { p256dh: base64url(made.getKey('p256dh')), auth: base64url(made.getKey('auth')) }
  await api('POST /api/console/push', { body: { endpoint: made.endpoint, keys } })
  const { presets } = await api('GET /api/notifications/presets')
  if (presets.some(({ targets }) => targets.some(({ bridge_id: id }) => id === TARGET))) return
  const targets = [{ bridge_id: TARGET }]
  await api('POST /api/notifications/presets', { body: { name: TARGET, events: EVENTS, targets, enabled: true } })
}

async function turnOff(id: string): Promise<void> {
  await api('DELETE /api/console/push/{id}', { path: { id } })
  const registration = await navigator.serviceWorker.ready
  await (await registration.pushManager.getSubscription())?.unsubscribe()
}

/** Notifications in this browser while no page of the console is open. */
export function PushChoice() {
  const [isOpen, setOpen] = useState(false)
  return (
    <details class="push" onToggle={event => setOpen(event.currentTarget.open)}>
      <summary>{text.push.title}</summary>
      {isOpen && <Choice />}
    </details>
  )
}

function Choice() {
  const { data, error, reload } = useResource(signal => api('GET /api/console/push', {}, signal), [])
  return (
    <>
      <p class="muted">{text.push.about}</p>
      <Problem error={error} retry={reload} />
      {data && <State push={data} reload={reload} />}
    </>
  )
}

function State({ push, reload }: { readonly push: Push; readonly reload: () => void }) {
  const { enabled, public_key: publicKey, current, subscriptions } = push
  if (!enabled) return <Command line="svc config set console.push.enabled true" />
  if (!isOffered()) return <p>{text.push.missing}</p>
  const own = subscriptions.find(({ id }) => id === current)
  const then = (work: Promise<void>) => work.finally(reload)
  return (
    <>
      <Fields
        of={[
          [text.push.browsers, subscriptions.length],
          [text.push.service, own?.service],
          [text.push.problem, own?.last_error],
        ]}
      />
      {own ? (
        <Action label={text.push.off} run={() => then(turnOff(own.id))} />
      ) : (
        publicKey && <Action label={text.push.on} tone="primary" run={() => then(turnOn(publicKey))} />
      )}
      <p class="muted">{text.push.rules}</p>
      <Command line="svc notifications preset show browser" />
    </>
  )
}
