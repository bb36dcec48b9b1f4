import { useEffect, useRef, useState } from 'preact/hooks'
import { missed, onEvent } from './events.js'

export interface Resource<T> {
  readonly data: T | undefined
  readonly error: unknown
  /** Loads the data again. */
  reload(): void
}

/** Events within this time cause one request. */
const GATHER_MS = 200

/**
 * Loads data when `deps` change, when an event with a matching type occurs, and when events were missed. The previous data stays
 * visible during a reload.
 */
export function useResource<T>(
  load: (signal: AbortSignal) => Promise<T>,
  deps: readonly unknown[],
  changes?: RegExp,
): Resource<T> {
  const [state, set] = useState<{ data?: T; error?: unknown; of: string }>({ of: '' })
  const [turn, setTurn] = useState(0)
  const key = JSON.stringify(deps)
  const latest = useRef(load)
  latest.current = load
  const again = missed.value
  useEffect(() => {
    const over = new AbortController()
    latest.current(over.signal).then(
      data => over.signal.aborted || set({ data, of: key }),
      error =>
        over.signal.aborted ||
        set(before => ({ ...(before.of === key && { data: before.data as T }), error, of: key })),
    )
    return () => over.abort()
  }, [key, turn, again])
  useEffect(() => {
    if (!changes) return
    let timer: ReturnType<typeof setTimeout> | undefined
    const stop = onEvent(({ type }) => {
      if (!changes.test(type)) return
      timer ??= setTimeout(() => {
        timer = undefined
        setTurn(n => n + 1)
      }, GATHER_MS)
    })
    return () => {
      clearTimeout(timer)
      stop()
    }
  }, [changes?.source])
  const isOf = state.of === key
  return {
    data: isOf ? state.data : undefined,
    error: isOf ? state.error : undefined,
    reload: () => setTurn(n => n + 1),
  }
}
