import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { announce } from '../../core/announce.js'
import { api, type ReplyOf, urlOf } from '../../core/api.js'
import { missed } from '../../core/events.js'
import { SharedStream } from '../../core/shared-stream.js'
import { text } from '../../text.js'

export interface Place {
  readonly workspace_id: string
  readonly session_id: string
}

type Page = ReplyOf<'GET /api/workspaces/{workspace_id}/sessions/{session_id}/transcript'>
export type Entry = Page['entries'][number]

export interface TranscriptState {
  readonly entries: readonly Entry[]
  readonly hasOlder: boolean
  readonly isLoaded: boolean
  readonly error: unknown
  /** Whether the turn of the last message is still running. */
  readonly isOpen: boolean
  /** Increases with each change. */
  readonly version: number
  /** Whether the last change inserted older entries at the beginning. */
  readonly isShift: boolean
  loadOlder(): Promise<void>
  /** Ends the wait before the next attempt to read. */
  wake(): void
}

const ROUTE = 'GET /api/workspaces/{workspace_id}/sessions/{session_id}/transcript'
const PAGE = 50

interface Known {
  readonly entries: ReadonlyMap<string, Entry>
  readonly older: number | undefined
  readonly isLoaded: boolean
  readonly version: number
  readonly isShift: boolean
}

const nothing: Known = { entries: new Map(), older: undefined, isLoaded: false, version: 0, isShift: false }

/** Applies a frame. It contains every changed entry completely, so a repeated frame changes nothing. */
function merged(before: ReadonlyMap<string, Entry>, changed: readonly Entry[]): ReadonlyMap<string, Entry> {
  const entries = new Map(before)
  const last = [...before.values()].at(-1)?.start_sequence ?? 0
  let isSorted = true
  for (const entry of changed) {
    const known = entries.get(entry.message.id)
    if (!known) isSorted &&= entry.start_sequence > last
    if (!known || known.sequence <= entry.sequence) entries.set(entry.message.id, entry)
  }
  // New entries belong at the end; only older pages need sorting.
  return isSorted ? entries : new Map([...entries].sort(([, a], [, b]) => a.start_sequence - b.start_sequence))
}

/** The text of a person's prompt. */
export const promptText = ({ message }: Entry): string =>
  message.parts.flatMap(({ type, text: words }) => (type === 'text' && words ? [words] : [])).join('\n')

const isEnded = (entry: Entry | undefined): boolean =>
  entry?.message.role !== 'assistant' ||
  (entry.message.metadata as { status?: string } | undefined)?.status !== undefined

/** The live transcript of a session. */
export function useTranscript(at: Place): TranscriptState {
  const [known, set] = useState<Known>(nothing)
  const [error, setError] = useState<unknown>()
  const fence = useRef<Pick<Page, 'epoch' | 'generation'> | undefined>(undefined)
  const isLoading = useRef(false)
  const stream = useMemo(
    () =>
      new SharedStream(`session ${at.session_id}`, () =>
        urlOf(
          '/api/workspaces/{workspace_id}/sessions/{session_id}/stream',
          { ...at },
          { frames: 'transcript', ...fence.current },
        ),
      ),
    [at.session_id],
  )
  const again = missed.value
  useEffect(() => {
    const over = new AbortController()
    let stop: (() => void) | undefined
    const take = (change: (before: Known) => Partial<Known>) =>
      set(before => ({ ...before, isShift: false, ...change(before), version: before.version + 1 }))
    const begin = (page: Page) => {
      fence.current = { epoch: page.epoch, generation: page.generation }
      take(before => ({
        entries: merged(before.entries, page.entries),
        ...(!before.isLoaded && { older: page.has_older ? page.next_before_sequence : undefined }),
        isLoaded: true,
      }))
      stream.startAfter(String(page.max_sequence))
      stop = stream.follow(({ event, data }) => {
        if (event === 'transcript_delta') {
          const { entries } = data as { entries: readonly Entry[] }
          take(before => {
            const all = merged(before.entries, entries)
            const last = entries.at(-1)
            const was = last && before.entries.get(last.message.id)
            if (last && isEnded(last) && was && !isEnded(was)) announce(text.sessions.said(last.message.role))
            return { entries: all }
          })
        } else if (event === 'transcript_snapshot') {
          const page = data as Omit<Page, 'limit'> & { readonly reason?: string }
          fence.current = { epoch: page.epoch, generation: page.generation }
          // A rewind removes entries. Without a fence, the snapshot contains only the newest entries.
          const isOther = page.reason !== undefined && page.reason !== 'fence_missing'
          take(before => ({
            entries: merged(isOther ? new Map() : before.entries, page.entries),
            ...(isOther && { older: page.has_older ? page.next_before_sequence : undefined }),
          }))
        }
      })
    }
    api(ROUTE, { path: at, query: { limit: PAGE } }, over.signal).then(
      page => over.signal.aborted || begin(page),
      problem => over.signal.aborted || setError(problem),
    )
    return () => {
      over.abort()
      stop?.()
    }
  }, [at.session_id, again])
  const entries = useMemo(() => [...known.entries.values()], [known.entries])
  return {
    entries,
    hasOlder: known.older !== undefined,
    isLoaded: known.isLoaded,
    error,
    isOpen: !isEnded(entries.at(-1)),
    version: known.version,
    isShift: known.isShift,
    wake: () => stream.wake(),
    async loadOlder() {
      if (known.older === undefined || isLoading.current) return
      isLoading.current = true
      try {
        const page = await api(ROUTE, { path: at, query: { limit: PAGE, before_sequence: known.older } })
        set(before => ({
          ...before,
          entries: merged(before.entries, page.entries),
          older: page.has_older ? page.next_before_sequence : undefined,
          version: before.version + 1,
          isShift: true,
        }))
      } catch (problem) {
        setError(problem)
      } finally {
        isLoading.current = false
      }
    },
  }
}
