import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { announce } from '../core/announce.js'
import { ApiFault, faultText } from '../core/api.js'
import { text } from '../text.js'

/** The `svc` command for a view, with a copy button. */
export function Command({ line }: { readonly line: string }) {
  const [done, setDone] = useState(false)
  const copy = async () => {
    await navigator.clipboard.writeText(line).catch(() => {})
    setDone(true)
    announce(text.copied)
    setTimeout(() => setDone(false), 1500)
  }
  return (
    <span class="command">
      <code>{line}</code>
      <button type="button" class="quiet" onClick={copy} aria-label={`${text.copyCommand}: ${line}`}>
        {done ? text.copied : text.copy}
      </button>
    </span>
  )
}

let isFirst = true

/**
 * Sets the window title and focuses the heading of each further view, so that a screen reader reads it out. The first view leaves
 * the focus in front of the link that skips the navigation.
 */
export function useTitle(title: string) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    document.title = `${title} · ${text.product}`
    if (!isFirst) heading.current?.focus({ preventScroll: true })
    isFirst = false
  }, [title])
  return heading
}

/** A view with its title, its command and its buttons. */
export function Page({
  title,
  command,
  actions,
  children,
}: {
  readonly title: string
  readonly command?: string
  readonly actions?: ComponentChildren
  readonly children: ComponentChildren
}) {
  const heading = useTitle(title)
  return (
    <div class="page">
      <header class="page-head">
        <h1 ref={heading} tabIndex={-1}>
          {title}
        </h1>
        {command && <Command line={command} />}
        {actions && <div class="actions">{actions}</div>}
      </header>
      {children}
    </div>
  )
}

const TONES: Readonly<Record<string, string>> = {
  ...of('good', 'active', 'completed', 'healthy', 'ready', 'ok', 'idle', 'finished', 'running', 'enabled'),
  ...of('good', 'connected', 'trusted', 'valid', 'present', 'authenticated', 'yes', 'delivered', 'installed', 'pass'),
  ...of('busy', 'connecting', 'delegated', 'prepared'),
  ...of(
    'warn',
    'warn',
    'changed',
    'untrusted',
    'auth_required',
    'away',
    'full',
    'edited',
    'update available',
    'skipped',
  ),
  ...of('bad', 'invalid', 'broken', 'revoked', 'missing', 'fail'),
  ...of('busy', 'in_progress', 'starting', 'claimed', 'working', 'queued', 'scheduled', 'stopping'),
  ...of(
    'warn',
    'blocked',
    'needs_attention',
    'needs_input',
    'warning',
    'pending',
    'waiting',
    'degraded',
    'permission',
    'approval',
  ),
  ...of('bad', 'failed', 'error', 'critical', 'failure', 'unhealthy'),
}

function of(tone: string, ...words: readonly string[]): Record<string, string> {
  return Object.fromEntries(words.map(word => [word, tone]))
}

/** A status. The colour only repeats the meaning of the word. */
export function Badge({ of: word }: { readonly of: string }) {
  return <span class={`badge ${TONES[word] ?? 'plain'}`}>{word.replaceAll('_', ' ')}</span>
}

/** An error, with the next step. */
export function Problem({ error, retry }: { readonly error: unknown; readonly retry?: () => void }) {
  if (error === undefined) return null
  const next = error instanceof ApiFault ? error.next : undefined
  return (
    <div class="problem" role="alert">
      <p>{faultText(error)}</p>
      {next && (
        <p class="muted">
          {text.next} {next.startsWith('svc ') ? <Command line={next} /> : next}
        </p>
      )}
      {retry && (
        <button type="button" onClick={retry}>
          {text.retry}
        </button>
      )}
    </div>
  )
}

export function Empty({ children, command }: { readonly children: ComponentChildren; readonly command?: string }) {
  return (
    <div class="empty">
      <p>{children}</p>
      {command && <Command line={command} />}
    </div>
  )
}

export const Loading = () => <p class="muted loading">{text.loading}</p>

/** Names and values; rows without a value are omitted. */
export function Fields({ of: rows }: { readonly of: readonly (readonly [string, ComponentChildren])[] }) {
  return (
    <dl class="fields">
      {rows.map(([name, value]) =>
        value === undefined || value === null || value === '' || value === false ? null : (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ),
      )}
    </dl>
  )
}

/** Preformatted text, scrollable also by keyboard. */
export function Code({ label, children }: { readonly label: string; readonly children: string }) {
  return (
    <pre class="code" tabIndex={0} role="region" aria-label={label}>
      {children}
    </pre>
  )
}

/** A button that calls the daemon: disabled during the call, with an error below. */
export function Action({
  label,
  run,
  tone = '',
}: {
  readonly label: string
  readonly run: () => Promise<unknown>
  readonly tone?: 'primary' | 'danger' | ''
}) {
  const [state, set] = useState<{ busy: boolean; error?: unknown }>({ busy: false })
  const alive = useRef(true)
  useEffect(
    () => () => {
      alive.current = false
    },
    [],
  )
  const click = async () => {
    set({ busy: true })
    try {
      await run()
      if (alive.current) set({ busy: false })
    } catch (error) {
      if (alive.current) set({ busy: false, error })
    }
  }
  return (
    <>
      <button type="button" class={tone} aria-disabled={state.busy} onClick={() => void (state.busy || click())}>
        {label}
      </button>
      {state.error !== undefined && <Problem error={state.error} />}
    </>
  )
}
