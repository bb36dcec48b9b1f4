import { signal } from '@preact/signals'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { announce } from '../core/announce.js'
import { go } from '../core/router.js'
import { text } from '../text.js'
import { manageViews } from '../views/manage/index.js'

/** A command of the command line, with its summary. */
type Listed = readonly [path: string, summary: string]

interface Choice {
  readonly title: string
  readonly note: string
  readonly line?: string
  readonly to?: readonly string[]
}

const isOpen = signal(false)
let listed: Promise<readonly Listed[]> | undefined

export const openPalette = (): void => {
  isOpen.value = true
}

addEventListener('keydown', event => {
  if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === 'k') {
    event.preventDefault()
    isOpen.value = !isOpen.value
  }
})

const views: readonly Choice[] = [
  ...(['home', 'sessions', 'work', 'desktops', 'automation'] as const).map(name => ({
    title: text.views[name],
    note: text.palette.view,
    to: [name],
  })),
  { title: text.graph.title, note: text.palette.view, to: ['work', 'graph'] },
  { title: text.runs.title, note: text.palette.view, to: ['work', 'runs'] },
  { title: text.worktrees.title, note: text.palette.view, to: ['work', 'worktrees'] },
  { title: text.graph.parts.inbox, note: text.palette.view, to: ['work', 'inbox'] },
  { title: text.archive.view, note: text.palette.view, to: ['sessions', 'archived'] },
  ...manageViews.map(({ name, title }) => ({ title, note: text.palette.view, to: ['manage', name] })),
  { title: text.automation.triggers, note: text.palette.view, to: ['automation', 'triggers'] },
  { title: text.calendar.title, note: text.palette.view, to: ['automation', 'calendar', 'week'] },
  { title: text.programLog.program, note: text.palette.view, to: ['manage', 'logs', 'program'] },
]

/** Views by the commands that show the same data. */
const VIEWS_OF: readonly (readonly [RegExp, readonly string[]])[] = [
  [/^(?:overview|status|top|attention)\b/, ['home']],
  [/^session (?:list|attention)$/, ['sessions']],
  [/^task (?:list|board)$/, ['work']],
  [/^task run (?:all|list)$/, ['work', 'runs']],
  [/^worktree list$/, ['work', 'worktrees']],
  [/^inbox$/, ['work', 'inbox']],
  [/^desktop list$/, ['desktops']],
  [/^automation jobs list$/, ['automation']],
  [/^automation triggers list$/, ['automation', 'triggers']],
  [/^automation simulate$/, ['automation', 'calendar', 'week']],
  [/^automation jobs create$/, ['automation', 'jobs', '+']],
  [/^automation triggers create$/, ['automation', 'triggers', '+']],
  [/^bridge (?:create|setup)$/, ['manage', 'bridges', '+']],
  [/^tool grants put$/, ['manage', 'grants', '+']],
  [/^tool approve$/, ['manage', 'approvals']],
  [/^extension install$/, ['manage', 'extensions', '+']],
  [/^mcp add$/, ['manage', 'mcp', '+']],
  [/^network (?:join|leave|remote|offers|shared list)$/, ['manage', 'network', 'daemons']],
  [/^network peer add$/, ['manage', 'network', 'daemons', '+']],
  [/^network (?:threads list|directs list|send|watch)$/, ['manage', 'network', 'channels']],
  [/^network peers list$/, ['manage', 'network', 'peers']],
  [/^network peer keys$/, ['manage', 'network', 'daemons']],
  [/^logs$/, ['manage', 'logs', 'program']],
  ...manageViews.map(
    ({ name, command }) => [new RegExp(`^${command.replace(/^svc /, '')}$`), ['manage', name]] as const,
  ),
]

const choiceOf = ([path, summary]: Listed): Choice => {
  const to = VIEWS_OF.find(([pattern]) => pattern.test(path))?.[1]
  return { title: summary, note: `svc ${path}`, line: `svc ${path}`, ...(to && { to }) }
}

const load = () => {
  listed ??= fetch('/console/assets/commands.json').then(reply => reply.json())
  listed.catch(() => {
    listed = undefined
  })
  return listed
}

const MOST_SHOWN = 50

/** Views and commands that contain all words of the search. Matches at the beginning come first. */
function search(choices: readonly Choice[], query: string): readonly Choice[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean)
  const textOf = ({ title, note }: Choice) => `${title} ${note}`.toLowerCase()
  const found = choices.filter(choice => words.every(word => textOf(choice).includes(word)))
  const rank = ({ title, note }: Choice) =>
    Number(!`${title}`.toLowerCase().startsWith(query) && !note.startsWith(`svc ${query}`))
  return [...found].sort((a, b) => rank(a) - rank(b)).slice(0, MOST_SHOWN)
}

export function Palette() {
  return isOpen.value ? <Dialog /> : null
}

function Dialog() {
  const dialog = useRef<HTMLDialogElement>(null)
  const [commands, setCommands] = useState<readonly Listed[]>([])
  const [query, setQuery] = useState('')
  const [at, setAt] = useState(0)
  useEffect(() => {
    dialog.current?.showModal()
    load().then(setCommands, () => {})
  }, [])
  const found = useMemo(
    () => search([...views, ...commands.map(choiceOf)], query.trim().toLowerCase()),
    [commands, query],
  )
  const close = () => {
    isOpen.value = false
  }
  const choose = async (choice: Choice | undefined) => {
    if (!choice) return
    close()
    if (choice.to) return go(...choice.to)
    await navigator.clipboard.writeText(choice.line ?? '').catch(() => {})
    announce(text.palette.copied(choice.line ?? ''))
  }
  const keyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step !== undefined) {
      event.preventDefault()
      const next = (at + step + found.length) % Math.max(1, found.length)
      setAt(next)
      document.getElementById(`choice-${next}`)?.scrollIntoView({ block: 'nearest' })
    } else if (event.key === 'Enter') {
      event.preventDefault()
      void choose(found[at])
    }
  }
  return (
    <dialog
      ref={dialog}
      class="palette"
      aria-label={text.palette.title}
      onClose={close}
      onClick={event => event.target === dialog.current && close()}
    >
      <input
        type="text"
        role="combobox"
        aria-label={text.palette.hint}
        placeholder={text.palette.hint}
        aria-expanded="true"
        aria-controls="choices"
        aria-activedescendant={found.length > 0 ? `choice-${at}` : undefined}
        autoComplete="off"
        value={query}
        onInput={event => {
          setQuery(event.currentTarget.value)
          setAt(0)
        }}
        onKeyDown={keyDown}
      />
      {found.length === 0 ? (
        <p class="muted">{text.palette.empty}</p>
      ) : (
        <ul id="choices" role="listbox" aria-label={text.commands} tabIndex={-1}>
          {found.map((choice, n) => (
            <li
              id={`choice-${n}`}
              key={`${choice.note} ${choice.title}`}
              role="option"
              aria-selected={n === at}
              onClick={() => void choose(choice)}
            >
              <span>{choice.title}</span>
              <code>{choice.note}</code>
            </li>
          ))}
        </ul>
      )}
    </dialog>
  )
}
