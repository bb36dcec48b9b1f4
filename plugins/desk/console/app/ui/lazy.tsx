import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Columns } from './columns.js'
import { Loading, Page, Problem } from './parts.js'

/** A view whose code is loaded on first use. */
export function lazyView<P extends object>(title: string, load: () => Promise<ComponentType<P>>): ComponentType<P> {
  let loaded: ComponentType<P> | undefined
  return function LazyView(props: P) {
    const [error, setError] = useState<unknown>()
    const [attempt, setAttempt] = useState(0)
    const [, setDone] = useState(false)
    useEffect(() => {
      if (loaded) return
      load().then(component => {
        loaded = component
        setDone(true)
      }, setError)
    }, [attempt])
    const View = loaded
    if (View) return <View {...props} />
    return (
      <Columns>
        {error === undefined ? (
          <Loading />
        ) : (
          <Page title={title}>
            <Problem
              error={error}
              retry={() => {
                setError(undefined)
                setAttempt(attempt + 1)
              }}
            />
          </Page>
        )}
      </Columns>
    )
  }
}
