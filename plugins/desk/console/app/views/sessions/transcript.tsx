import { useEffect, useRef, useState } from 'preact/hooks'
import { VList, type VListHandle } from 'virtua'
import { text } from '../../text.js'
import { Loading } from '../../ui/parts.js'
import { Message } from './message.js'
import type { Entry, TranscriptState } from './use-transcript.js'

const words = text.sessions

/** Pixels from an end that count as being there. */
const NEAR = 80

/** The messages of a session. It stays at the newest one while a person has not scrolled away, and keeps its place when older ones load. */
export function Transcript({
  transcript,
  agent,
  isBusy,
  rewind,
}: {
  readonly transcript: TranscriptState
  readonly agent: string
  readonly isBusy: boolean
  readonly rewind: (entry: Entry) => void
}) {
  const list = useRef<VListHandle>(null)
  const isAtEnd = useRef(true)
  const [isAway, setAway] = useState(false)
  const { entries, isLoaded, hasOlder, version, isShift } = transcript
  const toEnd = () => list.current?.scrollToIndex(entries.length - 1, { align: 'end' })
  useEffect(() => {
    if (isAtEnd.current && entries.length > 0) toEnd()
  }, [version, entries.length])
  if (!isLoaded) return <Loading />
  if (entries.length === 0) return <p class="muted nothing">{words.empty}</p>
  const scrolled = (offset: number) => {
    const { current } = list
    if (!current) return
    isAtEnd.current = offset + current.viewportSize >= current.scrollSize - NEAR
    setAway(!isAtEnd.current)
    if (offset < NEAR && hasOlder) void transcript.loadOlder()
  }
  return (
    <div class="transcript">
      <VList
        ref={list as never}
        class="messages"
        shift={isShift}
        onScroll={scrolled}
        tabIndex={0}
        role="region"
        aria-label={words.transcript}
      >
        {entries.map(entry => (
          <Message key={entry.message.id} entry={entry} agent={agent} rewind={isBusy ? undefined : rewind} />
        ))}
      </VList>
      {isBusy && <p class="working muted">{words.working}</p>}
      {isAway && (
        <button type="button" class="latest" onClick={toEnd}>
          {words.latest}
        </button>
      )}
    </div>
  )
}
