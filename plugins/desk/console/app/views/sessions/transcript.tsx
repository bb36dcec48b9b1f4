import { useEffect, useRef, useState } from 'preact/hooks'
import { VList, type VListHandle } from 'virtua'
import { text } from '../../text.js'
import { Loading } from '../../ui/parts.js'
import { Message } from './message.js'
import type { Entry, TranscriptState } from './use-transcript.js'

const words = text.sessions

/** Distance from an end, in pixels, that counts as the end. */
const NEAR = 80
/** Time after a wheel, touch, key or pointer event in which a scroll counts as caused by the person. */
const MOVE_MS = 1000

/**
 * The messages of a session. The list follows new messages until a person scrolls away, and stays in place when older ones load.
 */
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
  const movedAt = useRef(Number.NEGATIVE_INFINITY)
  const moved = () => {
    movedAt.current = performance.now()
  }
  const [isAway, setAway] = useState(false)
  const { entries, isLoaded, hasOlder, version, isShift } = transcript
  const toEnd = () => list.current?.scrollToIndex(entries.length - 1, { align: 'end' })
  useEffect(() => {
    if (!isAtEnd.current || entries.length === 0) return
    toEnd()
    // Rendering makes a new message higher.
    const frame = requestAnimationFrame(() => isAtEnd.current && toEnd())
    return () => cancelAnimationFrame(frame)
  }, [version, entries.length])
  if (!isLoaded) return <Loading />
  if (entries.length === 0) return <p class="muted nothing">{words.empty}</p>
  const scrolled = (offset: number) => {
    const { current } = list
    if (!current) return
    // Growing messages move the end, and the list corrects its offset; only a scroll by a person leaves the end.
    if (offset + current.viewportSize >= current.scrollSize - NEAR) isAtEnd.current = true
    else if (performance.now() - movedAt.current < MOVE_MS) isAtEnd.current = false
    setAway(!isAtEnd.current)
    if (offset < NEAR && hasOlder) void transcript.loadOlder()
  }
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: it only learns that a person moves the list in it
    <div class="transcript" onWheel={moved} onTouchMove={moved} onKeyDown={moved} onPointerDown={moved}>
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
        <button
          type="button"
          class="latest"
          onClick={() => {
            isAtEnd.current = true
            setAway(false)
            toEnd()
          }}
        >
          {words.latest}
        </button>
      )}
    </div>
  )
}
