import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { announcement } from '../core/announce.js'
import { signOut } from '../core/api.js'
import { daemonEvents } from '../core/events.js'
import { linkTo, place } from '../core/router.js'
import { text } from '../text.js'
import { manageViews } from '../views/manage/index.js'
import { openPalette, Palette } from './palette.js'
import { Command } from './parts.js'

const ICONS: Readonly<Record<string, string>> = {
  home: 'M3 9.5 10 4l7 5.5V16a1 1 0 0 1-1 1h-3.5v-4.5h-5V17H4a1 1 0 0 1-1-1z',
  sessions:
    'M3 5.5A1.5 1.5 0 0 1 4.5 4h11A1.5 1.5 0 0 1 17 5.5v7a1.5 1.5 0 0 1-1.5 1.5H9l-4 3v-3h-.5A1.5 1.5 0 0 1 3 12.5z',
  work: 'M3.5 4h3.6v12H3.5zM8.2 4h3.6v8H8.2zM12.9 4h3.6v10h-3.6z',
  desktops: 'M3 4.500h14v9H3zM10 4.500v9M7 16.500h6',
  automation: 'M10 3.5a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13zM10 6.500v4l2.600 1.700',
  manage: 'M3 6h6M13 6h4M3 14h3M10 14h7M11 4v4M8 12v4',
}

const views = ['home', 'sessions', 'work', 'desktops', 'automation', 'manage'] as const

const Icon = ({ name }: { readonly name: string }) => (
  <svg class="icon" viewBox="0 0 20 20" aria-hidden="true">
    <path d={ICONS[name]} />
  </svg>
)

/** On narrow screens, a button opens the list of views; elsewhere the style sheet always shows it. */
function Navigation() {
  const [view = 'home', sub] = place.value
  const [isOpen, setOpen] = useState(false)
  const nav = useRef<HTMLElement>(null)
  const button = useRef<HTMLButtonElement>(null)
  useEffect(() => setOpen(false), [place.value])
  useEffect(() => {
    if (!isOpen) return
    const over = new AbortController()
    const isInside = (event: Event) => nav.current?.contains(event.target as Node)
    const leave = (event: Event) => isInside(event) || setOpen(false)
    document.addEventListener('pointerdown', leave, { signal: over.signal })
    document.addEventListener('focusin', leave, { signal: over.signal })
    return () => over.abort()
  }, [isOpen])
  const keyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Escape' || !isOpen) return
    setOpen(false)
    button.current?.focus()
  }
  return (
    <nav class={`nav ${isOpen ? 'open' : ''}`} aria-label={text.navigation} ref={nav} onKeyDown={keyDown}>
      <p class="brand">
        <span class="mark" aria-hidden="true" />
        svc
      </p>
      <button
        type="button"
        class="menu"
        ref={button}
        aria-expanded={isOpen}
        aria-controls="views"
        onClick={() => setOpen(!isOpen)}
      >
        <svg class="icon" viewBox="0 0 20 20" aria-hidden="true">
          <path d="M3 5.500h14M3 10h14M3 14.500h14" />
        </svg>
        <span>{text.menu}</span>
      </button>
      <ul id="views" onClick={event => event.target instanceof Element && event.target.closest('a') && setOpen(false)}>
        {views.map(name => (
          <li key={name}>
            <a
              href={linkTo(name)}
              aria-current={view === name && (name !== 'manage' || sub === undefined) ? 'page' : undefined}
            >
              <Icon name={name} />
              <span>{text.views[name]}</span>
            </a>
            {name === 'manage' && view === 'manage' && (
              <ul class="subnav">
                {manageViews.map(({ name: id, title }) => (
                  <li key={id}>
                    <a href={linkTo('manage', id)} aria-current={sub === id ? 'page' : undefined}>
                      {title}
                    </a>
                  </li>
                ))}
              </ul>
            )}
          </li>
        ))}
      </ul>
      <div class="nav-foot">
        <button type="button" class="search" onClick={openPalette} aria-keyshortcuts="Control+K">
          <span>{text.search}</span>
          <kbd>Ctrl K</kbd>
        </button>
        <LinkState />
        <button type="button" class="quiet" onClick={() => void signOut()}>
          {text.signOut}
        </button>
      </div>
    </nav>
  )
}

/** The state of the connection to the daemon. */
function LinkState() {
  const link = daemonEvents.link.value
  return (
    <p class={`link ${link}`} role="status">
      <span class="dot" aria-hidden="true" />
      <span>{text.link[link]}</span>
    </p>
  )
}

/** The notice on a cached page, while the daemon is stopped. */
function Stopped() {
  if (daemonEvents.link.value !== 'lost') return null
  return (
    <div class="stopped" role="alert">
      <p>
        <strong>{text.stopped.title}</strong> {text.stopped.how}
      </p>
      <Command line="svc daemon start" />
    </div>
  )
}

export function Shell({ children }: { readonly children: ComponentChildren }) {
  return (
    <div class="shell">
      <a
        class="skip"
        href="#content"
        onClick={event => {
          event.preventDefault()
          document.getElementById('content')?.focus()
        }}
      >
        {text.skip}
      </a>
      <Navigation />
      <Stopped />
      {children}
      <Palette />
      <div class="unseen" aria-live="polite">
        {announcement.value}
      </div>
    </div>
  )
}
